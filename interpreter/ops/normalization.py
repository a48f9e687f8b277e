"""Values of batch normalization: sums are computed in f64, elements in f32 or wider, and results are rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen

from xbuild.core.attributes import Array

from ..kernels.lifting import WIDE, narrowed
from ..rules import compute


@frozen
class _Features:
    """An operand with its feature dimension: sums over the other dimensions, and broadcasts of feature vectors."""

    operand: Array
    feature_index: int

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(axis for axis in range(self.operand.ndim) if axis != self.feature_index)

    @property
    def count(self) -> Any:
        """The number of elements of each feature, as f64, so that division by a count of 0 does not raise."""
        return np.float64(np.prod([self.operand.shape[axis] for axis in self.axes]))

    def sums(self, values: Array) -> Array:
        total: Array = values.sum(self.axes, dtype=np.float64)
        return total

    def along(self, vector: Array) -> Array:
        """A feature vector reshaped to broadcast against the operand, in the operand's type."""
        shape = [-1 if axis == self.feature_index else 1 for axis in range(self.operand.ndim)]
        return vector.astype(self.operand.dtype, copy=False).reshape(shape)


def _in_f64(array: Array) -> Array:
    dtype = WIDE.get(array.dtype, array.dtype)
    return array.astype(np.float32 if dtype == np.float16 else dtype, copy=False)


def _inverse_deviation(variance: Array, epsilon: float) -> Array:
    """1 / sqrt(variance + epsilon) in f64, with epsilon rounded to f32 as in XLA, whatever the operand's type."""
    return 1 / np.sqrt(variance.astype(np.float64) + np.float64(np.float32(epsilon)))


def _round_to(like: Array, *results: Array) -> tuple[Array, ...]:
    return tuple(narrowed(result, like.dtype) for result in results)


@compute
def batch_norm_training(
    operand: Array, scale: Array, offset: Array, *, epsilon: float, feature_index: int
) -> tuple[Array, ...]:
    features = _Features(_in_f64(operand), feature_index)
    mean = features.sums(features.operand) / features.count
    centred = features.operand - features.along(mean)
    variance = features.sums(np.square(centred)) / features.count
    factor = _in_f64(scale) * _inverse_deviation(variance, epsilon)
    output = centred * features.along(factor) + features.along(_in_f64(offset))
    return _round_to(operand, output, mean, variance)


@compute
def batch_norm_inference(
    operand: Array, scale: Array, offset: Array, mean: Array, variance: Array, *, epsilon: float, feature_index: int
) -> Array:
    features = _Features(_in_f64(operand), feature_index)
    factor = _in_f64(scale) * _inverse_deviation(_in_f64(variance), epsilon)
    centred = features.operand - features.along(_in_f64(mean))
    return narrowed(centred * features.along(factor) + features.along(_in_f64(offset)), operand.dtype)


@compute
def batch_norm_grad(
    operand: Array,
    scale: Array,
    mean: Array,
    variance: Array,
    grad_output: Array,
    *,
    epsilon: float,
    feature_index: int,
) -> tuple[Array, ...]:
    features = _Features(_in_f64(operand), feature_index)
    gradient, centred = _in_f64(grad_output), features.operand - features.along(_in_f64(mean))
    inverse = _inverse_deviation(_in_f64(variance), epsilon)
    grad_offset, aligned = features.sums(gradient), features.sums(gradient * centred)
    slope = aligned / features.count * np.square(inverse)
    rest = gradient - features.along(grad_offset / features.count) - features.along(slope) * centred
    grad_operand = features.along(_in_f64(scale) * inverse) * rest
    return _round_to(operand, grad_operand, aligned * inverse, grad_offset)
