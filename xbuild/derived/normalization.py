"""Convenience forms of batch normalization: the attributes by position, arrays as statistics."""

from __future__ import annotations

from typing import Any

from .. import ops
from ..core.builder import Value
from .support import as_values, dressed, normalize_dimensions, rank_of

__all__ = ["batch_norm_grad", "batch_norm_inference", "batch_norm_training"]


@dressed
def batch_norm_training(
    operand: Any, scale: Any, offset: Any, epsilon: float, feature_index: int, *, name: str | None = None
) -> Value:
    """Normalize each feature with its own mean and variance, and return the tuple (output, mean, variance).

    Vectors may be lists or arrays.
    Raises: the same errors as xb.ops.batch_norm_training.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[8, 2])
    >>> xb.batch_norm_training(x, [1.0, 1.0], [0.0, 0.0], 1e-3, 1).shape
    (f32[8,2], f32[2], f32[2])

    Source: Operation Semantics, BatchNormTraining.
    """
    values = as_values((operand, scale, offset))
    return ops.batch_norm_training(
        *values, epsilon=epsilon, feature_index=normalize_dimensions(feature_index, rank_of(values[0])), name=name
    )


@dressed
def batch_norm_inference(
    operand: Any,
    scale: Any,
    offset: Any,
    mean: Any,
    variance: Any,
    epsilon: float,
    feature_index: int,
    *,
    name: str | None = None,
) -> Value:
    """Normalize each feature with a given mean and variance.

    Vectors may be lists or arrays.
    Raises: the same errors as xb.ops.batch_norm_inference.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[8, 2])
    >>> xb.batch_norm_inference(x, [1.0, 1.0], [0.0, 0.0], [0.5, 0.5], [1.0, 4.0], 1e-3, 1).shape
    f32[8,2]

    Source: Operation Semantics, BatchNormInference.
    """
    values = as_values((operand, scale, offset, mean, variance))
    return ops.batch_norm_inference(
        *values, epsilon=epsilon, feature_index=normalize_dimensions(feature_index, rank_of(values[0])), name=name
    )


@dressed
def batch_norm_grad(
    operand: Any,
    scale: Any,
    mean: Any,
    variance: Any,
    grad_output: Any,
    epsilon: float,
    feature_index: int,
    *,
    name: str | None = None,
) -> Value:
    """Return the gradients of batch_norm_training: the tuple (grad_operand, grad_scale, grad_offset).

    Vectors may be lists or arrays.
    Raises: the same errors as xb.ops.batch_norm_grad.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[8, 2])
    >>> xb.batch_norm_grad(x, [1.0, 1.0], [0.5, 0.5], [1.0, 4.0], x, 1e-3, 1).shape
    (f32[8,2], f32[2], f32[2])

    Source: Operation Semantics, BatchNormGrad.
    """
    values = as_values((operand, scale, mean, variance, grad_output))
    return ops.batch_norm_grad(
        *values, epsilon=epsilon, feature_index=normalize_dimensions(feature_index, rank_of(values[0])), name=name
    )
