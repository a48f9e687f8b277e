"""Campaign: random programs for several devices, whose verdict before the run is compared with the run.

Then single ops against real XLA for as long, where jaxlib is installed: tests/oracle/campaign.py.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import sys
import time
from collections import Counter
from collections.abc import Iterable

import xbuild as xb
from interpreter import Limits, Stopped, execute
from tests.support.random_programs import Program, random_program

from .oracle import campaign as oracle

LIMITS = Limits(seconds=10)


def outcome(program: Program, *, check: bool) -> str:
    """How the run ends: `ok`, or the kind of its stop. Unless it is checked, the recorded order is run."""
    try:
        execute(program.module, program.inputs, send_buffers=program.send_buffers, limits=LIMITS, check=check)
    except Stopped as stopped:
        return stopped.report.kind
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "ok"


def disagreement(program: Program) -> str | None:
    """Where the verdict and the run part, in words, or None."""
    verdict = xb.check(program.module, send_buffers=program.send_buffers)
    run = outcome(program, check=False)
    if run == "limit_seconds":
        return "the run came to no end"
    if program.fault:
        found = {finding.kind for finding in verdict.findings}
        return (
            None if verdict.kind == "error" and program.fault in found else f"{program.fault} was built in: {verdict}"
        )
    if verdict.kind not in ("ok", "deadlock"):
        return f"the verdict is {verdict.kind}: {verdict}"
    if verdict.kind == "deadlock":
        return None if run == "deadlock" else f"the verdict is deadlock, and the recorded order ends {run}"
    checked = outcome(program, check=True)
    if checked != "ok":
        return f"the verdict is ok, and the order that it found ends {checked}"
    return f"the verdict on this order is ok, and the run ends {run}" if program.is_given and run != "ok" else None


def kind(program: Program) -> str:
    """The row of the table that a program counts for."""
    if program.fault:
        return f"{program.form}: error"
    return f"{program.form}: {xb.check(program.module, send_buffers=program.send_buffers).kind}"


def compare(seeds: Iterable[int]) -> tuple[Counter[str], dict[int, str]]:
    """How many programs of each kind there were, and what was wrong with which seeds."""
    counts, wrong = Counter[str](), {}
    for seed in seeds:
        program = random_program(seed)
        if found := disagreement(program):
            wrong[seed] = found
        counts[kind(program)] += 1
    return counts, wrong


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first program")
    chosen = parser.parse_args(arguments)
    end = time.monotonic() + chosen.seconds
    seeds = itertools.takewhile(lambda _: time.monotonic() < end, itertools.count(chosen.seed))
    counts, wrong = compare(seeds)
    for row, count in sorted(counts.items()):
        print(f"{row:24} {count:8}")
    print(f"{'programs':24} {counts.total():8}")
    for seed, found in wrong.items():
        print(f"seed {seed}: {found}\n{random_program(seed).module}")
    print(f"{'disagreements':24} {len(wrong):8}")
    return 1 if wrong or _against_xla(chosen) else 0


def _against_xla(chosen: argparse.Namespace) -> int:
    """The campaign of single ops; 0 where there is no XLA to ask."""
    if importlib.util.find_spec("jaxlib") is None:
        print("no jaxlib: no op was compared with real XLA")
        return 0
    return oracle.main(["--seconds", str(chosen.seconds), "--seed", str(chosen.seed)])


if __name__ == "__main__":
    sys.exit(main())
