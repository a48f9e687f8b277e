"""Programs that give one random number on each device, to hold the model's arithmetic against runs."""

from __future__ import annotations

import random

from .builder import SLOTS, Builder, Module
from .expressions import integer
from .program import Computation, Program


def numbering(seed: int) -> tuple[Program, dict[int, int]]:
    """A program whose result is a number of s32 that is known, and what the model says that it is on each device."""
    rng = random.Random(seed)
    replicas, partitions = rng.choice(((2, 1), (4, 1), (1, 3), (2, 2), (1, 6)))
    devices = tuple(range(replicas * partitions))
    b = Builder(Module(devices, replicas, partitions, rng), Computation("main"))
    b.parameter(0, f"s32[{SLOTS}]")
    b.parameter(1, "f32[2]")
    number = b.convert(integer(b, rng.choice(("s32", "u32", "s8", "u16")), rng.choice((2, 3, 4))), "s32")
    entry = b.build(b.unary("copy", number))
    assert entry.root is not None
    assert entry.root.values is not None
    program = Program((entry,) * len(devices), replicas, partitions, is_given=False, domains=((),) * len(devices))
    return program, entry.root.values
