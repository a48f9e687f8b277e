"""Decides how arrays that consist of elements of others, such as slices, pads and rolls, are split; records them.

Sections:

    ArrayView: which elements of other arrays an array consists of, dimension by dimension
    ViewSplit: how a view is split, and the choice by bytes
    Recording of views
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from attrs import evolve, frozen

from shape_inference import PrimitiveType, Shape
from shape_inference.types import Dims

from ... import ops
from ...core.builder import Value
from ...core.graph import Instruction
from ...properties.patterns import neutral_element
from ..resharding_ops import constant
from ..rules import Factor, FactorKind, ShardingRule
from ..sharding import Axis, Sharding, count
from .assignments import TOO_MUCH, Assignment, ChoiceRequest, SplitOptions, partial_axes
from .exchange import (
    Along,
    Exchange,
    Line,
    full_line,
    join_lines,
    lay_out,
    plan_own_elements,
    plan_result_parts,
    record_exchange,
)
from .frame import Deferred, Frame, Piece, local_dims
from .handler import handler_of
from .reasons import ELEMENTS, HELD_ELEMENTS, WHOLE_OPERAND, Because, Reason, Result, Wish

# ----------------------------------------------------------------------------
# ArrayView: which elements of other arrays an array consists of, dimension by dimension
#
# Such as slices, pads, rolls and reversals.

MOST_SEGMENTS = 64
"""Up to this number of segments, a dimension is described by the operands of its operands."""


@frozen(eq=False)
class ArrayView:
    """Of which elements of the bases an array consists, by dimension; other elements are the filler, a scalar.

    Segments of dimension `joint` name their base; those of all other dimensions are the same for every base.
    """

    bases: tuple[Piece, ...]
    lines: tuple[Line, ...]
    joint: int = 0
    filler: Piece | None = None

    @property
    def is_padded(self) -> bool:
        return any(line.has_padding for line in self.lines)

    def moves(self, dim: int) -> bool:
        """Whether a dimension differs from that of its base."""
        return (len(self.bases) > 1 and dim == self.joint) or not self.lines[dim].is_all_of(dims_of(self.bases[0])[dim])

    def with_line(self, dim: int, line: Line) -> ArrayView:
        view = evolve(self, lines=(*self.lines[:dim], line, *self.lines[dim + 1 :]))
        return view if view.is_padded else evolve(view, filler=None)


def dims_of(piece: Piece) -> Dims:
    assert isinstance(piece.shape, Shape)
    return piece.shape.dims


def view_as_is(piece: Piece) -> ArrayView:
    """An array as a view of itself."""
    return ArrayView((piece,), tuple(full_line(extent) for extent in dims_of(piece)))


def view_of(piece: Piece) -> ArrayView:
    """The arrays that a deferred array consists of; the array itself if it is not deferred, or has many segments."""
    view = piece.deferred.view if piece.deferred is not None else None
    if not isinstance(view, ArrayView) or any(len(line.segments) > MOST_SEGMENTS for line in view.lines):
        return view_as_is(piece)
    return view


Bounds: TypeAlias = "Sequence[tuple[int, int, int]]"


def slice_view(view: ArrayView, bounds: Bounds) -> ArrayView:
    """A slice by (start, limit, stride) of each dimension."""
    for dim, each in enumerate(bounds):
        view = view.with_line(dim, view.lines[dim].slice(*each))
    return view


def reverse_view(view: ArrayView, dims: Sequence[int]) -> ArrayView:
    for dim in dims:
        view = view.with_line(dim, view.lines[dim].reverse())
    return view


def pad_view(view: ArrayView, filler: Piece, around: Bounds) -> ArrayView | None:
    """A pad by (low, high, interior) of each dimension; None if the view has padding of a different number."""
    if view.filler is not None and not is_same_number(view.filler, filler):
        return None
    for dim, each in enumerate(around):
        view = evolve(view, filler=filler).with_line(dim, view.lines[dim].pad(*each))
    return view


def is_same_number(one: Piece, other: Piece) -> bool:
    literals = [each.origin.attributes.literal for each in (one, other) if each.origin.opcode == "constant"]
    if one is other or len(literals) < 2:
        return one is other
    return one.shape == other.shape and np.asarray(literals[0]).tobytes() == np.asarray(literals[1]).tobytes()


def concatenate_views(pieces: Sequence[Piece], dim: int, describe: Callable[[Piece], ArrayView]) -> ArrayView:
    """Arrays joined along a dimension, described by views of them where these fit together."""
    views = [describe(piece) for piece in pieces]
    joined = _join_on_one_base(views, dim)
    return joined if joined is not None else _join_bases(pieces, views, dim)


def _join_on_one_base(views: Sequence[ArrayView], dim: int) -> ArrayView | None:
    """The view of the one base that all operands are views of, alike in the other dimensions; None if there is none."""
    first = views[0]
    fillers = [each.filler for each in views if each.filler is not None]
    for each in views:
        others = [n for n in range(len(first.lines)) if n != dim]
        is_alike = len(each.bases) == 1 and each.bases == first.bases and all(
            each.lines[n] == first.lines[n] for n in others)  # fmt: skip
        if not is_alike or not all(is_same_number(fillers[0], filler) for filler in fillers):
            return None
    filler = fillers[0] if fillers else None
    return evolve(first, joint=dim, filler=filler).with_line(dim, join_lines(each.lines[dim] for each in views))


def _join_bases(pieces: Sequence[Piece], views: Sequence[ArrayView], dim: int) -> ArrayView:
    """The view of several bases; an operand that is a view along other dimensions is a base itself."""
    bases: list[Piece] = []
    lines, filler = [], None
    for piece, described in zip(pieces, views, strict=True):
        fits = _is_along(described, dim) and (
            filler is None or described.filler is None or is_same_number(filler, described.filler))  # fmt: skip
        view = described if fits else view_as_is(piece)
        bases += [each for each in view.bases if not any(each is other for other in bases)]
        numbers = {n: next(m for m, other in enumerate(bases) if other is each) for n, each in enumerate(view.bases)}
        lines.append(view.lines[dim].renumber(numbers))
        filler = view.filler if filler is None else filler
    others = [full_line(extent) for extent in dims_of(pieces[0])]
    return ArrayView(tuple(bases), (*others[:dim], join_lines(lines), *others[dim + 1 :]), dim, filler)


def _is_along(view: ArrayView, dim: int) -> bool:
    """Whether a view differs from its bases along one dimension only."""
    is_joint = len(view.bases) == 1 or view.joint == dim
    return is_joint and not any(view.moves(n) for n in range(len(view.lines)) if n != dim)


# ----------------------------------------------------------------------------
# ViewSplit: how a view is split, and the choice by bytes
#
# Elements are exchanged, or a dimension is gathered, or devices add up the elements that each holds.


@frozen(eq=False)
class ViewSplit:
    """How a view is split: the axes of each dimension, and the dimensions along which devices add up what they hold."""

    view: ArrayView
    options: SplitOptions
    summed: frozenset[int]
    assignment: Assignment

    def plan_exchange(self, dim: int) -> Exchange | None:
        """What devices fetch from each other along a dimension; None if it is not split, or too much to plan."""
        axes = self.base_sharding(0).dim(dim).axes
        if not axes or not self.view.moves(dim):
            return None
        bases = self.view.bases if dim == self.view.joint else self.view.bases[:1]
        plan = plan_own_elements if dim in self.summed else plan_result_parts
        return plan(self.view.lines[dim], tuple(dims_of(each)[dim] for each in bases), count(axes))

    def base_sharding(self, number: int) -> Sharding:
        """The sharding in which a base is taken."""
        return self.options.sharding(self.assignment, self.options.rule.operands[number])

    @property
    def result(self) -> Sharding:
        """The sharding in which the view is produced; along unreduced axes in partial sums."""
        made = self.options.sharding(self.assignment, self.options.rule.results[0])
        return evolve(made, unreduced=partial_axes(self.options, self.assignment))

    def exchanges(self, dim: int) -> bool:
        """Whether a dimension is split along which elements move."""
        return bool(self.base_sharding(0).dim(dim).axes) and self.view.moves(dim)

    def order_dims(self) -> list[int]:
        """The dimensions along which elements move: those that shrink, then those that are split, then the others."""
        moved = [dim for dim in range(len(self.view.lines)) if self.view.moves(dim)]
        return sorted(moved, key=lambda dim: (not self._shrinks(dim), not self.exchanges(dim), dim))

    def _shrinks(self, dim: int) -> bool:
        return not self.exchanges(dim) and self.view.lines[dim].extent < dims_of(self.view.bases[0])[dim]

    def count_fetched_bytes(self) -> int:
        """The bytes that a device sends for elements that others fetch."""
        several = [list(local_dims(self.base_sharding(n), dims_of(base))) for n, base in enumerate(self.view.bases)]
        total = 0
        for dim in self.order_dims():
            size = self.view.lines[dim].extent
            if self.exchanges(dim):
                exchange = self.plan_exchange(dim)
                if exchange is None:
                    return TOO_MUCH
                rows = sum(_count_others(dims, dim) for dims in several[: 1 if dim == self.view.joint else None])
                total, size = total + exchange.bytes(rows * self._width), exchange.size
            several = several[:1] if dim == self.view.joint else several
            for dims in several:
                dims[dim] = size
        return total

    @property
    def _width(self) -> int:
        shape = self.view.bases[0].shape
        assert isinstance(shape, Shape)
        return max(1, shape.dtype.bits // 8)


def _count_others(dims: list[int], dim: int) -> int:
    """The number of elements at one position of a dimension."""
    return math.prod(extent for n, extent in enumerate(dims) if n != dim)


@frozen(eq=False)
class CheapestSplit:
    """The cheapest way to split a view, and the bytes that a device sends for it."""

    split: ViewSplit
    bytes: int


def choose_split(frame: Frame, view: ArrayView, shape: Shape, stated: Sharding | None) -> CheapestSplit:
    """The split for which a device sends the fewest bytes to produce a view in the sharding that is needed."""
    best: CheapestSplit | None = None
    for summed, moves in _variants(view, shape):
        options = _split_options(frame, view, summed, moves=moves)
        request = _choice_request(options, view, summed, shape, stated)
        assignment = request.choose_anew()
        split = CheapestSplit(ViewSplit(view, options, summed, assignment), request.count_bytes(assignment))
        best = split if best is None or split.bytes < best.bytes else best
    assert best is not None
    deferred = sum(base.price for base in best.split.view.bases)
    return evolve(best, bytes=best.bytes + deferred)


def _variants(view: ArrayView, shape: Shape) -> Iterator[tuple[frozenset[int], bool]]:
    """Sets of dimensions along which devices add up what they hold, and whether elements are exchanged."""
    yield frozenset(), True
    yield frozenset(), False
    if neutral_element("add", shape.dtype) is None or len(view.bases) > 1:
        return
    small = [dim for dim in range(shape.rank) if view.moves(dim) and _is_small(view, dim)]
    for number in range(1, len(small) + 1):
        for dims in itertools.combinations(small, number):
            yield frozenset(dims), True


def _is_small(view: ArrayView, dim: int) -> bool:
    line = view.lines[dim]
    return not line.has_padding and 0 < 2 * line.extent <= dims_of(view.bases[0])[dim]


def _split_options(frame: Frame, view: ArrayView, summed: frozenset[int], *, moves: bool) -> SplitOptions:
    factors: list[Factor] = []
    given, made = [], []
    for dim, line in enumerate(view.lines):
        kind: FactorKind = "permutation" if view.moves(dim) else "pass_through"
        made.append((len(factors),))
        if dim in summed:
            factors.append(Factor(line.extent, "need_replication"))
            kind = "reduction"
        given.append((len(factors),))
        factors.append(Factor(dims_of(view.bases[0])[dim] if dim in summed else line.extent, kind))
    rule = ShardingRule(tuple(factors), (tuple(given),) * len(view.bases), (tuple(made),))
    kinds = ("pass_through", "permutation", "reduction") if moves else ("pass_through",)
    return SplitOptions(frame.mesh, rule, frozenset(n for n, each in enumerate(factors) if each.kind in kinds))


def _choice_request(
    options: SplitOptions, view: ArrayView, summed: frozenset[int], shape: Shape, stated: Sharding | None
) -> ChoiceRequest:
    def count_fetched_bytes(assignment: Assignment) -> int:
        return ViewSplit(view, options, summed, assignment).count_fetched_bytes()

    shapes = tuple(each.shape if isinstance(each.shape, Shape) and each.maker is None else None for each in view.bases)
    available = tuple(() if each.maker is not None else each.shardings for each in view.bases)
    return ChoiceRequest(options, shapes, available, (shape,), (stated,), count_fetched_bytes)


# ----------------------------------------------------------------------------
# Recording of views
#
# Each device makes its part of the elements that it holds and those that others send.


def partition_view(frame: Frame, instruction: Instruction, views: list[ArrayView], stated: Sharding | None) -> Piece:
    """An array that is made when it is first used, from the view for which devices send the fewest bytes."""
    shape = instruction.shape
    assert isinstance(shape, Shape)
    splits = [choose_split(frame, view, shape, stated) for view in views]
    best = min(splits, key=lambda split: split.bytes)
    home = evolve(best.split.result, unreduced=()) if stated is None else stated

    def make() -> Value:
        return _record_view(frame, instruction, best, home)

    return Piece(shape, instruction, {}, None, Deferred(home, best.bytes, make, views[0]))


def _record_view(frame: Frame, instruction: Instruction, best: CheapestSplit, home: Sharding) -> Value:
    split, shape = best.split, instruction.shape
    assert isinstance(shape, Shape)
    bases = (_take_base(frame, instruction, split, number) for number in range(len(split.view.bases)))
    values = [_convert(base, shape.dtype) for base in bases]
    value = _move_elements(frame, instruction, split, values)
    made = evolve(split.result, unreduced=())
    frame.check_part(value, made, shape)
    piece = frame.make_piece(value, made, shape, instruction)
    reason = _explain_move(frame, instruction, split, home)
    return frame.record_resharding(value, split.result, home, piece, reason) if split.result != home else value


def _convert(value: Value, dtype: PrimitiveType) -> Value:
    """The value in the result's element type, since a pad or a concatenate may mix precisions."""
    assert isinstance(value.shape, Shape)
    return value if value.shape.dtype is dtype else ops.convert(value, new_element_type=dtype)


def _explain_move(frame: Frame, instruction: Instruction, split: ViewSplit, home: Sharding) -> Reason:
    """Why the view is moved after it is produced: in partial sums, or in a sharding that is not the needed one."""
    if not split.summed:
        return Result(instruction)
    dims = tuple(
        (dim, split.base_sharding(0).dim(dim).axes)
        for dim in sorted(split.summed)
        if split.base_sharding(0).dim(dim).axes
    )
    return Because(HELD_ELEMENTS, instruction, source=split.view.bases[0].origin, mesh=frame.mesh, dims=dims)


def _take_base(frame: Frame, instruction: Instruction, split: ViewSplit, number: int) -> Value:
    piece = split.view.bases[number]
    moved = tuple(dim for dim in range(len(split.view.lines)) if split.view.moves(dim))
    reason = Because(ELEMENTS, instruction, moved=moved, made=evolve(split.result, unreduced=()))
    return frame.reshard(piece, split.base_sharding(number), reason)


def _move_elements(frame: Frame, instruction: Instruction, split: ViewSplit, values: list[Value]) -> Value:
    view = split.view
    summed: tuple[Axis, ...] = ()
    for dim in split.order_dims():
        axes = split.base_sharding(0).dim(dim).axes
        bases = [each.origin for each in view.bases]
        pairs = [(values, bases)] if dim == view.joint else [([v], [b]) for v, b in zip(values, bases, strict=False)]
        filler = _choose_filler(frame, instruction, split, dim, summed, values[0])
        values = [_move_along(Along(frame, axes, dim), instruction, split, *each, filler) for each in pairs]
        summed += axes if dim in split.summed else ()
    (value,) = values
    return value


def _move_along(
    along: Along,
    instruction: Instruction,
    split: ViewSplit,
    values: list[Value],
    bases: list[Instruction],
    filler: Value,
) -> Value:
    exchange = split.plan_exchange(along.dim)
    if exchange is None:
        return lay_out(along, values, split.view.lines[along.dim], filler)
    wish = Wish(instruction, handler_of(instruction).verbs, tuple(bases), exchange)
    return record_exchange(along, values, exchange, wish, filler)


def _choose_filler(
    frame: Frame, instruction: Instruction, split: ViewSplit, dim: int, summed: tuple[Axis, ...], like: Value
) -> Value:
    """The filler along a dimension, for elements that are in no base.

    Along a dimension that devices add up, it is the neutral element. After such a dimension, whose axes are `summed`,
    only the first device pads with the view's filler, so that the sum has it once.
    """
    assert isinstance(like.shape, Shape)
    nothing = neutral_element("add", like.shape.dtype)
    if split.view.filler is None or dim in split.summed:
        return constant(frame.builder, np.zeros((), like.shape.dtype.dtype) if nothing is None else nothing)
    filler = _convert(frame.replicate(split.view.filler, Because(WHOLE_OPERAND, instruction)), like.shape.dtype)
    if not summed or not split.view.lines[dim].has_padding:
        return filler
    is_first = frame.recorder.is_first(summed)
    return ops.select(is_first, filler, constant(frame.builder, nothing))
