"""Functions of JAX at ties and kinks, and their derivatives by `xb.vjp` and `xb.jvp` beside JAX's.

`python -m tests.vjp.kinks` judges all of them, and prints the table of `docs/derivatives.md` with --table.
"""

# ruff: noqa: E501

from __future__ import annotations

import argparse
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special as special
import numpy as np
from attrs import frozen
from jax import lax, nn

import xbuild as xb
from interpreter import evaluate

Array = np.ndarray[Any, Any]
INF, NAN = np.inf, np.nan
TOLERANCE = {"float32": 2e-6, "complex64": 2e-6, "float16": 2e-3, "bfloat16": 1.6e-2}
"""The largest gap, of the largest finite element or 1: some roundings of each type."""


@frozen
class Kink:
    """A function, and the points at which it is differentiated; `kind` names its row of the table."""

    kind: str
    name: str
    function: Callable[..., Any]
    points: tuple[Array, ...]


def f32(*values: Any) -> Array:
    return np.asarray(values, np.float32)


def c64(*values: Any) -> Array:
    return np.asarray(values, np.complex64)


def _rows() -> Iterator[Kink]:
    for kind, name, function, *points in [*ELEMENTS, *PAIRS, *ACTIVATIONS, *FOLDS, *WINDOWS, *ORDER, *PLACES, *OTHERS]:
        yield Kink(kind, name, function, tuple(np.asarray(p) if isinstance(p, np.ndarray) else f32(*p) for p in points))
    for dtype in (jnp.float16, jnp.bfloat16):
        for kind, name, function, *points in [each for each in (*ELEMENTS, *PAIRS, *ACTIVATIONS, *FOLDS, *WINDOWS)
                                              if each[1] in NARROW]:  # fmt: skip
            given = tuple(np.asarray(p, np.float32).astype(dtype) for p in points)
            yield Kink(kind, f"{name} in {np.dtype(dtype).name}", function, given)


ZERO = (-1.0, -0.0, 0.0, 1.0)
TIES = (3.0, 1.0, 3.0, 2.0)
ROWS = np.asarray([[1.0, 2.0, 2.0], [3.0, 2.0, 3.0], [0.0, 0.0, 0.0]], np.float32)
SOME_ZEROS = np.asarray([[1.0, 2.0, 0.0], [0.0, 2.0, 0.0], [3.0, 2.0, 4.0]], np.float32)
SIDES = np.asarray([0.5, 1.0, 2.0], np.float32)

ELEMENTS: list[tuple[Any, ...]] = [
    ("abs", "abs", jnp.abs, ZERO),
    ("abs", "fabs", jnp.fabs, ZERO),
    ("abs", "abs of abs", lambda x: jnp.abs(jnp.abs(x)), ZERO),
    ("abs", "abs of NaN and infinity", jnp.abs, (NAN, INF, -INF)),
    ("abs", "x * abs(x)", lambda x: x * jnp.abs(x), ZERO),
    ("abs", "sqrt of x * x", lambda x: jnp.sqrt(x * x), (-1.0, 1.0, 2.0)),
    ("steps", "sign", jnp.sign, ZERO),
    ("steps", "floor", jnp.floor, (-1.0, 0.0, 0.5, 2.0)),
    ("steps", "ceil", jnp.ceil, (-1.0, 0.0, 0.5, 2.0)),
    ("steps", "round", jnp.round, (-0.5, 0.5, 1.5, 2.0)),
    ("steps", "rint", jnp.rint, (-0.5, 0.5, 1.5, 2.0)),
    ("steps", "trunc", jnp.trunc, (-1.0, 0.0, 0.5, 2.0)),
    ("steps", "heaviside", lambda x: jnp.heaviside(x, 0.5), ZERO),
    ("steps", "x - floor(x)", lambda x: x - jnp.floor(x), (-1.0, 0.0, 0.5, 2.0)),
    ("steps", "modf", lambda x: jnp.modf(x)[0], (-1.0, 0.0, 0.5, 2.0)),
    ("sqrt", "sqrt at 0", jnp.sqrt, (0.0, 4.0)),
    ("sqrt", "sqrt of negative", jnp.sqrt, (-1.0, 4.0)),
    ("sqrt", "rsqrt at 0", lax.rsqrt, (0.0, 4.0)),
    ("cbrt", "cbrt at 0", jnp.cbrt, (0.0, 8.0, -8.0)),
    ("log", "log at 0", jnp.log, (0.0, 1.0)),
    ("log", "log of negative", jnp.log, (-1.0, 1.0)),
    ("log", "log1p at -1", jnp.log1p, (-1.0, 0.0)),
    ("log", "log2 at 0", jnp.log2, (0.0, 1.0)),
    ("log", "log10 at 0", jnp.log10, (0.0, 1.0)),
    ("arcs", "arcsin at its ends", jnp.arcsin, (-1.0, 0.0, 1.0)),
    ("arcs", "arccos at its ends", jnp.arccos, (-1.0, 0.0, 1.0)),
    ("arcs", "arccosh at 1", jnp.arccosh, (1.0, 2.0)),
    ("arcs", "arctanh at its ends", jnp.arctanh, (-1.0, 0.0, 1.0)),
    ("arcs", "arcsinh at 0", jnp.arcsinh, ZERO),
    ("arcs", "arctan at infinity", jnp.arctan, (-INF, 0.0, INF)),
    ("saturated", "exp at infinities", jnp.exp, (-INF, 0.0, INF)),
    ("saturated", "expm1 at -infinity", jnp.expm1, (-INF, 0.0)),
    ("saturated", "tanh at infinities", jnp.tanh, (-INF, 0.0, INF)),
    ("saturated", "sigmoid at infinities", nn.sigmoid, (-INF, 0.0, INF)),
    ("saturated", "erf at infinities", special.erf, (-INF, 0.0, INF)),
    ("saturated", "erf_inv at its ends", special.erfinv, (-1.0, 0.0, 1.0)),
    ("saturated", "logit at its ends", special.logit, (0.0, 0.5, 1.0)),
    ("power", "x ** 2 at 0", lambda x: x**2, ZERO),
    ("power", "x ** 3 at 0", lambda x: x**3, ZERO),
    ("power", "x ** 1 at 0", lambda x: x**1, ZERO),
    ("power", "x ** 0 at 0", lambda x: x**0, ZERO),
    ("power", "x ** -1 at 0", lambda x: x**-1, ZERO),
    ("power", "x ** 0.5 at 0", lambda x: x**0.5, (0.0, 4.0)),
    ("power", "x ** 1.5 at 0", lambda x: x**1.5, (0.0, 4.0)),
    ("power", "x ** 1.0 at 0", lambda x: jnp.power(x, 1.0), (0.0, 4.0)),
    ("power", "x ** 0.0 at 0", lambda x: jnp.power(x, 0.0), (0.0, 4.0)),
    ("power", "x ** 2.0 of negative", lambda x: jnp.power(x, 2.0), ZERO),
    ("power", "2 ** x", lambda x: 2.0**x, ZERO),
    ("power", "0 ** x", lambda x: jnp.power(0.0, x), (0.0, 1.0, 2.0)),
    ("divide", "1 / x at 0", lambda x: 1 / x, ZERO),
    ("divide", "reciprocal at infinity", jnp.reciprocal, (INF, 2.0)),
    ("divide", "sinc at 0", jnp.sinc, (0.0, 0.5, 1.0)),
    ("divide", "sin(x) / x with where", lambda x: jnp.where(x == 0, 1.0, jnp.sin(x) / jnp.where(x == 0, 1.0, x)), ZERO),
    ("select", "where(x > 0, x, 0)", lambda x: jnp.where(x > 0, x, 0.0), ZERO),
    ("select", "where(x >= 0, x, -x)", lambda x: jnp.where(x >= 0, x, -x), ZERO),
    ("select", "where(x > 0, sqrt(x), 0)", lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0), (0.0, 4.0)),
    ("select", "piecewise", lambda x: jnp.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: 2 * v]), ZERO),
    ("select", "select of conditions", lambda x: jnp.select([x < 0, x > 0], [x * 2, x * 3], 0.0), ZERO),
    ("select", "nan_to_num", jnp.nan_to_num, (NAN, INF, -INF, 1.0)),
    ("select", "cond at a tie", lambda x: lax.cond(x[0] > 0, lambda v: v * 2, lambda v: v * 3, x), (0.0, 1.0)),
    ("select", "switch", lambda x: lax.switch(x[0].astype(int), [jnp.sin, jnp.cos], x), (0.0, 1.0)),
    ("conversions", "to an integer and back", lambda x: x.astype(jnp.int32).astype(jnp.float32) * x, (1.0, 1.5)),
    ("conversions", "to f16 and back", lambda x: x.astype(jnp.float16).astype(jnp.float32), (1.0, 1e6, 1e-9)),
    ("conversions", "reduce_precision", lambda x: lax.reduce_precision(x, 5, 3), (1.0, 1.03, 70000.0)),
    ("conversions", "times an integer", lambda x: x * jnp.arange(4), ZERO),
    ("conversions", "a comparison as a number", lambda x: (x > 0).astype(jnp.float32) * x, ZERO),
    ("special functions", "digamma near a pole", special.digamma, (1.0, 0.5)),
    ("special functions", "lgamma", special.gammaln, (1.0, 2.0, 0.5)),
    ("special functions", "entr at 0", special.entr, (0.0, 0.5, 1.0)),
    ("special functions", "i0e at 0", special.i0e, ZERO),
    ("special functions", "i1e at 0", special.i1e, ZERO),
    ("special functions", "i0 at 0", special.i0, ZERO),
    ("special functions", "i1 at 0", special.i1, ZERO),
    ("special functions", "ndtr", special.ndtr, (-INF, 0.0, INF)),
    ("special functions", "log_ndtr", special.log_ndtr, (-5.0, 0.0, 5.0)),
    ("special functions", "erfc", special.erfc, (-INF, 0.0, INF)),
    ("complex", "abs of complex at 0", jnp.abs, c64(0, 3 + 4j, -1)),
    ("complex", "angle", jnp.angle, c64(1, 3 + 4j, -1)),
    ("complex", "square of the size at 0", lambda z: jnp.real(z * jnp.conj(z)), c64(0, 3 + 4j)),
    ("complex", "z ** 2 at 0", lambda z: z**2, c64(0, 1j)),
    ("complex", "exp of complex", jnp.exp, c64(0, 1j * np.pi)),
    ("complex", "sqrt of complex on its cut", jnp.sqrt, c64(-1, 4, 1j)),
    ("complex", "log of complex on its cut", jnp.log, c64(-1, 1, 1j)),
    ("complex", "1 / z", lambda z: 1 / z, c64(1, 1j)),
    ("complex", "real part of z * z", lambda z: jnp.real(z * z), c64(0, 1j)),
    ("complex", "sign of complex", jnp.sign, c64(0, 3 + 4j)),
    ("complex", "log of complex at 0", jnp.log, c64(0, 1)),
    ("complex", "sqrt of complex at 0", jnp.sqrt, c64(0, 1)),
    ("complex", "exp of complex on the real axis", jnp.exp, c64(0, 0.5, -1)),
    ("complex", "sinh of complex on the real axis", jnp.sinh, c64(0, 0.5, -1)),
    ("complex", "cosh of complex on the real axis", jnp.cosh, c64(0, 0.5, -1)),
    ("complex", "sin of complex on the imaginary axis", jnp.sin, c64(0, 1j, -2j)),
    ("complex", "cos of complex on the imaginary axis", jnp.cos, c64(0, 1j, -2j)),
    ("complex", "sigmoid of complex on the real axis", nn.sigmoid, c64(0, 0.5, -1)),
    ("complex", "exp2 of complex on the real axis", jnp.exp2, c64(0, 0.5, -1)),
    ("complex", "arcsin of complex on the real axis", jnp.arcsin, c64(0, 0.5, -0.5)),
    ("complex", "arcsin of complex on its cut", jnp.arcsin, c64(2, -2)),
    ("complex", "arccos of complex on the real axis", jnp.arccos, c64(0, 0.5, -0.5)),
    ("complex", "arccosh of complex on the real axis", jnp.arccosh, c64(2, 0.5)),
    ("complex", "arccosh of complex, left", jnp.arccosh, c64(-0.5 + 0.5j, -2j)),
    ("complex", "sinc of complex", jnp.sinc, c64(0, 0.5, 1j)),
    ("complex", "softplus of complex", nn.softplus, c64(0, 0.5, -0.5)),
    ("complex", "arctan of complex at its pole", jnp.arctan, c64(1j, 0)),
    ("complex", "power of complex at 0", lambda z: z ** (2.5 + 1j), c64(0, 1)),
    ("complex", "where(real(z) == 0, 5 z, z * z)", lambda z: jnp.where(jnp.real(z) == 0, 5 * z, z * z), c64(0, 1j, 1)),
    ("stop_gradient", "x * stop_gradient(x)", lambda x: x * lax.stop_gradient(x), ZERO),
    ("stop_gradient", "x - stop_gradient(max(x))", lambda x: x - lax.stop_gradient(jnp.max(x)), TIES),
    ("saturated", "sigmoid at -infinity", nn.sigmoid, (-INF, 0.0)),
    ("saturated", "gelu at infinities", lambda x: nn.gelu(x, approximate=False), (-INF, 0.0, INF)),
    ("power", "x ** -2 at 0", lambda x: x**-2, ZERO),
    ("power", "integer_pow(x, -3) at 0", lambda x: lax.integer_pow(x, -3), ZERO),
    ("power", "1 / (x * x) at 0", lambda x: 1 / (x * x), ZERO),
    ("power", "abs(x) ** 0.5 at 0", lambda x: jnp.power(jnp.abs(x), 0.5), ZERO),
    ("abs", "sign(x) * log1p(abs(x)) + abs(x)", lambda x: jnp.sign(x) * jnp.log1p(jnp.abs(x)) + jnp.abs(x), ZERO),
    ("select", "where(x < 1, x * x, 0) at infinity", lambda x: jnp.where(x < 1, x * x, 0.0), (INF, -INF, 0.5)),
    ("select", "where(isnan(x), 0, tanh(x))", lambda x: jnp.where(jnp.isnan(x), 0.0, jnp.tanh(x)), (NAN, 1.0)),
    ("select", "log of a maximum of 0", lambda x: jnp.log(jnp.maximum(x, 0.0)), ZERO),
    ("special functions", "erfc at infinities", special.erfc, (-INF, 0.0, INF)),
    ("special functions", "spence at 2", special.spence, (0.5, 1.0, 2.0)),
    ("special functions", "gammaln at its poles", special.gammaln, (0.0, -1.0, 0.5)),
]

PAIRS: list[tuple[Any, ...]] = [
    ("maximum, minimum", "maximum of ties", jnp.maximum, ZERO, (0.0, 0.0, -0.0, 1.0)),
    ("maximum, minimum", "minimum of ties", jnp.minimum, ZERO, (0.0, 0.0, -0.0, 1.0)),
    ("maximum, minimum", "maximum of x and x", lambda x: jnp.maximum(x, x), ZERO),
    ("maximum, minimum", "maximum of x and -x", lambda x: jnp.maximum(x, -x), ZERO),
    ("maximum, minimum", "maximum with 0", lambda x: jnp.maximum(x, 0.0), ZERO),
    ("maximum, minimum", "minimum with 0", lambda x: jnp.minimum(x, 0.0), ZERO),
    ("maximum, minimum", "maximum of three ties", lambda x: jnp.maximum(jnp.maximum(x, 1.0), 1.0), (0.0, 1.0, 2.0)),
    ("maximum, minimum", "maximum of infinities", jnp.maximum, (INF, -INF, 1.0), (INF, -INF, INF)),
    ("maximum, minimum", "maximum of NaN", jnp.maximum, (NAN, 1.0), (1.0, NAN)),
    ("maximum, minimum", "fmax of ties", jnp.fmax, ZERO, (0.0, 0.0, -0.0, 1.0)),
    ("maximum, minimum", "fmax of NaN", jnp.fmax, (NAN, 1.0), (1.0, NAN)),
    ("maximum, minimum", "fmin of ties", jnp.fmin, ZERO, (0.0, 0.0, -0.0, 1.0)),
    ("clamp", "clamp at its bounds", lambda x: lax.clamp(-1.0, x, 1.0), (-2.0, -1.0, 0.0, 1.0, 2.0)),
    ("clamp", "clamp of equal bounds", lambda x: lax.clamp(1.0, x, 1.0), (0.0, 1.0, 2.0)),
    (
        "clamp",
        "bounds of a clamp",
        lambda lo, x, hi: lax.clamp(lo, x, hi),
        (0.0, 0.0, 0.0),
        (0.0, 0.5, 1.0),
        (1.0, 1.0, 1.0),
    ),
    (
        "clamp",
        "bounds of a clamp that are equal",
        lambda lo, x, hi: lax.clamp(lo, x, hi),
        (2.0, 2.0, 2.0, 3.0),
        (1.0, 2.0, 3.0, 1.0),
        (2.0, 2.0, 2.0, 2.0),
    ),
    ("clip", "clip at its bounds", lambda x: jnp.clip(x, -1.0, 1.0), (-2.0, -1.0, 0.0, 1.0, 2.0)),
    ("clip", "clip below", lambda x: jnp.clip(x, 0.0), ZERO),
    ("remainder", "remainder at multiples", jnp.remainder, (4.0, -4.0, 5.0, 0.0), (2.0, 2.0, -2.0, 2.0)),
    ("remainder", "fmod at multiples", jnp.fmod, (4.0, -4.0, 5.0, 0.0), (2.0, 2.0, -2.0, 2.0)),
    ("remainder", "lax.rem at multiples", lax.rem, (4.0, -4.0, 5.0, 0.0), (2.0, 2.0, -2.0, 2.0)),
    ("remainder", "floor_divide", jnp.floor_divide, (4.0, -4.0, 5.0), (2.0, 3.0, -2.0)),
    ("atan2, hypot", "arctan2 at the origin", jnp.arctan2, (0.0, 0.0, 1.0), (0.0, -1.0, 0.0)),
    ("atan2, hypot", "hypot at the origin", jnp.hypot, (0.0, 3.0, 0.0), (0.0, 4.0, 2.0)),
    ("divide", "0 / 0", jnp.divide, (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    ("power", "x ** y at 0", jnp.power, (0.0, 0.0, 0.0, 1.0, 2.0), (1.0, 2.0, 3.0, 0.0, 0.0)),
    ("power", "0 ** 0", jnp.power, (0.0, 2.0), (0.0, 0.0)),
    ("power", "power of negative", jnp.power, (-1.0, -2.0), (2.0, 3.0)),
    ("power", "float_power", jnp.float_power, (1.0, 2.0), (2.0, 0.0)),
    ("copysign", "copysign at 0", jnp.copysign, ZERO, (1.0, 1.0, -1.0, -1.0)),
    ("logaddexp", "logaddexp of ties", jnp.logaddexp, (0.0, 1.0, 2.0), (0.0, 1.0, 0.0)),
    ("logaddexp", "logaddexp with 0", lambda x: jnp.logaddexp(x, 0.0), ZERO),
    ("logaddexp", "logaddexp2 of ties", jnp.logaddexp2, (0.0, 1.0, 2.0), (0.0, 1.0, 0.0)),
    ("logaddexp", "logaddexp of -infinity", jnp.logaddexp, (-INF, 1.0), (1.0, -INF)),
    ("logaddexp", "logaddexp of two -infinities", jnp.logaddexp, (-INF, 1.0), (-INF, 1.0)),
    ("logaddexp", "logaddexp of infinities", jnp.logaddexp, (INF, 1.0), (INF, INF)),
    ("x log y", "xlogy at 0", special.xlogy, (0.0, 1.0, 0.0), (1.0, 1.0, 2.0)),
    ("x log y", "xlogy at (0, 0)", special.xlogy, (0.0, 1.0), (0.0, 1.0)),
    ("x log y", "xlog1py at 0", special.xlog1py, (0.0, 1.0), (0.5, 0.5)),
    ("x log y", "rel_entr at 0", special.rel_entr, (0.0, 1.0), (1.0, 1.0)),
    ("x log y", "kl_div", special.kl_div, (0.5, 1.0), (1.0, 1.0)),
    ("select", "where of ties", lambda x, y: jnp.where(x > y, x, y), ZERO, (0.0, 0.0, 0.0, 1.0)),
    ("abs", "distance of ties", lambda x, y: jnp.abs(x - y), TIES, (3.0, 2.0, 1.0, 2.0)),
    (
        "abs",
        "huber at its knees",
        lambda x, y: jnp.where(jnp.abs(x - y) <= 1, 0.5 * (x - y) ** 2, jnp.abs(x - y) - 0.5),
        (0.0, 1.0, 2.0, -1.0),
        (0.0, 0.0, 0.0, 0.0),
    ),
]

ACTIVATIONS: list[tuple[Any, ...]] = [
    ("relu", "relu", nn.relu, ZERO),
    ("relu", "relu6", nn.relu6, (-1.0, 0.0, 3.0, 6.0, 7.0)),
    ("leaky", "leaky_relu", nn.leaky_relu, ZERO),
    ("leaky", "elu", nn.elu, ZERO),
    ("leaky", "selu", nn.selu, ZERO),
    ("leaky", "celu", nn.celu, ZERO),
    ("relu", "hard_swish at its knees", nn.hard_swish, (-3.0, 0.0, 3.0)),
    ("smooth", "gelu", nn.gelu, ZERO),
    ("smooth", "gelu with erf", lambda x: nn.gelu(x, approximate=False), ZERO),
    ("smooth", "silu", nn.silu, ZERO),
    ("smooth", "mish", nn.mish, ZERO),
    ("smooth", "softplus", nn.softplus, ZERO),
    ("smooth", "log_sigmoid", nn.log_sigmoid, ZERO),
    ("smooth", "soft_sign", nn.soft_sign, ZERO),
    ("smooth", "squareplus", nn.squareplus, ZERO),
    ("smooth", "softplus far away", nn.softplus, (-200.0, 200.0)),
    ("hard", "hard_tanh", nn.hard_tanh, (-2.0, -1.0, 0.0, 1.0, 2.0)),
    ("hard", "hard_sigmoid", nn.hard_sigmoid, (-4.0, -3.0, 0.0, 3.0, 4.0)),
    ("hard", "hard_silu", nn.hard_silu, (-4.0, -3.0, 0.0, 3.0, 4.0)),
    ("hard", "sparse_plus", nn.sparse_plus, (-1.0, 0.0, 1.0)),
    ("hard", "sparse_sigmoid", nn.sparse_sigmoid, (-2.0, -1.0, 0.0, 1.0, 2.0)),
    ("softmax", "softmax of ties", nn.softmax, TIES),
    ("softmax", "softmax with -infinity", nn.softmax, (0.0, -INF, 1.0)),
    ("softmax", "log_softmax of ties", nn.log_softmax, TIES),
    ("softmax", "logsumexp of ties", nn.logsumexp, TIES),
    ("softmax", "logsumexp with -infinity", nn.logsumexp, (0.0, -INF, 1.0)),
    ("softmax", "logsumexp of -infinities", nn.logsumexp, (-INF, -INF)),
    ("softmax", "softmax where", lambda x: nn.softmax(x, where=jnp.array([True, False, True, True])), TIES),
    ("softmax", "glu", lambda x: nn.glu(x), ZERO),
    ("norms", "standardize of equal numbers", nn.standardize, (2.0, 2.0, 2.0)),
]

FOLDS: list[tuple[Any, ...]] = [
    ("max, min", "max of ties", jnp.max, TIES),
    ("max, min", "min of ties", jnp.min, (1.0, 3.0, 1.0, 2.0)),
    ("max, min", "max of rows", lambda x: jnp.max(x, axis=1), ROWS),
    ("max, min", "min of columns", lambda x: jnp.min(x, axis=0), ROWS),
    ("max, min", "max of all ties", lambda x: jnp.max(x), ROWS),
    ("max, min", "max with an initial tie", lambda x: jnp.max(x, initial=3.0), TIES),
    ("max, min", "max with a greater initial", lambda x: jnp.max(x, initial=9.0), TIES),
    ("max, min", "max of -infinities", jnp.max, (-INF, -INF)),
    ("max, min", "max of NaN", jnp.max, (NAN, 1.0)),
    ("max, min", "max where", lambda x: jnp.max(x, initial=0.0, where=x < 3), TIES),
    ("max, min", "nanmax", jnp.nanmax, (NAN, 1.0, 1.0)),
    ("max, min", "nanmin", jnp.nanmin, (NAN, 1.0, 1.0)),
    ("max, min", "ptp", jnp.ptp, TIES),
    ("max, min", "max of abs", lambda x: jnp.max(jnp.abs(x)), (-3.0, 3.0, 0.0)),
    ("products", "prod without zeros", jnp.prod, (1.0, 2.0, 3.0)),
    ("products", "prod of one zero", jnp.prod, (0.0, 2.0, 3.0)),
    ("products", "prod of two zeros", jnp.prod, (0.0, 0.0, 3.0)),
    ("products", "prod of rows", lambda x: jnp.prod(x, axis=1), SOME_ZEROS),
    ("sums", "mean", jnp.mean, ROWS),
    ("sums", "nansum", jnp.nansum, (NAN, 1.0)),
    ("norms", "var of equal numbers", jnp.var, (2.0, 2.0, 2.0)),
    ("norms", "std of equal numbers", jnp.std, (2.0, 2.0, 2.0)),
    ("norms", "norm at 0", jnp.linalg.norm, (0.0, 0.0)),
    ("norms", "norm", jnp.linalg.norm, (3.0, 4.0)),
    ("norms", "1-norm", lambda x: jnp.linalg.norm(x, 1), (0.0, -1.0, 2.0)),
    ("norms", "infinity norm of ties", lambda x: jnp.linalg.norm(x, INF), (2.0, -2.0, 0.0)),
    ("norms", "x / norm(x)", lambda x: x / jnp.linalg.norm(x), (3.0, 4.0)),
    ("choosing", "value at argmax", lambda x: x[jnp.argmax(x)], TIES),
    ("choosing", "values at argmin", lambda x: jnp.take_along_axis(x, jnp.argmin(x, 1)[:, None], 1), ROWS),
    ("choosing", "argmax beside", lambda x: x * 2 + jnp.argmax(x, axis=-1, keepdims=True), ROWS),
    ("choosing", "fold that chooses the first", lambda x: lax.reduce(x, np.float32(-INF), _first, (0,)), TIES),
    ("choosing", "fold that chooses the last", lambda x: lax.reduce(x, np.float32(-INF), _last, (0,)), TIES),
    (
        "choosing",
        "fold of pairs that chooses",
        lambda x: lax.reduce((x, x * x), (np.float32(-INF), np.float32(0)), _pair, (1,))[1],
        ROWS,
    ),
    ("folds by a function", "fold by logaddexp", lambda x: lax.reduce(x, np.float32(-INF), jnp.logaddexp, (0,)), TIES),
    (
        "folds by a function",
        "fold of rows by logaddexp",
        lambda x: lax.reduce(x, np.float32(-INF), jnp.logaddexp, (1,)),
        ROWS,
    ),
    ("any, all", "any and all", lambda x: x * jnp.any(x > 1) + jnp.all(x > 0), TIES),
]

WINDOWS: list[tuple[Any, ...]] = [
    ("cumulative", "cumsum", jnp.cumsum, TIES),
    ("cumulative", "cumprod with a zero", jnp.cumprod, (2.0, 0.0, 3.0)),
    ("cumulative", "cumprod with two zeros", jnp.cumprod, (0.0, 2.0, 0.0)),
    ("cumulative, greatest", "cummax of ties", lambda x: lax.cummax(x), (1.0, 1.0, 3.0, 3.0)),
    ("cumulative, greatest", "cummin of ties", lambda x: lax.cummin(x), (3.0, 3.0, 1.0, 1.0)),
    ("cumulative, greatest", "cummax backwards", lambda x: lax.cummax(x, reverse=True), (1.0, 1.0, 3.0, 3.0)),
    ("cumlogsumexp", "cumlogsumexp", lambda x: lax.cumlogsumexp(x), TIES),
    ("cumlogsumexp", "cumlogsumexp backwards", lambda x: lax.cumlogsumexp(x, reverse=True), TIES),
    ("cumlogsumexp", "cumlogsumexp of rows", lambda x: lax.cumlogsumexp(x, 1), ROWS),
    ("cumlogsumexp", "cumlogsumexp from -infinity", lambda x: lax.cumlogsumexp(x), (-INF, 0.0, 1.0)),
    ("cumlogsumexp", "cumlogsumexp past -infinity", lambda x: lax.cumlogsumexp(x), (0.0, -INF, 1.0)),
    ("pools", "max pool of ties", lambda x: _pool(x, -INF, lax.max, "VALID"), ROWS),
    ("pools", "max pool, padded", lambda x: _pool(x, -INF, lax.max, "SAME"), ROWS),
    ("pools", "min pool of ties", lambda x: _pool(x, INF, lax.min, "VALID"), ROWS),
    ("pools", "sum pool", lambda x: _pool(x, 0.0, lax.add, "SAME"), ROWS),
]

ORDER: list[tuple[Any, ...]] = [
    ("sorting", "sort of ties", jnp.sort, TIES),
    ("sorting", "sort backwards", lambda x: jnp.sort(x, descending=True), TIES),
    ("sorting", "sort of zeros", jnp.sort, ZERO),
    ("sorting", "sort with NaN", jnp.sort, (NAN, 1.0, 0.0)),
    ("sorting", "sort of rows", lambda x: jnp.sort(x, axis=0), ROWS),
    ("sorting", "values by argsort", lambda x: x[jnp.argsort(x)], TIES),
    ("sorting", "sort of pairs", lambda x, y: lax.sort((x, y), num_keys=1)[1], TIES, (1.0, 2.0, 3.0, 4.0)),
    ("sorting", "sort by two keys", lambda x, y: lax.sort((x, y), num_keys=2)[0], TIES, (1.0, 2.0, 3.0, 4.0)),
    ("sorting", "top_k of ties", lambda x: lax.top_k(x, 2)[0], TIES),
    ("sorting", "top_k of rows", lambda x: lax.top_k(x, 2)[0], ROWS),
    ("quantiles", "median of ties, odd", jnp.median, (1.0, 2.0, 2.0)),
    ("quantiles", "median of ties, even", jnp.median, (1.0, 2.0, 2.0, 3.0)),
    ("quantiles", "median, even", jnp.median, (1.0, 2.0, 4.0, 3.0)),
    ("quantiles", "percentile at an element", lambda x: jnp.percentile(x, 50), (1.0, 2.0, 3.0)),
    ("quantiles", "quantile between", lambda x: jnp.quantile(x, 0.3), TIES),
    ("quantiles", "nanmedian", jnp.nanmedian, (NAN, 1.0, 2.0)),
]

PLACES: list[tuple[Any, ...]] = [
    ("scatter, greatest", "at[].max of ties", lambda x, y: x.at[jnp.array([0, 0, 1])].max(y), TIES, (3.0, 3.0, 1.0)),
    ("scatter, greatest", "at[].min of ties", lambda x, y: x.at[jnp.array([0, 0, 1])].min(y), TIES, (3.0, 3.0, 1.0)),
    ("scatter, greatest", "segment_max of ties", lambda x: jax.ops.segment_max(x, jnp.array([0, 0, 0, 1]), 2), TIES),
    ("scatter, greatest", "segment_min of ties", lambda x: jax.ops.segment_min(x, jnp.array([0, 0, 0, 1]), 2), TIES),
    (
        "scatter, products",
        "at[].multiply",
        lambda x, y: x.at[jnp.array([0, 2])].multiply(y, unique_indices=True),
        TIES,
        (0.0, 2.0),
    ),
    ("scatter, sums", "at[].add, repeated", lambda x, y: x.at[jnp.array([0, 0, 9])].add(y), TIES, (1.0, 2.0, 3.0)),
    ("scatter, sums", "segment_sum", lambda x: jax.ops.segment_sum(x, jnp.array([0, 0, 7, 1]), 2), TIES),
    ("scatter, set", "at[].set", lambda x, y: x.at[jnp.array([0, 2])].set(y), TIES, (1.0, 2.0)),
    ("scatter, set", "at[].set, outside", lambda x, y: x.at[jnp.array([0, 9])].set(y), TIES, (1.0, 2.0)),
    ("gather", "take, outside, fill", lambda x: jnp.take(x, jnp.array([0, 9, -9, 0])), TIES),
    ("gather", "x[9] and x[-1], outside", lambda x: x[jnp.array([0, 9, -1])], TIES),
    ("gather", "take, outside, clip", lambda x: jnp.take(x, jnp.array([0, 9, -9, 0]), mode="clip"), TIES),
    ("gather", "take, outside, wrap", lambda x: jnp.take(x, jnp.array([0, 9, -9, 0]), mode="wrap"), TIES),
    ("gather", "dynamic_slice, outside", lambda x: lax.dynamic_slice(x, (9,), (2,)), TIES),
    ("gather", "dynamic_update_slice, outside", lambda x, y: lax.dynamic_update_slice(x, y, (9,)), TIES, (1.0, 2.0)),
    ("interpolation", "interp at its knots", lambda x: jnp.interp(x, SIDES, SIDES * SIDES), (0.0, 0.5, 1.0, 2.0, 3.0)),
    ("interpolation", "interp of values at knots", lambda y: jnp.interp(SIDES, SIDES, y), (1.0, 2.0, 3.0)),
]

OTHERS: list[tuple[Any, ...]] = [
    ("loops", "fori_loop of maximum", lambda x: lax.fori_loop(0, 3, lambda _, v: jnp.maximum(v * 0.5, 0.5), x), (1.0, 4.0, 0.0)),
    ("loops", "scan of abs", lambda x: lax.scan(lambda c, v: (jnp.abs(c - v), c), 0.0, x)[1], TIES),
    ("loops", "scan of logaddexp", lambda x: lax.scan(lambda c, v: (jnp.logaddexp(c, v), c), -INF, x)[0], TIES),
    ("loops", "associative_scan of maximum", lambda x: lax.associative_scan(jnp.maximum, x), TIES),
    ("loops", "map of cond", lambda x: lax.map(lambda v: lax.cond(v > 0, jnp.sin, jnp.cos, v), x), ZERO),
    ("losses", "cross entropy of ties", lambda x: -jnp.sum(nn.log_softmax(x) * nn.one_hot(1, 4)), TIES),
    ("losses", "hinge at its knee", lambda x: jnp.mean(jnp.maximum(0.0, 1.0 - x)), (0.0, 1.0, 2.0)),
    ("losses", "distance of points", lambda x: jnp.sqrt(jnp.sum((x[:, None] - x[None]) ** 2 + 1e-6, axis=-1)), ROWS),
    ("losses", "cosine similarity", lambda x: jnp.dot(x, x) / (jnp.linalg.norm(x) ** 2 + 1e-6), TIES),
    ("products", "det of a singular matrix", lambda x: x[0, 0] * x[1, 1] - x[0, 1] * x[1, 0], np.ones((2, 2), np.float32)),
    ("sums", "trace of outer", lambda x: jnp.trace(jnp.outer(x, x)), ZERO),
    ("transforms", "size of an fft at 0", lambda x: jnp.abs(jnp.fft.fft(x)), (1.0, -1.0, 1.0, -1.0)),
    ("transforms", "power of an fft", lambda x: jnp.abs(jnp.fft.fft(x)) ** 2, (1.0, -1.0, 1.0, -1.0)),
    ("transforms", "unwrap", jnp.unwrap, (0.0, 3.0, 7.0)),
    ("transforms", "diff of abs", lambda x: jnp.abs(jnp.diff(x)), (1.0, 1.0, 2.0)),
]  # fmt: skip

NARROW = {
    "abs", "sign", "floor", "sqrt at 0", "log at 0", "x ** 2 at 0", "1 / x at 0", "where(x > 0, x, 0)", "maximum of ties",
    "minimum of ties", "maximum with 0", "logaddexp of ties", "softplus", "relu", "leaky_relu",
    "hard_tanh", "softmax of ties", "log_softmax of ties", "logsumexp of ties", "max of ties", "max of rows",
    "prod of one zero", "cumsum", "cumlogsumexp", "cummax of ties", "max pool of ties", "value at argmax", "1-norm",
}  # fmt: skip


def _first(a: Any, b: Any) -> Any:
    return jnp.where(a >= b, a, b)


def _last(a: Any, b: Any) -> Any:
    return jnp.where(a > b, a, b)


def _pair(a: Any, b: Any) -> Any:
    is_first = a[0] >= b[0]
    return tuple(jnp.where(is_first, x, y) for x, y in zip(a, b, strict=True))


def _pool(x: Any, init: float, fold: Any, padding: str) -> Any:
    return lax.reduce_window(x, np.asarray(init, x.dtype), fold, (2, 2), (1, 1), padding)


KINKS = {each.name: each for each in _rows()}

_MIDDLE = "the mean of both slopes, as for maximum at a tie; if a program compares x with 0, the slope of the side to which 0 belongs"
_AS_TEXT = "JAX has a rule for the function; xbuild reads only the lowered function, which has this derivative"
_EXPANDED = "JAX lowers the function to others, whose slopes at this point are infinite or 0"
_LEFT_OUT = "the side that a select or a maximum does not take contributes nothing"
_OF_JAX_ALONE = "stop_gradient exists only in JAX; HLO does not contain it"
_ON_AXIS = "if a part of a complex number is compared with 0 and both sides are equal, the slope is that of the side off the axis"
_BY_STEPS = (
    "the first of equal elements receives all of the cotangent; JAX splits it at each step of a scan that doubles"
)
_OF_NAN = "a comparison with NaN takes neither side"
DIFFERENT = {
    **dict.fromkeys(
        ("abs", "fabs", "abs of abs", "abs of NaN and infinity", "distance of ties", "1-norm", "diff of abs",
         "abs in float16", "abs in bfloat16", "1-norm in float16", "1-norm in bfloat16",
         "copysign at 0", "i0 at 0"),
        _MIDDLE,
    ),
    **dict.fromkeys(
        ("relu", "relu6", "relu in float16", "relu in bfloat16", "hard_sigmoid", "hard_silu", "xlogy at 0", "xlogy at (0, 0)",
         "xlog1py at 0", "entr at 0", "hypot at the origin", "logaddexp of two -infinities", "logaddexp of infinities",
         "x ** 0.0 at 0", "0 ** 0"),
        _AS_TEXT,
    ),
    **dict.fromkeys(
        ("arcsin at its ends", "arccos at its ends", "arccosh at 1", "sigmoid at infinities", "logit at its ends", "0 / 0"),
        _EXPANDED,
    ),
    **dict.fromkeys(
        ("where(x > 0, sqrt(x), 0)", "where(x < 1, x * x, 0) at infinity", "where(isnan(x), 0, tanh(x))",
         "log of a maximum of 0", "spence at 2", "gelu at infinities"),
        _LEFT_OUT,
    ),
    **dict.fromkeys(("x * stop_gradient(x)", "x - stop_gradient(max(x))"), _OF_JAX_ALONE),
    **dict.fromkeys(("x ** -2 at 0", "integer_pow(x, -3) at 0"), _AS_TEXT + "; the derivative of 1 / (x * x) is NaN in JAX, too"),
    "abs(x) ** 0.5 at 0": "an infinite slope times the slope 0 of abs is NaN",
    "sigmoid at -infinity": _EXPANDED,
    "gammaln at its poles": _EXPANDED,
    "hard_swish at its knees": _AS_TEXT,
    "x[9] and x[-1], outside": "HLO's gather clamps an index outside to the nearest element, which receives the cotangent; JAX drops the cotangent",
    "sign of complex": "JAX returns 0, although z / abs(z) changes with the angle of z",
    "arcsin of complex on its cut": "on a cut, the slope is that of one side, and JAX uses the other side",
    "arccosh of complex, left": "JAX's 1 / sqrt(z * z - 1) has the opposite sign if the real part is negative",
    "power of complex at 0": "z ** w has slope 0 at z = 0 if the real part of w is above 1",
    "where(real(z) == 0, 5 z, z * z)": _ON_AXIS,
    **dict.fromkeys(("max of NaN",), _OF_NAN),
    **dict.fromkeys(
        ("cummax of ties", "cummin of ties", "cummax backwards", "cummax of ties in float16", "cummax of ties in bfloat16"),
        _BY_STEPS,
    ),
    "fold of pairs that chooses": "the order of a fold is not defined, so equal elements may be reached in a different order",
}  # fmt: skip
"""Functions whose derivative at these points is another than JAX's, each with the reason."""

CONVENTIONS = (
    "abs", "sign", "floor", "abs of complex at 0", "sqrt at 0", "cbrt at 0", "log at 0", "1 / x at 0", "x ** 2 at 0",
    "x ** 0.5 at 0", "0 ** 0", "maximum of ties", "minimum of ties", "maximum with 0", "maximum of NaN", "clamp at its bounds",
    "clip at its bounds", "remainder at multiples", "arctan2 at the origin", "where(x > 0, x, 0)", "where(x > 0, sqrt(x), 0)",
    "logaddexp of ties", "softplus", "log_sigmoid", "relu", "relu6", "leaky_relu", "hard_tanh", "hard_sigmoid", "xlogy at 0",
    "max of ties", "max with an initial tie", "max of NaN", "fold that chooses the first", "fold that chooses the last",
    "value at argmax", "prod of one zero", "prod of two zeros", "norm at 0", "std of equal numbers", "cummax of ties",
    "cumlogsumexp from -infinity", "max pool of ties", "sort of ties", "top_k of ties", "median of ties, even",
    "at[].max of ties", "segment_max of ties", "interp at its knots", "arcsinh at 0",
    "sign(x) * log1p(abs(x)) + abs(x)", "abs(x) ** 0.5 at 0", "x ** -2 at 0", "integer_pow(x, -3) at 0", "1 / (x * x) at 0",
    "where(x < 1, x * x, 0) at infinity", "where(isnan(x), 0, tanh(x))", "log of a maximum of 0", "erfc at infinities",
    "bounds of a clamp that are equal", "arcsin at its ends", "arccos at its ends", "logit at its ends",
    "sigmoid at -infinity", "logaddexp of two -infinities", "hard_swish at its knees", "spence at 2",
    "gammaln at its poles", "x[9] and x[-1], outside", "x * stop_gradient(x)", "x - stop_gradient(max(x))",
    "sign of complex", "sqrt of complex at 0", "log of complex at 0", "exp of complex on the real axis",
    "arcsin of complex on its cut", "arccosh of complex, left", "power of complex at 0",
    "where(real(z) == 0, 5 z, z * z)",
)  # fmt: skip
"""The rows of the table of `docs/derivatives.md`."""


@frozen
class Derivatives:
    """The cotangents and the tangents of a function at its points."""

    cotangents: tuple[Array, ...]
    tangents: tuple[Array, ...]


def weights(like: Array, offset: int) -> Array:
    """Different numbers near 1, which the narrow types have."""
    numbers = 1 + (np.arange(like.size, dtype=np.float32).reshape(like.shape) + offset) % 5 / 4
    return numbers.astype(like.dtype)


def ones(like: Array, _: int) -> Array:
    return np.ones(like.shape, like.dtype)


Weights = Callable[[Array, int], Array]


def here(kink: Kink, weights: Weights = weights) -> Derivatives:
    """The derivatives by xb.vjp and xb.jvp."""
    module = xb.from_jax(kink.function, *kink.points)
    leaves = _results(kink)
    cts, ts = [weights(each, 1) for each in leaves], [weights(each, 2) for each in kink.points]
    back, forward = xb.vjp(module.entry), xb.jvp(module.entry)
    return Derivatives(
        tuple(map(np.asarray, evaluate(back, *kink.points, *cts))),
        tuple(map(np.asarray, evaluate(forward, *kink.points, *ts))),
    )


def of_jax(kink: Kink, weights: Weights = weights) -> Derivatives:
    """The derivatives by jax.vjp and jax.jvp; the cotangents have HLO's convention for complex numbers, as JAX's do."""
    leaves = _results(kink)
    cts, ts = [weights(each, 1) for each in leaves], [weights(each, 2) for each in kink.points]

    def flat(*values: Any) -> list[Any]:
        return jax.tree_util.tree_leaves(kink.function(*values))

    found = jax.vjp(flat, *kink.points)[1](cts)
    pushed = jax.jvp(flat, kink.points, tuple(ts))[1]
    return Derivatives(tuple(map(np.asarray, found)), tuple(map(np.asarray, pushed)))


def _results(kink: Kink) -> list[Array]:
    return [np.asarray(each) for each in jax.tree_util.tree_leaves(kink.function(*map(jnp.asarray, kink.points)))]


def gap(ours: tuple[Array, ...], theirs: tuple[Array, ...]) -> str:
    """Where two lists of arrays differ, or an empty text."""
    if len(ours) != len(theirs):
        return f"{len(ours)} arrays against {len(theirs)}"
    for a, b in zip(ours, theirs, strict=True):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return f"{a.dtype}{a.shape} against {b.dtype}{b.shape}"
        kind = np.complex128 if a.dtype.kind == "c" else np.float64
        x, y = a.astype(kind), b.astype(kind)
        largest = np.abs(y[np.isfinite(y)]).max(initial=1)
        with np.errstate(invalid="ignore"):
            same = (x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= TOLERANCE[a.dtype.name] * largest)
        if not same.all():
            return f"{shown(a)} against {shown(b)}"
    return ""


def shown(values: Array) -> str:
    """`[0.5, 1, NaN]`"""
    return "[" + ", ".join(_number(each) for each in values.reshape(-1)) + "]"


def _number(value: Any) -> str:
    return f"{complex(value):.4g}" if np.iscomplexobj(value) else f"{float(value):.4g}"


def judged(kink: Kink) -> str:
    """What differs from JAX, of cotangents and of tangents, or an empty text."""
    ours, theirs = here(kink), of_jax(kink)
    parts = {"vjp": gap(ours.cotangents, theirs.cotangents), "jvp": gap(ours.tangents, theirs.tangents)}
    return "; ".join(f"{name} {text}" for name, text in parts.items() if text)


def table() -> str:
    """The table of conventions: the cotangents of the arguments where those of all results are 1."""
    rows = ["| function | arguments | cotangents in xbuild | JAX's, if different | reason |", "|---|---|---|---|---|"]
    for name in CONVENTIONS:
        kink = KINKS[name]
        ours, theirs = here(kink, ones).cotangents, of_jax(kink, ones).cotangents
        other = _together(theirs) if gap(ours, theirs) else ""
        why = DIFFERENT.get(name, "") if other else ""
        rows.append(f"| {name.replace('|', '/')} | {_together(kink.points)} | {_together(ours)} | {other} | {why} |")
    return "\n".join(rows)


def _together(arrays: tuple[Array, ...]) -> str:
    return ", ".join(map(shown, arrays))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="the functions with this in their names")
    parser.add_argument("--table", action="store_true", help="print the table of the document")
    chosen = parser.parse_args(arguments)
    if chosen.table:
        print(table())
        return 0
    counts = Counter[str]()
    for name, kink in KINKS.items():
        if chosen.only not in name:
            continue
        try:
            found = judged(kink)
        except Exception:
            found = "failed: " + traceback.format_exc().strip().splitlines()[-1]
            if chosen.only:
                traceback.print_exc()
        if name in DIFFERENT:
            kind = "different, as stated" if found else "stated as different, and equal"
        else:
            kind = "unexplained" if found else "equal"
        counts[kind] += 1
        if kind != "equal":
            print(f"{kind}: {name}: {found}", flush=True)
    print(dict(counts))
    return bool(counts["unexplained"] or counts["stated as different, and equal"])


if __name__ == "__main__":
    sys.exit(main())
