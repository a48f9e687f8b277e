"""Cotangents of ops that slide windows: each cotangent goes back through the same window.

Sections:

    reduce_window and select_and_scatter
    convolution
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen

from shape_inference import Dims, PrimitiveType
from shape_inference.convolutions import ConvolutionDimensionNumbers
from shape_inference.windows import Window, WindowDimension

from ... import ops
from ...core.builder import Value, Values
from ...core.graph import Computation
from ...properties.patterns import chooses
from ..arrays import (
    array_shape,
    broadcast_to,
    compare,
    convert_like,
    convert_to,
    keep_where,
    reshape_unless_same,
    sum_all,
    transpose_unless_same,
)
from ..folds import (
    Preference,
    WindowedFold,
    add_at,
    apply_region,
    chosen_places,
    give_to_chosen,
    is_identity,
    known_folds,
    pull_back_by_others,
    read_at,
    result_cotangents,
    result_element,
    selected_places,
)
from ..rules import Cotangents, Pullback, full, refuse_derivative, vjp
from .contraction import match_kinds, needed_type

# ----------------------------------------------------------------------------
# reduce_window and select_and_scatter


def at_least(first: Value, second: Value) -> Value:
    return compare(first, second, "GE")


def at_most(first: Value, second: Value) -> Value:
    return compare(first, second, "LE")


_PREFERENCES = {"maximum": at_least, "minimum": at_most}
_CUSTOM_RULE = "to register your own rule for a custom_call, use xb.custom_vjp(target)"


@vjp
def reduce_window(
    back: Pullback, operands: Values, init_values: Values, *, to_apply: Computation, window: Window
) -> Cotangents:
    """Each operand separately; the region must not mix operands."""
    count, to_apply = len(operands), back.context.inline_all(to_apply)
    cts: list[Value | None] = [None] * (2 * count)
    kinds = known_folds(to_apply, count)
    is_chosen = None in kinds and chooses(to_apply)
    for number, (fold, ct) in enumerate(zip(kinds, result_cotangents(back, count), strict=True)):
        wants = back.wants(number), back.wants(count + number)
        if ct is None or not any(wants):
            continue
        part = WindowedFold(operands[number], init_values[number], ct, wants, window)
        if is_chosen:
            places = chosen_places(
                to_apply,
                operands,
                init_values,
                number,
                lambda *given: ops.reduce_window(*given[:2], to_apply=given[2], window=window),
            )
            row = give_to_chosen(ct, places, operands[number], init_values[number], wants)
        elif fold in ("add", *_PREFERENCES):
            row = _pull_back_known(fold, part, result_element(back, number, count))
        else:
            row = pull_back_by_others(back, to_apply, fold, count, part)
        cts[number], cts[count + number] = row
    return tuple(cts)


def _pull_back_known(fold: str, part: WindowedFold, result: Value) -> tuple[Value | None, Value | None]:
    """The cotangents of an operand and its init value, which counts as a further element of each window."""
    operand, init, ct = part.operand, part.init, part.ct
    rest, from_init = ct, ct
    if fold in _PREFERENCES and not is_identity(init, fold):
        is_init = compare(result, broadcast_to(convert_to(init, array_shape(ct).dtype), array_shape(ct).dims), "EQ")
        rest, from_init = keep_where(ops.not_(is_init), ct), keep_where(is_init, ct)
    init_ct = convert_like(sum_all(from_init), init) if part.wants[1] else None
    if not part.wants[0] or not array_shape(operand).size or not array_shape(ct).size:
        return None, init_ct
    if fold == "add":
        return convert_like(_sum_over_windows(rest, operand, part.window), operand), init_ct
    return convert_like(_give_to_selected(rest, operand, part.window, _PREFERENCES[fold]), operand), init_ct


def _sum_over_windows(ct: Value, operand: Value, window: Window) -> Value:
    """For each element, the sum of the cotangents of the windows that cover it."""
    extents = zip(window, array_shape(operand).dims, array_shape(ct).dims, strict=True)
    zero = full(ct.builder, 0, array_shape(ct).dtype[()])
    mirrored = tuple(mirror_window(*each) for each in extents)
    return ops.reduce_window((ct,), (zero,), to_apply=ops.add, window=mirrored)


def _give_to_selected(ct: Value, operand: Value, window: Window, prefers: Preference) -> Value:
    """The cotangent of each window goes to its first maximal (or minimal) element."""
    operand = convert_to(operand, array_shape(ct).dtype)
    if any(dim.window_dilation > 1 or dim.base_dilation > 1 for dim in window):
        return add_at(ct, selected_places(operand, window, prefers), array_shape(operand))
    zero = full(ct.builder, 0, array_shape(ct).dtype[()])
    return ops.select_and_scatter(operand, ct, zero, select=prefers, scatter=ops.add, window=window)


@vjp
def select_and_scatter(
    back: Pullback,
    operand: Value,
    source: Value,
    init_value: Value,
    *,
    select: Computation,
    scatter: Computation,
    window: Window,
) -> Cotangents:
    """A source gets the cotangent of the element that its window selected; the selection has no derivative."""
    if not (back.wants(1) or back.wants(2)):
        return None, None, None
    if known_folds(scatter, 1) != ("add",):
        refuse_derivative("only a scatter that adds to the selected elements has a derivative", _CUSTOM_RULE)
    init_ct = sum_all(back.ct) if back.wants(2) else None
    if not back.wants(1) or not array_shape(operand).size or not array_shape(source).size:
        return None, None, init_ct
    places = selected_places(operand, window, lambda first, second: apply_region(select, (first, second)))
    return None, read_at(back.ct, places, not any(map(_may_miss, window))), init_ct


def _may_miss(dim: WindowDimension) -> bool:
    """Whether a place of the window may cover only padding and holes."""
    return dim.padding_low > 0 or dim.padding_high > 0 or dim.base_dilation > 1


# ----------------------------------------------------------------------------
# convolution
#
# Its cotangents are convolutions: with the mirrored kernel, and with the cotangent as the kernel.


@vjp
def convolution(
    back: Pullback,
    lhs: Value,
    rhs: Value,
    *,
    window: Window,
    dimension_numbers: ConvolutionDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    operand_precision: tuple[str, ...],
    preferred_element_type: PrimitiveType | None,
) -> Cotangents:
    if not all(array_shape(array).size for array in (lhs, rhs, back.ct)):
        return None, None
    form = ConvolutionForm(
        lhs, rhs, window, dimension_numbers, feature_group_count, batch_group_count, operand_precision
    )
    return (
        input_cotangent(form, back.ct) if back.wants(0) else None,
        kernel_cotangent(form, back.ct) if back.wants(1) else None,
    )


@frozen(eq=False)
class ConvolutionForm:
    """A convolution to differentiate: its operands and attributes."""

    lhs: Value
    rhs: Value
    window: Window
    roles: ConvolutionDimensionNumbers
    feature_groups: int
    batch_groups: int
    precision: tuple[str, ...]

    def extents(self, ct: Value) -> list[tuple[WindowDimension, int, int]]:
        """For each spatial dimension the window, the input's extent and the number of places."""
        base, places = array_shape(self.lhs).dims, array_shape(ct).dims
        return [
            (dim, base[left], places[out])
            for dim, left, out in zip(
                self.window,
                self.roles.input_spatial_dimensions,
                self.roles.output_spatial_dimensions,
                strict=True,
            )
        ]


def input_cotangent(conv: ConvolutionForm, ct: Value) -> Value:
    """The cotangent, dilated by the strides, convolved with the mirrored kernel whose features are swapped.

    Feature groups stay feature groups; batch groups become feature groups and are moved back to the batch.
    """
    roles, rhs = conv.roles, conv.rhs
    leaving, entering = roles.kernel_output_feature_dimension, roles.kernel_input_feature_dimension
    groups = conv.feature_groups * conv.batch_groups
    cotangent = _convolve(
        ct,
        _move_groups(rhs, leaving, entering, groups),
        window=[_mirror_kernel(*extents) for extents in conv.extents(ct)],
        roles=ConvolutionDimensionNumbers(
            roles.output_batch_dimension,
            roles.output_feature_dimension,
            roles.output_spatial_dimensions,
            leaving,
            entering,
            roles.kernel_spatial_dimensions,
            roles.input_batch_dimension,
            roles.input_feature_dimension,
            roles.input_spatial_dimensions,
        ),
        feature_groups=groups,
        batch_groups=1,
        like=conv.lhs,
        precision=conv.precision,
    )
    return _move_groups(cotangent, roles.input_feature_dimension, roles.input_batch_dimension, conv.batch_groups)


def kernel_cotangent(conv: ConvolutionForm, ct: Value) -> Value:
    """The input, with batch and features swapped, convolved with the cotangent; strides and dilations swap."""
    roles = conv.roles
    cotangent = _convolve(
        conv.lhs,
        ct,
        window=[_kernel_window(*extents) for extents in conv.extents(ct)],
        roles=ConvolutionDimensionNumbers(
            roles.input_feature_dimension,
            roles.input_batch_dimension,
            roles.input_spatial_dimensions,
            roles.output_batch_dimension,
            roles.output_feature_dimension,
            roles.output_spatial_dimensions,
            roles.kernel_input_feature_dimension,
            roles.kernel_output_feature_dimension,
            roles.kernel_spatial_dimensions,
        ),
        feature_groups=conv.batch_groups,
        batch_groups=conv.feature_groups,
        like=conv.rhs,
        precision=conv.precision,
    )
    pairs = zip(conv.window, roles.kernel_spatial_dimensions, strict=True)
    mirrored = tuple(place for dim, place in pairs if dim.window_reversal)
    return ops.reverse(cotangent, dimensions=mirrored) if mirrored else cotangent


def mirror_window(dim: WindowDimension, extent: int, places: int) -> WindowDimension:
    """The window that sums, for each input element, the places that covered it: strides become base dilation."""
    low = dim.span - 1 - dim.padding_low
    covered = (places - 1) * dim.stride + 1
    high = (extent - 1) * dim.base_dilation + dim.span - covered - low
    return WindowDimension(dim.size, dim.base_dilation, low, high, dim.window_dilation, dim.stride)


def _mirror_kernel(dim: WindowDimension, extent: int, places: int) -> WindowDimension:
    return evolve(mirror_window(dim, extent, places), window_reversal=not dim.window_reversal)


def _kernel_window(dim: WindowDimension, extent: int, places: int) -> WindowDimension:
    covered = (dim.size - 1) * dim.window_dilation + (places - 1) * dim.stride + 1
    high = covered - dim.base(extent) - dim.padding_low
    return WindowDimension(places, dim.window_dilation, dim.padding_low, high, dim.stride, dim.base_dilation)


def _convolve(
    lhs: Value,
    rhs: Value,
    *,
    window: Sequence[WindowDimension],
    roles: ConvolutionDimensionNumbers,
    feature_groups: int,
    batch_groups: int,
    like: Value,
    precision: tuple[str, ...],
) -> Value:
    left, right = match_kinds(lhs, rhs)
    return ops.convolution(
        left,
        right,
        window=tuple(window),
        dimension_numbers=roles,
        feature_group_count=feature_groups,
        batch_group_count=batch_groups,
        operand_precision=precision,
        preferred_element_type=needed_type(left, right, array_shape(like).dtype),
    )


def _move_groups(value: Value, source: int, target: int, groups: int) -> Value:
    """Move the groups from the outer part of one dimension to the outer part of another."""
    if groups == 1:
        return value
    sizes = array_shape(value).dims
    split: Dims = (*sizes[:source], groups, sizes[source] // groups, *sizes[source + 1 :])
    rest = [dim for dim in range(len(split)) if dim != source]
    rest.insert(target, source)
    merged = list(sizes)
    merged[source] //= groups
    merged[target] *= groups
    return reshape_unless_same(transpose_unless_same(reshape_unless_same(value, split), rest), tuple(merged))
