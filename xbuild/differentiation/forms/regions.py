"""Called computations as rules see them: which fold each result of one is, and one applied where it stands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ... import ops
from ...core.builder import Value
from ...core.graph import Computation, Instruction
from ...core.op import OPS
from ...properties.order import ordered
from ..rules import Pullback

_COMMUTATIVE = ("add", "multiply", "maximum", "minimum")
_CHANGES_TYPES = ("convert", "copy")
_IDENTITIES = {"add": 0, "multiply": 1, "maximum": -np.inf, "minimum": np.inf}


def folds(region: Computation, count: int) -> tuple[str | None, ...]:
    """What each of `count` results makes of its current element and the new one; None where it is another function.

    `add`, `multiply`, `maximum`, `minimum` of the two, `subtract` of the new from the current, or `update` or `current`
    where it is one of them. Conversions in between do not count.
    """
    roots = region.root.operands if count > 1 and region.root.opcode == "tuple" else (region.root,)
    if len(roots) != count or len(region.parameters) != 2 * count:
        return (None,) * count
    current, new = region.parameters[:count], region.parameters[count:]
    return tuple(_fold(*row) for row in zip(roots, current, new, strict=True))


def _fold(root: Instruction, current: Instruction, new: Instruction) -> str | None:
    made = _unconverted(root)
    if made is new or made is current:
        return "update" if made is new else "current"
    sources = tuple(map(_unconverted, made.operands))
    if made.opcode in _COMMUTATIVE and sources in ((current, new), (new, current)):
        return made.opcode
    return "subtract" if made.opcode == "subtract" and sources == (current, new) else None


def _unconverted(instruction: Instruction) -> Instruction:
    while instruction.opcode in _CHANGES_TYPES:
        (instruction,) = instruction.operands
    return instruction


def is_identity(value: Value, fold: str) -> bool:
    """Whether the value is a constant that the fold does not notice."""
    instruction = _unconverted(value.instruction)
    if instruction.opcode != "constant":
        return False
    literal = np.asarray(instruction.attributes.literal)
    return literal.dtype.kind != "c" and bool((literal.astype(np.float64) == _IDENTITIES[fold]).all())


def applied(region: Computation, arguments: Sequence[Value]) -> Value:
    """The result of a computation for these arguments, its instructions recorded beside them."""
    builder = arguments[0].builder
    values = dict(zip(region.parameters, arguments, strict=True))
    for each in ordered(region):
        if each not in values:
            operands = tuple(values[operand] for operand in each.operands)
            values[each] = builder.record(OPS[each.opcode], operands, each.segments, {**each.attribute_values()}, None)
    return values[region.root]


def element(back: Pullback, number: int, count: int) -> Value:
    """One of `count` results of an op, which is a tuple where there are several."""
    return back.result if count == 1 else ops.get_tuple_element(back.result, index=number)


def cotangents(back: Pullback, count: int) -> tuple[Value | None, ...]:
    """The cotangent of each of `count` results."""
    return tuple(back.ct) if count > 1 else (back.ct,)


def overwrite(current: Value, update: Value) -> Value:
    """The region of a scatter in which updates take the place of what was there."""
    return update
