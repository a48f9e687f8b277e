"""The lattices of constant propagation: what is known of one array before a run, and of the decisions of a device.

Sections:

    What is known of one array
    Results of ops with unknown operands: possible values, bounds, and identities such as `x - x`
    Decisions of a device: for each conditional the branches that may be taken, for each loop its trip counts

From least to most information: `None` (nothing), an `OpenValue` (a value within bounds, or one of a few values), a
value (an array, or a NumPy scalar for rank 0). One `OpenValue` object is one value, so that `x - x` is zero. A
`Promise` takes the place of the result of a collective until that is settled.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from attrs import define, field, frozen

from shape_inference import AnyShape, Shape

from ...core.graph import Computation, Instruction
from ...core.op import OPS, opcodes
from ...properties.effects import base_of, branch_number, collective_in, takes_pred
from ...properties.sites import Key
from ...running import Value, same

# ----------------------------------------------------------------------------
# What is known of one array

MOST_AMONG = 8  # possible values of a leaf

Bounds: TypeAlias = tuple[int, int]
Leaf: TypeAlias = Any  # None, an OpenValue, a Promise, or a value


@frozen(eq=False)
class OpenValue:
    """An unknown value: integers and booleans have bounds of the elements, or all possible values."""

    bounds: Bounds | None = None
    among: tuple[Value, ...] = ()


def is_value(leaf: Leaf) -> bool:
    return isinstance(leaf, np.ndarray | np.generic)


def has_bounds(shape: AnyShape) -> bool:
    """Whether the elements are integers or booleans, so that they have bounds."""
    return isinstance(shape, Shape) and shape.dtype.kind in ("signed", "unsigned", "pred")


def type_limits(shape: Shape) -> Bounds:
    """The least and greatest element that the type has."""
    if shape.dtype.kind == "pred":
        return 0, 1
    if shape.dtype.kind == "unsigned":
        return 0, 2**shape.dtype.bits - 1
    return -(2 ** (shape.dtype.bits - 1)), 2 ** (shape.dtype.bits - 1) - 1


def bounds_of(leaf: Leaf, shape: AnyShape) -> Bounds | None:
    """Bounds of the elements; None if they are not integers, or there are none."""
    if not isinstance(shape, Shape) or not has_bounds(shape):
        return None
    if is_value(leaf):
        return (int(leaf.min()), int(leaf.max())) if leaf.size else None
    return leaf.bounds if isinstance(leaf, OpenValue) and leaf.bounds is not None else type_limits(shape)


def possible_values(leaf: Leaf) -> tuple[Value, ...]:
    """All possible values, if these are few; else empty."""
    return (leaf,) if is_value(leaf) else leaf.among if isinstance(leaf, OpenValue) else ()


def leaf_within(bounds: Bounds | None, shape: AnyShape) -> Leaf:
    """A leaf with these bounds: a value if they are equal, any value if the type does not contain them."""
    if bounds is None or not isinstance(shape, Shape) or not has_bounds(shape) or shape.is_dynamic:
        return OpenValue()
    low, high = type_limits(shape)
    if not low <= bounds[0] <= bounds[1] <= high or bounds == (low, high) != (0, 1):
        return OpenValue()
    if shape.dims:
        return OpenValue(bounds)
    return one_of(np.asarray(each).astype(shape.dtype.dtype)[()] for each in _short_range(bounds)) or OpenValue(bounds)


def _short_range(bounds: Bounds) -> range:
    return range(bounds[0], bounds[1] + 1) if bounds[1] - bounds[0] < MOST_AMONG else range(0)


def one_of(values: Iterable[Value]) -> Leaf:
    """A leaf that is one of these values; None if there are none, or too many."""
    options = [*drop_repetitions(values)]
    if not 0 < len(options) <= MOST_AMONG:
        return None
    if len(options) == 1:
        return options[0]
    is_bounded = options[0].dtype.kind in "biu" and all(option.size for option in options)
    bounds = (min(int(v.min()) for v in options), max(int(v.max()) for v in options)) if is_bounded else None
    return OpenValue(bounds, (*options,))


def drop_repetitions(values: Iterable[Value]) -> Iterator[Value]:
    """The values without repetitions, compared by their bits."""
    seen = set()
    for value in values:
        mark = value.dtype, value.shape, value.tobytes()
        if mark not in seen:
            seen.add(mark)
            yield value


def join(a: Leaf, b: Leaf, shape: AnyShape) -> Leaf:
    """The join of two leaves."""
    if a is b or a is None or b is None:
        return a if a is b else None
    if is_value(a) and is_value(b) and same(a, b):
        return a
    either = one_of((*possible_values(a), *possible_values(b))) if possible_values(a) and possible_values(b) else None
    if either is not None:
        return either
    first, second = bounds_of(a, shape), bounds_of(b, shape)
    return leaf_within(
        None if first is None or second is None else (min(first[0], second[0]), max(first[1], second[1])), shape
    )


def contains(outer: Leaf, inner: Leaf, shape: AnyShape) -> bool:
    """Whether the outer leaf describes each value that the inner leaf describes."""
    if outer is inner or outer is None:
        return True
    if is_value(outer):
        return is_value(inner) and same(outer, inner)
    if outer.among:
        options = possible_values(inner)
        return bool(options) and len([*drop_repetitions((*outer.among, *options))]) == len(outer.among)
    if outer.bounds is None:
        return True
    bounds = bounds_of(inner, shape)
    return bounds is not None and outer.bounds[0] <= bounds[0] and bounds[1] <= outer.bounds[1]


# ----------------------------------------------------------------------------
# Results of ops with unknown operands: possible values, bounds, and identities such as `x - x`
#
# Where the operands have few possible values, the value rule is applied to each combination. Bounds follow for integer
# ops that are monotonic or clamp; a result that may leave the range of its type has no bounds.

MOST_TRIED = 16  # combinations of possible values

Try = Callable[[Sequence[Leaf]], Leaf]


def open_result(instruction: Instruction, operands: Sequence[Leaf], compute: Try) -> Leaf:
    """The leaf of an op on arrays, some of which are unknown; `compute` applies its value rule."""
    shape = instruction.shape
    if not isinstance(shape, Shape) or shape.is_dynamic:
        return None
    found = _combine_with_itself(instruction, operands)
    if found is None:
        found = _select(instruction, operands)
    if found is None:
        found = _try_combinations(operands, compute)
    if found is None:
        found = _mask(instruction, operands)
    if found is None:
        found = leaf_within(_bounds(instruction, operands), shape)
    return _as_value_if_fixed(found, shape)


def _as_value_if_fixed(leaf: Leaf, shape: Shape) -> Leaf:
    """The value, if the bounds are equal; else the leaf."""
    bounds = leaf.bounds if isinstance(leaf, OpenValue) else None
    if bounds is not None and bounds[0] == bounds[1] and shape.size <= 1 << 16:
        return _fill(shape, bounds[0])
    return leaf


def _fill(shape: Shape, value: int) -> Leaf:
    return np.full(shape.dims, value).astype(shape.dtype.dtype)[()]


def _combine_with_itself(instruction: Instruction, operands: Sequence[Leaf]) -> Leaf:
    """The result of a binary op whose operands are one unknown value."""
    if len(operands) != 2 or not isinstance(operands[0], OpenValue) or operands[0] is not operands[1]:
        return None
    shape, opcode = instruction.shape, instruction.opcode
    assert isinstance(shape, Shape)
    if opcode == "compare":
        return _compare_with_itself(instruction, shape)
    if not has_bounds(shape):
        return None
    if opcode in ("subtract", "xor"):
        return _fill(shape, 0)
    return operands[0] if opcode in ("and", "or", "minimum", "maximum") else None


def _compare_with_itself(instruction: Instruction, shape: Shape) -> Leaf:
    """The result of comparing a value with itself; None if NaN, which is not equal to itself, could decide."""
    direction = instruction.attributes.direction
    is_total = has_bounds(instruction.operands[0].shape) or instruction.attributes.type == "TOTALORDER"
    if direction in ("LT", "GT"):
        return _fill(shape, 0)
    return _fill(shape, int(direction != "NE")) if is_total else None


def _select(instruction: Instruction, operands: Sequence[Leaf]) -> Leaf:
    """The result of a select: the side that its predicate takes, or the join of both."""
    if instruction.opcode != "select" or not isinstance(instruction.operands[0].shape, Shape):
        return None
    pred, on_true, on_false = operands
    if is_value(pred) and (pred.all() or not pred.any()):
        return on_true if pred.all() else on_false
    return join(on_true, on_false, instruction.shape) if not instruction.operands[0].shape.dims else None


def _try_combinations(operands: Sequence[Leaf], compute: Try) -> Leaf:
    """The results of all combinations of possible operands, if few; a leaf that is several operands has one value."""
    options = {id(leaf): possible_values(leaf) for leaf in operands}
    if not all(options.values()) or math.prod(map(len, options.values())) > MOST_TRIED:
        return None
    results = []
    for chosen in itertools.product(*options.values()):
        values = dict(zip(options, chosen, strict=True))
        results.append(compute([values[id(leaf)] for leaf in operands]))
        if not is_value(results[-1]):
            return None
    return one_of(results)


def _mask(instruction: Instruction, operands: Sequence[Leaf]) -> Leaf:
    """The possible results of `and` with a known mask of few bits."""
    shape, masks = instruction.shape, [leaf for leaf in operands if is_value(leaf) and not leaf.ndim]
    if instruction.opcode != "and" or not masks or not isinstance(shape, Shape) or int(masks[0]) < 0:
        return None
    bits = [1 << n for n in range(int(masks[0]).bit_length()) if int(masks[0]) >> n & 1]
    if 2 ** len(bits) > MOST_TRIED:
        return None
    sums = (sum(chosen) for n in range(len(bits) + 1) for chosen in itertools.combinations(bits, n))
    return one_of(_fill(shape, each) for each in sums)


def _bounds(instruction: Instruction, operands: Sequence[Leaf]) -> Bounds | None:
    shapes = [operand.shape for operand in instruction.operands]
    if instruction.opcode in _OF_ANY:
        return _OF_ANY[instruction.opcode](shapes[0])
    bounds = [bounds_of(leaf, shape) for leaf, shape in zip(operands, shapes, strict=True)]
    if instruction.opcode in _MOVING:
        schema = OPS[instruction.opcode]
        return _hull([bounds[n] for n in schema.places(schema.properties.moves, instruction.segments)])
    if instruction.opcode == "compare":
        return _compare_bounds(instruction, bounds)
    rule = _RULES.get(instruction.opcode)
    if instruction.opcode == "shift_right_arithmetic" and type_limits(instruction.shape)[0] == 0:  # type: ignore[arg-type]
        return None  # the highest bit counts as a sign
    if rule is None or any(each is None for each in bounds) or not has_bounds(instruction.shape):
        return None
    return rule(*bounds)


def _hull(bounds: Sequence[Bounds | None]) -> Bounds | None:
    known = [each for each in bounds if each is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if len(known) == len(bounds) else None


def _compare_bounds(instruction: Instruction, bounds: Sequence[Bounds | None]) -> Bounds | None:
    """Bounds of a comparison: 0 or 1 if the bounds of the operands decide it, else both."""
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


def _bound_by_corners(rule: Callable[[int, int], int]) -> Callable[[Bounds, Bounds], Bounds]:
    """The bounds of an op that is monotonic in each of two operands."""

    def bound(a: Bounds, b: Bounds) -> Bounds:
        corners = [rule(x, y) for x in a for y in b]
        return min(corners), max(corners)

    return bound


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
    bounds = _or(a, b)
    return None if bounds is None else (0, bounds[1])


def _remainder(a: Bounds, b: Bounds) -> Bounds | None:
    """Bounds of a remainder: the sign of the dividend, smaller than the divisor; none if the divisor may be zero."""
    if b[0] <= 0 <= b[1]:
        return None
    most = max(abs(b[0]), abs(b[1])) - 1
    return max(a[0], -most) if a[0] < 0 else 0, min(a[1], most) if a[1] > 0 else 0


def _divide(a: Bounds, b: Bounds) -> Bounds | None:
    """Bounds of a division by positive numbers, rounded toward zero."""
    if b[0] <= 0:
        return None
    corners = [(abs(x) // y) * (1 if x >= 0 else -1) for x in a for y in b]
    return min(corners), max(corners)


def _shift_right(a: Bounds, b: Bounds) -> Bounds | None:
    return (a[0] >> b[1], a[1] >> b[0]) if a[0] >= 0 and 0 <= b[0] <= b[1] < 4096 else None


def _bits(shape: AnyShape) -> Bounds | None:
    return (0, shape.dtype.bits) if isinstance(shape, Shape) and has_bounds(shape) else None


_OF_ANY: dict[str, Callable[[AnyShape], Bounds | None]] = {
    "popcnt": _bits,
    "count_leading_zeros": _bits,
    "is_finite": lambda shape: (0, 1),
}
_MOVING = opcodes(lambda op: bool(op.moves) and op.needs == "nobody")
_RULES: dict[str, Callable[..., Bounds | None]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "subtract": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "multiply": _bound_by_corners(lambda x, y: x * y),
    "minimum": _bound_by_corners(min),
    "maximum": _bound_by_corners(max),
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
    "shift_right_logical": _shift_right,
    "shift_right_arithmetic": _shift_right,
}


def bound_collective(start: Instruction, operands: Iterable[Sequence[Leaf]]) -> Bounds | None:
    """Bounds of all results of a collective in a group, by the operands of its members."""
    collective, shapes = collective_in(start), [operand.shape for operand in start.operands]
    bounds = [bounds_of(leaf, shape) for row in operands for leaf, shape in zip(row, shapes, strict=True)]
    if collective is None or len(shapes) != 1 or any(each is None for each in bounds):
        return None
    opcode = base_of(collective)
    if opcode in ("all_reduce", "reduce_scatter"):
        return _fold_bounds(collective.attributes.to_apply, bounds)
    if opcode in ("collective_permute", "collective_broadcast"):
        return _hull([*bounds, (0, 0)])  # a device without a source gets zeros
    return _hull(bounds) if opcode in ("all_gather", "all_to_all") else None


def _fold_bounds(reducer: Computation, bounds: Sequence[Bounds | None]) -> Bounds | None:
    """The bounds of a fold by one op that is monotonic."""
    root, parameters = reducer.root, reducer.parameters
    if root.opcode not in _FOLDS or root.operands not in (parameters, parameters[::-1]):
        return None
    return functools.reduce(_RULES[root.opcode], bounds)


_FOLDS = ("add", "maximum", "minimum")


# ----------------------------------------------------------------------------
# Decisions of a device: for each conditional the branches that may be taken, for each loop its trip counts

MOST_WAYS = 64  # trip counts of one site


@define(eq=False)
class Turns:
    """The decisions of a site in the order in which a run makes them.

    Repeated parts are stored once, so that nested loops of few trips take little memory for many decisions.
    """

    _parts: list[int | Turns] = field(factory=list)
    _repeats: list[int] = field(factory=list)
    _ends: list[int] = field(factory=list)  # how many decisions there are up to the end of each part

    @property
    def total(self) -> int:
        return self._ends[-1] if self._ends else 0

    def append(self, part: int | Turns) -> None:
        """Append a decision, or all decisions of a part, which must not change afterwards."""
        length = part.total if isinstance(part, Turns) else 1
        if not length:
            return
        if self._parts and (part is self._parts[-1] or (isinstance(part, int) and part == self._parts[-1])):
            self._repeats[-1] += 1
            self._ends[-1] += length
            return
        self._ends.append(self.total + length)
        self._parts.append(part)
        self._repeats.append(1)

    def at(self, turn: int) -> int:
        """The decision at this turn, from 0; the last one for later turns."""
        turn, turns = min(turn, self.total - 1), self
        while True:
            number = bisect.bisect_right(turns._ends, turn)
            part, turn = turns._parts[number], turn - (turns._ends[number - 1] if number else 0)
            if isinstance(part, int):
                return part
            turns, turn = part, turn % part.total

    def count_decisions(self) -> Counter[int]:
        """How often each decision is made."""
        known: dict[int, Counter[int]] = {}

        def count(turns: Turns) -> Counter[int]:
            if id(turns) not in known:
                counts = known[id(turns)] = Counter[int]()
                for part, times in zip(turns._parts, turns._repeats, strict=True):
                    for decision, number in ({part: 1} if isinstance(part, int) else count(part)).items():
                        counts[decision] += times * number
            return known[id(turns)]

        return count(self)


@define(eq=False)
class DecisionFacts:
    """The decisions of a device by site.

    `decides` has all possible branches or trip counts; `turns` has them in the order in which a run makes them. None
    means unknown decisions.
    """

    decides: dict[Key, frozenset[int] | None] = field(factory=dict)
    turns: dict[Key, Turns | None] = field(factory=dict)

    def add(self, place: Key, ways: frozenset[int] | None, is_repeated: bool) -> None:
        is_one = ways is not None and len(ways) == 1 and not is_repeated
        self._join(place, ways, next(iter(ways)) if ways is not None and is_one else None)

    def include(self, later: DecisionFacts) -> None:
        """Append the decisions that a later part of the run makes."""
        for place, ways in later.decides.items():
            self._join(place, ways, later.turns[place])

    def _join(self, place: Key, ways: frozenset[int] | None, turns: int | Turns | None) -> None:
        known = self.decides.get(place, frozenset())
        both = None if ways is None or known is None else known | ways
        self.decides[place] = None if both is not None and len(both) > MOST_WAYS else both
        before = self.turns.setdefault(place, Turns())
        if before is None or turns is None:
            self.turns[place] = None
        else:
            before.append(turns)


def possible_branches(conditional: Instruction, index: Leaf, count: int) -> frozenset[int]:
    """The branches that may be taken."""
    if possible_values(index):
        return frozenset(branch_number(conditional, value) for value in possible_values(index))
    bounds = bounds_of(index, conditional.operands[0].shape)
    if bounds is None or takes_pred(conditional):
        return frozenset(range(count))
    inside = range(max(bounds[0], 0), min(bounds[1], count - 1) + 1)
    return frozenset((*inside, *([count - 1] if bounds[0] < 0 or bounds[1] >= count else [])))
