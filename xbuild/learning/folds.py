"""Whether the function of a reduce gives one result in every order, as XLA, which takes any, presumes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from shape_inference import Shape

from .. import running
from ..core.graph import Computation
from .answers import shown

TRIALS = 40


def clash(instructions: Iterable[Any]) -> str:
    """A sentence on the first reduce whose result depends on the order, with two elements; "" where there is none.

    Elements of which some numbers are equal and others differ are drawn, so that ties are decided too.
    """
    generator = np.random.default_rng(0)
    for each in instructions:
        if each.opcode == "reduce":
            for _ in range(TRIALS):
                if found := _clash(each.attributes.to_apply, generator):
                    return found
    return ""


def _clash(function: Computation, generator: np.random.Generator) -> str:
    one, other, third = _elements(function, generator)
    if not _same(here := _folded(function, one, other), there := _folded(function, other, one)):
        return (
            f"the function of reduce gives {shown(here)} of {shown(one)} and {shown(other)}, and {shown(there)} with "
            "the two exchanged: XLA reduces in any order"
        )
    left = _folded(function, here, third)
    if not _same(left, right := _folded(function, one, _folded(function, other, third))):
        return (
            f"the function of reduce gives {shown(left)} of {shown(one)}, {shown(other)}, {shown(third)} from the "
            f"left, and {shown(right)} from the right: XLA reduces in any order"
        )
    return ""


def _elements(function: Computation, generator: np.random.Generator) -> list[list[Any]]:
    """Three elements: the numbers of one operand may be equal, those of the others all differ."""
    types = [each.shape.dtype.dtype for each in function.parameters if isinstance(each.shape, Shape)]
    types = types[: len(types) // 2]
    ties = generator.integers(len(types))
    drawn = [generator.integers(0, 2, 3) if n == ties else generator.permutation(8)[:3] for n in range(len(types))]
    return [[kind.type(row[n]) for kind, row in zip(types, drawn, strict=True)] for n in range(3)]


def _folded(function: Computation, one: list[Any], other: list[Any]) -> list[Any]:
    found = running.evaluate(function, *one, *other)
    return [*found] if isinstance(found, tuple | list) else [found]


def _same(one: list[Any], other: list[Any]) -> bool:
    return all(np.array_equal(*pair) for pair in zip(one, other, strict=True))
