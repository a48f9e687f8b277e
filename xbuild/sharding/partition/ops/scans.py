"""Sums of all elements up to each one along a cut dimension: those of a part, and the total of the parts before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import evolve, frozen

from shape_inference import Shape
from shape_inference.types import s32
from shape_inference.windows import WindowDimension

from .... import ops
from ....core.builder import Value
from ....core.graph import Instruction
from ...planning.record import constant, dims_of, spread
from ..exchanges.recorded import Along
from ..parts.frame import Frame
from ..parts.layouts import bytes_of
from ..parts.masks import combiner_of, masked, neutral
from ..parts.tables import Cut, Operands, finishing, halos, local_attributes, preparing
from ..reasons import Totals
from .windows import kind_of


@frozen
class Exchanged:
    """The totals of all parts, which devices take in place of elements; each device keeps `size` elements."""

    parts: int
    size: int

    def bytes(self, row: int) -> int:
        """The bytes that a device sends, where an element of the dimension has `row` bytes."""
        return (self.parts - 1) * row


def is_scan(window: WindowDimension, extent: int) -> bool:
    """Whether each window begins, or ends, with the first, or the last, element."""
    still = WindowDimension(extent)
    ends = (evolve(still, padding_low=extent - 1), evolve(still, padding_high=extent - 1))
    return extent > 1 and window in ends


def _scanned(cut: Cut) -> Iterator[tuple[int, bool]]:
    """The cut dimension of a scan, where the window is still along all others, and whether it begins at the end."""
    dims, window = cut.instruction.operands[0].shape.dims, cut.instruction.attributes.window or ()  # type: ignore[union-attr]
    moving = [dim for dim, each in enumerate(window) if each != WindowDimension(1)]
    if len(moving) == 1 and is_scan(window[moving[0]], dims[moving[0]]) and kind_of(cut, moving[0]) == "permutation":
        yield moving[0], window[moving[0]].padding_high > 0


_exchanged = halos.pop("reduce_window")
_windows = local_attributes.pop("reduce_window")
_fetched = preparing.pop("reduce_window")


@halos
def reduce_window(cut: Cut) -> dict[tuple[int, int], Any]:
    for dim, _ in _scanned(cut):
        return {(0, dim): Exchanged(_along(None, cut, dim).count, cut.result_dims()[dim])}
    found: dict[tuple[int, int], Any] = _exchanged(cut)
    return found


def _along(frame: Any, cut: Cut, dim: int) -> Along:
    sharding = cut.operands[0]
    assert sharding is not None
    return Along(frame, sharding.dim(dim).axes, dim)


@local_attributes
def reduce_window_(cut: Cut) -> dict[str, Any]:
    for dim, is_backward in _scanned(cut):
        window, size = list(cut.instruction.attributes.window), cut.result_dims()[dim]
        low, high = (0, size - 1) if is_backward else (size - 1, 0)
        window[dim] = WindowDimension(size, padding_low=low, padding_high=high)
        return {"window": tuple(window)}
    found: dict[str, Any] = _windows(cut)
    return found


@preparing
def reduce_window__(frame: Frame, cut: Cut, operands: Operands) -> Operands:
    """The part with the neutral element as padding."""
    for dim, _ in _scanned(cut):
        sharding, shape = cut.operands[0], cut.instruction.operands[0].shape
        assert sharding is not None
        assert isinstance(shape, Shape)
        places = [dim] if shape.dims[dim] % _along(frame, cut, dim).count else []
        return [masked(frame, operands[0], sharding, shape, places, _nothing(cut.instruction)), *operands[1:]]
    found: Operands = _fetched(frame, cut, operands)
    return found


def _nothing(instruction: Instruction) -> Any:
    combiner, shape = combiner_of(instruction.attributes.to_apply), instruction.operands[0].shape
    assert combiner is not None
    assert isinstance(shape, Shape)
    return neutral(combiner, shape.dtype)


@finishing
def reduce_window___(frame: Frame, cut: Cut, operands: Operands, value: Value) -> Value:
    """Each element combined with the total of the parts before it, or after it."""
    for dim, is_backward in _scanned(cut):
        total = _total_of_others(frame, cut, dim, operands[0], is_backward=is_backward)
        rest = [n for n in range(len(dims_of(value))) if n != dim]
        wide = ops.broadcast(total, sizes=dims_of(value), dimensions=rest)
        return getattr(ops, _opcode(cut.instruction))(wide, value)  # type: ignore[no-any-return]
    return value


def _opcode(instruction: Instruction) -> str:
    combiner = combiner_of(instruction.attributes.to_apply)
    return f"{combiner}_" if combiner in ("and", "or") else str(combiner)


def _total_of_others(frame: Frame, cut: Cut, dim: int, part: Value, *, is_backward: bool) -> Value:
    along, computation = _along(frame, cut, dim), cut.instruction.attributes.to_apply
    nothing = constant(frame.builder, _nothing(cut.instruction))
    one = ops.reduce((part,), (nothing,), to_apply=computation, dimensions=(dim,))
    row = ops.reshape(one, new_sizes=(1, *dims_of(one)))
    everyone = ops.all_gather(
        [row], all_gather_dimension=0, shard_count=along.count, **frame.recorder.global_groups(along.axes)
    )
    reason = Totals(cut.instruction, frame.mesh, along.axes, dim, is_backward)
    shape = everyone.shape
    assert isinstance(shape, Shape)
    frame.note(everyone, along.axes, bytes_of(shape), cut.instruction, reason)
    places = ops.iota(frame.builder, shape=s32[shape.dims], iota_dimension=0)
    own = spread(along.number(range(along.count)), shape.dims)
    is_other = ops.compare(places, own, direction="GT" if is_backward else "LT")
    kept = ops.select(is_other, everyone, spread(nothing, shape.dims))
    return ops.reduce((kept,), (nothing,), to_apply=computation, dimensions=(0,))
