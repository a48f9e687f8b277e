"""Derivatives at ties, kinks, poles and bounds against JAX's, by somebody who has not read how they come about.

Each row is a function of JAX, and the points where it is differentiated. `xb.from_jax` gives the program; `xb.vjp` and
`xb.jvp` of it are run and compared with `jax.vjp` and `jax.jvp`. What docs/derivatives.md states as a convention is
named in KNOWN; anything else that differs is printed.

    python -m tests.vjp.blind_kinks [--stablehlo] [WORD]...

takes the rows that contain one of the words, or all. With `--stablehlo` the program is the text that JAX lowers to,
which keeps the names of functions such as arcsin. The exit status is 1 where something differs that is not known.
"""

import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax import lax

import xbuild as xb

POINTS: dict[str, Any] = {
    "Z": [-1.0, -0.0, 0.0, 1.0],
    "Y": [0.0, -0.0, 0.0, 2.0],
    "T": [2.0, 1.0, 2.0, 2.0],
    "U": [2.0, 2.0, 1.0, 2.0],
    "E": [0.0, 0.0, 0.0, 0.0],
    "H": [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5],
    "I": [-np.inf, -1.0, 0.0, 1.0, np.inf],
    "N": [np.nan, 1.0, 0.0, -1.0],
    "P": [0.0, 1.0, 2.0, 4.0],
    "B": [-2.0, -1.0, 0.0, 1.0, 2.0],
    "K": [-3.0, -1.0, 0.0, 3.0, 6.0],
    "O": [0.0, 0.5, 1.0],
    "F": [-np.inf, 0.0, 0.0, 1.0],
    "F4": [-np.inf, -np.inf, -np.inf, -np.inf],
    "A": [[1.0, 2.0, 2.0], [3.0, 3.0, 0.0], [0.0, 0.0, 0.0]],
    "D": [[2.0, 2.0, 1.0, 0.0], [2.0, 3.0, 3.0, 0.0], [1.0, 3.0, 3.0, 0.0], [0.0, 0.0, 0.0, 0.0]],
    "ID": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    "S": [[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 3.0]],
    "R": [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]],
    "W": [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
    "C": [0j, 3 + 4j, -1 + 0j, 1j],
    "S0": 0.0,
    "S1": 1.0,
}

# A function of x, y and z, and the points of each.
ROWS = """
jnp.abs(x) | Z
jnp.abs(x) | I
jnp.abs(x) * x | Z
jnp.abs(x - y) | T U
jnp.abs(jnp.abs(x) - 1) | Z
jnp.sqrt(x * x) | Z
jnp.square(jnp.abs(x)) | Z
jnp.sign(x) * x | Z
jnp.sign(x) | Z
jnp.floor(x) + x | B
jnp.ceil(x) * x | B
jnp.round(x) * x | H
jnp.rint(x) | H
jnp.trunc(x) * x | B
jnp.fix(x) + x | H
x - jnp.floor(x) | B
jnp.modf(x)[0] | H
jnp.sqrt(x) | P
jnp.sqrt(x) | Z
jnp.sqrt(x) | I
lax.rsqrt(x) | P
lax.rsqrt(x) | I
lax.cbrt(x) | Z
jnp.log(x) | P
jnp.log(x) | Z
jnp.log(x) | I
jnp.log1p(x) | B
jnp.log2(x) | P
jnp.log10(x) | P
jnp.exp(x) | I
jnp.exp2(x) | I
jnp.expm1(x) | I
jnp.sin(x) | Z
jnp.tan(x) | Z
jnp.sinc(x) | Z
jnp.sinc(x) | B
jnp.tanh(x) | I
jnp.arcsin(x) | B
jnp.arccos(x) | B
jnp.arctan(x) | I
jnp.arcsinh(x) | Z
jnp.arccosh(x) | P
jnp.arctanh(x) | B
jnp.sinh(x) | I
jnp.cosh(x) | I
1 / x | Z
1 / x | I
jnp.reciprocal(x * x) | Z
x ** 2 | Z
x ** 0 | Z
x ** 1 | Z
x ** 3 | I
x ** -1 | Z
x ** -2 | Z
x ** 0.5 | P
x ** 1.5 | P
x ** 1.0 | Z
x ** 2.0 | Z
x ** 3.0 | Z
2.0 ** x | I
0.0 ** x | P
jnp.power(x, y) | P P
jnp.power(x, y) | Z [2.0,2.0,2.0,2.0]
jnp.power(x, y) | E [0.0,1.0,2.0,-1.0]
jnp.power(x, y) | [1.0,1.0,2.0,2.0] I4
jnp.float_power(x, 2.0) | Z
lax.integer_pow(x, 3) | Z
lax.integer_pow(x, -3) | Z
jax.nn.sigmoid(x) | I
jsp.special.logit(x) | O
jsp.special.erf(x) | I
jsp.special.erfc(x) | I
jsp.special.erfinv(x) | [-1.0,-0.5,0.0,1.0]
jsp.special.gammaln(x) | [1.0,2.0,0.0,-1.0,0.5]
jsp.special.digamma(x) | [1.0,2.0,0.5,3.0]
jsp.special.gamma(x) | [1.0,2.0,3.0,0.5]
jsp.special.gamma(x) | [-0.5,-1.5,2.5,1.5]
jsp.special.i0(x) | Z
jsp.special.i0e(x) | Z
jsp.special.i1(x) | Z
jsp.special.i1e(x) | Z
jsp.special.xlogy(x, y) | Y P
jsp.special.xlogy(x, y) | P [1.0,1.0,2.0,3.0]
jsp.special.xlog1py(x, y) | Y [-1.0,0.0,1.0,2.0]
jsp.special.entr(x) | Z
jsp.special.rel_entr(x, y) | Y P
jsp.special.kl_div(x, y) | Y P
jsp.special.betaln(x, y) | [1.0,2.0,0.5] [1.0,1.0,0.5]
jsp.special.zeta(x, 2.0) | [2.0,3.0,1.5]
jsp.special.polygamma(1, x) | [1.0,2.0,0.5]
jsp.special.ndtr(x) | I
jsp.special.ndtri(x) | O
jsp.special.log_ndtr(x) | [-30.0,-5.0,0.0,5.0,8.0]
jsp.special.expit(x) | I
jsp.special.spence(x) | [0.0,0.5,1.0,2.0]
jsp.special.expi(x) | [-1.0,0.5,1.0,2.0]
jsp.special.exp1(x) | [0.5,1.0,2.0]
jsp.special.gammainc(y, x) | [0.0,0.5,1.0] [1.0,1.0,2.0]
jsp.special.gammaincc(y, x) | [0.0,0.5,1.0] [1.0,1.0,2.0]
jsp.special.betainc(2.0, 3.0, x) | O
jsp.special.multigammaln(x, 2) | [1.0,2.0,3.0]
jsp.special.factorial(x) | [0.0,1.0,2.0]
jsp.special.logsumexp(x) | T
jsp.special.logsumexp(x) | E
jsp.special.logsumexp(x) | F
jsp.special.logsumexp(x) | F4
jsp.special.logsumexp(x) | [0.0,1.0,inf,2.0]
jsp.special.logsumexp(x, b=y) | T [1.0,0.0,-0.5,2.0]
jsp.special.logsumexp(x, axis=1) | A
jsp.stats.norm.logpdf(x) | I
jsp.stats.norm.cdf(x) | I
jsp.stats.laplace.logpdf(x) | Z
jsp.stats.uniform.logpdf(x) | [-0.5,0.0,0.5,1.0]
jsp.stats.expon.logpdf(x) | Z
jsp.stats.gamma.logpdf(x, 2.0) | P
jsp.stats.beta.logpdf(x, 2.0, 2.0) | O
jsp.stats.t.logpdf(x, 3.0) | Z
jsp.stats.poisson.logpmf(jnp.array([0, 1, 2]), x) | [0.0,1.0,2.0]
jsp.stats.bernoulli.logpmf(jnp.array([0, 1, 1]), x) | O
jsp.stats.truncnorm.logpdf(x, -1.0, 1.0) | B
jax.nn.relu(x) | Z
jax.nn.relu6(x) | [0.0,6.0,3.0,-1.0,7.0]
jax.nn.elu(x) | Z
jax.nn.selu(x) | Z
jax.nn.celu(x) | Z
jax.nn.gelu(x) | Z
jax.nn.gelu(x, approximate=False) | I
jax.nn.silu(x) | Z
jax.nn.silu(x) | I
jax.nn.softplus(x) | Z
jax.nn.softplus(x) | I
jax.nn.leaky_relu(x) | Z
jax.nn.hard_tanh(x) | B
jax.nn.hard_sigmoid(x) | [-3.0,0.0,3.0]
jax.nn.hard_swish(x) | [-3.0,0.0,3.0]
jax.nn.hard_silu(x) | [-3.0,-1.0,0.0,3.0]
jax.nn.soft_sign(x) | Z
jax.nn.log_sigmoid(x) | Z
jax.nn.log_sigmoid(x) | I
jax.nn.glu(x) | Z
jax.nn.squareplus(x) | Z
jax.nn.mish(x) | Z
jax.nn.sparse_plus(x) | B
jax.nn.sparse_sigmoid(x) | B
jax.nn.softmax(x) | T
jax.nn.softmax(x) | E
jax.nn.softmax(x) | F
jax.nn.softmax(x) | F4
jax.nn.softmax(x, where=jnp.array([True, False, True, True])) | T
jax.nn.softmax(x, axis=0) | A
jax.nn.log_softmax(x) | T
jax.nn.log_softmax(x) | F
jax.nn.standardize(x) | E
jax.nn.standardize(x) | T
jax.nn.logmeanexp(x) | T
jax.nn.log1mexp(x) | P
jnp.maximum(x, y) | T U
jnp.minimum(x, y) | T U
jnp.maximum(x, x) | Z
jnp.maximum(x, -x) | Z
jnp.minimum(x, 2 * x) | Z
jnp.maximum(x, 0.0) | Z
jnp.maximum(jnp.maximum(x, y), 2.0) | T U
jnp.maximum(x, y) | I I
jnp.maximum(x, y) | N Z
jnp.fmax(x, y) | T U
jnp.fmax(x, y) | N Z
jnp.fmin(x, y) | N Z
jnp.hypot(x, y) | Z E
jnp.hypot(x, y) | E E
jnp.arctan2(x, y) | Z Y
jnp.arctan2(x, y) | Z [-1.0,-1.0,1.0,0.0]
jnp.arctan2(x, y) | E E
jnp.mod(x, y) | [4.0,-4.0,5.0,1.5] [2.0,2.0,-2.5,0.5]
jnp.fmod(x, y) | [4.0,-4.0,5.0,1.5] [2.0,2.0,-2.5,0.5]
jnp.mod(x, 1.0) | H
jnp.floor_divide(x, y) + x | [4.0,-4.0,5.0] [2.0,2.0,2.5]
jnp.divmod(x, y)[1] | [4.0,-4.0,5.0] [2.0,2.0,-2.5]
jnp.copysign(x, y) | Z [1.0,-1.0,-1.0,-0.0]
jnp.logaddexp(x, y) | Z Z
jnp.logaddexp(x, y) | F F
jnp.logaddexp(x, y) | F4 E
jnp.logaddexp(x, y) | I [inf,1.0,-inf,0.0,inf]
jnp.logaddexp2(x, y) | T U
jnp.heaviside(x, 0.5) * x | Z
jnp.clip(x, -1.0, 1.0) | B
jnp.clip(x, y, 2.0) | T U
jnp.clip(x, 1.0, 1.0) | Z
jnp.clip(x, 1.0, -1.0) | B
lax.clamp(-1.0, x, 1.0) | B
lax.clamp(y, x, z) | T U [2.0,2.0,2.0,3.0]
lax.clamp(x, y, z) | [0.0,1.0,2.0] [0.0,1.0,3.0] [1.0,1.0,2.0]
jnp.where(x > 0, x, 0.0) | Z
jnp.where(x >= 0, x, -2 * x) | Z
jnp.where(x == 0, 5 * x, x * x) | Z
jnp.where(x > 0, jnp.log(x), 0.0) | Z
jnp.where(x > 0, jnp.sqrt(x), x) | Z
jnp.where(x == 0, 1.0, jnp.sin(x) / x) | Z
jnp.where(x == 0, 1.0, jnp.sin(x) / jnp.where(x == 0, 1.0, x)) | Z
jnp.where(x > y, x, y) | T U
jnp.where(x >= y, x, y) | T U
jnp.where(jnp.isfinite(x), x, 0.0) | I
jnp.where(x > 0, 1 / x, x) | Z
jnp.select([x < 0, x < 1, x < 2], [x, x * x, 3 * x], 0.0) | P
jnp.piecewise(x, [x < 0, x >= 1], [lambda v: -v, lambda v: v * v, lambda v: 2 * v]) | Z
jnp.nan_to_num(x) | N
jnp.nan_to_num(x) | I
jnp.max(x) | T
jnp.max(x) | E
jnp.min(x) | T
jnp.max(x) | Y
jnp.max(x) | I
jnp.max(x, axis=0) | A
jnp.max(x, axis=1) | A
jnp.max(x, initial=2.0) | T
jnp.max(x, where=jnp.array([True, True, False, True]), initial=-5.0) | T
jnp.min(x, axis=0) | A
jnp.max(jnp.abs(x)) | Z
jnp.max(x) - jnp.min(x) | T
jnp.ptp(x) | T
jnp.max(x * x) | Z
jnp.prod(x) | Z
jnp.prod(x) | [0.0,2.0,3.0]
jnp.prod(x) | E
jnp.prod(x, axis=1) | A
jnp.prod(x, axis=0) | A
jnp.sum(jnp.abs(x)) | Z
jnp.mean(x) | I
jnp.var(x) | E
jnp.std(x) | E
jnp.std(x) | T
jnp.std(x, axis=1) | A
jnp.median(x) | T
jnp.median(x) | [1.0,2.0,2.0,2.0,3.0]
jnp.median(x) | [1.0,2.0,2.0,3.0]
jnp.median(x, axis=1) | A
jnp.nanmax(x) | N
jnp.nanmin(x) | N
jnp.nansum(x) | N
jnp.nanmean(x) | N
jnp.nanstd(x) | N
jnp.nanmedian(x) | T
jnp.percentile(x, 50.0) | T
jnp.percentile(x, 25.0) | [1.0,2.0,2.0,3.0,4.0]
jnp.quantile(x, 0.5, method="lower") | T
jnp.quantile(x, 0.5, method="nearest") | T
jnp.quantile(x, 0.5, method="midpoint") | T
jnp.linalg.norm(x) | E
jnp.linalg.norm(x) | Z
jnp.linalg.norm(x, ord=1) | Z
jnp.linalg.norm(x, ord=jnp.inf) | [1.0,-1.0,0.5]
jnp.linalg.norm(x, ord=-jnp.inf) | [1.0,-1.0,2.0]
jnp.linalg.norm(x, ord=0) | Z
jnp.linalg.norm(x, ord=3) | Z
jnp.linalg.norm(x, ord=3) | E
jnp.linalg.norm(x, ord=1) | A
jnp.linalg.norm(x, ord=jnp.inf) | S
jnp.linalg.norm(x, ord=2) | S
jnp.linalg.norm(x, ord=2) | ID
jnp.linalg.norm(x, ord="nuc") | S
jnp.linalg.norm(x) | W
jnp.linalg.norm(x, axis=1) | A
x / jnp.linalg.norm(x) | E
x / (jnp.linalg.norm(x) + 1e-6) | E
x / jnp.sqrt(jnp.sum(x * x) + 1e-6) | E
jnp.cumsum(x) | Z
jnp.cumprod(x) | Z
jnp.cumprod(x) | [2.0,0.0,3.0,0.0]
lax.cummax(x) | T
lax.cummin(x) | T
lax.cummax(x) | [1.0,1.0,3.0,3.0]
lax.cummax(x, reverse=True) | T
lax.cumlogsumexp(x) | F
lax.cumlogsumexp(x) | T
lax.cumprod(x) | E
lax.associative_scan(jnp.maximum, x) | T
lax.associative_scan(jnp.multiply, x) | [2.0,0.0,3.0,1.0]
x[jnp.argmax(x)] | T
x[jnp.argmin(x)] | T
jnp.max(x) * x[jnp.argmax(x)] | T
jnp.trapezoid(jnp.abs(x)) | Z
jnp.average(x, weights=y) | T U
jnp.average(x, weights=y) | T E
jnp.cov(x) | A
jnp.corrcoef(x) | S
jnp.corrcoef(x) | A
jnp.diff(jnp.abs(x)) | Z
jnp.gradient(jnp.abs(x)) | Z
jnp.interp(x, jnp.array([0.0, 1.0, 2.0]), jnp.array([0.0, 3.0, 1.0])) | P
jnp.interp(1.0, jnp.array([0.0, 1.0, 2.0]), x) | [0.0,3.0,1.0]
jnp.interp(y, x, z) | [0.0,1.0,2.0] [0.0,1.0,2.0] [1.0,3.0,1.0]
jnp.polyval(x, 0.0) | Z
jnp.polyval(jnp.array([1.0, 0.0, 2.0]), x) | Z
jnp.sort(x) | T
jnp.sort(x) | Y
jnp.sort(x) | N
jnp.sort(x) | I
jnp.sort(x, descending=True) | T
jnp.sort(x, axis=0) | A
jnp.sort(x, axis=1) | A
-jnp.sort(-x) | T
x[jnp.argsort(x)] | T
x[jnp.argsort(-x)] | T
y[jnp.argsort(x)] | T Z
y[jnp.lexsort((x, y))] | T U
lax.sort((x, y), num_keys=1)[1] | T Z
lax.sort((x, y), num_keys=2)[1] | T U
lax.sort((x, y), num_keys=1, is_stable=False)[0] | T Z
lax.top_k(x, 2)[0] | T
lax.top_k(x, 2)[0] | A
lax.top_k(x, 4)[0] | E
lax.approx_max_k(x, 2)[0] | T
jnp.partition(x, 1) | T
jnp.sum(jnp.sort(x)[1:-1]) | T
jnp.sort(jnp.abs(x)) | Z
jnp.sort(x) * jnp.arange(4.0) | E
jnp.searchsorted(jnp.sort(x), 2.0) * x | T
lax.reduce_window(x, -jnp.inf, lax.max, (2,), (1,), "VALID") | T
lax.reduce_window(x, -jnp.inf, lax.max, (2,), (2,), "VALID") | U
lax.reduce_window(x, -jnp.inf, lax.max, (3,), (1,), "SAME") | T
lax.reduce_window(x, jnp.inf, lax.min, (2,), (1,), "SAME") | T
lax.reduce_window(x, 0.0, lax.add, (2,), (1,), "SAME") | T
lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "VALID") | D
lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "SAME") | A
lax.reduce_window(x, -jnp.inf, lax.max, (3, 3), (1, 1), "SAME") | W
lax.reduce(x, jnp.float32(-jnp.inf), lax.max, (0,)) | T
lax.reduce(x, jnp.float32(2.0), lax.max, (0,)) | T
lax.reduce(x, jnp.float32(1.0), lax.mul, (0,)) | Z
lax.reduce(x, jnp.float32(0.0), lambda a, b: a + b, (0,)) | T
lax.reduce(x, jnp.float32(-jnp.inf), lambda a, b: jnp.where(a >= b, a, b), (0,)) | T
lax.reduce((x, y), (jnp.float32(-jnp.inf), jnp.float32(0)), lambda a, b: (jnp.maximum(a[0], b[0]), a[1] + b[1]), (0,))[0] + 0 * jnp.sum(y) | T U
x[jnp.array([0, 0, 1])] | T
x[jnp.array([0, 9, -1])] | T
x[jnp.array([3, 3, 3])] * jnp.max(x) | T
x.at[jnp.array([0, 0, 1])].set(y) | T [5.0,6.0,7.0]
x.at[jnp.array([0, 0, 1])].add(y) | T [5.0,6.0,7.0]
x.at[jnp.array([0, 1, 2])].multiply(y, unique_indices=True) | Y [0.0,6.0,0.0]
x.at[jnp.array([0, 0, 1])].max(y) | T [2.0,2.0,1.0]
x.at[jnp.array([0, 0, 1])].min(y) | T [2.0,2.0,1.0]
x.at[jnp.array([0, 1, 1])].max(y) | E [0.0,0.0,0.0]
x.at[jnp.array([0, 1])].divide(y, unique_indices=True) | T [0.0,2.0]
x.at[jnp.array([0, 1])].power(2.0) | Z
x.at[jnp.array([0, 9, 1])].set(y) | T [5.0,6.0,7.0]
x.at[jnp.array([0, 9, 1])].add(y, mode="clip") | T [5.0,6.0,7.0]
x.at[jnp.array([0, 9])].get(mode="fill", fill_value=3.0) | T
x.at[1].set(0.0) | T
jnp.take(x, jnp.array([0, 7, 1]), mode="clip") | T
jnp.take(x, jnp.array([0, 7, 1]), mode="wrap") | T
jnp.take(x, jnp.array([0, 7, 1]), mode="fill") | T
jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1) | A
jnp.take_along_axis(x, jnp.zeros((3, 2), int), axis=1) | A
lax.dynamic_slice(x, (3,), (2,)) | T
lax.dynamic_slice(x, (-1,), (2,)) | T
lax.dynamic_update_slice(x, y, (3,)) | T [5.0,6.0]
x[jnp.argmax(y)] * y | T U
jax.ops.segment_sum(x, jnp.array([0, 0, 1, 1]), 2) | T
jax.ops.segment_prod(x, jnp.array([0, 1, 2, 3]), 4, unique_indices=True) | Z
jax.ops.segment_max(x, jnp.array([0, 0, 1, 1]), 2) | U
jax.ops.segment_min(x, jnp.array([0, 1, 0, 1]), 2) | U
jax.ops.segment_max(x, jnp.array([0, 0, 3, 3]), num_segments=4) | U
jnp.repeat(x, jnp.array([2, 0, 1, 1]), total_repeat_length=4) | T
jnp.roll(x, 1) * jnp.maximum(x, 2.0) | T
jnp.tril(x) @ jnp.triu(x) | A
jnp.linalg.det(x) | R
jnp.linalg.det(x) | W
jnp.linalg.det(x) | ID
jnp.linalg.slogdet(x)[1] | S
jnp.linalg.inv(x) | S
jnp.linalg.solve(x, y) | S [1.0,0.0,0.0]
jnp.linalg.cholesky(x) | S
jnp.linalg.cholesky(x) | ID
jnp.linalg.eigvalsh(x) | S
jnp.linalg.eigvalsh(x) | ID
jnp.sum(jnp.linalg.eigvalsh(x)) | ID
jnp.linalg.eigh(x)[1] ** 2 | [[2.0,1.0],[1.0,5.0]]
jnp.linalg.svd(x, compute_uv=False) | S
jnp.linalg.svd(x, compute_uv=False) | ID
jnp.linalg.svd(x, compute_uv=False) | R
jnp.linalg.qr(x)[1] | S
jnp.linalg.qr(x)[1] | ID
jnp.linalg.pinv(x) | S
jnp.linalg.matrix_power(x, 0) | S
jnp.linalg.matrix_power(x, 3) | W
jnp.linalg.matrix_power(x, -1) | S
jsp.linalg.expm(x) | W
jsp.linalg.expm(x) | S
jnp.linalg.lstsq(x, y)[0] | S [1.0,0.0,0.0]
jnp.linalg.cond(x) | S
jsp.linalg.solve_triangular(x, y, lower=True) | S [0.0,0.0,1.0]
jsp.linalg.solve_triangular(x, y, lower=True, unit_diagonal=True) | W [0.0,0.0,1.0]
jnp.trace(x @ jnp.abs(x)) | W
jnp.kron(x, x) | ID
jnp.linalg.norm(x - jnp.eye(3)) | ID
jnp.linalg.multi_dot([x, x, x]) | W
jnp.outer(jnp.abs(x), jnp.abs(x)) | Z
lax.cond(x > 0, lambda v: v * v, lambda v: 3 * v, x) | S0
lax.cond(x >= 1, lambda v: v * v, lambda v: 3 * v, x) | S1
lax.switch(jnp.int32(x), [lambda v: v, lambda v: v * v, jnp.exp], x) | S1
lax.fori_loop(0, 3, lambda i, v: jnp.maximum(v, 1.0) * v, x) | Z
lax.fori_loop(0, 3, lambda i, v: jnp.abs(v), x) | Z
lax.scan(lambda c, v: (jnp.maximum(c, v), c * v), 2.0, x)[0] | T
lax.scan(lambda c, v: (jnp.maximum(c, v), c), 2.0, x)[1] | T
lax.scan(lambda c, v: (c * v, c), 1.0, x)[0] | Z
jax.checkpoint(lambda v: jnp.maximum(v, 0.0) * jnp.abs(v))(x) | Z
jax.vmap(lambda v: jnp.maximum(v, v * v))(x) | P
lax.stop_gradient(x) * jnp.maximum(x, 0.0) | Z
x - lax.stop_gradient(jnp.max(x)) | T
jnp.maximum(x, lax.stop_gradient(x)) | T
jnp.where(jnp.abs(x) <= 1, 0.5 * x * x, jnp.abs(x) - 0.5) | B
jnp.maximum(0.0, 1 - x * y) | B [1.0,1.0,1.0,1.0,-1.0]
jnp.maximum(0.9 * x, -0.1 * x) | Z
jnp.sum(x * y) / (jnp.linalg.norm(x) * jnp.linalg.norm(y)) | T E
jnp.sum(jnp.where(y > 0, y * (jnp.log(y) - x), 0.0)) | T Y
jnp.maximum(x - jnp.mean(x), 0.0) | T
jnp.max(jnp.minimum(x, y)) | T U
jnp.min(jnp.maximum(x, y)) | T U
jnp.max(x, axis=0).max() | A
jnp.maximum.reduce(x) | T
jnp.multiply.reduce(x) | Z
jnp.unwrap(x) | [0.0,3.0,6.0,9.0]
jnp.convolve(jnp.abs(x), y) | Z [1.0,0.0]
jnp.abs(jnp.fft.fft(x)) | E
jnp.abs(jnp.fft.rfft(x)) | T
jnp.real(jnp.fft.ifft(jnp.fft.fft(jnp.abs(x)))) | Z
jnp.abs(x) | C
jnp.abs(x) ** 2 | C
jnp.sqrt(x) | C
jnp.log(x) | C
jnp.angle(x) | C
jnp.conj(x) * x | C
jnp.real(x) * jnp.imag(x) | C
jnp.exp(x) | C
x ** 2 | C
x ** 2.0 | C
1 / x | C
jnp.sign(x) | C
jnp.sinh(x) | C
jnp.tanh(x) | C
jnp.arctan(x) | [0j,1+1j]
jnp.max(jnp.abs(x)) | [1j,1+0j,0j]
lax.reduce_precision(x, 5, 10) * jnp.maximum(x, 2.0) | T
jnp.maximum(x.astype(jnp.bfloat16), 2).astype(jnp.float32) | T
jnp.maximum(x, y.astype(jnp.int32).astype(jnp.float32)) | T U
lax.nextafter(x, y) | T U
jnp.ldexp(x, 2) | Z
jnp.frexp(x)[0] | [1.0,2.0,3.0]
jnp.i0(x) | Z
jnp.deg2rad(jnp.abs(x)) | Z
jnp.tensordot(jnp.maximum(x, 2.0), y, 1) | T U
jnp.linalg.vector_norm(x, ord=4) | E
jnp.triu(jnp.maximum(x, x.T)) | S
jnp.maximum(x, x.T) | A
jnp.minimum(x[:, None], x[None, :]) | T
jnp.max(jnp.stack([x, y]), axis=0) | T U
jnp.max(jnp.concatenate([x, y])) | T U
jnp.sum(jnp.triu(jnp.abs(x[:, None] - x[None, :]))) | T
jnp.sqrt(jnp.sum((x[:, None] - x[None, :]) ** 2)) | E
jnp.sqrt(jnp.maximum(jnp.sum(x * x), 0.0)) | E
jnp.log(jnp.maximum(x, 0.0)) | Z
jnp.log(jnp.clip(x, 1e-3, 1.0)) | Z
jnp.exp(-jnp.abs(x)) | Z
jnp.tanh(jnp.abs(x)) | Z
jnp.minimum(jnp.exp(x), 1.0) | Z
jnp.power(jnp.abs(x), 0.5) | Z
jnp.power(jnp.abs(x), 1.5) | Z
jnp.power(jnp.abs(x), 2.0) | Z
"""  # noqa: E501

# Functions that differ by a convention that docs/derivatives.md states, by what their rows contain.
KNOWN: tuple[tuple[str, str], ...] = (
    (r"^[^|]*(jnp\.abs\(|hypot|copysign|laplace|norm\(x, ord=(1|jnp\.inf)\))", "abs has the slope 0 at 0"),
    (r"relu\(|relu6|hard_(sigmoid|swish|silu)", "HLO has the formula of relu and not its name"),
    (r"jnp\.where\(|poisson|bernoulli", "a side that a select does not take adds nothing"),
    (r"entr\(|xlogy|xlog1py|(gamma|beta)\.logpdf", "JAX has a rule for the function, and not for its formula"),
    (r"^jnp\.power\(x, y\)", "JAX has a rule for 0 ** 0"),
    (r"cummax", "the first of equal elements has all of it"),
    (r"lax\.reduce\(", "a reduction by maximum shares among all elements that are the result, the init value too"),
    (r"arc(sin|cos|sinh|cosh|tanh)\(|i[01]e?\(|logit|sigmoid\(|expit|gammaln|gelu", "JAX lowers it to other functions"),
    (r"stop_gradient", "the mark is JAX's alone: nothing of it is in HLO"),
    (r"x \*\* -2|integer_pow\(x, -3\)", "JAX has a rule for the function, and not for its formula"),
    (r"logaddexp", "JAX has a rule for the function, and not for its formula"),
    (
        r"spence|jnp\.log\(jnp\.maximum|corrcoef|divide\(",
        "a side that is not taken adds nothing",
    ),
    (r"x\[jnp\.array\(\[0, 9", "the element next to an index outside has its cotangent"),
    (r"^jnp\.sign\(x\)$", "z / abs(z) turns with z"),
    (r"^jnp\.(sqrt|log)\(x\)$", "JAX lowers it to other functions"),
    (r"log_ndtr", "sums in another order"),
)

POINTS["I4"] = [-np.inf, np.inf, -np.inf, 0.0]


def rows(words: list[str]) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Each function with its points, as f32 or c64."""
    for line in ROWS.strip().splitlines():
        text, _, points = line.rpartition(" | ")
        if words and not any(word in line for word in words):
            continue
        given = [POINTS[each] if each in POINTS else eval(each, {"inf": np.inf}) for each in points.split()]
        arrays = [np.asarray(each) for each in given]
        yield text, [each.astype(np.complex64 if each.dtype.kind == "c" else np.float32) for each in arrays]


def weights(array: Any, first: int) -> np.ndarray:
    """Numbers that are all different, in place of the ones of a gradient: a share that goes elsewhere shows."""
    array = np.asarray(array)
    numbers = (first + np.arange(array.size)).reshape(array.shape) / 4 + 0.75
    return (numbers * (1 + 0.5j) if array.dtype.kind == "c" else numbers).astype(array.dtype)


def same(left: Any, right: Any) -> bool:
    """Equal up to rounding in f32, with NaN and the infinities at the same places."""
    left, right = (np.asarray(each, np.complex128) for each in (left, right))
    if left.shape != right.shape:
        return False
    with np.errstate(all="ignore"):
        nan = np.isnan(left) & np.isnan(right)
        largest = np.max(np.abs(right[np.isfinite(right)]), initial=0.0)
        near = np.abs(left - right) <= 2e-5 * largest + 1e-6
    return bool(np.all(nan | (left == right) | near))


def compare(text: str, points: list[np.ndarray], counts: Counter[str], native: bool = False) -> None:
    """Differentiate one function in both ways by both, and print where they differ."""
    names = ["x", "y", "z"][: len(points)]
    scope = {"jnp": jnp, "jax": jax, "lax": lax, "jsp": jsp}
    function = eval(f"lambda {', '.join(names)}: {text}", scope)

    def find(what: str, ours: Any, theirs: Any) -> None:
        known = any(re.search(pattern, text) for pattern, _ in KNOWN)
        counts["known" if known else "find"] += 1
        if not known:
            point = ", ".join(f"{name}={each.tolist()}" for name, each in zip(names, points, strict=True))
            print(f"FIND {what}: {text}  at {point}\n   here {shown(ours)}\n   JAX  {shown(theirs)}", flush=True)

    try:
        result, pull = jax.vjp(function, *points)
        cotangent = weights(result, 1)
        theirs_back = pull(jnp.asarray(cotangent))
        tangents = [weights(each, 2 + 5 * index) for index, each in enumerate(points)]
        _, theirs_along = jax.jvp(function, points, tangents)
        is_number = np.asarray(result).shape == () and np.asarray(result).dtype.kind == "f"
        theirs = jax.grad(function)(*points) if is_number else None
    except Exception as error:
        counts["refused by JAX"] += 1
        print(f"refused by JAX: {text}: {type(error).__name__}: {str(error)[:120]}", flush=True)
        return
    try:
        lowered = jax.jit(function).lower(*points)
        module = xb.parse(lowered.as_text()) if native else xb.from_jax(lowered)
        value = xb.evaluate(module.entry, *points)
        if not same(value, result):
            find("the value", value, result)
        ours_back = xb.evaluate(xb.vjp(module).entry, *points, cotangent)
        if not all(same(*pair) for pair in zip(ours_back, theirs_back, strict=True)):
            find("vjp", ours_back, theirs_back)
        ours_along = xb.evaluate(xb.jvp(module).entry, *points, *tangents)
        if not same(ours_along[0], theirs_along):
            find("jvp", ours_along, theirs_along)
        if is_number:
            ours = xb.evaluate(xb.grad(module).entry, *points)
            if not same(ours, theirs):
                find("grad", ours, theirs)
        counts["compared"] += 1
    except xb.XbuildError as error:
        counts["refused here"] += 1
        print(f"refused here: {text}: {type(error).__name__}: {str(error)[:300]}", flush=True)
    except Exception as error:
        counts["find"] += 1
        print(f"FIND exception: {text}: {type(error).__name__}: {str(error)[:300]}", flush=True)


def shown(values: Any) -> str:
    values = values if isinstance(values, tuple) else (values,)
    return "; ".join(np.array2string(np.asarray(each), precision=5, separator=",").replace("\n", "") for each in values)


def main() -> None:
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    words = [word for word in sys.argv[1:] if word != "--stablehlo"]
    for text, points in rows(words):
        begin = time.process_time()
        compare(text, points, counts, native=len(words) < len(sys.argv) - 1)
        if (spent := time.process_time() - begin) > 20:
            print(f"slow: {text}: {spent:.1f} s", flush=True)
        counts["rows"] += 1
    print(dict(counts), f"{time.process_time():.0f} s of processor time")
    sys.exit(bool(counts["find"]))


if __name__ == "__main__":
    main()
