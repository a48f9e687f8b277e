"""A convolution's cotangents as convolutions: under the mirrored kernel, and with the cotangent as kernel."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen

from shape_inference import Dims
from shape_inference.convolutions import ConvolutionDimensionNumbers
from shape_inference.windows import Window, WindowDimension

from ... import ops
from ...core.builder import Value
from .arrays import array_of, reshaped, transposed
from .products import fitting, preferred


@frozen(eq=False)
class Convolution:
    """A convolution that is to be differentiated: its operands and its attributes."""

    lhs: Value
    rhs: Value
    window: Window
    roles: ConvolutionDimensionNumbers
    feature_groups: int
    batch_groups: int
    precision: tuple[str, ...]

    def extents(self, ct: Value) -> list[tuple[WindowDimension, int, int]]:
        """For each spatial dimension the window, the input's extent, and how many places there are."""
        base, places = array_of(self.lhs).dims, array_of(ct).dims
        return [
            (dim, base[left], places[out])
            for dim, left, out in zip(
                self.window,
                self.roles.input_spatial_dimensions,
                self.roles.output_spatial_dimensions,
                strict=True,
            )
        ]


def input_cotangent(conv: Convolution, ct: Value) -> Value:
    """The cotangent, with holes for the strides, under the mirrored kernel with the features swapped.

    A group of features stays one; a group of the batch is a group of features here, and is put back into the batch.
    """
    roles, rhs = conv.roles, conv.rhs
    leaving, entering = roles.kernel_output_feature_dimension, roles.kernel_input_feature_dimension
    groups = conv.feature_groups * conv.batch_groups
    found = _convolved(
        ct,
        _moved_groups(rhs, leaving, entering, groups),
        window=[_mirrored(*each) for each in conv.extents(ct)],
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
    return _moved_groups(found, roles.input_feature_dimension, roles.input_batch_dimension, conv.batch_groups)


def kernel_cotangent(conv: Convolution, ct: Value) -> Value:
    """The input, batch and features swapped, under the cotangent as kernel; strides and dilations change places."""
    roles = conv.roles
    found = _convolved(
        conv.lhs,
        ct,
        window=[_of_cotangent(*each) for each in conv.extents(ct)],
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
    return ops.reverse(found, dimensions=mirrored) if mirrored else found


def mirrored(dim: WindowDimension, extent: int, places: int) -> WindowDimension:
    """The window that adds, for each input element, what the places that covered it have: strides become holes."""
    low = dim.span - 1 - dim.padding_low
    covered = (places - 1) * dim.stride + 1
    high = (extent - 1) * dim.base_dilation + dim.span - covered - low
    return WindowDimension(dim.size, dim.base_dilation, low, high, dim.window_dilation, dim.stride)


def _mirrored(dim: WindowDimension, extent: int, places: int) -> WindowDimension:
    return evolve(mirrored(dim, extent, places), window_reversal=not dim.window_reversal)


def _of_cotangent(dim: WindowDimension, extent: int, places: int) -> WindowDimension:
    covered = (dim.size - 1) * dim.window_dilation + (places - 1) * dim.stride + 1
    high = covered - dim.base(extent) - dim.padding_low
    return WindowDimension(places, dim.window_dilation, dim.padding_low, high, dim.stride, dim.base_dilation)


def _convolved(
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
    left, right = fitting(lhs, rhs)
    return ops.convolution(
        left,
        right,
        window=tuple(window),
        dimension_numbers=roles,
        feature_group_count=feature_groups,
        batch_group_count=batch_groups,
        operand_precision=precision,
        preferred_element_type=preferred(left, right, array_of(like).dtype),
    )


def _moved_groups(value: Value, source: int, target: int, groups: int) -> Value:
    """The groups that are the outer part of one dimension as the outer part of another."""
    if groups == 1:
        return value
    sizes = array_of(value).dims
    split: Dims = (*sizes[:source], groups, sizes[source] // groups, *sizes[source + 1 :])
    rest = [dim for dim in range(len(split)) if dim != source]
    rest.insert(target, source)
    merged = list(sizes)
    merged[source] //= groups
    merged[target] *= groups
    return reshaped(transposed(reshaped(value, split), rest), tuple(merged))
