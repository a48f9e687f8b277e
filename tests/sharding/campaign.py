"""Campaign: global programs with shardings by chance, partitioned and run on all devices, against the global run.

`python -m tests.sharding.campaign --seconds N --seed S`; half of the programs are random ones, half cases of ops.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import time
import traceback
from collections import Counter
from typing import Any

from attrs import frozen

import xbuild as xb
from interpreter import Limits
from xbuild.sharding.partition import Partitioned, partition

from .cases import cases, difference
from .random_global import random_program
from .random_shardings import random_mesh, sharded
from .random_windows import window_program

LIMITS = Limits(seconds=60)


@frozen
class Program:
    """A global program with shardings, its arguments, and how it is to be partitioned."""

    what: str
    module: xb.Module
    mesh: xb.Mesh
    arguments: list[Any]
    propagates: bool
    padding: int

    def partitioned(self) -> Partitioned:
        return partition(self.module, propagate=self.propagates, mesh=self.mesh)


def program(seed: int) -> Program:
    """The program of a seed."""
    chance = random.Random(seed)
    if (drawn := chance.random()) < 0.25:
        module, arguments, what = *window_program(chance), "moving"
    elif drawn < 0.5:
        module, arguments = random_program(chance, chance.randrange(6, 25))
        what = "random"
    else:
        what, case = chance.choice(cases())
        module, arguments = xb.Module("case", case.computation()), list(case.arguments)
        if any(getattr(each.attributes, "channel_id", None) for each in module.entry.instructions):
            return program(seed + 1_000_000_000)  # a collective between devices
    mesh, propagates = random_mesh(chance), chance.random() < 0.5
    share = 0.4 if propagates else 0.8
    return Program(what, sharded(chance, module, mesh, share), mesh, arguments, propagates, chance.choice((0, 1, 5)))


def fault(given: Program) -> str | None:
    """What is wrong with the partitioned program, or None."""
    wanted = xb.evaluate(given.module.entry, *given.arguments)
    try:
        found = given.partitioned()
        verdict = xb.check(found.module)
        if verdict.kind != "ok":
            return f"the verdict is {verdict}"
        return difference(wanted, found.run(*given.arguments, padding=given.padding, limits=LIMITS))
    except Exception:
        return traceback.format_exc()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first program")
    parser.add_argument("--show", type=int, default=3, help="how many faults are printed whole")
    chosen = parser.parse_args(arguments)
    end, counts, wrong = time.monotonic() + chosen.seconds, Counter[str](), dict[int, str]()
    for seed in itertools.takewhile(lambda _: time.monotonic() < end, itertools.count(chosen.seed)):
        given = program(seed)
        counts[given.what] += 1
        if found := fault(given):
            wrong[seed] = found
    for row, count in sorted(counts.items()):
        print(f"{row:24} {count:8}")
    print(f"{'programs':24} {counts.total():8}")
    for seed, found in wrong.items():
        print(f"seed {seed}: {found[-700:]}")
    print(f"{'faults':24} {len(wrong):8}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
