"""Compare the answers of `xbuild hang`, and those of PyTorch's own analyser, with the truth."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from .running import ROOT, Trial


def ask(folder: Path) -> dict[str, Any]:
    """The answer of `xbuild hang` on the dumps and the log of one job."""
    command = [sys.executable, "-m", "xbuild", "hang", str(folder / "dumps"), "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    if done.returncode not in (0, 1):
        return {"sentence": f"exit status {done.returncode}: {done.stderr.strip()[-300:]}", "roots": []}
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def compare(truth: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Whether the ranks, the kind, and where it is defined the number of the operation are those of the truth."""
    roots = answer["roots"]
    ranks, kinds = sorted({root["rank"] for root in roots}), sorted({root["kind"] for root in roots})
    sequences = {root["sequence"] for root in roots}
    return {
        "ranks": ranks,
        "kinds": kinds,
        "right_ranks": ranks == truth["ranks"],
        "right": ranks == truth["ranks"] and len(kinds) == 1 and kinds[0] in truth["kinds"],
        "right_sequence": sequences == {truth["sequence"]} if truth.get("sequence") else None,
    }


def ask_torch(trial: Trial, folder: Path, python: str) -> dict[str, Any]:
    """What PyTorch's analyser says about the same dumps, given the groups that gloo leaves out."""
    copy = folder / "for_torch"
    copy.mkdir(exist_ok=True)
    groups = _groups(folder)
    present = []
    for path in (folder / "dumps").rglob("*"):
        match = re.search(r"(\d+)\D*$", str(path.relative_to(folder)))
        if not path.is_file() or path.name == "launcher.log" or match is None:
            continue
        rank = int(match[1])
        present.append(rank)
        dump = pickle.loads(path.read_bytes())  # written by our own ranks
        if not dump["pg_config"].get("0"):
            dump["pg_config"] = {
                name: {"name": name, "desc": description, "ranks": str(ranks)}
                for name, description, ranks in groups
                if rank in ranks
            }
        (copy / f"trace_rank_{rank}").write_bytes(pickle.dumps(dump))
    world = trial["world"] if "world" in trial else trial["job"]["world"]
    options = [] if len(present) == world else ["--allow-incomplete-ranks"]
    return run_analyser(copy, "trace_rank_", python, options)


def _groups(folder: Path) -> list[tuple[str, str, list[int]]]:
    """Name, description and ranks of all groups of a job, as the ranks noted them."""
    found = {}
    for path in (folder / "marks").glob("ready_*"):
        for name, description, ranks in json.loads(path.read_text()).values():
            found[name] = (name, description, ranks)
    return list(found.values())


def run_analyser(dumps: Path, prefix: str, python: str, options: list[str]) -> dict[str, Any]:
    """Runs PyTorch's analyser; `named` has the ranks that each reported mismatch names as missing or as culprits."""
    command = [python, "-m", "torch.distributed.flight_recorder.fr_trace", str(dumps), "-p", prefix, *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    except subprocess.TimeoutExpired:
        return {"status": "limit", "output": "", "named": []}
    output = done.stdout + done.stderr
    named = []
    for line in output.splitlines():
        if line.startswith("missing ranks: {"):
            named.append(sorted(map(int, re.findall(r"\d+", line))))
        elif line.startswith("error msg: "):
            named.append(sorted(set(map(int, re.findall(r"Culprit rank (\d+)", line)))))
    return {"status": done.returncode, "output": output, "named": named}


def rate(truth: dict[str, Any], found: dict[str, Any]) -> str:
    """What PyTorch's analyser found: the ranks at fault exactly, exactly in the first mismatch, or among others."""
    if found["status"] != 0:
        return "fails"
    union = sorted({rank for ranks in found["named"] for rank in ranks})
    if truth["ranks"] == union:
        return "exact"
    if found["named"] and truth["ranks"] == found["named"][0]:
        return "exact at first"
    if set(truth["ranks"]) <= set(union):
        return "among others"
    if union:
        return "other ranks"
    reports = ("mismatch in the collective", "has errors", "Not all ranks", "cannot decide")
    return "a mismatch without ranks" if any(each in found["output"] for each in reports) else "nothing"
