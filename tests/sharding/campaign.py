"""Campaign: global programs with shardings by chance, partitioned and run on all devices, against the global run.

`python -m tests.sharding.campaign --seconds N --seed S`: programs of random ops, cases of all ops, instances of all ops
in all element types that are drawn for the comparison with real XLA, chains of views with any filler (compared bit by
bit), and programs with effects at every depth (count, order and payload of each device). At the end stands how often
each op was there, and how often it ran on a part of what it has in the global program.
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from attrs import frozen

import xbuild as xb
from interpreter import Limits
from shape_inference import leaves as shapes_of
from tests.oracle.chance import TYPES, Chance
from tests.oracle.draw import DRAWS
from tests.oracle.instance import batch
from xbuild.core.op import OPS
from xbuild.sharding.partition import Partitioned, partition

from .cases import arrays, bits_differ, cases, difference
from .programs import random_program
from .random_effects import effect_program, effects_fault
from .random_shardings import random_mesh, sharded
from .random_views import view_program
from .random_windows import window_program

LIMITS = Limits(seconds=60)
Kind: TypeAlias = Callable[[random.Random], tuple[Any, ...]]
"""Draws what it is, a module, its arguments, and the mesh where the program names devices of it."""


@frozen
class Program:
    """A global program with shardings, its arguments, and how it is to be partitioned."""

    what: str
    module: xb.Module
    mesh: xb.Mesh
    arguments: list[Any]
    propagates: bool
    padding: int
    is_exact: bool = False

    def partitioned(self) -> Partitioned:
        return partition(self.module, propagate=self.propagates, mesh=self.mesh)


def program(seed: int, kinds: Sequence[Kind] | None = None) -> Program:
    """The program of a seed, of one of these kinds; by default of those without effects and views."""
    kinds = kinds or PLAIN
    chance = random.Random(seed)
    what, module, given, *own = chance.choice(kinds)(chance)
    if any(getattr(each.attributes, "channel_id", None) for each in module.entry.instructions):
        return program(seed + 1_000_000_000, kinds)  # a collective between devices
    mesh, propagates = own[0] if own else random_mesh(chance), chance.random() < 0.5
    share = 0.4 if propagates else 0.8
    module = sharded(chance, module, mesh, share, places=what != "effects")
    return Program(what, module, mesh, given, propagates, chance.choice((0, 1, 5)), what == "views")


def _views(chance: random.Random) -> tuple[str, xb.Module, list[Any]]:
    return "views", *view_program(chance)


def _effects(chance: random.Random) -> tuple[str, xb.Module, list[Any], xb.Mesh]:
    mesh = random_mesh(chance)
    return "effects", *effect_program(chance, mesh), mesh


def _row(chance: random.Random) -> tuple[str, xb.Module, list[Any]]:
    return "ops in a row", *random_program(chance, chance.randrange(6, 25))


def _moving(chance: random.Random) -> tuple[str, xb.Module, list[Any]]:
    return "moving elements", *window_program(chance)


def _case(chance: random.Random) -> tuple[str, xb.Module, list[Any]]:
    _, case = chance.choice(cases())
    return "cases", xb.Module("case", case.computation()), list(case.arguments)


def _instance(chance: random.Random) -> tuple[str, xb.Module, list[Any]]:
    """An instance of an op on one device, in any element type."""
    while True:
        opcode, dtype = chance.choice([*DRAWS]), chance.choice(TYPES)
        try:
            drawn = DRAWS[opcode](Chance(chance.randrange(1 << 40)), dtype)
            if drawn.devices == 1 and opcode not in ("infeed", "outfeed"):
                made = batch([drawn])
                return "instances", made.module, made.arguments[0]
        except xb.XbuildError:
            continue  # the op does not have the type


KINDS: dict[str, Kind] = {
    "rows": _row, "cases": _case, "instances": _instance, "moving": _moving, "views": _views,
    "effects": _effects,
}  # fmt: skip


PLAIN = (_row, _case, _instance, _moving)


def fault(given: Program, cut: Counter[str] | None = None) -> str | None:
    """What is wrong with the partitioned program, or None; `cut` counts the ops that ran on parts."""
    try:
        if given.what == "effects":
            return effects_fault(given.module, given.partitioned(), given.arguments, given.padding)
        wanted = xb.evaluate(given.module.entry, *given.arguments)
        found = given.partitioned()
        if cut is not None:
            cut.update(_cut(given.module, found.module))
        verdict = xb.check(found.module)
        if verdict.kind != "ok":
            return f"the verdict is {verdict}"
        came = found.run(*given.arguments, padding=given.padding, limits=LIMITS)
        if _is_random(given.module):
            return _random_difference(wanted, came)
        return (bits_differ if given.is_exact else difference)(wanted, came)
    except Exception:
        return traceback.format_exc()


def _is_random(module: xb.Module) -> bool:
    every = (each for computation in module.computations for each in computation.instructions)
    return any(OPS[each.opcode].properties.depends_on == "random_state" for each in every)


def _random_difference(wanted: Any, came: Any) -> str | None:
    """Where random results are not of one shape."""
    pairs = zip(arrays(wanted), arrays(came), strict=True)
    return next((f"{a.shape} and {b.shape}" for a, b in pairs if a.shape != b.shape or a.dtype != b.dtype), None)


def _cut(whole: xb.Module, parts: xb.Module) -> set[str]:
    """The opcodes of instructions of which a device has another shape, or operands of other shapes."""
    every = {each.name: each for computation in whole.computations for each in computation.instructions}
    found = set()
    for computation in parts.computations:
        for each in computation.instructions:
            global_ = every.get(each.name) or every.get(re.sub(r"\.\d+$", "", each.name))
            if global_ is not None and global_.opcode == each.opcode and _dims(global_) != _dims(each):
                found.add(each.opcode)
    return found


def _dims(instruction: xb.Instruction) -> list[Any]:
    shapes = (leaf for each in (*instruction.operands, instruction) for leaf in shapes_of(each.shape))
    return [getattr(each, "dims", None) for each in shapes]


def coverage(seen: Counter[str], cut: Counter[str]) -> str:
    """How often each op was in a program, and in how many it ran on parts."""
    rows = [f"{opcode:28} {seen[opcode]:8} {cut[opcode]:8}" for opcode in sorted(seen)]
    never = [opcode for opcode in sorted(seen) if not cut[opcode]]
    missing = sorted({*OPS} - {*seen})
    return "\n".join([*rows, f"never on parts: {' '.join(never)}", f"in no program: {' '.join(missing)}"])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first program")
    parser.add_argument("--kinds", nargs="+", choices=sorted(KINDS), help="kinds of programs; all where none is given")
    parser.add_argument("--count", type=int, help="end after so many programs")
    chosen = parser.parse_args(arguments)
    end, counts, wrong = time.monotonic() + chosen.seconds, Counter[str](), dict[int, str]()
    seen, cut = Counter[str](), Counter[str]()
    kinds = [KINDS[each] for each in chosen.kinds or KINDS]
    every = itertools.count(chosen.seed) if chosen.count is None else range(chosen.seed, chosen.seed + chosen.count)
    for seed in itertools.takewhile(lambda _: time.monotonic() < end, every):
        given = program(seed, kinds)
        counts[given.what] += 1
        seen.update({each.opcode for inner in given.module.computations for each in inner.instructions})
        if found := fault(given, cut):
            wrong[seed] = found
            print(f"seed {seed}: {found[-700:]}", flush=True)
    print(coverage(seen, cut))
    for row, count in sorted(counts.items()):
        print(f"{row:24} {count:8}")
    print(f"{'programs':24} {counts.total():8}")
    print(f"{'faults':24} {len(wrong):8}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
