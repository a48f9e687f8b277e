"""Cotangents of batch normalization; those of batch_norm_grad follow from its formula."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from shape_inference import Shape, f32

from ... import ops
from ...core.builder import Value
from ..arrays import array_shape, broadcast_to, convert_like, convert_to, sum_over
from ..rules import Cotangents, Pullback, full, vjp


@frozen(eq=False)
class _Features:
    """Sums and broadcasts by feature, in f32 or wider."""

    shape: Shape
    feature_index: int
    epsilon: float

    @property
    def count(self) -> int:
        """The number of elements of a feature."""
        return self.shape.size // max(self.shape.dims[self.feature_index], 1)

    def widen(self, value: Value) -> Value:
        return convert_to(value, f32) if array_shape(value).dtype.bits < 32 else value

    def sum_elements(self, values: Value) -> Value:
        return sum_over(values, [dim for dim in range(self.shape.rank) if dim != self.feature_index])

    def over_elements(self, vector: Value) -> Value:
        """A number for each feature, broadcast over the elements."""
        return broadcast_to(vector, self.shape.dims, (self.feature_index,))

    def mean_elements(self, values: Value) -> Value:
        return self.times(self.sum_elements(values), 1 / self.count)

    def times(self, values: Value, factor: float) -> Value:
        return ops.multiply(values, full(values.builder, factor, array_shape(values)))

    def centre(self, operand: Value, mean: Value) -> Value:
        return ops.subtract(self.widen(operand), self.over_elements(self.widen(mean)))

    def inverse_deviation(self, variance: Value) -> Value:
        """1 / sqrt(variance + epsilon); epsilon is an f32 for every operand type."""
        wide = self.widen(variance)
        return ops.rsqrt(ops.add(wide, full(wide.builder, np.float32(self.epsilon), array_shape(wide))))


def _convert_all(values: Sequence[Value | None], operands: Sequence[Value]) -> Cotangents:
    return tuple(convert_like(value, operand) for value, operand in zip(values, operands, strict=True))


@vjp
def batch_norm_inference(
    back: Pullback,
    operand: Value,
    scale: Value,
    offset: Value,
    mean: Value,
    variance: Value,
    *,
    epsilon: float,
    feature_index: int,
) -> Cotangents:
    features = _Features(array_shape(operand), feature_index, epsilon)
    ct, inverse = features.widen(back.ct), features.inverse_deviation(variance)
    factor = ops.multiply(features.widen(scale), inverse)
    x_ct = ops.multiply(ct, features.over_elements(factor))
    offset_ct = features.sum_elements(ct)
    aligned = features.sum_elements(ops.multiply(ct, features.centre(operand, mean)))
    slope = ops.multiply(ops.multiply(factor, ops.multiply(inverse, inverse)), aligned)
    cts = (
        x_ct,
        ops.multiply(aligned, inverse),
        offset_ct,
        ops.negate(ops.multiply(offset_ct, factor)),
        features.times(slope, -0.5),
    )
    return _convert_all(cts, (operand, scale, offset, mean, variance))


@vjp
def batch_norm_training(
    back: Pullback, operand: Value, scale: Value, offset: Value, *, epsilon: float, feature_index: int
) -> Cotangents:
    """batch_norm_grad for the output's cotangent; the mean and variance add their derivatives by each element."""
    features = _Features(array_shape(operand), feature_index, epsilon)
    if not features.shape.size:
        return None, None, None
    output, mean, variance = back.ct
    x_ct, scale_ct, offset_ct = _pull_back_output(back, operand, scale, output, epsilon, feature_index)
    parts = [x_ct] if x_ct is not None else []
    if mean is not None:
        parts.append(features.over_elements(features.times(features.widen(mean), 1 / features.count)))
    if variance is not None:
        centred = features.centre(operand, ops.get_tuple_element(back.result, index=1))
        parts.append(
            ops.multiply(features.over_elements(features.times(features.widen(variance), 2 / features.count)), centred)
        )
    total = _add_all([features.widen(part) for part in parts])
    return _convert_all((total, scale_ct, offset_ct), (operand, scale, offset))


def _pull_back_output(
    back: Pullback, operand: Value, scale: Value, ct: Value | None, epsilon: float, feature_index: int
) -> Cotangents:
    if ct is None:
        return None, None, None
    mean, variance = (ops.get_tuple_element(back.result, index=number) for number in (1, 2))
    gradients = ops.batch_norm_grad(operand, scale, mean, variance, ct, epsilon=epsilon, feature_index=feature_index)
    return tuple(ops.get_tuple_element(gradients, index=number) for number in range(3))


@vjp
def batch_norm_grad(
    back: Pullback,
    operand: Value,
    scale: Value,
    mean: Value,
    variance: Value,
    grad_output: Value,
    *,
    epsilon: float,
    feature_index: int,
) -> Cotangents:
    """With c = x - mean, s = 1 / sqrt(variance + epsilon), a = sum(g c), h = g - mean(g) - a s^2 / n c.

    The op returns scale s h, a s and sum(g), whose cotangents are X, A and B.
    """
    features = _Features(array_shape(operand), feature_index, epsilon)
    if not features.shape.size:
        return (None,) * 5
    formula = _GradientFormula.of(features, operand, scale, mean, variance, grad_output)
    shares = zip((formula.by_operand, formula.by_scale, formula.by_offset), back.ct, strict=True)
    parts = [by(features.widen(ct)) for by, ct in shares if ct is not None]
    totals = [_add_all(column) for column in zip(*parts, strict=True)]
    return _convert_all(formula.cotangents(*totals), (operand, scale, mean, variance, grad_output))


def _add_all(column: Sequence[Value | None]) -> Value | None:
    total: Value | None = None
    for value in column:
        if value is not None:
            total = value if total is None else ops.add(total, value)
    return total


@frozen(eq=False)
class _GradientFormula:
    """The intermediate values of batch_norm_grad's formula."""

    features: _Features
    scale: Value
    gradient: Value
    centred: Value
    inverse: Value
    aligned: Value

    @classmethod
    def of(
        cls, features: _Features, operand: Value, scale: Value, mean: Value, variance: Value, gradient: Value
    ) -> _GradientFormula:
        centred, wide = features.centre(operand, mean), features.widen(gradient)
        aligned = features.sum_elements(ops.multiply(wide, centred))
        inverse = features.inverse_deviation(variance)
        return cls(features, features.widen(scale), wide, centred, inverse, aligned)

    def by_operand(self, ct: Value) -> tuple[Value | None, ...]:
        """What gradient, centred, inverse, aligned and scale get of the cotangent X of scale s h."""
        f, square = self.features, ops.multiply(self.inverse, self.inverse)
        slope = f.times(ops.multiply(self.aligned, square), 1 / f.count)
        rest = ops.subtract(self.gradient, f.over_elements(f.mean_elements(self.gradient)))
        rest = ops.subtract(rest, ops.multiply(f.over_elements(slope), self.centred))
        inner = ops.multiply(f.over_elements(ops.multiply(self.scale, self.inverse)), ct)
        factor_ct = f.sum_elements(ops.multiply(ct, rest))
        slope_ct = ops.negate(f.sum_elements(ops.multiply(inner, self.centred)))
        double = f.times(ops.multiply(ops.multiply(slope_ct, self.aligned), self.inverse), 2 / f.count)
        return (
            ops.subtract(inner, f.over_elements(f.mean_elements(inner))),
            ops.negate(ops.multiply(f.over_elements(slope), inner)),
            ops.add(ops.multiply(factor_ct, self.scale), double),
            f.times(ops.multiply(slope_ct, square), 1 / f.count),
            ops.multiply(factor_ct, self.inverse),
        )

    def by_scale(self, ct: Value) -> tuple[Value | None, ...]:
        """The same for the cotangent A of a s."""
        return None, None, ops.multiply(ct, self.aligned), ops.multiply(ct, self.inverse), None

    def by_offset(self, ct: Value) -> tuple[Value | None, ...]:
        """The same for the cotangent B of sum(g)."""
        return self.features.over_elements(ct), None, None, None, None

    def cotangents(
        self,
        gradient: Value | None,
        centred: Value | None,
        inverse: Value | None,
        aligned: Value | None,
        scale: Value | None,
    ) -> tuple[Value | None, ...]:
        """The cotangents of the operands from those of the intermediate values."""
        f = self.features
        if aligned is not None:
            gradient = _add_all((gradient, ops.multiply(f.over_elements(aligned), self.centred)))
            centred = _add_all((centred, ops.multiply(f.over_elements(aligned), self.gradient)))
        mean = None if centred is None else ops.negate(f.sum_elements(centred))
        variance = None
        if inverse is not None:
            cube = ops.multiply(self.inverse, ops.multiply(self.inverse, self.inverse))
            variance = f.times(ops.multiply(inverse, cube), -0.5)
        return centred, scale, mean, variance, gradient
