"""Partitions ops with windows: along a split dimension, devices fetch the elements under their windows.

Sections:

    The elements under the windows of a device
    ReduceWindow: windows, and scans as windows that begin or end with the first or last element
    Convolution: windows of the input, and kernels split along the window
    SelectAndScatter: each device visits all windows that touch its part
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
from attrs import evolve, frozen

from shape_inference import Shape
from shape_inference.types import Dims, s32
from shape_inference.windows import WindowDimension

from ... import ops
from ...core.builder import Value
from ...core.graph import Computation, Instruction
from ..resharding_ops import constant, dims_of, spread, zero
from ..rules import Factor, FactorKind, ShardingRule, covers_all
from ..sharding import count
from .contraction import Contraction
from .exchange import Along, Exchange, Line, full_line, plan_windows, record_exchange
from .frame import Frame
from .handler import Fetches, Handler, Operands, Split, combiner_of, handles, neutral_for_combining
from .reasons import TOTALS, Because, Verbs, Wish

# ----------------------------------------------------------------------------
# The elements under the windows of a device

SLIDING = Verbs(moves="slides a window along")


def fetch_elements(frame: Frame, handler: Handler, split: Split, operands: Operands) -> Operands:
    """The operands with the elements that the device fetches from others, and the filler beyond the array."""
    operands, instruction = [*operands], split.instruction
    for (number, dim), exchange in handler.fetches(split).items():
        filler = constant(frame.builder, handler.filler(instruction))
        wish = Wish(instruction, handler.verbs, (instruction.operands[number],), exchange)
        along = Along(frame, split.axes(number, dim), dim)
        operands[number] = record_exchange(along, [operands[number]], exchange, wish, filler)
    return operands


def _filler_of(computation: Computation, instruction: Instruction) -> Any:
    """The neutral element of a window's computation; None if it has none."""
    combiner, shape = combiner_of(computation), instruction.operands[0].shape
    assert isinstance(shape, Shape)
    return None if combiner is None else neutral_for_combining(combiner, shape.dtype)


def _plan_windows_of_device(split: Split, window: WindowDimension, dim: int, out: int) -> Exchange | None:
    """The elements under the windows of a device; with the gaps of a dilated base if these differ by device."""
    extent, local = split.operand_shape(0).dims[dim], split.result_dims()[out]
    total, low = window.places(extent), -window.padding_low
    counts = [min(local, max(0, total - place * local)) for place in range(count(split.axes(0, dim)))]
    used = [(number - 1) * window.stride + window.span if number else 0 for number in counts]
    size, step = (local - 1) * window.stride + window.span, local * window.stride
    gaps = _count_gaps(window, local)
    if gaps is None:
        return plan_windows(_dilate(extent, window), extent, low, step, size, used)
    dilation = window.base_dilation
    used = [max(0, -((gaps[0] - end) // dilation)) for end in used]
    size = (size - gaps[0] - gaps[1] - 1) // dilation + 1
    return plan_windows(full_line(extent), extent, (low + gaps[0]) // dilation, step // dilation, size, used)


def _dilate(extent: int, window: WindowDimension) -> Line:
    return full_line(extent).pad(0, 0, window.base_dilation - 1)


def _count_gaps(window: WindowDimension, local: int) -> tuple[int, int] | None:
    """The numbers of gaps before and after the elements under the windows of a device.

    None if they differ between devices, or if no element is under the windows.
    """
    dilation, size = window.base_dilation, (local - 1) * window.stride + window.span
    low = window.padding_low % dilation
    is_same_everywhere = (local * window.stride) % dilation == 0 and low < size
    return (low, (size - low - 1) % dilation) if is_same_everywhere else None


def _local_window_of(window: WindowDimension, local: int) -> WindowDimension:
    """The window over fetched elements and padding, with the gaps that are the same on all devices."""
    gaps = _count_gaps(window, local)
    if gaps is None:
        return evolve(window, padding_low=0, padding_high=0, base_dilation=1)
    return evolve(window, padding_low=gaps[0], padding_high=gaps[1])


# ----------------------------------------------------------------------------
# ReduceWindow: windows, and scans as windows that begin or end with the first or last element


@frozen
class Totals:
    """The totals of all parts, which devices gather instead of elements; each device keeps `size` elements."""

    parts: int
    size: int

    def bytes(self, row: int) -> int:
        """The bytes that a device sends if an element of the dimension has `row` bytes."""
        return (self.parts - 1) * row


@handles("reduce_window")
class ReduceWindow(Handler):
    """Each device fetches the elements under its windows.

    In a scan, such as a cumulative sum, each device scans its part and adds the totals of the parts before it.
    """

    verbs: ClassVar[Verbs] = SLIDING
    fetches_elements: ClassVar[bool] = True

    def filler(self, instruction: Instruction) -> Any:
        return _filler_of(instruction.attributes.to_apply, instruction)

    def fetches(self, split: Split) -> Fetches:
        for dim, _ in _find_scan(split):
            return {(0, dim): Totals(count(split.axes(0, dim)), split.result_dims()[dim])}
        window = split.instruction.attributes.window or ()
        moved = [dim for dim in range(len(window)) if split.kind(dim) == "permutation"]
        return {(0, dim): _plan_windows_of_device(split, window[dim], dim, dim) for dim in moved}

    def record(self, frame: Frame, split: Split, operands: Operands) -> Value:
        for dim, is_backward in _find_scan(split):
            return self._record_scan(frame, split, operands, dim, is_backward=is_backward)
        return super().record(frame, split, fetch_elements(frame, self, split, operands))

    def local_attributes(self, split: Split) -> dict[str, Any]:
        window, local = split.instruction.attributes.window, split.result_dims()
        for dim, is_backward in _find_scan(split):
            low, high = (0, local[dim] - 1) if is_backward else (local[dim] - 1, 0)
            scan = WindowDimension(local[dim], padding_low=low, padding_high=high)
            return {"window": (*window[:dim], scan, *window[dim + 1 :])}
        moved = self.fetches(split)
        pairs = enumerate(zip(window or (), local, strict=bool(window)))
        return {"window": tuple(_local_window_of(*each) if (0, dim) in moved else each[0] for dim, each in pairs)}

    def _record_scan(self, frame: Frame, split: Split, operands: Operands, dim: int, *, is_backward: bool) -> Value:
        """The scan of the device's part, each element combined with the total of the parts before it, or after it."""
        padded = [dim] if split.operand_shape(0).dims[dim] % count(split.axes(0, dim)) else []
        part = split.fill_padding(frame, 0, operands[0], padded, self.filler(split.instruction))
        value = super().record(frame, split, [part, *operands[1:]])
        total = self._total_of_others(frame, split, dim, part, is_backward=is_backward)
        rest = [n for n in range(len(dims_of(value))) if n != dim]
        wide = ops.broadcast(total, sizes=dims_of(value), dimensions=rest)
        combiner = str(combiner_of(split.instruction.attributes.to_apply))
        return getattr(ops, f"{combiner}_" if combiner in ("and", "or") else combiner)(wide, value)  # type: ignore[no-any-return]

    def _total_of_others(self, frame: Frame, split: Split, dim: int, part: Value, *, is_backward: bool) -> Value:
        along, computation = Along(frame, split.axes(0, dim), dim), split.instruction.attributes.to_apply
        neutral = constant(frame.builder, self.filler(split.instruction))
        total = ops.reduce((part,), (neutral,), to_apply=computation, dimensions=(dim,))
        row = ops.reshape(total, new_sizes=(1, *dims_of(total)))
        side = "after" if is_backward else "before"
        reason = Because(TOTALS, split.instruction, mesh=frame.mesh, axes=along.axes, dim=dim, side=side)
        totals = frame.gather_parts(row, 0, along.axes, split.instruction, reason)
        dims = dims_of(totals)
        places = ops.iota(frame.builder, shape=s32[dims], iota_dimension=0)
        own = spread(along.record_number(range(along.count)), dims)
        is_other = ops.compare(places, own, direction="GT" if is_backward else "LT")
        others = ops.select(is_other, totals, spread(neutral, dims))
        return ops.reduce((others,), (neutral,), to_apply=computation, dimensions=(0,))


def _find_scan(split: Split) -> Iterator[tuple[int, bool]]:
    """The split dimension of a scan, if windows move along no other, and whether the scan begins at the end."""
    dims, window = split.operand_shape(0).dims, split.instruction.attributes.window or ()
    moving = [dim for dim, each in enumerate(window) if each != WindowDimension(1)]
    if len(moving) == 1 and is_scan(window[moving[0]], dims[moving[0]]) and split.kind(moving[0]) == "permutation":
        yield moving[0], window[moving[0]].padding_high > 0


def is_scan(window: WindowDimension, extent: int) -> bool:
    """Whether every window begins with the first element, or ends with the last one."""
    full = WindowDimension(extent)
    scans = (evolve(full, padding_low=extent - 1), evolve(full, padding_high=extent - 1))
    return extent > 1 and window in scans


# ----------------------------------------------------------------------------
# Convolution: windows of the input, and kernels split along the window

Spatial: TypeAlias = "tuple[int, int, int, WindowDimension]"
"""A spatial dimension: its number in the input, the kernel and the result, and the window."""

Step: TypeAlias = "tuple[int, int]"
"""Positions inside a window, from the first to one past the last."""


@handles("convolution")
class Convolution(Contraction):
    """Each device fetches the elements under its windows; if the kernel is split, those under its part of each window.

    Features and batches are contracted and grouped as in a product.
    """

    verbs: ClassVar[Verbs] = Verbs(reduces="contracts", moves=SLIDING.moves)
    fetches_elements: ClassVar[bool] = True

    def adapt_rule(self, instruction: Instruction, rule: ShardingRule) -> ShardingRule:
        """A spatial dimension of the input is split as the windows are, and the kernel is not split along it.

        If a window has more positions than there are windows, as in the gradient of a kernel, the dimension is split as
        the kernel is: each device sums over its part of the window.
        """
        maps = [[*each] for each in (*rule.operands, *rule.results)]
        factors = [*rule.factors]
        for lhs, kernel, out, window in _find_spatial_dims(instruction):
            size, windows = _dims(instruction.operands[1])[kernel], _dims(instruction)[out]
            is_summed = size > windows and not window.window_reversal
            kinds: tuple[FactorKind, FactorKind] = ("need_replication", "reduction" if is_summed else "permutation")
            maps[0][lhs], maps[1][kernel], maps[2][out] = (
                (len(factors) + 1,), (len(factors) + is_summed,), (len(factors) + (not is_summed),),
            )  # fmt: skip
            factors += [
                Factor(windows if is_summed else size, kinds[0]),
                Factor(size if is_summed else windows, kinds[1]),
            ]
        return ShardingRule(tuple(factors), tuple(map(tuple, maps[:2])), (tuple(maps[2]),))

    def needs_equal_parts(self, instruction: Instruction) -> bool:
        """Groups must not be split."""
        attributes = instruction.attributes
        return bool(attributes.feature_group_count > 1 or attributes.batch_group_count > 1)

    def filler(self, instruction: Instruction) -> Any:
        shape = instruction.operands[0].shape
        assert isinstance(shape, Shape)
        return np.zeros((), shape.dtype.dtype)

    def fetches(self, split: Split) -> Fetches:
        """The elements under each window, or under the device's part of each window."""
        fetches: Fetches = {}
        for dim, kernel, out, window in _find_spatial_dims(split.instruction):
            if split.kind(dim) == "permutation":
                fetches[0, dim] = _plan_windows_of_device(split, window, dim, out)
            elif split.kind(dim) == "reduction":
                fetches[0, dim] = _plan_kernel_part(split, window, dim, kernel)
        return fetches

    def record(self, frame: Frame, split: Split, operands: Operands) -> Value:
        """The convolution of the parts, or a sum of convolutions by steps of the window if its parts differ in size.

        A device holds all of a step's window or none of it. Zeros replace both operands of a missing step, so that
        infinities do not make NaN.
        """
        operands = fetch_elements(frame, self, split, self.fill_with_zeros(frame, split, operands))
        uneven = [each for each in _find_summed_dims(split) if len({*split.count_elements(1, each[1])}) > 1]
        if not uneven:
            return super().record(frame, split, operands)
        total: Value | None = None
        for steps in itertools.product(*([*_steps(split.count_elements(1, each[1]))] for each in uneven)):
            value = self._record_step(frame, split, operands, list(zip(uneven, steps, strict=True)))
            total = value if total is None else ops.add(total, value)
        assert total is not None
        return total

    def _record_step(
        self, frame: Frame, split: Split, operands: Operands, steps: Sequence[tuple[Spatial, Step]]
    ) -> Value:
        (lhs, rhs), instruction = operands, split.instruction
        attributes = {**instruction.attribute_values(), **self.local_attributes(split)}
        window = list(attributes["window"])
        for (dim, kernel, _, whole), (low, high) in steps:
            counts, dilation = split.count_elements(1, kernel), whole.window_dilation
            others = (whole.places(split.operand_shape(0).dims[dim]) - 1) * whole.stride
            along, inside = (Along(frame, split.axes(n, each), each) for n, each in ((0, dim), (1, kernel)))
            has = {place for place, count in enumerate(counts) if count >= high}
            lhs = _select_at(along, has, along.slice(lhs, low * dilation, (high - low - 1) * dilation + 1 + others))
            rhs = _select_at(inside, has, inside.slice(rhs, low, high - low))
            place = instruction.attributes.dimension_numbers.input_spatial_dimensions.index(dim)
            window[place] = evolve(window[place], size=high - low)
        attributes["window"] = tuple(window)
        return frame.record("convolution", [lhs, rhs], instruction.segments, attributes, instruction.name)

    def local_attributes(self, split: Split) -> dict[str, Any]:
        """The window on the part of the kernel, and the device's number of feature or batch groups."""
        attributes, numbers = split.instruction.attributes, split.instruction.attributes.dimension_numbers
        lhs, rhs, out = split.operand_dims(0), split.operand_dims(1), split.result_dims()
        local: dict[str, Any] = {"window": self._local_window(split, rhs, out)}
        if attributes.feature_group_count > 1 and rhs[numbers.kernel_input_feature_dimension]:
            ratio = lhs[numbers.input_feature_dimension] // rhs[numbers.kernel_input_feature_dimension]
            local["feature_group_count"] = max(ratio, 1)
        if attributes.batch_group_count > 1 and out[numbers.output_batch_dimension]:
            ratio = lhs[numbers.input_batch_dimension] // out[numbers.output_batch_dimension]
            local["batch_group_count"] = max(ratio, 1)
        return local

    def _local_window(self, split: Split, rhs: Dims, out: Dims) -> tuple[WindowDimension, ...]:
        attributes, numbers = split.instruction.attributes, split.instruction.attributes.dimension_numbers
        dims = [each for each, *_ in _find_spatial_dims(split.instruction)]
        window = []
        for place, (dim, each) in enumerate(zip(numbers.input_spatial_dimensions, attributes.window, strict=True)):
            kind = split.kind(dim) if dim in dims else ""
            own = evolve(each, size=rhs[numbers.kernel_spatial_dimensions[place]])
            if kind == "permutation":
                own = _local_window_of(own, out[numbers.output_spatial_dimensions[place]])
            elif kind == "reduction":
                own = evolve(own, padding_low=0, padding_high=0, base_dilation=1)
            window.append(own)
        return tuple(window)


def _find_spatial_dims(instruction: Instruction) -> Iterator[Spatial]:
    """The spatial dimensions except those that one window covers, which are contracted."""
    numbers = instruction.attributes.dimension_numbers
    lhs, rhs, out = (_dims(each) for each in (*instruction.operands, instruction))
    for (dim, kernel, result_dim), window in zip(numbers.spatial, instruction.attributes.window, strict=True):
        if not covers_all(window, lhs[dim], out[result_dim], rhs[kernel]):
            yield dim, kernel, result_dim, window


def _dims(instruction: Instruction) -> Dims:
    assert isinstance(instruction.shape, Shape)
    return instruction.shape.dims


def _plan_kernel_part(split: Split, window: WindowDimension, dim: int, kernel: int) -> Exchange | None:
    """The elements under a device's part of the kernel, in all windows."""
    extent, counts = split.operand_shape(0).dims[dim], split.count_elements(1, kernel)
    others = (window.places(extent) - 1) * window.stride
    used = tuple((number - 1) * window.window_dilation + 1 + others if number else 0 for number in counts)
    step = counts[0] * window.window_dilation
    return plan_windows(_dilate(extent, window), extent, -window.padding_low, step, used[0], used)


def _find_summed_dims(split: Split) -> list[Spatial]:
    """The spatial dimensions along which the kernel is split."""
    return [each for each in _find_spatial_dims(split.instruction) if split.kind(each[0]) == "reduction"]


def _steps(counts: Sequence[int]) -> Iterator[Step]:
    """The positions between one size of a device's part and the next larger one."""
    return itertools.pairwise(sorted({0, *counts}))


def _select_at(along: Along, places: set[int], value: Value) -> Value:
    """The value on devices at these positions, zeros on others."""
    if len(places) == along.count:
        return value
    dims = dims_of(value)
    return ops.select(spread(along.is_one_of(places), dims), value, spread(zero(value), dims))


# ----------------------------------------------------------------------------
# SelectAndScatter: each device visits all windows that touch its part


@handles("select_and_scatter")
class SelectAndScatter(Handler):
    """Each device visits all windows that touch its part of the result, and keeps that part."""

    verbs: ClassVar[Verbs] = SLIDING
    fetches_elements: ClassVar[bool] = True

    def adapt_rule(self, instruction: Instruction, rule: ShardingRule) -> ShardingRule:
        """Operand, source and result are split alike along dimensions whose windows have only a size and a stride."""
        maps = [[*each] for each in (*rule.operands[:2], *rule.results)]
        factors = [*rule.factors]
        for dim, window in enumerate(instruction.attributes.window or ()):
            if rule.factors[maps[0][dim][0]].kind == "permutation":
                is_plain = window == WindowDimension(window.size, stride=window.stride)
                for each in maps:
                    each[dim] = (len(factors),)
                extent = _dims(instruction.operands[0])[dim]
                factors.append(Factor(extent, "permutation" if is_plain else "need_replication"))
        operands = (tuple(maps[0]), tuple(maps[1]), *rule.operands[2:])
        return ShardingRule(tuple(factors), operands, (tuple(maps[2]),))

    def filler(self, instruction: Instruction) -> Any:
        return _filler_of(instruction.attributes.scatter, instruction)

    def fetches(self, split: Split) -> Fetches:
        """The windows that touch a device's part, with their elements; None if parts begin inside windows."""
        fetches: Fetches = {}
        for dim, window in _find_moving(split):
            fetches |= _plan_touching_windows(split, dim, window)
        return fetches

    def record(self, frame: Frame, split: Split, operands: Operands) -> Value:
        """The device's part of the result of its windows; elements that no window reaches are the initial value."""
        operands = fetch_elements(frame, self, split, operands)
        value = super().record(frame, split, operands)
        for dim, window in _find_moving(split):
            along, local = Along(frame, (), dim), split.result_dims()[dim]
            start = -_find_first_window(window) * window.stride
            missing = start + local - dims_of(value)[dim]
            value = along.slice(along.pad(value, operands[2], 0, max(0, missing)), start, local)
        return value


def _find_moving(split: Split) -> Iterator[tuple[int, WindowDimension]]:
    """The split dimensions along which windows move."""
    for dim, window in enumerate(split.instruction.attributes.window or ()):
        if split.kind(dim) == "permutation":
            yield dim, window


def _find_first_window(window: WindowDimension) -> int:
    """The first window that touches element 0, counted from the one that begins there."""
    return -((window.size - 1) // window.stride)


def _plan_touching_windows(split: Split, dim: int, window: WindowDimension) -> Fetches:
    local, (extent, total) = split.result_dims()[dim], (split.operand_shape(n).dims[dim] for n in (0, 1))
    parts = count(split.axes(0, dim))
    if local % window.stride:
        return {(0, dim): None}
    first, step = _find_first_window(window), local // window.stride
    windows = step - first
    size = (windows - 1) * window.stride + window.size
    operand = plan_windows(full_line(extent), extent, first * window.stride, local, size, (size,) * parts)
    source = plan_windows(full_line(total), total, first, step, windows, (windows,) * parts)
    return {(0, dim): operand, (1, dim): source}
