"""Shapes of reduce-window, select-and-scatter and convolution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import dims
from ..convolutions import ConvolutionDimensionNumbers
from ..dims import array, dynamic_of
from ..rules import infer, refuse
from ..types import AnyShape, Dims, PrimitiveType, ProgramShape, Shape, TupleShape, array_shape, pred
from ..windows import Window, check_window, window_text
from .contraction import check_precision, product_type
from .reduction import accumulators, same_extents


@infer
def reduce_window(
    operands: Sequence[AnyShape], init_values: Sequence[AnyShape], *, to_apply: ProgramShape, window: Window
) -> AnyShape:
    arrays = same_extents(operands, init_values)
    check_window(window, arrays[0].rank, f"operand {arrays[0]}")
    types = accumulators(to_apply, arrays, init_values)
    sizes = places(window, arrays[0].dims)
    dims.sizes("the result", sizes)
    results = [_shape(dtype, sizes, each.dynamic) for each, dtype in zip(arrays, types, strict=True)]
    return results[0] if len(results) == 1 else TupleShape(results)


def places(window: Window, extents: Dims) -> Dims:
    """The number of window positions in each dimension."""
    return tuple([dim.places(extent) for dim, extent in zip(window, extents, strict=True)])


def _shape(dtype: PrimitiveType, sizes: Dims, dynamic: tuple[bool, ...]) -> Shape:
    return Shape(dtype, sizes, dynamic) if dynamic else array_shape(dtype, sizes)


@infer
def select_and_scatter(
    operand: AnyShape,
    source: AnyShape,
    init_value: AnyShape,
    *,
    select: ProgramShape,
    scatter: ProgramShape,
    window: Window,
) -> Shape:
    shape, values = array("operand", operand), array("source", source)
    element = array_shape(shape.dtype, ())
    dims.check_call("select", select, (element, element), "an element of operand")
    dims.check_result("select", select, array_shape(pred, ()), "must return")
    check_window(window, shape.rank, f"operand {shape}")
    wanted = _shape(shape.dtype, places(window, shape.dims), shape.dynamic)
    if values.dims != wanted.dims:
        kind = "dimension_mismatch" if values.rank == wanted.rank else "rank_mismatch"
        refuse(
            kind,
            f"expected source {wanted}, with one element for each position of the window on operand {shape}, got "
            f"{values}",
        )
    (dtype,) = accumulators(scatter, [values], [init_value], "scatter")
    dims.same_type("operand", shape, "source", values)
    if dtype is not shape.dtype:
        refuse("signature_mismatch", f"operand {shape} requires scatter to take and return {element}, got {scatter}")
    return shape


@infer
def convolution(
    lhs: AnyShape,
    rhs: AnyShape,
    *,
    window: Window,
    dimension_numbers: ConvolutionDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    operand_precision: tuple[str, ...],
    preferred_element_type: PrimitiveType | None,
) -> Shape:
    left, right = array("lhs", lhs), array("rhs", rhs)
    dtype = product_type(left, right, preferred_element_type)
    _roles(dimension_numbers, left, right)
    _kernel(window, dimension_numbers, right)
    _groups(left, right, dimension_numbers, feature_group_count, batch_group_count)
    if operand_precision:
        check_precision(operand_precision)
    return _result(dtype, left, right, window, dimension_numbers, batch_group_count)


def _roles(numbers: ConvolutionDimensionNumbers, lhs: Shape, rhs: Shape) -> None:
    """Refuse operands of different ranks, and dimension numbers that do not give each dimension one role."""
    if lhs.rank != rhs.rank:
        refuse("rank_mismatch", f"lhs is {lhs} and rhs is {rhs}: ranks {lhs.rank} and {rhs.rank} differ")
    if lhs.rank < 2:
        refuse(
            "rank_too_small",
            "lhs and rhs must have rank 2 or more: lhs has a batch and a feature dimension, and rhs has two feature "
            f"dimensions; got {lhs} and {rhs}",
        )
    for name, given in (("lhs", numbers.lhs), ("rhs", numbers.rhs), ("output", numbers.output)):
        if len(given) != lhs.rank:
            refuse(
                "rank_mismatch",
                f"dimension_numbers {numbers} has {len(given)} dimensions for {name}, but lhs {lhs} has rank "
                f"{lhs.rank}",
            )
        if sorted(given) != list(range(lhs.rank)):
            dims.dimensions(f"dimension_numbers ({name})", given, name, lhs if name == "lhs" else rhs)


def _kernel(window: Window, numbers: ConvolutionDimensionNumbers, rhs: Shape) -> None:
    """Refuse a window whose sizes are not the spatial extents of the kernel."""
    check_window(window, rhs.rank - 2, f"kernel {rhs}")
    for dim, (each, place) in enumerate(zip(window, numbers.kernel_spatial_dimensions, strict=True)):
        if each.size != rhs.dims[place]:
            refuse(
                "dimension_mismatch",
                f"window {{{window_text(window)}}} has size {each.size} in spatial dimension {dim}, but dimension "
                f"{place} of rhs {rhs} has extent {rhs.dims[place]}",
            )


def _groups(lhs: Shape, rhs: Shape, numbers: ConvolutionDimensionNumbers, features: int, batches: int) -> None:
    """Refuse group counts that do not divide features or batch, and input features unequal to those of the kernel."""
    for name, count in (("feature_group_count", features), ("batch_group_count", batches)):
        if count < 1:
            refuse("non_positive", f"{name} must be at least 1, got {count}")
    if features > 1 and batches > 1:
        refuse(
            "invalid_attribute",
            f"feature_group_count={features} and batch_group_count={batches} cannot both be greater than 1",
        )
    entering, batch = numbers.input_feature_dimension, numbers.input_batch_dimension
    leaving, inner = numbers.kernel_output_feature_dimension, numbers.kernel_input_feature_dimension
    _divides("feature_group_count", features, "input feature", entering, "lhs", lhs)
    if lhs.dims[entering] != rhs.dims[inner] * features:
        refuse(
            "dimension_mismatch",
            f"expected {rhs.dims[inner] * features} input features in dimension {entering} of lhs {lhs}, got "
            f"{lhs.dims[entering]}: dimension {inner} of rhs {rhs} has extent {rhs.dims[inner]}, and "
            f"feature_group_count={features}",
        )
    _divides("feature_group_count", features, "output feature", leaving, "rhs", rhs)
    _divides("batch_group_count", batches, "batch", batch, "lhs", lhs)
    _divides("batch_group_count", batches, "output feature", leaving, "rhs", rhs)


def _divides(attribute: str, count: int, role: str, dim: int, name: str, shape: Shape) -> None:
    if shape.dims[dim] % count:
        refuse(
            "divisibility",
            f"{attribute}={count} does not divide {shape.dims[dim]}, the extent of {role} dimension {dim} of {name} "
            f"{shape}",
        )


def _result(
    dtype: PrimitiveType,
    lhs: Shape,
    rhs: Shape,
    window: Window,
    numbers: ConvolutionDimensionNumbers,
    batch_groups: int,
) -> Shape:
    batch, feature = numbers.input_batch_dimension, numbers.kernel_output_feature_dimension
    spatial = numbers.input_spatial_dimensions
    extents = [
        lhs.dims[batch] // batch_groups,
        rhs.dims[feature],
        *places(window, tuple(lhs.dims[dim] for dim in spatial)),
    ]
    sizes = _placed(extents, numbers.output)
    dims.sizes("the result", sizes)
    if not lhs.dynamic and not rhs.dynamic:
        return array_shape(dtype, sizes)
    pairs = zip(spatial, numbers.kernel_spatial_dimensions, strict=True)
    slides = [_is_dynamic(lhs, dim) or _is_dynamic(rhs, of_kernel) for dim, of_kernel in pairs]
    flags = [_is_dynamic(lhs, batch), _is_dynamic(rhs, feature), *slides]
    return Shape(dtype, sizes, dynamic_of(len(sizes), _placed(flags, numbers.output)))


def _is_dynamic(shape: Shape, dim: int) -> bool:
    return bool(shape.dynamic) and shape.dynamic[dim]


def _placed(values: Sequence[Any], dimensions: Dims) -> tuple[Any, ...]:
    """The values in the order of their dimension numbers."""
    return tuple(value for _, value in sorted(zip(dimensions, values, strict=True)))
