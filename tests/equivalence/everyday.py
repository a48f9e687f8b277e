"""Pairs as people write them: the same function in two ways, on all numbers or on a domain, and such as differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from attrs import field, frozen

import xbuild as xb

f = xb.f32
V, M = f[6], f[3, 4]
Function = Callable[..., Any]


def total(x: Any, *dims: int) -> Any:
    return xb.reduce(x, 0.0, xb.add, dims or None)


def largest(x: Any, *dims: int) -> Any:
    return xb.reduce(x, -np.inf, xb.maximum, dims or None)


def rows(x: Any, like: Any) -> Any:
    """One number for each row, in all columns."""
    return xb.broadcast_in_dim(x, like.shape.dims, [0])


def dot(a: Any, b: Any) -> Any:
    return xb.dot_general(a, b, [1], [0])


def plus_one(x: Any) -> Any:
    """A number of at least 1."""
    return x * x + 1.0


def centred(x: Any) -> Any:
    return x - rows(total(x, 1) / 4.0, x)


def variance(x: Any) -> Any:
    away = centred(x)
    return total(away * away, 1) / 4.0


def logaddexp(x: Any, y: Any) -> Any:
    top = xb.max(x, y)
    return top + xb.log1p(xb.exp(-xb.abs(x - y)))


def gelu(x: Any) -> Any:
    return 0.5 * x * (1.0 + xb.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


@frozen
class Everyday:
    """Two functions of arrays of these shapes, compared on a domain."""

    one: Function
    other: Function
    shapes: tuple[Any, ...] = (V,)
    domain: Mapping[int, Any] = field(factory=dict)

    def verdict(self) -> Any:
        """Whether they are found equal."""
        programs = [xb.computation(*self.shapes)(each) for each in (self.one, self.other)]
        return xb.equivalent(*programs, domain=self.domain)


E = Everyday
EQUAL: dict[str, Everyday] = {
    "rsqrt": E(lambda x: xb.rsqrt(plus_one(x)), lambda x: 1.0 / xb.sqrt(plus_one(x))),
    "times rsqrt": E(lambda x: x * xb.rsqrt(plus_one(x)), lambda x: x / xb.sqrt(plus_one(x))),
    "squared root": E(lambda x: xb.sqrt(plus_one(x)) * xb.sqrt(plus_one(x)), plus_one),
    "squared rsqrt": E(lambda x: xb.rsqrt(plus_one(x)) * xb.rsqrt(plus_one(x)), lambda x: 1.0 / plus_one(x)),
    "root of a square": E(lambda x: xb.sqrt(x * x), xb.abs),
    "number by its rsqrt": E(lambda x: plus_one(x) * xb.rsqrt(plus_one(x)), lambda x: xb.sqrt(plus_one(x))),
    "root of a product": E(lambda x, y: xb.sqrt(plus_one(x) * plus_one(y)),
                           lambda x, y: xb.sqrt(plus_one(x)) * xb.sqrt(plus_one(y)), (V, V)),
    "root of a multiple": E(lambda x: xb.sqrt(plus_one(x) * 4.0), lambda x: 2.0 * xb.sqrt(plus_one(x))),
    "root of 64": E(lambda x: x / xb.sqrt(x * 0.0 + 64.0), lambda x: x * 0.125),
    "layer norm": E(lambda x: centred(x) * rows(xb.rsqrt(variance(x) + 1e-5), x),
                    lambda x: centred(x) / rows(xb.sqrt(variance(x) + 1e-5), x), (M,)),
    "layer norm by squares": E(lambda x: centred(x) * rows(xb.rsqrt(variance(x) + 1e-5), x),
                               lambda x: (x - rows(total(x, 1) * 0.25, x)) / rows(xb.sqrt(
                                   total(x * x, 1) / 4.0 - (total(x, 1) / 4.0) * (total(x, 1) / 4.0) + 1e-5), x), (M,)),
    "rms norm": E(lambda x: x * rows(xb.rsqrt(total(x * x, 1) / 4.0 + 1e-6), x),
                  lambda x: x / rows(xb.sqrt(total(x * x, 1) * 0.25 + 1e-6), x), (M,)),
    "deviation and variance": E(lambda x: xb.sqrt(variance(x) + 1e-5) * xb.sqrt(variance(x) + 1e-5),
                                lambda x: variance(x) + 1e-5, (M,)),
    "cube root": E(lambda x: xb.cbrt(x) * xb.cbrt(x) * xb.cbrt(x), lambda x: x),
    "power one half": E(lambda x: xb.pow(plus_one(x), 0.5), lambda x: xb.sqrt(plus_one(x))),
    "power three halves": E(lambda x: xb.pow(plus_one(x), 1.5), lambda x: plus_one(x) * xb.sqrt(plus_one(x))),
    "power minus one": E(lambda x: xb.pow(plus_one(x), -1.0), lambda x: 1.0 / plus_one(x)),
    "power by exp": E(lambda x, y: xb.pow(xb.exp(x), y), lambda x, y: xb.exp(y * x), (V, V)),
    "scaled maximum": E(lambda x, y: xb.max(x * 2.0, y * 2.0), lambda x, y: 2.0 * xb.max(x, y), (V, V)),
    "scaled maximum of a number": E(lambda x: xb.max(x * 2.0, 2.0), lambda x: 2.0 * xb.max(x, 1.0)),
    "shifted maximum": E(lambda x, y, z: xb.max(x + z, y + z), lambda x, y, z: xb.max(x, y) + z, (V, V, V)),
    "maximum and minimum": E(lambda x, y: xb.max(x, y) + xb.min(x, y), lambda x, y: x + y, (V, V)),
    "maximum by abs": E(lambda x, y: xb.max(x, y), lambda x, y: (x + y + xb.abs(x - y)) * 0.5, (V, V)),
    "relu by abs": E(xb.relu, lambda x: (x + xb.abs(x)) / 2.0),
    "relu of twice": E(lambda x: xb.relu(x * 2.0), lambda x: xb.relu(x) * 2.0),
    "leaky relu": E(lambda x: xb.max(x, x * 0.01), lambda x: xb.select(x > 0.0, x, x * 0.01)),
    "size of a product": E(lambda x, y: xb.abs(x * y), lambda x, y: xb.abs(x) * xb.abs(y), (V, V)),
    "size of a square": E(lambda x: xb.abs(x * x), lambda x: x * x),
    "sign and size": E(lambda x: xb.sign(x) * xb.abs(x), lambda x: x),
    "size by choice": E(xb.abs, lambda x: xb.select(x < 0.0, -x, x)),
    "difference of maxima": E(lambda x: xb.max(x, 0.0) - xb.max(-x, 0.0), lambda x: x),
    "clamp": E(lambda x: xb.clamp(0.0, x, 6.0), lambda x: xb.min(xb.max(x, 0.0), 6.0)),
    "logaddexp": E(lambda x, y: xb.log(xb.exp(x) + xb.exp(y)), logaddexp, (V, V)),
    "logaddexp by log": E(logaddexp, lambda x, y: xb.max(x, y) + xb.log(1.0 + xb.exp(xb.min(x, y) - xb.max(x, y))),
                          (V, V)),
    "softplus": E(lambda x: xb.log1p(xb.exp(x)), lambda x: xb.max(x, 0.0) + xb.log1p(xb.exp(-xb.abs(x)))),
    "log sigmoid": E(lambda x: xb.log(xb.logistic(x)), lambda x: -xb.log1p(xb.exp(-x))),
    "logistic": E(lambda x: xb.exp(x) / (xb.exp(x) + 1.0), lambda x: 1.0 / (1.0 + xb.exp(-x))),
    "swish": E(lambda x: x * xb.logistic(x), lambda x: x / (1.0 + xb.exp(-x))),
    "tanh by logistic": E(xb.tanh, lambda x: 2.0 * xb.logistic(2.0 * x) - 1.0),
    "tanh by expm1": E(xb.tanh, lambda x: xb.expm1(2.0 * x) / (xb.expm1(2.0 * x) + 2.0)),
    "gelu": E(gelu, lambda x: x * xb.logistic(2.0 * 0.7978845608 * (x + 0.044715 * x * x * x))),
    "cosh": E(xb.cosh, lambda x: (xb.exp(x) + xb.exp(-x)) * 0.5),
    "tan": E(xb.tan, lambda x: xb.sin(x) / xb.cos(x)),
    "exp of log": E(lambda x: xb.exp(xb.log(plus_one(x))), plus_one),
    "root by exp": E(lambda x: xb.exp(0.5 * xb.log(plus_one(x))), lambda x: xb.sqrt(plus_one(x))),
    "log of a square": E(lambda x: xb.log(plus_one(x) * plus_one(x)), lambda x: 2.0 * xb.log(plus_one(x))),
    "log of a root": E(lambda x: xb.log(xb.sqrt(plus_one(x))), lambda x: 0.5 * xb.log(plus_one(x))),
    "log of an inverse": E(lambda x: xb.log(1.0 / plus_one(x)), lambda x: -xb.log(plus_one(x))),
    "logit": E(lambda x: xb.log(x / (1.0 - x)), lambda x: xb.log(x) - xb.log(1.0 - x)),
    "mean": E(lambda x: total(x, 1) / 4.0, lambda x: total(x * 0.25, 1), (M,)),
    "inverse of 24": E(lambda x: x / 24.0, lambda x: x * (1.0 / 24.0)),
    "decimal": E(lambda p, g: p - 1e-4 * g, lambda p, g: p - g / 10000.0, (V, V)),
    "decimals": E(lambda p, g: p - 3e-4 * g, lambda p, g: p - g * 3.0 / 10000.0, (V, V)),
    "momentum": E(lambda m, g: 0.9 * m + 0.1 * g, lambda m, g: m + 0.1 * (g - m), (V, V)),
    "inverse of the root of 2": E(lambda x: xb.erf(x / 1.4142135), lambda x: xb.erf(x * 0.70710677)),
    "log to the base 2": E(lambda x: xb.log(plus_one(x)) / 0.6931472, lambda x: xb.log(plus_one(x)) * 1.442695),
    "turns": E(lambda x: xb.sin(x * 6.2831855), lambda x: xb.sin(2.0 * (x * 3.1415927))),
    "types of a literal": E(lambda x: xb.convert(xb.convert(x, xb.f64) * 0.7978845608028654, f),
                            lambda x: x * 0.7978846),
    "weight decay": E(lambda p, g: p - 0.01 * (g + 0.1 * p), lambda p, g: p * (1.0 - 0.001) - 0.01 * g, (V, V)),
    "softmax": E(lambda x: xb.exp(x) / rows(total(xb.exp(x), 1), x), xb.softmax, (M,)),
    "log softmax": E(lambda x: xb.log(xb.softmax(x)),
                     lambda x: x - rows(xb.log(total(xb.exp(x), 1)), x), (M,)),
    "squared distance": E(lambda x, y: total((x - y) * (x - y)),
                          lambda x, y: total(x * x) - 2.0 * total(x * y) + total(y * y), (V, V)),
    "one hot": E(lambda x: total(xb.select(x > 0.0, x, 0.0)), lambda x: total(xb.max(x, 0.0))),
    "sum of a sorted array": E(total, lambda x: total(xb.sort(x))),
    "largest of all": E(lambda x: largest(x), lambda x: -xb.reduce(-x, np.inf, xb.minimum)),
}  # fmt: skip
"""The same function on all numbers."""

ON_A_DOMAIN: dict[str, tuple[Everyday, dict[int, Any]]] = {
    "squared root": (E(lambda x: xb.sqrt(x) * xb.sqrt(x), lambda x: x), {0: "nonnegative"}),
    "root by rsqrt": (E(xb.sqrt, lambda x: x * xb.rsqrt(x)), {0: "positive"}),
    "root of a square": (E(lambda x: xb.sqrt(x * x), lambda x: x), {0: "nonnegative"}),
    "root of a square, negative": (E(lambda x: xb.sqrt(x * x), lambda x: -x), {0: "nonpositive"}),
    "log of a product": (E(lambda x, y: xb.log(x * y), lambda x, y: xb.log(x) + xb.log(y), (V, V)),
                         {0: "positive", 1: "positive"}),
    "log of a quotient": (E(lambda x, y: xb.log(x / y), lambda x, y: xb.log(x) - xb.log(y), (V, V)),
                          {0: "positive", 1: "positive"}),
    "exp of log": (E(lambda x: xb.exp(xb.log(x)), lambda x: x), {0: "nonnegative"}),
    "quotient of itself": (E(lambda x: x / x, lambda x: x * 0.0 + 1.0), {0: "nonzero"}),
    "cancelled": (E(lambda x, y: x * y / y, lambda x, y: x, (V, V)), {1: "nonzero"}),
    "power by logs": (E(xb.pow, lambda x, y: xb.exp(y * xb.log(x)), (V, V)), {0: "positive"}),
    "size": (E(xb.abs, lambda x: x), {0: "nonnegative"}),
    "size, negative": (E(xb.abs, lambda x: -x), {0: "negative"}),
    "relu": (E(xb.relu, lambda x: x), {0: "positive"}),
    "clamp": (E(lambda x: xb.clamp(0.0, x, 1.0), lambda x: x), {0: "unit"}),
    "clamp between": (E(lambda x: xb.clamp(-2.0, x, 3.0), lambda x: x), {0: (-2, 3)}),
    "nothing of a root": (E(lambda x: xb.sqrt(x) * 0.0, lambda x: x * 0.0), {0: "nonnegative"}),
    "nothing of a log": (E(lambda x: xb.log(x) - xb.log(x), lambda x: x * 0.0), {0: "positive"}),
    "integers": (E(lambda n: xb.abs(n), lambda n: n, (xb.s32[6],)), {0: "nonnegative"}),
}  # fmt: skip
"""The same function on a domain, and another beyond it."""

DIFFERENT: dict[str, Everyday] = {
    "root of negative numbers": E(lambda x: xb.sqrt(x) * 0.0, lambda x: x * 0.0),
    "power of negative numbers": E(lambda x: xb.pow(x, 0.5) * 0.0, lambda x: x * 0.0),
    "log of negative numbers": E(lambda x: xb.log(x) - xb.log(x), lambda x: x * 0.0),
    "acos beyond 1": E(lambda x: xb.acos(x) - xb.acos(x), lambda x: x * 0.0),
    "asin beyond 1": E(lambda x: xb.asin(x) * 0.0, lambda x: x * 0.0),
    "NaN chosen": E(lambda x: xb.select(xb.compare(xb.log(x), xb.log(x), "NE"), x * 0.0, x), lambda x: x),
    "NaN left out": E(lambda x: xb.max(xb.sqrt(x), 0.0), lambda x: xb.select(xb.sqrt(x) > 0.0, xb.sqrt(x), x * 0.0)),
    "power of negative halves": E(lambda x: xb.pow(x, x + x), lambda x: xb.pow(x, x) * xb.pow(x, x)),
    "overflow of f32": E(lambda x: (x * 1e30) * 1e30 * 0.0 + x, lambda x: x * 1.0),
    "overflow of f16": E(lambda x: xb.convert(xb.convert(x * 1e6, xb.f16), f), lambda x: x * 1e6),
    "overflow of f8": E(lambda x: xb.convert(xb.convert(x * 1e4, xb.f8e4m3fn), f), lambda x: x * 1e4),
    "overflow of exp": E(lambda x: xb.log(xb.exp(x * 1000.0)), lambda x: x * 1000.0),
    "division by 0": E(lambda x: x / x, lambda x: x * 0.0 + 1.0),
    "tie": E(lambda x, y: xb.select(xb.compare(x, y, "EQ"), x * 0.0 + 9.0, x + y), lambda x, y: x + y, (V, V)),
    "tie of zero": E(lambda x: xb.select(xb.compare(x, 0.0, "EQ"), x + 1.0, x), lambda x: x),
    "strict or not": E(lambda x: xb.select(x > 0.0, x + 1.0, x), lambda x: xb.select(x >= 0.0, x + 1.0, x)),
    "sign at 0": E(xb.sign, lambda x: xb.select(x < 0.0, x * 0.0 - 1.0, x * 0.0 + 1.0)),
    "beyond a literal": E(lambda x: xb.min(x, 1000.0), lambda x: x),
    "below a literal": E(lambda x: xb.max(x, -300.0), lambda x: x),
    "root of a square": E(lambda x: xb.sqrt(x * x), lambda x: x),
    "a literal": E(lambda x: x * 0.3, lambda x: x * 0.3001),
    "a small number": E(lambda x: x + 1e-5, lambda x: x),
    "a tiny number": E(lambda x: x + 1e-9, lambda x: x),
    "scaled by a negative number": E(lambda x, y: xb.max(x * -2.0, y * -2.0), lambda x, y: -2.0 * xb.max(x, y), (V, V)),
    "logaddexp": E(lambda x, y: xb.log(xb.exp(x) + xb.exp(y)), lambda x, y: xb.max(x, y), (V, V)),
    "variance": E(lambda x: variance(x) * (4.0 / 3.0), variance, (M,)),
    "epsilon": E(lambda x: centred(x) * rows(xb.rsqrt(variance(x) + 1e-5), x),
                 lambda x: centred(x) / rows(xb.sqrt(variance(x) + 1e-3), x), (M,)),
    "epsilon outside": E(lambda x: centred(x) / rows(xb.sqrt(variance(x) + 1e-3), x),
                         lambda x: centred(x) / rows(xb.sqrt(variance(x)) + 1e-3, x), (M,)),
    "truth and number": E(lambda x: x > 0.0, lambda x: xb.convert(x > 0.0, xb.s32)),
    "signs of integers": E(lambda x: xb.convert(x, xb.s32), lambda x: xb.convert(x, xb.s64)),
}  # fmt: skip
"""Other functions, at negative numbers, zero, ties or literals, or where a type overflows."""
