"""Campaign: random nested programs are checked with a limit of seconds, and no check returns long after it."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter

import xbuild as xb

from .generator import random_nest

SECONDS = 0.5
SLACK = 2.0  # seconds after the limit in which a check must have returned


def late(seed: int, counts: Counter[str]) -> str:
    """What is wrong with the check of a program, or an empty text."""
    module = xb.parse_hlo(random_nest(seed))
    wall, used = time.monotonic(), time.process_time()
    verdict = xb.check(module, max_seconds=SECONDS)
    wall, used = time.monotonic() - wall, time.process_time() - used
    is_over = "not finished within" in str(verdict)
    counts["at the limit" if is_over else verdict.kind] += 1
    taken = min(wall, used)  # other processes of the machine count for neither
    return f"the check took {taken:.1f} seconds" if taken > SECONDS + SLACK else ""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first program")
    chosen = parser.parse_args(arguments)
    counts, wrong = Counter[str](), 0
    for seed in range(chosen.seed, chosen.seed + chosen.programs):
        try:
            found = late(seed, counts)
        except Exception:
            found = traceback.format_exc()
        if found:
            wrong += 1
            print(f"seed {seed}: {found}", flush=True)
    for name, count in sorted(counts.items()):
        print(f"{name:24} {count:8}")
    print(f"{'programs':24} {counts.total():8}\n{'late, or failed':24} {wrong:8}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
