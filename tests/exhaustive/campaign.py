"""At length: random programs whose every run the model follows, against the verdicts of `xbuild.check`."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable

from .compare import Compared, compared
from .generator import random_program
from .program import Program

RUN_ONE_IN = 20
Counts = Counter[str]


def compare(seeds: Iterable[int]) -> tuple[Counts, dict[int, str], list[int]]:
    """How many programs of each kind there were, what was wrong with which seeds, which verdicts said too little."""
    counts, wrong, vague = Counts(), dict[int, str](), list[int]()
    for seed in seeds:
        try:
            program = random_program(seed)
            found = compared(program, runs=seed % RUN_ONE_IN == 0)
        except Exception:
            counts["raised"] += 1
            wrong[seed] = traceback.format_exc()
            continue
        _count(counts, program, found)
        if found.unsound:
            wrong[seed] = f"{found.unsound}: {str(found.verdict).splitlines()[0]}"
        elif found.vague:
            vague.append(seed)
    return counts, wrong, vague


def _count(counts: Counts, program: Program, found: Compared) -> None:
    form = f"{'SPMD' if program.is_one else 'MPMD'} {'given' if program.is_given else 'free'}"
    counts[f"{form}: {found.kind}"] += 1
    counts["decided by the model"] += found.judgement.kind in ("ok", "deadlock")


def share(counts: Counts, vague: list[int]) -> float:
    """Of the programs that the model decides, how many verdicts left to the data."""
    return len(vague) / max(counts["decided by the model"], 1)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first program")
    chosen = parser.parse_args(arguments)
    end = time.monotonic() + chosen.seconds
    seeds = itertools.takewhile(lambda _: time.monotonic() < end, itertools.count(chosen.seed))
    counts, wrong, vague = compare(seeds)
    decided = counts["decided by the model"]
    for name, count in sorted(counts.items()):
        print(f"{name:48} {count:8}")
    for seed, found in wrong.items():
        print(f"seed {seed}: {found}")
    print(f"{'programs':48} {sum(counts.values()) - decided:8}")
    print(f"{'unsound':48} {len(wrong):8}")
    print(f"{'left to the data, where the model decides':48} {len(vague):8} ({share(counts, vague):.2%})")
    print(f"seeds of these: {vague[:40]}", flush=True)
    return 1 if wrong or share(counts, vague) > 0.005 else 0


if __name__ == "__main__":
    sys.exit(main())
