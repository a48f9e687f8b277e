"""Engines with a planted fault: one instruction of a program has another value than on the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import xbuild as xb
from shape_inference import Shape
from xbuild.core.graph import Instruction, Module
from xbuild.core.op import OPS
from xbuild.properties.effects import DONE_OF
from xbuild.properties.rewriting import Rewriter

NEVER = {"parameter", "constant", "iota", "tuple", "get_tuple_element", "while", "call", "conditional", "fusion"}
"""Opcodes without a value of their own, or with one that a caller passes on."""


class _Planted(Rewriter):
    """A pass that adds one to the value of an instruction, or turns it over if it is a pred."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def instruction(self, instruction: Instruction) -> Instruction:
        made = self.add(self.rewired(instruction))
        shape = instruction.shape
        if instruction.name != self.name or not isinstance(shape, Shape) or instruction.opcode in NEVER:
            return made
        if shape.dtype.kind == "pred":
            return self.add(Instruction("not", f"{self.name}.planted", shape, (made,)))
        literal = OPS["constant"].read({"literal": np.ones((), shape.dtype.dtype)})
        one = self.add(Instruction("constant", f"{self.name}.one", Shape(shape.dtype), attributes=literal))
        sizes = OPS["broadcast"].read({"sizes": shape.dims, "dimensions": ()})
        ones = self.add(Instruction("broadcast", f"{self.name}.ones", shape.plain(), (one,), attributes=sizes))
        return self.add(Instruction("add", f"{self.name}.planted", shape, (made, ones)))


def planted(module: Module, name: str) -> Module:
    """The module in which the instruction of this name has another value for all its users."""
    return _Planted(name).module(module)


def faulty(name: str, run: Callable[..., list[Any]] = xb.execute) -> Callable[[Module, Sequence[Any]], list[Any]]:
    """An engine that computes another value for the instruction of this name."""
    return lambda module, given: run(planted(module, name), given)


def places(module: Module) -> Iterator[str]:
    """The names of instructions in which a fault can be planted: of the entry, and of what it calls to run it.

    A region, such as the one of a reduce, has no run of its own, so the reduce is the instruction that differs.
    """
    computations = [module.entry]
    for computation in computations:
        calls = [each for each in computation.calls if each.opcode in ("while", "call", "conditional", "fusion")]
        computations += [called for each in calls for called in each.called if called not in computations]
    names = [each.name for c in module.computations for each in c.instructions]
    for computation in computations:
        for each in computation.instructions:
            if each.opcode in NEVER or each.opcode in DONE_OF or not isinstance(each.shape, Shape):
                continue
            if names.count(each.name) == 1:
                yield each.name
