"""Functions of jax.numpy, jax.lax, jax.nn, jax.scipy and jax.random, each with arrays to lower it with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import jax.scipy.special as special
import numpy as np
from jax import lax

Program: TypeAlias = tuple[str, Callable[..., Any], tuple[Any, ...]]

F, D, C = np.ones((2, 3), np.float32), np.ones((3,), np.float64), np.ones((2, 2), np.complex64)
H, B = np.ones((4,), np.float16), np.ones((2, 4), jnp.bfloat16)
I, U, P = np.ones((2, 3), np.int32), np.ones((4,), np.uint8), np.ones((2, 3), np.bool_)  # noqa: E741
M, V, S = np.ones((3, 3), np.float32), np.ones((6,), np.float32), np.float32(1)


def words(text: str) -> list[str]:
    return text.split()


UNARY = words("""abs acos acosh angle arccos arcsin arcsinh arctan arctanh argmax argmin argsort argwhere_ asin
asinh atan atanh average cbrt ceil conj copy cos cosh count_nonzero cumprod cumsum deg2rad diff exp exp2 expm1 fabs
fix flip fliplr flipud floor frexp gradient_ i0 imag isfinite isinf isnan isneginf isposinf isreal log log10 log1p
log2 logical_not max mean median min modf nan_to_num nanmax nanmean nanmin nanprod nanstd nansum nanvar negative
nonzero_ ones_like positive prod ptp rad2deg ravel real reciprocal rint round sign signbit sin sinc sinh sort
spacing_ sqrt square std sum tan tanh transpose trunc var zeros_like""")
BINARY = words("""add arctan2 copysign divide equal floor_divide fmax fmin fmod greater greater_equal heaviside
hypot isclose ldexp_ less less_equal logaddexp logaddexp2 logical_and logical_or logical_xor maximum minimum mod
multiply nextafter not_equal power remainder subtract true_divide outer inner_ vdot""")
INTEGERS = words("bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd lcm floor_divide remainder power_")
LAX_UNARY = words("""abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e cbrt ceil cos cosh digamma erf
erf_inv erfc exp exp2 expm1 floor is_finite lgamma log log1p logistic neg round rsqrt sign sin sinh sqrt square tan
tanh""")
LAX_BINARY = words("add atan2 div eq ge gt le lt max min mul ne nextafter pow rem sub igamma igammac zeta")
NN = words("""celu elu gelu glu_ hard_sigmoid hard_silu hard_swish hard_tanh leaky_relu log_sigmoid log_softmax
logsumexp mish relu relu6 selu sigmoid silu soft_sign softmax softplus sparse_plus sparse_sigmoid squareplus
standardize swish tanh""")
SPECIAL = words("""bessel_jn_ digamma entr erf erfc erfcx_ erfinv expi_ expit gammaln i0 i0e i1 i1e log_ndtr logit
ndtr ndtri_ xlog1py_ log_softmax softmax""")


def _named(module: Any, words: list[str], arguments: tuple[Any, ...], prefix: str) -> Iterator[Program]:
    """The functions of a module by name; an underscore at the end leaves one out."""
    for word in words:
        if not word.endswith("_") and hasattr(module, word):
            yield f"{prefix}.{word}", getattr(module, word), arguments


def elementwise() -> Iterator[Program]:
    for kind, x in (("f32", F), ("f64", D), ("bf16", B), ("c64", C), ("s32", I)):
        yield from _named(jnp, UNARY, (x,), f"jnp.{kind}")
    for kind, x in (("f32", F), ("f16", H), ("s32", I)):
        yield from _named(jnp, BINARY, (x, x), f"jnp.{kind}")
    for kind, x in (("s32", I), ("u8", U)):
        yield from _named(jnp, INTEGERS, (x, x), f"jnp.bits.{kind}")
    for kind, x in (("f32", F), ("f64", D), ("f16", H)):
        yield from _named(lax, LAX_UNARY, (x,), f"lax.{kind}")
    for kind, x in (("f32", F), ("f64", D)):
        yield from _named(lax, LAX_BINARY, (x, x), f"lax.{kind}")
    for kind, x in (("f32", F), ("bf16", B)):
        yield from _named(jax.nn, NN, (x,), f"nn.{kind}")
    yield from _named(special, SPECIAL, (F,), "special")


SHAPING: list[Program] = [
    ("reshape", lambda x: x.reshape(3, 2), (F,)), ("transpose", lambda x: x.T, (F,)),
    ("swapaxes", lambda x: jnp.swapaxes(x, 0, 1), (F,)), ("moveaxis", lambda x: jnp.moveaxis(x, 0, 1), (F,)),
    ("concatenate", lambda x, y: jnp.concatenate([x, y], 1), (F, F)), ("stack", lambda x, y: jnp.stack([x, y]), (F, F)),
    ("split", lambda x: jnp.split(x, 3), (V,)), ("tile", lambda x: jnp.tile(x, (2, 2)), (F,)),
    ("repeat", lambda x: jnp.repeat(x, 3, 0), (F,)), ("pad", lambda x: jnp.pad(x, 1, constant_values=2), (F,)),
    ("pad reflect", lambda x: jnp.pad(x, 1, mode="reflect"), (M,)), ("roll", lambda x: jnp.roll(x, 1, 0), (F,)),
    ("rot90", jnp.rot90, (F,)), ("squeeze", lambda x: x[:1].squeeze(), (F,)), ("where", jnp.where, (P, F, F)),
    ("select", lambda p, x, y: jnp.select([p], [x], 3.0), (P, F, F)), ("clip", lambda x: jnp.clip(x, 0, 0.5), (F,)),
    ("take", lambda x: jnp.take(x, np.array([0, 2, 5])), (V,)), ("gather", lambda x, i: x[i], (V, I)),
    ("gather fill", lambda x, i: x.at[i].get(mode="fill", fill_value=0), (V, I)), ("slice", lambda x: x[1:, ::2], (F,)),
    ("reverse", lambda x: x[::-1], (V,)), ("mask", lambda x: jnp.where(x > 0, x, 0), (F,)),
    ("at set", lambda x, i: x.at[i].set(2), (V, I)), ("at add", lambda x, i: x.at[i].add(2), (V, I)),
    ("at max", lambda x, i: x.at[i].max(0.5), (V, I)), ("at mul", lambda x, i: x.at[i].mul(0.5), (V, I)),
    ("searchsorted", lambda x, y: jnp.searchsorted(x, y), (V, V)), ("digitize", jnp.digitize, (V, V)),
    ("interp", lambda x, y, z: jnp.interp(x, y, z), (V, V, V)), ("bincount", lambda x: jnp.bincount(x, length=4), (U,)),
    ("histogram", lambda x: jnp.histogram(x, 4), (V,)), ("convolve", jnp.convolve, (V, V)),
    ("correlate", jnp.correlate, (V, V)), ("unwrap", jnp.unwrap, (V,)),
    ("tri", lambda x: jnp.tril(x) + jnp.triu(x), (M,)),
    ("diag", jnp.diag, (M,)), ("diagonal", jnp.diagonal, (M,)), ("trace", jnp.trace, (M,)), ("kron", jnp.kron, (M, M)),
    ("eye", lambda x: x + jnp.eye(3), (M,)), ("arange", lambda x: x + jnp.arange(6), (V,)),
    ("linspace", lambda x: x + jnp.linspace(0, 1, 6), (V,)), ("vander", lambda x: jnp.vander(x, 3), (V,)),
    ("meshgrid", jnp.meshgrid, (V, V)), ("packbits", jnp.packbits, (P,)), ("unpackbits", jnp.unpackbits, (U,)),
    ("percentile", lambda x: jnp.percentile(x, 30), (V,)), ("quantile", lambda x: jnp.quantile(x, 0.3), (V,)),
    ("cov", jnp.cov, (M,)), ("corrcoef", jnp.corrcoef, (M,)), ("cross", jnp.cross, (M, M)),
    ("polyval", jnp.polyval, (V, V)),
    ("unique", lambda x: jnp.unique(x, size=4), (V,)), ("lexsort", lambda x, y: jnp.lexsort((x, y)), (V, V)),
    ("nonzero", lambda x: jnp.nonzero(x, size=4), (V,)), ("view", lambda x: x.view(jnp.int32), (F,)),
    ("astype", lambda x: [x.astype(t) for t in (jnp.int8, jnp.bfloat16, jnp.float8_e4m3fn, jnp.bool_)], (F,)),
    ("astype int4", lambda x: x.astype(jnp.int4), (I,)), ("trapezoid", jnp.trapezoid, (V,)),
    ("ediff1d", jnp.ediff1d, (V,)),
    ("apply_along_axis", lambda x: jnp.apply_along_axis(jnp.sum, 0, x), (F,)),
    ("block", lambda x: jnp.block([[x, x]]), (F,)),
]  # fmt: skip

_CONV = ("NHWC", "HWIO", "NHWC")
IMAGE, KERNEL = np.ones((1, 5, 5, 2), np.float32), np.ones((3, 3, 2, 4), np.float32)

CONTRACTION: list[Program] = [
    ("matmul", jnp.matmul, (F, M)), ("dot", jnp.dot, (M, M)),
    ("tensordot", lambda x, y: jnp.tensordot(x, y, 1), (F, M)),
    ("einsum", lambda x, y: jnp.einsum("ij,jk->ik", x, y), (F, M)), ("bf16", lambda x: x @ x.T, (B,)),
    ("batched", lambda x: jnp.einsum("bij,bkj->bik", x, x), (np.ones((2, 3, 4), np.float32),)),
    ("highest", lambda x: lax.dot(x, x, precision="highest"), (M,)), ("int", lambda x: x @ x.T, (I,)),
    ("preferred", lambda x: lax.dot(x, x.T, preferred_element_type=jnp.float32), (B,)),
    ("conv", lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=_CONV), (IMAGE, KERNEL)),
    ("conv strided", lambda x, k: lax.conv_general_dilated(x, k, (2, 2), "VALID", dimension_numbers=_CONV),
     (IMAGE, KERNEL)),
    ("conv dilated", lambda x, k: lax.conv_general_dilated(x, k, (1, 1), [(1, 2), (0, 1)], (2, 1), (1, 2), _CONV),
     (IMAGE, KERNEL)),
    ("conv grouped", lambda x, k: lax.conv_general_dilated(
        x, k[:, :, :1], (1, 1), "SAME", dimension_numbers=_CONV, feature_group_count=2), (IMAGE, KERNEL)),
    ("conv transpose", lambda x, k: lax.conv_transpose(x, k, (2, 2), "SAME"), (IMAGE, KERNEL)),
    ("fft", jnp.fft.fft, (C,)), ("ifft", jnp.fft.ifft, (C,)), ("rfft", jnp.fft.rfft, (F,)),
    ("irfft", jnp.fft.irfft, (C,)),
    ("fft2", jnp.fft.fft2, (C,)),
    ("triangular", lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True), (M, M)),
    ("attention", lambda q: jax.nn.dot_product_attention(q, q, q), (np.ones((1, 4, 2, 8), np.float32),)),
]  # fmt: skip

WINDOWS: list[Program] = [
    ("reduce_window sum", lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "SAME"), (M,)),
    ("reduce_window max", lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID"), (M,)),
    ("reduce_window min", lambda x: lax.reduce_window(x, jnp.inf, lax.min, (2, 2), (1, 1), "VALID"), (M,)),
    ("cumsum", lambda x: lax.cumsum(x, 1), (F,)), ("cumprod", lambda x: lax.cumprod(x, 0, reverse=True), (F,)),
    ("cummax", lambda x: lax.cummax(x, 1), (F,)), ("cumlogsumexp", lambda x: lax.cumlogsumexp(x, 1), (F,)),
    ("reduce", lambda x: lax.reduce(x, np.float32(1), lax.mul, (0,)), (F,)), ("reduce and", lambda x: x.all(0), (P,)),
    ("reduce or", lambda x: x.any(1), (P,)),
    ("reduce xor", lambda x: lax.reduce(x, np.int32(0), lax.bitwise_xor, (0,)), (I,)),
    ("reduce two", lambda x, y: lax.reduce((x, y), (np.float32(0), np.float32(1)),
                                           lambda a, b: (a[0] + b[0], a[1] * b[1]), (0,)), (F, F)),
    ("argmax", lambda x: lax.argmax(x, 1, jnp.int32), (F,)),
    ("sort two", lambda x, y: lax.sort((x, y), num_keys=1), (V, V)),
    ("sort keys", lambda x, y: lax.sort((x, y), num_keys=2), (V, V)), ("top_k", lambda x: lax.top_k(x, 2), (V,)),
    ("approx_max_k", lambda x: lax.approx_max_k(x, 2), (V,)),
    ("reduce_precision", lambda x: lax.reduce_precision(x, 5, 10), (F,)),
    ("population_count", lax.population_count, (U,)), ("clz", lax.clz, (I,)),
    ("clamp", lambda x: lax.clamp(0.0, x, 0.5), (F,)),
    ("shift", lambda x: lax.shift_right_logical(x, x) + lax.shift_right_arithmetic(x, x), (I,)),
    ("round even", lambda x: lax.round(x, jax.lax.RoundingMethod.TO_NEAREST_EVEN), (F,)),
    ("not", lax.bitwise_not, (I,)),
    ("dynamic_slice", lambda x, i: lax.dynamic_slice(x, (i, i), (1, 2)), (F, np.int32(1))),
    ("dynamic_update_slice", lambda x, i: lax.dynamic_update_slice(x, x[:1], (i, i)), (F, np.int32(1))),
    ("iota", lambda x: x + lax.broadcasted_iota(jnp.float32, (2, 3), 1), (F,)),
    ("rev", lambda x: lax.rev(x, (0,)), (F,)),
    ("pad interior", lambda x: lax.pad(x, np.float32(0), ((1, -1, 1), (0, 2, 0))), (F,)),
    ("complex", lambda x: lax.complex(x, x), (F,)), ("bitcast", lambda x: lax.bitcast_convert_type(x, jnp.uint8), (F,)),
    ("optimization_barrier", lax.optimization_barrier, (F,)), ("tie_in", lambda x, y: lax.select(x > 0, x, y), (F, F)),
    ("one_hot", lambda x: jax.nn.one_hot(x, 5), (I,)),
    ("segment_sum", lambda x, i: jax.ops.segment_sum(x, i, 3), (V, np.ones(6, np.int32))),
    ("key", lambda k: jax.random.split(jax.random.wrap_key_data(k)), (np.ones(2, np.uint32),)),
    ("uniform", lambda k: jax.random.uniform(jax.random.wrap_key_data(k), (3,)), (np.ones(2, np.uint32),)),
    ("normal", lambda k: jax.random.normal(jax.random.wrap_key_data(k), (3,)), (np.ones(2, np.uint32),)),
    ("randint", lambda k: jax.random.randint(jax.random.wrap_key_data(k), (3,), 0, 9), (np.ones(2, np.uint32),)),
    ("permutation", lambda k: jax.random.permutation(jax.random.wrap_key_data(k), 5), (np.ones(2, np.uint32),)),
    ("categorical", lambda k, x: jax.random.categorical(jax.random.wrap_key_data(k), x), (np.ones(2, np.uint32), V)),
    ("max_pool grad", jax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "VALID").sum()), (M,)),
]  # fmt: skip


def all_functions() -> Iterator[Program]:
    yield from elementwise()
    for prefix, rows in (("shaping", SHAPING), ("contraction", CONTRACTION), ("windows", WINDOWS)):
        yield from ((f"{prefix}.{name}", function, arguments) for name, function, arguments in rows)
