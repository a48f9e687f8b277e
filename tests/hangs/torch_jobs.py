"""Runs drawn jobs on real processes of torch (CPU, gloo), and compares what `xbuild hang` finds with the fault.

    PYTHON_WITH_TORCH -m tests.hangs.torch_jobs FOLDER --jobs 24

The interpreter needs torch 2.13 and the dependencies of xbuild. Each rank writes the dump of its Flight Recorder from a
thread and after each launch, because a wrong size ends a rank. The programs and faults are those of `drawing_jobs.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.hangs.drawing_jobs import draw_job

MOST_SECONDS = 75.0
STUCK_SECONDS = 4.0
"""A job is stuck if no dump has changed for this time."""


def run_rank(job: dict[str, Any], folder: Path) -> None:
    """The program of one rank."""
    import torch
    import torch.distributed as dist

    rank = int(os.environ["RANK"])
    lock = threading.Lock()

    def dump() -> None:
        with lock:
            data = torch._C._distributed_c10d._dump_fr_trace()
            part = folder / f".part_{rank}"
            part.write_bytes(data)
            part.replace(folder / f"_dump_{rank}")

    def keep_dumping() -> None:
        while True:
            dump()
            time.sleep(0.3)

    dist.init_process_group("gloo")
    groups = [dist.group.WORLD, *(dist.new_group(members) for members in job["groups"][1:])]
    threading.Thread(target=keep_dumping, daemon=True).start()
    types = {"float32": torch.float32, "int32": torch.int32, "float64": torch.float64, "int64": torch.int64}
    for call in job["programs"][rank]:
        time.sleep(0.7 * call.get("late", 0))
        x = torch.ones(call["size"], dtype=types[call["dtype"]])
        group, members = groups[call["group"]], job["groups"][call["group"]]
        if call["op"] == "dies":
            os.kill(os.getpid(), 9)
        elif call["op"] == "sleeps":
            time.sleep(1000)
        elif call["op"] == "all_reduce":
            work = dist.all_reduce(x, group=group, async_op=True)
        elif call["op"] == "broadcast":
            work = dist.broadcast(x, members[0], group=group, async_op=True)
        elif call["op"] == "reduce":
            work = dist.reduce(x, members[0], group=group, async_op=True)
        elif call["op"] == "all_gather":
            work = dist.all_gather([torch.empty_like(x) for _ in members], x, group=group, async_op=True)
        else:
            work = dist.barrier(group=group, async_op=True)
        dump()
        work.wait()
        dump()
    time.sleep(1000)


def run_job(job: dict[str, Any], folder: Path, port: int) -> None:
    """Run a job until it is stuck, and leave its dumps and the log of its launcher in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    description = folder.parent / f"{folder.name}.json"
    description.write_text(json.dumps(job))
    world = len(job["programs"])
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc_per_node={world}", f"--master_port={port}",
               "-m", "tests.hangs.torch_jobs", str(folder), "--rank-of", str(description)]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with open(folder / "launcher.log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        _wait_until_stuck(process, folder, world)
        process.terminate()  # the launcher ends the ranks
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_stuck(process: subprocess.Popen[bytes], folder: Path, world: int) -> None:
    """RankWait until all ranks have launched something and no dump changes any more, or until the job ends."""
    begin = since = time.monotonic()
    before: list[bytes] = []
    while time.monotonic() - begin < MOST_SECONDS and process.poll() is None:
        time.sleep(0.25)
        dumps = [path.read_bytes() for path in sorted(folder.glob("_dump_*"))]
        if dumps != before or len(dumps) < world or min(map(len, dumps)) < 600:
            before, since = dumps, time.monotonic()
        elif time.monotonic() - since > STUCK_SECONDS:
            return


def judge(job: dict[str, Any], folder: Path) -> tuple[bool, str]:
    """Whether the ranks and the kind are those of the fault."""
    from xbuild.hangs import diagnose, read_job

    found = diagnose(read_job([folder]))
    ranks, kinds = [root.rank for root in found.roots], sorted({root.kind for root in found.roots})
    truth = job["truth"]
    is_right = ranks == truth["ranks"] and kinds == [truth["kind"]]
    return is_right, f"{folder.name} {job['fault']}: expected {truth['ranks']} {truth['kind']}, found {ranks} {kinds}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=24)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rank-of", type=Path)
    parser.add_argument("--judge-only", action="store_true")
    options = parser.parse_args()
    if options.rank_of:
        run_rank(json.loads(options.rank_of.read_text()), options.folder)
        return
    right = 0
    for seed in range(options.first, options.first + options.jobs):
        job, folder = draw_job(seed), options.folder / f"job_{seed:02}"
        if not options.judge_only:
            run_job(job, folder, 29800 + seed)
        is_right, sentence = judge(job, folder)
        right += is_right
        print("right" if is_right else "WRONG", sentence, flush=True)
    print(f"{right} of {options.jobs} right")


if __name__ == "__main__":
    main()
