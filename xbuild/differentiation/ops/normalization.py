"""Cotangents of batch normalization; those of its gradient op follow from its formula."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from shape_inference import Shape, f32

from ... import ops
from ...core.builder import Value
from ..forms.arrays import array_of, in_type, like
from ..rules import Cotangents, Pullback, full, vjp
from ..support import broadcast_to, sum_over


@frozen(eq=False)
class _Features:
    """The elements of an operand by their features, in f32 or wider."""

    shape: Shape
    feature_index: int
    epsilon: float

    @property
    def count(self) -> int:
        """How many elements a feature has."""
        return self.shape.size // max(self.shape.dims[self.feature_index], 1)

    def wide(self, value: Value) -> Value:
        return in_type(value, f32) if array_of(value).dtype.bits < 32 else value

    def sums(self, values: Value) -> Value:
        return sum_over(values, [dim for dim in range(self.shape.rank) if dim != self.feature_index])

    def along(self, vector: Value) -> Value:
        """A number for each feature against the elements."""
        return broadcast_to(vector, self.shape.dims, (self.feature_index,))

    def means(self, values: Value) -> Value:
        return self.scaled(self.sums(values), 1 / self.count)

    def scaled(self, values: Value, factor: float) -> Value:
        return ops.multiply(values, full(values.builder, factor, array_of(values)))

    def centred(self, operand: Value, mean: Value) -> Value:
        return ops.subtract(self.wide(operand), self.along(self.wide(mean)))

    def inverse_deviation(self, variance: Value) -> Value:
        """Epsilon is a number of f32, whatever the type of the operand."""
        wide = self.wide(variance)
        return ops.rsqrt(ops.add(wide, full(wide.builder, np.float32(self.epsilon), array_of(wide))))


def _in_types(values: Sequence[Value | None], operands: Sequence[Value]) -> Cotangents:
    return tuple(like(value, operand) for value, operand in zip(values, operands, strict=True))


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
    features = _Features(array_of(operand), feature_index, epsilon)
    ct, inverse = features.wide(back.ct), features.inverse_deviation(variance)
    factor = ops.multiply(features.wide(scale), inverse)
    x_ct = ops.multiply(ct, features.along(factor))
    offset_ct = features.sums(ct)
    aligned = features.sums(ops.multiply(ct, features.centred(operand, mean)))
    slope = ops.multiply(ops.multiply(factor, ops.multiply(inverse, inverse)), aligned)
    cts = (
        x_ct,
        ops.multiply(aligned, inverse),
        offset_ct,
        ops.negate(ops.multiply(offset_ct, factor)),
        features.scaled(slope, -0.5),
    )
    return _in_types(cts, (operand, scale, offset, mean, variance))


@vjp
def batch_norm_training(
    back: Pullback, operand: Value, scale: Value, offset: Value, *, epsilon: float, feature_index: int
) -> Cotangents:
    """The op for the output's cotangent; the mean and the variance add what each element does to them."""
    features = _Features(array_of(operand), feature_index, epsilon)
    if not features.shape.size:
        return None, None, None
    output, mean, variance = back.ct
    x_ct, scale_ct, offset_ct = _of_output(back, operand, scale, output, epsilon, feature_index)
    parts = [x_ct] if x_ct is not None else []
    if mean is not None:
        parts.append(features.along(features.scaled(features.wide(mean), 1 / features.count)))
    if variance is not None:
        centred = features.centred(operand, ops.get_tuple_element(back.result, index=1))
        parts.append(
            ops.multiply(features.along(features.scaled(features.wide(variance), 2 / features.count)), centred)
        )
    total = _total([features.wide(part) for part in parts])
    return _in_types((total, scale_ct, offset_ct), (operand, scale, offset))


def _of_output(
    back: Pullback, operand: Value, scale: Value, ct: Value | None, epsilon: float, feature_index: int
) -> Cotangents:
    if ct is None:
        return None, None, None
    mean, variance = (ops.get_tuple_element(back.result, index=number) for number in (1, 2))
    found = ops.batch_norm_grad(operand, scale, mean, variance, ct, epsilon=epsilon, feature_index=feature_index)
    return tuple(ops.get_tuple_element(found, index=number) for number in range(3))


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

    The op gives scale s h, a s and sum(g); X, A and B are their cotangents.
    """
    features = _Features(array_of(operand), feature_index, epsilon)
    if not features.shape.size:
        return (None,) * 5
    given = _Gradient.of(features, operand, scale, mean, variance, grad_output)
    shares = zip((given.by_operand, given.by_scale, given.by_offset), back.ct, strict=True)
    parts = [by(features.wide(ct)) for by, ct in shares if ct is not None]
    totals = [_total(column) for column in zip(*parts, strict=True)]
    return _in_types(given.cotangents(*totals), (operand, scale, mean, variance, grad_output))


def _total(column: Sequence[Value | None]) -> Value | None:
    found: Value | None = None
    for each in column:
        if each is not None:
            found = each if found is None else ops.add(found, each)
    return found


@frozen(eq=False)
class _Gradient:
    """The values that the formula of batch_norm_grad goes through."""

    features: _Features
    scale: Value
    gradient: Value
    centred: Value
    inverse: Value
    aligned: Value

    @classmethod
    def of(
        cls, features: _Features, operand: Value, scale: Value, mean: Value, variance: Value, gradient: Value
    ) -> _Gradient:
        centred, wide = features.centred(operand, mean), features.wide(gradient)
        aligned = features.sums(ops.multiply(wide, centred))
        inverse = features.inverse_deviation(variance)
        return cls(features, features.wide(scale), wide, centred, inverse, aligned)

    def by_operand(self, ct: Value) -> tuple[Value | None, ...]:
        """Shares of gradient, centred, inverse, aligned, scale in the cotangent X of scale s h."""
        f, square = self.features, ops.multiply(self.inverse, self.inverse)
        slope = f.scaled(ops.multiply(self.aligned, square), 1 / f.count)
        rest = ops.subtract(self.gradient, f.along(f.means(self.gradient)))
        rest = ops.subtract(rest, ops.multiply(f.along(slope), self.centred))
        inner = ops.multiply(f.along(ops.multiply(self.scale, self.inverse)), ct)
        factor_ct = f.sums(ops.multiply(ct, rest))
        slope_ct = ops.negate(f.sums(ops.multiply(inner, self.centred)))
        double = f.scaled(ops.multiply(ops.multiply(slope_ct, self.aligned), self.inverse), 2 / f.count)
        return (
            ops.subtract(inner, f.along(f.means(inner))),
            ops.negate(ops.multiply(f.along(slope), inner)),
            ops.add(ops.multiply(factor_ct, self.scale), double),
            f.scaled(ops.multiply(slope_ct, square), 1 / f.count),
            ops.multiply(factor_ct, self.inverse),
        )

    def by_scale(self, ct: Value) -> tuple[Value | None, ...]:
        """The same in the cotangent A of a s."""
        return None, None, ops.multiply(ct, self.aligned), ops.multiply(ct, self.inverse), None

    def by_offset(self, ct: Value) -> tuple[Value | None, ...]:
        """The same in the cotangent B of sum(g)."""
        return self.features.along(ct), None, None, None, None

    def cotangents(
        self,
        gradient: Value | None,
        centred: Value | None,
        inverse: Value | None,
        aligned: Value | None,
        scale: Value | None,
    ) -> tuple[Value | None, ...]:
        """The cotangents of the operands from those of what is computed of them."""
        f = self.features
        if aligned is not None:
            gradient = _total((gradient, ops.multiply(f.along(aligned), self.centred)))
            centred = _total((centred, ops.multiply(f.along(aligned), self.gradient)))
        mean = None if centred is None else ops.negate(f.sums(centred))
        variance = None
        if inverse is not None:
            cube = ops.multiply(self.inverse, ops.multiply(self.inverse, self.inverse))
            variance = f.scaled(ops.multiply(inverse, cube), -0.5)
        return centred, scale, mean, variance, gradient
