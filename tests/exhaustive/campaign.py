"""At length: random programs whose every run the model follows, against the verdicts of `xbuild.check`."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor

from .compare import Compared, compared
from .generator import random_program
from .program import Program
from .table.case import failure
from .table.rows import rows

RUN_ONE_IN = 20
MOST_VAGUE = 0.005
ENOUGH = 10_000  # programs, of fewer the share of vague verdicts is a matter of luck
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


def searched(first: int, step: int, seconds: float) -> tuple[Counts, dict[int, str], list[int]]:
    """Every `step`-th program from the first on, for some time."""
    end = time.monotonic() + seconds
    return compare(itertools.takewhile(lambda _: time.monotonic() < end, itertools.count(first, step)))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first program")
    parser.add_argument("--processes", type=int, default=1)
    chosen = parser.parse_args(arguments)
    count, first = chosen.processes, chosen.seed
    with ProcessPoolExecutor(count) as pool:
        parts = [pool.submit(searched, first + n, count, chosen.seconds) for n in range(count)]
        found = [part.result() for part in parts]
    counts = sum((each[0] for each in found), Counts())
    wrong = {seed: text for each in found for seed, text in each[1].items()}
    vague = sorted(seed for each in found for seed in each[2])
    _print(counts, wrong, vague)
    is_vague = counts["decided by the model"] >= ENOUGH and share(counts, vague) > MOST_VAGUE
    return 1 if _table() or wrong or is_vague else 0


def _print(counts: Counts, wrong: dict[int, str], vague: list[int]) -> None:
    decided = counts["decided by the model"]
    for name, count in sorted(counts.items()):
        print(f"{name:48} {count:8}")
    for seed, text in sorted(wrong.items()):
        print(f"seed {seed}: {text}")
    print(f"{'programs':48} {counts.total() - decided:8}")
    print(f"{'unsound':48} {len(wrong):8}")
    print(f"{'left to the data, where the model decides':48} {len(vague):8} ({share(counts, vague):.2%})")
    print(f"seeds of these: {vague[:40]}", flush=True)


def _table() -> int:
    """How many rows of the table of faults are judged, or told, wrongly."""
    found = {row.id: wrong for row in rows() if (wrong := failure(row))}
    for name, text in found.items():
        print(f"{name}: {text}")
    print(f"{'rows of the table':48} {len(rows()):8}")
    print(f"{'judged or told wrongly':48} {len(found):8}", flush=True)
    return len(found)


if __name__ == "__main__":
    sys.exit(main())
