"""Reductions by any computation: whether parts may be reduced by themselves, and their results once more."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import frozen

from shape_inference import PrimitiveType, Shape

from .... import ops
from ....core.builder import Builder, Value
from ....core.graph import Computation, Instruction


@frozen
class Folding:
    """What a computation of a reduction is: whether parts may be reduced apart, in order, or in any order."""

    is_apart: bool
    is_unordered: bool


NONE = Folding(False, False)


def folding(instruction: Instruction) -> Folding:
    """What may be done with a reduce whose initial values are constants.

    XLA takes the computation of a reduce to be associative. Here it is tried on a few numbers, too, and a reduction by
    one that is not, such as a difference, runs whole. An initial value may count for each part, and stand for padding,
    where two of it make one and it may stand on either side.
    """
    count = len(instruction.operands) // 2
    given = instruction.operands[count:]
    if any(each.opcode != "constant" for each in given):
        return NONE
    shapes = [each.shape for each in instruction.operands[:count]]
    if any(not isinstance(each, Shape) or not each.dtype.is_native for each in shapes):
        return NONE
    dtypes = tuple(each.dtype for each in shapes if isinstance(each, Shape))
    literals = tuple(np.asarray(each.attributes.literal) for each in given)
    results = tuple(each.shape.dtype for each in instruction.attributes.to_apply.parameters)
    is_alike = results == dtypes * 2 and all(a.dtype == b.dtype for a, b in zip(literals, dtypes, strict=True))
    return (
        _tried(instruction.attributes.to_apply, dtypes, tuple(each.tobytes() for each in literals))
        if is_alike
        else NONE
    )


@functools.lru_cache(maxsize=256)
def _tried(computation: Computation, dtypes: tuple[PrimitiveType, ...], inits: tuple[bytes, ...]) -> Folding:
    init = tuple(np.frombuffer(each, dtype.dtype)[0] for each, dtype in zip(inits, dtypes, strict=True))
    drawn = [tuple(_numbers(dtype)[(3 * n + 2 * k) % 7] for k, dtype in enumerate(dtypes)) for n in range(7)]
    with_init = [(init, one, other) for one, other in itertools.pairwise([init, *drawn, drawn[0]])]
    without = [(drawn[n], drawn[(n + 2) % 7], drawn[(n * n + 3) % 7]) for n in range(7)]
    found = _evaluated(computation, dtypes, [*with_init, *without])
    is_idle = _same(found[0][2], [np.asarray(each) for each in init]) and all(
        _same(*each[2:]) for each in found[: len(with_init)])  # fmt: skip
    is_associative = all(_same(*each[:2]) for each in found)
    return Folding(is_idle and is_associative, all(_same(*each[2:]) for each in found))


def _numbers(dtype: PrimitiveType) -> list[Any]:
    wide = [np.nan, np.inf, -np.inf] if dtype.is_float else [5, 6, 7]
    usual = [0, 1, 2, 3, 1, 0, 1] if dtype.kind == "pred" or not dtype.is_float else [0, 1.5, -2, 3, *wide]
    return [np.array(each).astype(dtype.dtype)[()] for each in usual]


def _evaluated(computation: Computation, dtypes: Sequence[PrimitiveType], groups: Sequence[Any]) -> list[list[Any]]:
    """For each (a, b, c) what f(f(a, b), c), f(a, f(b, c)), f(a, b) and f(b, a) are."""
    from ....running import evaluate

    builder = Builder("tried")

    def applied(one: Sequence[Value], other: Sequence[Value]) -> list[Value]:
        value = ops.call((*one, *other), to_apply=computation)
        return [ops.get_tuple_element(value, index=n) for n in range(len(dtypes))] if _is_tuple(value) else [value]

    results: list[list[Value]] = []
    for group in groups:
        a, b, c = ([ops.constant(builder, literal=number) for number in each] for each in group)
        results += [applied(applied(a, b), c), applied(a, applied(b, c)), applied(a, b), applied(b, a)]
    root = ops.tuple_(tuple(each for result in results for each in result), builder=builder)
    flat, width = evaluate(builder.build(root)), len(dtypes)
    rows = [[np.asarray(each) for each in flat[n : n + width]] for n in range(0, len(flat), width)]
    return [rows[n : n + 4] for n in range(0, len(rows), 4)]


def _is_tuple(value: Value) -> bool:
    return not isinstance(value.shape, Shape)


def _same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether numbers are equal, floats but for rounding."""
    with np.errstate(all="ignore"):
        return all(
            bool(a == b if a.dtype.kind in "biu" else np.isclose(complex(a), complex(b), rtol=1e-3, equal_nan=True))
            for a, b in zip(one, other, strict=True)
        )
