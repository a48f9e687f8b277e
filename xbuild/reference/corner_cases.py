"""Corner cases of elementwise ops: what they give for zeros, infinities, NaN, the largest integers and wide shifts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shape_inference import PrimitiveType, Shape, XbuildError

from .. import ops, running
from ..core.builder import Builder
from ..core.graph import Computation
from ..core.op import OPS
from .op_examples import op_example
from .op_names import NAMES

_INF, _NAN = float("inf"), float("nan")
_FLOATS: dict[int, list[tuple[float, ...]]] = {
    1: [(-_INF,), (-1.0,), (-0.0,), (0.0,), (_INF,), (_NAN,)],
    2: [(1.0, 0.0), (-1.0, 0.0), (0.0, 0.0), (_INF, _INF), (_INF, 0.0), (_NAN, 1.0)],
}


def corner_cases(opcode: str) -> tuple[Computation, list[Any], Any] | None:
    """The op on its corner cases: a program of arrays, their values, and the result; None for ops that have none.

    >>> program, (lhs, rhs), result = corner_cases("divide")
    >>> dict(zip(zip(lhs.tolist(), rhs.tolist()), result.tolist()))[1, 0]
    -1
    """
    example = op_example(opcode)
    if example is None or OPS[opcode].properties.elements != "same_place" or example.instruction.called:
        return None
    shapes = [operand.shape for operand in example.instruction.operands]
    types = [each.dtype for each in shapes if isinstance(each, Shape)]
    if len(types) < len(shapes) or len(set(types)) != 1:
        return None
    values = _values(types[0], len(types))
    if not values:
        return None
    try:
        program = _program(opcode, types, len(values[0]), example.instruction.attribute_values())
        return program, values, running.evaluate(program, *values)
    except (XbuildError, TypeError):  # of operands that must agree in more than their type
        return None


def _values(element: PrimitiveType, count: int) -> list[Any]:
    """An array of corner values for each operand; none for types that have no list."""
    rows: Sequence[tuple[float, ...]] = ()
    if element.is_float and element.bits >= 16:
        rows = _FLOATS.get(count, ())
    elif element.is_integer and element.bits >= 8 and count in (1, 2):
        info = np.iinfo(element.dtype)
        rows = _integers(int(info.min), int(info.max), int(info.bits), count)
    return [np.asarray(column, element.dtype) for column in zip(*rows, strict=True)]


def _integers(least: int, most: int, bits: int, count: int) -> list[tuple[int, ...]]:
    if count == 1:
        return [(least,), (0,), (1,), (most,)] if least == 0 else [(least,), (-1,), (0,), (1,), (most,)]
    pairs: list[tuple[int, ...]] = [(1, 0), (7, 2), (most, 1), (1, bits), (1, bits - 1)]
    return pairs if least == 0 else [*pairs, (-7, 2), (least, -1)]


def _program(opcode: str, types: Sequence[PrimitiveType], size: int, attributes: dict[str, Any]) -> Computation:
    builder = Builder("corners")
    operands = [ops.parameter(builder, number=n, shape=Shape(each, (size,))) for n, each in enumerate(types)]
    return builder.build(getattr(ops, NAMES[opcode].name)(*operands, **attributes))


def told(opcode: str) -> str | None:
    """The corner cases in one line.

    >>> told("is_finite")
    'of f32: -inf gives false, -1 true, -0 true, 0 true, inf false, nan false'
    """
    found = corner_cases(opcode)
    if found is None:
        return None
    program, values, result = found
    lines = [_line([each[n] for each in values], result[n]) for n in range(len(values[0]))]
    first, *rest = lines
    element = program.parameters[0].shape.dtype  # type: ignore[union-attr]
    return f"of {element}: {' gives '.join(first)}, {', '.join(map(' '.join, rest))}"


def _line(given: list[Any], result: Any) -> tuple[str, str]:
    words = ", ".join(map(_shown, given))
    return (f"({words})" if len(given) > 1 else words), _shown(result)


def _shown(value: Any) -> str:
    """A number as it is typed; the sign of a zero is kept."""
    if isinstance(value, np.bool_):
        return "true" if value else "false"
    if isinstance(value, np.integer):
        return str(int(value))
    if isinstance(value, complex | np.complexfloating):
        return str(value)
    return f"{float(value):g}"
