"""Random programs under each rule of a runtime: the verdict against an exhaustive model and runs, as long as wanted."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections import Counter

import xbuild as xb
from tests.checking.runtimes.compare import RECORDS, claims, fault, fault_with_data, function_of_calls
from tests.checking.runtimes.model import TooManyStates
from tests.checking.runtimes.programs import draw


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.checking.runtimes.campaign", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=1000, help="the number of the first program")
    chosen, failed = parser.parse_args(arguments), 0
    with function_of_calls():
        for name, (words, runtime) in RECORDS.items():
            counts, end = Counter[str](), time.monotonic() + chosen.seconds / len(RECORDS)
            for seed in itertools.count(chosen.seed):
                if time.monotonic() > end:
                    break
                programs = draw(seed, words)
                try:
                    faults = [fault(programs, runtime), fault_with_data(seed, runtime)]
                except TooManyStates:
                    counts["left out"] += 1
                    continue
                counts[claims(xb.check(programs.module, runtime=runtime))] += 1
                for wrong in filter(None, faults):
                    print(f"{name}, seed {seed}: {wrong}", flush=True)
                    failed += 1
            print(f"{name:24} {', '.join(f'{kind} {count}' for kind, count in sorted(counts.items()))}", flush=True)
    print(f"{'disagreements':24} {failed:8}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
