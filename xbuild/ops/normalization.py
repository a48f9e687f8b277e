"""Batch normalization: in training, in inference, and its gradient."""

from __future__ import annotations

from ..core.builder import Value
from ..core.op import op
from ..core.properties import Properties

__all__ = ["batch_norm_grad", "batch_norm_inference", "batch_norm_training"]


@op(Properties("mixed", denormals="flushed", work="none"))
def batch_norm_training(operand: Value, scale: Value, offset: Value, *, epsilon: float, feature_index: int) -> Value:
    """Normalize each feature with its own mean and variance over all other dimensions, then scale and shift it.

    Formula: mean = sum(x) / m; variance = sum((x - mean)^2) / m; output = scale (x - mean) / sqrt(variance + epsilon) +
    offset.
    Shapes: operand is a float array with the features along dimension feature_index. `scale` and `offset` are vectors
    with one element for each feature. Returns the tuple (output, mean, variance). Sums are computed in f64, and
    elements in f32 or a wider type.
    Raises: not_array, dimension_out_of_range, element_type_unsupported, invalid_attribute, rank_mismatch,
    element_type_mismatch or dimension_mismatch.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[2, 1], xb.f32[1], xb.f32[1])
    ... def normalized(x, scale, offset):
    ...     return xb.ops.batch_norm_training(x, scale, offset, epsilon=0.0, feature_index=1)
    >>> xb.evaluate(normalized, [[1.0], [5.0]], [10.0], [0.5])
    (array([[-9.5],
           [10.5]], dtype=float32), array([3.], dtype=float32), array([4.], dtype=float32))

    Source: Operation Semantics, BatchNormTraining.
    """
    ...


@op(Properties("mixed", denormals="flushed", work="none"))
def batch_norm_inference(
    operand: Value, scale: Value, offset: Value, mean: Value, variance: Value, *, epsilon: float, feature_index: int
) -> Value:
    """Normalize each feature with a given mean and variance, then scale and shift it.

    Formula: scale (x - mean) / sqrt(variance + epsilon) + offset.
    Shapes: the operands have the same shapes as in batch_norm_training. The result has the shape of operand.
    Raises: not_array, dimension_out_of_range, element_type_unsupported, invalid_attribute, rank_mismatch,
    element_type_mismatch or dimension_mismatch.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[2, 1], *[xb.f32[1]] * 4)
    ... def normalized(x, scale, offset, mean, variance):
    ...     return xb.ops.batch_norm_inference(x, scale, offset, mean, variance, epsilon=0.0, feature_index=1)
    >>> xb.evaluate(normalized, [[1.0], [5.0]], [10.0], [0.5], [1.0], [4.0])
    array([[ 0.5],
           [20.5]], dtype=float32)

    Source: Operation Semantics, BatchNormInference.
    """
    ...


@op(Properties("mixed", denormals="flushed", work="none"))
def batch_norm_grad(
    operand: Value,
    scale: Value,
    mean: Value,
    variance: Value,
    grad_output: Value,
    *,
    epsilon: float,
    feature_index: int,
) -> Value:
    """Return the gradients of batch_norm_training from its statistics and the gradient g of its output.

    Formula: c = mean(g (x - mean)) / (variance + epsilon); grad_operand = scale / sqrt(variance + epsilon) (g - mean(g)
    - c (x - mean)); grad_scale = sum(g (x - mean)) / sqrt(variance + epsilon); grad_offset = sum(g).
    Shapes: the operands have the same shapes as in batch_norm_training, and grad_output has the shape of operand.
    Returns the tuple (grad_operand, grad_scale, grad_offset).
    Raises: not_array, dimension_out_of_range, element_type_unsupported, invalid_attribute, rank_mismatch,
    element_type_mismatch or dimension_mismatch.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[2, 1], *[xb.f32[1]] * 3, xb.f32[2, 1])
    ... def gradients(x, scale, mean, variance, g):
    ...     return xb.ops.batch_norm_grad(x, scale, mean, variance, g, epsilon=0.0, feature_index=1)
    >>> xb.evaluate(gradients, [[1.0], [5.0]], [10.0], [3.0], [4.0], [[1.0], [2.0]])
    (array([[0.],
           [0.]], dtype=float32), array([1.], dtype=float32), array([3.], dtype=float32))

    Source: Operation Semantics, BatchNormGrad.
    """
    ...
