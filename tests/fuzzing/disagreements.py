"""Comparison of refusals by real XLA and the reader, on the corpus and on programs with a single edit."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from attrs import frozen

import xbuild as xb
from tests.fuzzing.edits import Slip
from tests.fuzzing.mutations import FOLDER

BATCH = 500


@frozen
class Case:
    name: str
    text: str
    counts: tuple[int, int]
    what: str = ""
    lines: tuple[str, str] = ("", "")


def programs(largest: int) -> Iterator[Case]:
    for entry in json.loads((FOLDER / "manifest.json").read_text()):
        text = (FOLDER / entry["file"]).read_text()
        if len(text) <= largest and entry["kind"] != "parse-only" and not entry["custom_call_targets"]:
            yield Case(entry["file"], text, (entry["num_replicas"], entry["num_partitions"]))


def slips(cases: Sequence[Case], seeds: Iterable[int]) -> Iterator[Case]:
    for seed in seeds:
        case = cases[seed % len(cases)]
        slip = Slip(seed, case.text)
        if slip.what:
            yield Case(f"{case.name}:{seed}", slip.text, case.counts, slip.what, slip.lines)


def of_xla(cases: Sequence[Case]) -> list[str]:
    """What real XLA says against each, "" where it compiles it."""
    lines = "".join(f"{json.dumps((case.text, *case.counts))}\n" for case in cases)
    command = [sys.executable, "-m", "tests.fuzzing.xla"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def of_ours(case: Case) -> str:
    try:
        verdict = xb.check(xb.parse_hlo(case.text))
    except xb.HloParseError as error:
        return f"{error.kind}: {error.faults[0].message}"
    return f"check {verdict}" if verdict.kind == "error" else ""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edits", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--largest", type=int, default=4000)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args(arguments)
    whole = list(programs(chosen.largest))
    compiled = [case for case, said in zip(whole, of_xla(whole), strict=True) if not said]
    print(f"{len(compiled)} of {len(whole)} programs compile")
    cases = list(slips(compiled, range(chosen.seed, chosen.seed + chosen.edits)))
    counts: Counter[str] = Counter()
    for begin in range(0, len(cases), BATCH):
        some = cases[begin : begin + BATCH]
        for case, theirs in zip(some, of_xla(some), strict=True):
            ours = of_ours(case)
            counts[f"XLA {'refuses' if theirs else 'accepts'}, {'refused' if ours else 'accepted'} here"] += 1
            if bool(theirs) != bool(ours) and chosen.out:
                with chosen.out.open("a") as file:
                    file.write(json.dumps([case.name, case.what, case.lines, theirs, ours]) + "\n")
    for row, count in counts.items():
        print(f"{row:40} {count:6}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
