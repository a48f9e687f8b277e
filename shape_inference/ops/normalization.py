"""Shapes of batch normalization: of the normalized array, and of vectors with one element for each feature."""

from __future__ import annotations

from .. import dims
from ..dims import array, element_type, same_type
from ..rules import infer, refuse
from ..types import AnyShape, Shape, TupleShape
from .elementwise import FLOAT, same_dims


@infer
def batch_norm_training(
    operand: AnyShape, scale: AnyShape, offset: AnyShape, *, epsilon: float, feature_index: int
) -> TupleShape:
    shape = _normalized(operand, feature_index, epsilon, scale=scale, offset=offset)
    vector = _vector(shape, feature_index)
    return TupleShape((shape, vector, vector))


@infer
def batch_norm_inference(
    operand: AnyShape,
    scale: AnyShape,
    offset: AnyShape,
    mean: AnyShape,
    variance: AnyShape,
    *,
    epsilon: float,
    feature_index: int,
) -> Shape:
    return _normalized(operand, feature_index, epsilon, scale=scale, offset=offset, mean=mean, variance=variance)


@infer
def batch_norm_grad(
    operand: AnyShape,
    scale: AnyShape,
    mean: AnyShape,
    variance: AnyShape,
    grad_output: AnyShape,
    *,
    epsilon: float,
    feature_index: int,
) -> TupleShape:
    shape = _normalized(operand, feature_index, epsilon, scale=scale, mean=mean, variance=variance)
    gradient = array("grad_output", grad_output)
    same_type("operand", shape, "grad_output", gradient)
    same_dims("operand", shape, "grad_output", gradient)
    vector = _vector(shape, feature_index)
    return TupleShape((shape, vector, vector))


def _normalized(operand: AnyShape, feature_index: int, epsilon: float, **vectors: AnyShape) -> Shape:
    """The shape of the operand; refuses vectors of another element type or without one element for each feature."""
    shape = array("operand", operand)
    dims.dimension("feature_index", feature_index, "operand", shape)
    element_type("operand", shape, *FLOAT)
    if not epsilon >= 0:
        refuse("invalid_attribute", f"epsilon must be 0 or more, got {epsilon}")
    for name, each in vectors.items():
        vector = array(name, each)
        if vector.rank != 1:
            refuse(
                "rank_mismatch",
                f"{name} must be a vector with one element for each feature, got {vector} of rank {vector.rank}",
            )
        same_type("operand", shape, name, vector)
        if vector.dims[0] != shape.dims[feature_index]:
            refuse(
                "dimension_mismatch",
                f"{name} {vector} has length {vector.dims[0]}, but dimension {feature_index} (feature_index) of "
                f"operand {shape} has extent {shape.dims[feature_index]}",
            )
    return shape


def _vector(shape: Shape, feature_index: int) -> Shape:
    """The shape of a vector with one element for each feature."""
    flags = shape.dynamic[feature_index : feature_index + 1]
    return Shape(shape.dtype, (shape.dims[feature_index],), flags if any(flags) else ())
