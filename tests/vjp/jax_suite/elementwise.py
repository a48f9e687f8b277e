"""Functions of each element alone: real and complex, at kinks, in several shapes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax, nn

from .entry import Entry, cplx, entry, normal, positive, ties, within

_UNIT = within(-0.9, 0.9, 2, 3), within(-0.9, 0.9)
_ANY = normal(2, 3), normal()
_POSITIVE = positive(2, 3), positive()
_ABOVE_ONE = within(1.1, 3, 2, 3), within(1.1, 3)

REAL = {
    "neg": (lax.neg, _ANY),
    "exp": (jnp.exp, _ANY),
    "exp2": (jnp.exp2, _ANY),
    "expm1": (jnp.expm1, _ANY),
    "log": (jnp.log, _POSITIVE),
    "log1p": (jnp.log1p, _POSITIVE),
    "log2": (jnp.log2, _POSITIVE),
    "sqrt": (jnp.sqrt, _POSITIVE),
    "rsqrt": (lax.rsqrt, _POSITIVE),
    "cbrt": (jnp.cbrt, _ANY),
    "tanh": (jnp.tanh, _ANY),
    "logistic": (nn.sigmoid, _ANY),
    "sin": (jnp.sin, _ANY),
    "cos": (jnp.cos, _ANY),
    "tan": (jnp.tan, _ANY),
    "asin": (jnp.arcsin, _UNIT),
    "acos": (jnp.arccos, _UNIT),
    "atan": (jnp.arctan, _ANY),
    "sinh": (jnp.sinh, _ANY),
    "cosh": (jnp.cosh, _ANY),
    "asinh": (jnp.arcsinh, _ANY),
    "acosh": (jnp.arccosh, _ABOVE_ONE),
    "atanh": (jnp.arctanh, _UNIT),
    "abs": (jnp.abs, _ANY),
    "erf": (lax.erf, _ANY),
    "erfc": (lax.erfc, _ANY),
    "erf_inv": (lax.erf_inv, _UNIT),
    "lgamma": (lax.lgamma, _POSITIVE),
    "digamma": (lax.digamma, _POSITIVE),
    "square": (jnp.square, _ANY),
    "reciprocal": (jnp.reciprocal, _POSITIVE),
    "cube": (lambda x: x**3, _ANY),
    "fifth power": (lambda x: lax.integer_pow(x, 5), _ANY),
    "power of -2": (lambda x: x**-2, _POSITIVE),
    "power of 0": (lambda x: lax.integer_pow(x, 0) + x, _ANY),
    "power of 2.5": (lambda x: x**2.5, _POSITIVE),
    "sign": (lambda x: jnp.sign(x) * x, _ANY),
    "floor": (lambda x: jnp.floor(x) * x, _ANY),
    "ceil": (lambda x: jnp.ceil(x) + x, _ANY),
    "round": (lambda x: jnp.round(x) * x, _ANY),
    "is_finite": (lambda x: jnp.where(jnp.isfinite(x), x, 0.0), _ANY),
    "sinc": (jnp.sinc, _ANY),
    "relu": (nn.relu, _ANY),
    "softplus": (nn.softplus, _ANY),
    "silu": (nn.silu, _ANY),
    "gelu": (nn.gelu, _ANY),
    "exact gelu": (lambda x: nn.gelu(x, approximate=False), _ANY),
    "elu": (nn.elu, _ANY),
    "leaky relu": (nn.leaky_relu, _ANY),
    "hard tanh": (nn.hard_tanh, _ANY),
    "log sigmoid": (nn.log_sigmoid, _ANY),
}

COMPLEX = {
    "neg": lax.neg,
    "exp": jnp.exp,
    "expm1": jnp.expm1,
    "log": jnp.log,
    "log1p": jnp.log1p,
    "sqrt": jnp.sqrt,
    "rsqrt": lax.rsqrt,
    "tanh": jnp.tanh,
    "logistic": nn.sigmoid,
    "sin": jnp.sin,
    "cos": jnp.cos,
    "tan": jnp.tan,
    "sinh": jnp.sinh,
    "cosh": jnp.cosh,
    "abs": jnp.abs,
    "sign": jnp.sign,
    "conj": jnp.conj,
    "real": jnp.real,
    "imag": jnp.imag,
    "square": jnp.square,
    "cube": lambda z: z**3,
    "square of the size": lambda z: jnp.real(z * jnp.conj(z)),
    "angle": jnp.angle,
}

BINARY = {
    "add": jnp.add,
    "subtract": jnp.subtract,
    "multiply": jnp.multiply,
    "divide": jnp.divide,
    "atan2": jnp.arctan2,
    "max": jnp.maximum,
    "min": jnp.minimum,
    "rem": lax.rem,
    "mod": jnp.mod,
    "hypot": jnp.hypot,
    "logaddexp": jnp.logaddexp,
}

SHAPES = {
    "alike": (normal(2, 3), normal(2, 3)),
    "row": (normal(2, 3), normal(3)),
    "column": (normal(2, 3), normal(2, 1)),
    "scalar": (normal(), normal(2, 3)),
    "nothing": (normal(0, 3), normal(3)),
}

_KEPT = {"rem", "mod"}  # whose operands JAX wants of one shape, or which broadcast elsewhere

FUNCTIONS: list[Entry] = [
    *(
        entry(f"{name} of {shape}", function, draw)
        for name, (function, draws) in REAL.items()
        for shape, draw in zip(("matrix", "scalar"), draws, strict=True)
    ),
    *(entry(f"{name} of complex", function, cplx(2, 3)) for name, function in COMPLEX.items()),
    *(
        entry(f"{name} {shape}", function, *draws)
        for name, function in BINARY.items()
        for shape, draws in SHAPES.items()
        if shape == "alike" or name not in _KEPT
    ),
    *(
        entry(f"complex {name}", function, cplx(2, 3), cplx(3))
        for name, function in {"add": jnp.add, "multiply": jnp.multiply, "divide": jnp.divide}.items()
    ),
    entry("complex power", lax.pow, cplx(2, 3), cplx(2, 3)),
    entry("real times complex", jnp.multiply, normal(2, 3), cplx(2, 3)),
    entry("power", jnp.power, positive(2, 3), normal(2, 3)),
    entry("power of a scalar", jnp.power, positive(2, 3), normal()),
    entry("power at 0", lambda x: x**2.0, [0.0, 1.0, -2.0]),
    entry("power with exponent 0 and 1", jnp.power, positive(2), [0.0, 1.0]),
    entry("complex of parts", lax.complex, normal(2, 3), normal(2, 3)),
    entry("greater of ties", jnp.maximum, ties(4, 3), ties(4, 3)),
    entry("lesser of ties", jnp.minimum, ties(4, 3), ties(4, 3)),
    entry("relu as max at 0", lambda x: jnp.maximum(x, 0.0), [-1.0, 0.0, 2.0]),
    entry("abs at 0", jnp.abs, [-1.0, 0.0, 2.0]),
    entry("sqrt at 0", jnp.sqrt, [0.0, 4.0]),
    entry("complex abs at 0", jnp.abs, [0.0 + 0.0j, 3.0 + 4.0j]),
    entry("clamp", lambda lo, x, hi: lax.clamp(lo, x, hi), within(-1, 0, 8), normal(8), within(0, 1, 8)),
    entry("clamp at its bounds", lambda x: lax.clamp(-1.0, x, 1.0), [-2.0, -1.0, 0.0, 1.0, 2.0]),
    entry("clip", lambda x: jnp.clip(x, -0.5, 0.5), normal(8)),
    entry("select", jnp.where, [True, False, True], normal(3), normal(3)),
    entry("select_n of three", lambda a, b, c: lax.select_n(jnp.array([0, 1, 2]), a, b, c), *[normal(3)] * 3),
    entry("where with a scalar", lambda x: jnp.where(x > 0, x * x, 0.1), normal(2, 3)),
    entry("where of a row", lambda x, y: jnp.where(jnp.array([True, False, True]), x, y), normal(2, 3), normal()),
    entry("reduce_precision", lambda x: lax.reduce_precision(x, 8, 12), normal(4)),
    entry("to f32 and back", lambda x: (x.astype(jnp.float32) * 2).astype(jnp.float64), normal(4)),
    entry("to an integer", lambda x: x.astype(jnp.int32).astype(jnp.float64) * x, normal(4)),
    entry("to complex", lambda x: x.astype(jnp.complex128) * (1 + 2j), normal(4)),
    entry("an integer argument", lambda x, n: x * n, normal(3), [1, 2, 3]),
    entry("stop_gradient", lambda x: x * lax.stop_gradient(x), normal(3)),
    entry("a value used three times", lambda x: x * jnp.sin(x) + x, normal(3)),
    entry("optimization_barrier", lambda x: lax.optimization_barrier(jnp.sin(x)) * x, normal(3)),
    entry("gradient of tanh", lambda x: jax.grad(lambda y: jnp.tanh(y).sum())(x), normal(3)),
    entry("gradient of log of complex", lambda z: jax.grad(lambda y: jnp.log(y).real.sum())(z), cplx(3)),
]
