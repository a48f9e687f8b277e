"""Results of ops with unknown operands: possible values, bounds, and identities such as `x - x`.

Where the operands have few possible values, the value rule is applied to each combination. Bounds follow for integer
ops that are monotonic or clamp; a result that may leave the range of its type has no bounds.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from shape_inference import AnyShape, Shape

from ...core.graph import Computation, Instruction
from ...core.op import OPS, opcodes
from ...properties.effects import base_of, collective_in
from .lattice import Bounds, Leaf, Open, among, bounded, bounds_of, is_counted, is_value, join, limits, possible

MOST_TRIED = 16  # combinations of possible values

Try = Callable[[Sequence[Leaf]], Leaf]


def open_result(instruction: Instruction, operands: Sequence[Leaf], compute: Try) -> Leaf:
    """The leaf of an op on arrays, some of which are unknown; `compute` applies its value rule."""
    shape = instruction.shape
    if not isinstance(shape, Shape) or shape.is_dynamic:
        return None
    found = _with_itself(instruction, operands)
    if found is None:
        found = _selected(instruction, operands)
    if found is None:
        found = _tried(operands, compute)
    if found is None:
        found = _masked(instruction, operands)
    if found is None:
        found = bounded(_bounds(instruction, operands), shape)
    return _one(found, shape)


def _one(leaf: Leaf, shape: Shape) -> Leaf:
    """The value, where the bounds are equal; else the leaf."""
    bounds = leaf.bounds if isinstance(leaf, Open) else None
    if bounds is not None and bounds[0] == bounds[1] and shape.size <= 1 << 16:
        return _full(shape, bounds[0])
    return leaf


def _full(shape: Shape, value: int) -> Leaf:
    return np.full(shape.dims, value).astype(shape.dtype.dtype)[()]


def _with_itself(instruction: Instruction, operands: Sequence[Leaf]) -> Leaf:
    """The result of a binary op of which both operands are one unknown value."""
    if len(operands) != 2 or not isinstance(operands[0], Open) or operands[0] is not operands[1]:
        return None
    shape, opcode = instruction.shape, instruction.opcode
    assert isinstance(shape, Shape)
    if opcode == "compare":
        return _compared_with_itself(instruction, shape)
    if not is_counted(shape):
        return None
    if opcode in ("subtract", "xor"):
        return _full(shape, 0)
    return operands[0] if opcode in ("and", "or", "minimum", "maximum") else None


def _compared_with_itself(instruction: Instruction, shape: Shape) -> Leaf:
    """The result of comparing a value with itself, where NaN (which is not equal to itself) leaves one."""
    direction = instruction.attributes.direction
    is_total = is_counted(instruction.operands[0].shape) or instruction.attributes.type == "TOTALORDER"
    if direction in ("LT", "GT"):
        return _full(shape, 0)
    return _full(shape, int(direction != "NE")) if is_total else None


def _selected(instruction: Instruction, operands: Sequence[Leaf]) -> Leaf:
    """The result of a select: the side that its predicate takes, or the join of both."""
    if instruction.opcode != "select" or not isinstance(instruction.operands[0].shape, Shape):
        return None
    pred, on_true, on_false = operands
    if is_value(pred) and (pred.all() or not pred.any()):
        return on_true if pred.all() else on_false
    return join(on_true, on_false, instruction.shape) if not instruction.operands[0].shape.dims else None


def _tried(operands: Sequence[Leaf], compute: Try) -> Leaf:
    """The results of all combinations of possible operands, if few; one leaf has one value as several operands."""
    options = {id(leaf): possible(leaf) for leaf in operands}
    if not all(options.values()) or math.prod(map(len, options.values())) > MOST_TRIED:
        return None
    results = []
    for chosen in itertools.product(*options.values()):
        given = dict(zip(options, chosen, strict=True))
        results.append(compute([given[id(leaf)] for leaf in operands]))
        if not is_value(results[-1]):
            return None
    return among(results)


def _masked(instruction: Instruction, operands: Sequence[Leaf]) -> Leaf:
    """The possible results of `and` with a known mask of few bits."""
    shape, masks = instruction.shape, [leaf for leaf in operands if is_value(leaf) and not leaf.ndim]
    if instruction.opcode != "and" or not masks or not isinstance(shape, Shape) or int(masks[0]) < 0:
        return None
    bits = [1 << n for n in range(int(masks[0]).bit_length()) if int(masks[0]) >> n & 1]
    if 2 ** len(bits) > MOST_TRIED:
        return None
    sums = (sum(chosen) for n in range(len(bits) + 1) for chosen in itertools.combinations(bits, n))
    return among(_full(shape, each) for each in sums)


def _bounds(instruction: Instruction, operands: Sequence[Leaf]) -> Bounds | None:
    shapes = [operand.shape for operand in instruction.operands]
    if instruction.opcode in _OF_ANY:
        return _OF_ANY[instruction.opcode](shapes[0])
    bounds = [bounds_of(leaf, shape) for leaf, shape in zip(operands, shapes, strict=True)]
    if instruction.opcode in _MOVING:
        schema = OPS[instruction.opcode]
        return _hull([bounds[n] for n in schema.places(schema.properties.moves, instruction.segments)])
    if instruction.opcode == "compare":
        return _compared(instruction, bounds)
    rule = _RULES.get(instruction.opcode)
    if instruction.opcode == "shift_right_arithmetic" and limits(instruction.shape)[0] == 0:  # type: ignore[arg-type]
        return None  # the highest bit counts as a sign
    if rule is None or any(each is None for each in bounds) or not is_counted(instruction.shape):
        return None
    return rule(*bounds)


def _hull(bounds: Sequence[Bounds | None]) -> Bounds | None:
    known = [each for each in bounds if each is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if len(known) == len(bounds) else None


def _compared(instruction: Instruction, bounds: Sequence[Bounds | None]) -> Bounds | None:
    """Bounds of a comparison: 0 or 1 where the bounds of the operands decide it, else both."""
    if bounds[0] is None or bounds[1] is None:
        return 0, 1
    (a, b), (c, d) = bounds[0], bounds[1]
    always, never = {
        "LT": (b < c, a >= d),
        "LE": (b <= c, a > d),
        "GT": (a > d, b <= c),
        "GE": (a >= d, b < c),
        "EQ": (a == b == c == d, b < c or d < a),
        "NE": (b < c or d < a, a == b == c == d),
    }[instruction.attributes.direction]
    return (1, 1) if always else (0, 0) if never else (0, 1)


def _corners(rule: Callable[[int, int], int]) -> Callable[[Bounds, Bounds], Bounds]:
    """The bounds of an op that is monotonic in each of two operands."""

    def of(a: Bounds, b: Bounds) -> Bounds:
        found = [rule(x, y) for x in a for y in b]
        return min(found), max(found)

    return of


def _and(a: Bounds, b: Bounds) -> Bounds | None:
    """Bounds of `and`: a nonnegative operand bounds the result."""
    least = [high for low, high in (a, b) if low >= 0]
    return (0, min(least)) if least else None


def _or(a: Bounds, b: Bounds) -> Bounds | None:
    """Bounds of `or` of nonnegative operands: at least each, with no more bits than the larger."""
    if a[0] < 0 or b[0] < 0:
        return None
    return max(a[0], b[0]), 2 ** max(a[1], b[1]).bit_length() - 1


def _xor(a: Bounds, b: Bounds) -> Bounds | None:
    found = _or(a, b)
    return None if found is None else (0, found[1])


def _remainder(a: Bounds, b: Bounds) -> Bounds | None:
    """Bounds of a remainder: the sign of the dividend, smaller than the divisor; none where the divisor may be zero."""
    if b[0] <= 0 <= b[1]:
        return None
    most = max(abs(b[0]), abs(b[1])) - 1
    return max(a[0], -most) if a[0] < 0 else 0, min(a[1], most) if a[1] > 0 else 0


def _divide(a: Bounds, b: Bounds) -> Bounds | None:
    """Bounds of a division by positive numbers, rounded toward zero."""
    if b[0] <= 0:
        return None
    found = [(abs(x) // y) * (1 if x >= 0 else -1) for x in a for y in b]
    return min(found), max(found)


def _shifted_right(a: Bounds, b: Bounds) -> Bounds | None:
    return (a[0] >> b[1], a[1] >> b[0]) if a[0] >= 0 and 0 <= b[0] <= b[1] < 4096 else None


def _bits(shape: AnyShape) -> Bounds | None:
    return (0, shape.dtype.bits) if isinstance(shape, Shape) and is_counted(shape) else None


_OF_ANY: dict[str, Callable[[AnyShape], Bounds | None]] = {
    "popcnt": _bits,
    "count_leading_zeros": _bits,
    "is_finite": lambda shape: (0, 1),
}
_MOVING = opcodes(lambda op: bool(op.moves) and op.needs == "nobody")
_RULES: dict[str, Callable[..., Bounds | None]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "subtract": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "multiply": _corners(lambda x, y: x * y),
    "minimum": _corners(min),
    "maximum": _corners(max),
    "clamp": lambda low, x, high: tuple(min(max(x[n], low[n]), high[n]) for n in (0, 1)),
    "negate": lambda a: (-a[1], -a[0]),
    "abs": lambda a: (0 if a[0] < 0 < a[1] else min(map(abs, a)), max(map(abs, a))),
    "sign": lambda a: tuple((x > 0) - (x < 0) for x in a),
    "convert": lambda a: a,
    "and": _and,
    "or": _or,
    "xor": _xor,
    "remainder": _remainder,
    "divide": _divide,
    "shift_right_logical": _shifted_right,
    "shift_right_arithmetic": _shifted_right,
}


def collective_bounds(start: Instruction, brought: Iterable[Sequence[Leaf]]) -> Bounds | None:
    """Bounds of all results of a collective in a group, by the operands of its members."""
    collective, shapes = collective_in(start), [operand.shape for operand in start.operands]
    found = [bounds_of(leaf, shape) for row in brought for leaf, shape in zip(row, shapes, strict=True)]
    if collective is None or len(shapes) != 1 or any(each is None for each in found):
        return None
    opcode = base_of(collective)
    if opcode in ("all_reduce", "reduce_scatter"):
        return _folded(collective.attributes.to_apply, found)
    if opcode in ("collective_permute", "collective_broadcast"):
        return _hull([*found, (0, 0)])  # a device without a source gets zeros
    return _hull(found) if opcode in ("all_gather", "all_to_all") else None


def _folded(reducer: Computation, found: Sequence[Bounds | None]) -> Bounds | None:
    """The bounds of a fold by one op that is monotonic."""
    root, parameters = reducer.root, reducer.parameters
    if root.opcode not in _FOLDS or root.operands not in (parameters, parameters[::-1]):
        return None
    return functools.reduce(_RULES[root.opcode], found)


_FOLDS = ("add", "maximum", "minimum")
