"""Table of limits: every command on every hostile program, with seconds, memory, exit code and last line.

`python -m tests.limits_table` runs all of it; `--only check` or `--only 2^60` what has that in its name.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .support import processes
from .support.hostile import PROGRAMS

ROOT = Path(__file__).parents[1]
SECONDS = 8
GIGABYTES = 1.0
COMMANDS = {
    "show": "show T",
    "show full": "show T --style full",
    "show plan": "show T --plan",
    "show only": "show T --only collectives",
    "check": "check T",
    "check json": "check T --json",
    "check page": "check T --page o.html",
    "check picture": "check T --picture o.svg",
    "check repair": "check T --repair r.hlo",
    "run": "run T --random 0",
    "run strict": "run T --random 0 --strict",
    "run page": "run T --random 0 --page o.html",
    "run trace": "run T --random 0 --trace kept",
    "viz": "viz T",
    "viz svg": "viz T -o o.svg",
    "viz html": "viz T -o v.html",
    "viz dot": "viz T -o o.dot",
    "viz mmd": "viz T -o o.mmd",
    "step": "step T --random 0",
    "extract": "extract T --computation e",
    "diff": "diff T T",
    "diff page": "diff T T --page d.html",
    "cost": "cost T",
    "cost machine": "cost T --machine h100 --page c.html",
    "cost trace": "cost T --machine v5e --trace t.json",
    "cost chakra": "cost T --machine v5e --chakra exported",
    "shard": "shard T",
    "shard hlo": "shard T --hlo",
    "shard parts": "shard T --partitioned",
    "shard beside": "shard T --compare T",
    "equivalent": "equivalent T T",
    "prove": "prove T T",
    "play": "play T -o g.html",
    "learn": "learn 1 --check T",
    "puzzle": "puzzle 1 --check T",
}


class Outcome(NamedTuple):
    """How a command ended."""

    code: int
    seconds: float
    megabytes: float
    said: str

    @property
    def fault(self) -> str:
        """What is wrong with it."""
        if "Traceback" in self.said:
            return "traceback"
        if self.code not in (0, 1, 2, 3):
            return f"exit code {self.code}"
        if self.megabytes > 1024 * GIGABYTES:
            return f"{self.megabytes:,.0f} MB"
        return "" if self.seconds <= 1.5 * SECONDS + 4 else f"{self.seconds:.1f} s"


def outcome(target: Path, command: Sequence[str], seconds: float = SECONDS) -> Outcome:
    """Run a command on a file in a process of its own, in the file's folder; seconds are those of the processor."""
    arguments = [str(target) if each == "T" else each for each in command]
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(
            [sys.executable, "-c", _BOUNDED, sys.executable, "-m", "xbuild", *arguments, "--max-seconds", str(seconds)],
            cwd=target.parent, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        end, peak = time.monotonic() + 6 * seconds, 0.0
        while (found := os.wait4(child.pid, os.WNOHANG))[0] == 0:
            peak = max(peak, processes.peak(child.pid))
            time.sleep(0.02)
            if time.monotonic() > end:
                os.killpg(child.pid, signal.SIGKILL)
                found = os.wait4(child.pid, 0)
                break
        child.returncode = os.waitstatus_to_exitcode(found[1])
        out.seek(0)
        said = out.read()
    used = found[2]
    return Outcome(child.returncode, used.ru_utime + used.ru_stime, peak, said.decode(errors="replace"))


_BOUNDED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
os.execv(sys.argv[1], sys.argv[1:])
"""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[], help="part of the name of a program or command")
    parser.add_argument("--after", default="", help="begin with the program of this name")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    chosen = parser.parse_args(arguments)
    faults = count = 0
    with tempfile.TemporaryDirectory() as folder:
        for program, make in [*PROGRAMS.items()][[*PROGRAMS].index(chosen.after) if chosen.after else 0 :]:
            target = Path(folder) / "program.hlo"
            target.write_text(make())
            for name, command in COMMANDS.items():
                if not all({*each.split(",")} & {name, program} or each in program for each in chosen.only):
                    continue
                shutil.rmtree(target.parent / "exported", ignore_errors=True)  # which a command does not write over
                found = outcome(target, command.split(), chosen.seconds)
                count, faults = count + 1, faults + bool(found.fault)
                last = (found.said.strip().splitlines() or [""])[-1]
                row = f"{program:28} {name:14} {found.code:4} {found.seconds:6.1f} s {found.megabytes:6.0f} MB"
                print(f"{row}  {found.fault:12} {last[:90]}", flush=True)
    print(f"{count} rows, {faults} faults")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
