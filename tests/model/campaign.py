"""Campaign: verdicts against the model on random small programs, and against runs on larger ones."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable

from .compare import compared
from .generator import LARGE, SCANS, SMALL, WIDE, Size, random_program
from .programs import Program

RUN_ONE_IN = 8  # a run takes longer than all interleavings


def compare(seeds: Iterable[int], *, is_small: bool, size: Size | None = None) -> tuple[Counter[str], dict[int, str]]:
    """How many programs of each kind there were, and what was wrong with which seeds."""
    counts, wrong = Counter[str](), {}
    for seed in seeds:
        program = random_program(seed, size or (SMALL if is_small else LARGE))
        try:
            verdict, found = compared(program, is_small=is_small, runs=not is_small or seed % RUN_ONE_IN == 0)
            counts[f"{form(program)}: {verdict.kind}"] += 1
        except Exception:
            found = traceback.format_exc()
        if found:
            wrong[seed] = found
    return counts, wrong


def form(program: Program) -> str:
    return f"{'SPMD' if program.is_one else 'MPMD'} {'given' if program.is_given else 'free'}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first program")
    chosen = parser.parse_args(arguments)
    failed = 0
    for title, size, share in (
        ("small", SMALL, 0.3),
        ("wide", WIDE, 0.2),
        ("scans", SCANS, 0.3),
        ("large", LARGE, 0.2),
    ):
        end, is_small = time.monotonic() + chosen.seconds * share, size is not LARGE
        seeds = itertools.takewhile(lambda _, end=end: time.monotonic() < end, itertools.count(chosen.seed))  # type: ignore[misc]
        counts, wrong = compare(seeds, is_small=is_small, size=size)
        for name, count in sorted(counts.items()):
            print(f"{title} {name:24} {count:8}")
        print(f"{title} {'programs':24} {counts.total():8}")
        for seed, found in wrong.items():
            print(f"{title} seed {seed}: {found}")
        print(f"{title} {'disagreements':24} {len(wrong):8}", flush=True)
        failed += len(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
