"""Convenience forms of the ops that slide windows: lists of sizes, SAME and VALID, XlaBuilder's convolutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from shape_inference import Dims, PrimitiveType, Shape, refuse
from shape_inference.convolutions import ConvolutionDimensionNumbers
from shape_inference.dims import array
from shape_inference.windows import Window, check_window, make_window, same_padding

from .. import ops
from ..core.attributes import SourceTargetPairs, reader
from ..core.builder import Value
from ..core.graph import Computation
from .support import as_list, as_values, dressed, dtype_of, operand_precisions, require_value, shape_of

__all__ = ["conv", "conv_general_dilated", "conv_with_general_padding", "reduce_window", "select_and_scatter"]

Region: TypeAlias = Computation | Callable[..., Any]
Padding: TypeAlias = str | Sequence[tuple[int, int]]

_numbers, _pairs = reader("dimension_numbers", ConvolutionDimensionNumbers), reader("padding", SourceTargetPairs)


@dressed
def reduce_window(
    operands: Value | Sequence[Value],
    init_values: Any,
    to_apply: Region,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    base_dilations: Sequence[int] | None = None,
    window_dilations: Sequence[int] | None = None,
    *,
    name: str | None = None,
) -> Value:
    """Reduce with `to_apply`, starting from `init_values`, the elements that a sliding window covers at each position.

    Takes one operand or a list; init values that are numbers take their operand's element type. `padding` is "VALID"
    (no padding), "SAME" (ceil(extent / stride) positions), or (low, high) for each dimension; strides are 1 by default.
    Raises: invalid_attribute if `padding` or another attribute has an invalid form; otherwise the same errors as
    xb.ops.reduce_window.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[2, 4])
    ... def pooled(x):
    ...     return xb.reduce_window(x, float("-inf"), xb.maximum, (2, 2), (2, 2))
    >>> xb.evaluate(pooled, [[1.0, 2.0, 5.0, 0.0], [4.0, 3.0, 1.0, 6.0]])
    array([[4., 6.]], dtype=float32)

    Source: Operation Semantics, ReduceWindow; xla_builder.h, ReduceWindowWithGeneralPadding.
    """
    values, inits = as_list(operands), as_list(init_values)
    if len(inits) == len(values) and any(not isinstance(init, Value) for init in inits):
        inits = as_values(inits, [dtype_of(value) for value in values], require_value(values[0]).builder)
    base = array("operand", shape_of(values[0])).dims if values else ()
    window = _window(base, window_dimensions, window_strides, padding, base_dilations, window_dilations)
    return ops.reduce_window(tuple(values), tuple(inits), to_apply=to_apply, window=window, name=name)


@dressed
def select_and_scatter(
    operand: Value,
    select: Region,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None,
    padding: Padding,
    source: Any,
    init_value: Any,
    scatter: Region,
    *,
    name: str | None = None,
) -> Value:
    """Use `scatter` to combine each value of `source` into the result, at the position that `select` picks in its
    window.

    Numbers and arrays take the operand's element type. `padding` and the strides are as in reduce_window.
    Raises: invalid_attribute if `padding` or another attribute has an invalid form; otherwise the same errors as
    xb.ops.select_and_scatter.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[4], xb.f32[2])
    ... def gradient(x, source):
    ...     return xb.select_and_scatter(x, xb.ge, (2,), (2,), "VALID", source, 0.0, xb.add)
    >>> xb.evaluate(gradient, [1.0, 5.0, 8.0, 7.0], [10.0, 20.0])
    array([ 0., 10., 20.,  0.], dtype=float32)

    Source: Operation Semantics, SelectAndScatter.
    """
    window = _window(array("operand", shape_of(operand)).dims, window_dimensions, window_strides, padding)
    _, values, init = as_values((operand, source, init_value), [dtype_of(operand)] * 3)
    return ops.select_and_scatter(operand, values, init, select=select, scatter=scatter, window=window, name=name)


@dressed
def conv(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Padding,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: str | Sequence[str] | None = None,
    preferred_element_type: PrimitiveType | None = None,
    *,
    name: str | None = None,
) -> Value:
    """Convolve an input (batch, feature, spatial...) with a kernel (output feature, input feature, spatial...).

    `padding` is "VALID" (no padding), "SAME" (ceil(extent / stride) positions), or (low, high) for each dimension.
    Raises: invalid_attribute if `padding` or another attribute has an invalid form; otherwise the same errors as
    xb.ops.convolution.

    >>> import xbuild as xb
    >>> x = xb.parameter(builder := xb.Builder("b"), number=0, shape=xb.f32[8, 3, 32, 32])
    >>> kernel = xb.parameter(builder, number=1, shape=xb.f32[16, 3, 5, 5])
    >>> xb.conv(x, kernel, (2, 2), "SAME").shape
    f32[8,16,16,16]

    Source: Operation Semantics, Conv.
    """
    return _record_convolution(
        lhs,
        rhs,
        None,
        (window_strides, padding),
        precision,
        feature_group_count=feature_group_count,
        batch_group_count=batch_group_count,
        preferred_element_type=preferred_element_type,
        name=name,
    )


@dressed
def conv_with_general_padding(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    dimension_numbers: ConvolutionDimensionNumbers | str | None = None,
    precision: str | Sequence[str] | None = None,
    preferred_element_type: PrimitiveType | None = None,
    window_reversal: Sequence[bool] | None = None,
    *,
    name: str | None = None,
) -> Value:
    """Convolve with explicit padding, dilations and dimensions. `xb.conv_general_dilated` is another name.

    `dimension_numbers` is a string of letters and digits such as "b01f_01io->b01f". The default is "bf01_oi01->bf01",
    with a digit for each spatial dimension. By default, dilations are 1 and nothing is reversed.
    Raises: invalid_attribute if `padding` or another attribute has an invalid form; otherwise the same errors as
    xb.ops.convolution.

    >>> import xbuild as xb
    >>> x = xb.parameter(builder := xb.Builder("b"), number=0, shape=xb.f32[8, 32, 3])
    >>> kernel = xb.parameter(builder, number=1, shape=xb.f32[5, 3, 16])
    >>> roles = "b0f_0io->b0f"
    >>> xb.conv_with_general_padding(x, kernel, (1,), [(2, 2)], rhs_dilation=(2,), dimension_numbers=roles).shape
    f32[8,28,16]

    Source: Operation Semantics, ConvWithGeneralPadding; xla_builder.h, ConvGeneralDilated.
    """
    return _record_convolution(
        lhs,
        rhs,
        dimension_numbers,
        (window_strides, padding, lhs_dilation, rhs_dilation, window_reversal),
        precision,
        feature_group_count=feature_group_count,
        batch_group_count=batch_group_count,
        preferred_element_type=preferred_element_type,
        name=name,
    )


conv_general_dilated = conv_with_general_padding


def _record_convolution(
    lhs: Any,
    rhs: Any,
    dimension_numbers: ConvolutionDimensionNumbers | str | None,
    lists: tuple[Any, ...],
    precision: str | Sequence[str] | None,
    **attributes: Any,
) -> Value:
    """Record the convolution with a window of the kernel's sizes and these strides, paddings and dilations."""
    left, right = as_values((lhs, rhs))
    base, kernel = array("lhs", shape_of(left)), array("rhs", shape_of(right))
    if dimension_numbers is None:
        numbers = ConvolutionDimensionNumbers.first(max(base.rank - 2, 0))
    else:
        numbers = _numbers(dimension_numbers)
    extents = _select_dims("lhs", base, numbers, numbers.input_spatial_dimensions)
    sizes = _select_dims("rhs", kernel, numbers, numbers.kernel_spatial_dimensions)
    window = _window(extents, sizes, *lists, names=_KERNEL)
    precisions = operand_precisions(precision)
    return ops.convolution(
        left, right, window=window, dimension_numbers=numbers, operand_precision=precisions, **attributes
    )


_LISTS = ("window_dimensions", "base_dilations", "window_dilations")
_KERNEL = ("the kernel's spatial sizes", "lhs_dilation", "rhs_dilation")


def _select_dims(name: str, shape: Shape, numbers: ConvolutionDimensionNumbers, chosen: Dims) -> Dims:
    """The extents of these dimensions; dimensions out of range are refused."""
    if len(chosen) + 2 != shape.rank or max(chosen, default=0) >= shape.rank:
        refuse(
            "rank_mismatch",
            f"dimension_numbers {numbers} has the spatial dimensions {list(chosen)} for {name}, which are not valid "
            f"for {name} {shape} of rank {shape.rank}",
        )
    return tuple(shape.dims[dim] for dim in chosen)


def _window(
    extents: Dims,
    sizes: Sequence[int],
    strides: Sequence[int] | None,
    padding: Padding,
    base_dilations: Sequence[int] | None = None,
    window_dilations: Sequence[int] | None = None,
    reversal: Sequence[bool] | None = None,
    *,
    names: tuple[str, str, str] = _LISTS,
) -> Window:
    """The window of these lists; SAME padding needs the extents over which the window slides."""
    word = padding.upper() if isinstance(padding, str) else None
    if word not in (None, "SAME", "VALID"):
        refuse("invalid_attribute", f"padding={padding!r}: expected 'SAME', 'VALID' or (low, high) for each dimension")
    window = make_window(
        _dims(names[0], sizes) or (),
        _dims("window_strides", strides),
        None if word else _pairs(padding),
        _dims(names[1], base_dilations),
        _dims(names[2], window_dilations),
        reversal,
        names=names,
    )
    if word != "SAME":
        return window
    check_window(window, len(extents), f"an array of extents {list(extents)}")
    return same_padding(window, extents)


def _dims(name: str, values: Sequence[int] | None) -> Dims | None:
    return None if values is None else reader(name, Dims)(values)
