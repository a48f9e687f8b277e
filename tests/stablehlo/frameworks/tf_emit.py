"""Writes the StableHLO texts of TensorFlow functions; for an environment with TensorFlow, of which xbuild has no need.

PYTHON tests/stablehlo/frameworks/tf_emit.py FILE.jsonl, with the Python of that environment.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

X = tf.TensorSpec((2, 3), tf.float32)
V = tf.TensorSpec((6,), tf.float32)
M = tf.TensorSpec((3, 3), tf.float32)
N = tf.TensorSpec((2, 3), tf.int32)
H = tf.TensorSpec((2, 3), tf.float16)
B = tf.TensorSpec((2, 3), tf.bool)
S = tf.TensorSpec((), tf.float32)
IMAGE, KERNEL = tf.TensorSpec((1, 6, 6, 2), tf.float32), tf.TensorSpec((3, 3, 2, 4), tf.float32)


def words(text: str) -> list[str]:
    return text.split()


UNARY = words("""abs acos acosh asin asinh atan atanh ceil cos cosh digamma erf erfc exp expm1 floor invert
is_finite is_inf is_nan lgamma log log1p log_sigmoid negative reciprocal rint round rsqrt sigmoid sign sin sinh
softplus sqrt square tan tanh""")
BINARY = words("""add atan2 divide divide_no_nan equal floordiv floormod greater greater_equal less less_equal
maximum minimum multiply multiply_no_nan not_equal pow squared_difference subtract truediv xdivy xlogy""")
INTEGERS = words("add floordiv floormod maximum minimum multiply subtract truncatemod")
REDUCTIONS = words("""reduce_all reduce_any reduce_max reduce_mean reduce_min reduce_prod reduce_std reduce_sum
reduce_variance reduce_logsumexp cumsum cumprod argmax argmin""")
NN = words("elu gelu leaky_relu log_softmax relu relu6 selu silu softmax softsign l2_normalize")


def _loop(x: Any) -> Any:
    return tf.while_loop(lambda i, s: i < 4, lambda i, s: (i + 1, s * 2 + tf.cast(i, tf.float32)), (0, x))[1]


def _branch(s: Any, x: Any) -> Any:
    return tf.cond(s > 0, lambda: x + 1, lambda: x * 2)


def _grad(function: Any) -> Any:
    def derived(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(function(x))
        return tape.gradient(y, x)

    return derived


ROWS: list[tuple[str, Any, tuple[Any, ...]]] = [
    ("matmul", tf.matmul, (X, M)), ("einsum", lambda x, y: tf.einsum("ij,kj->ik", x, y), (X, M)),
    ("tensordot", lambda x, y: tf.tensordot(x, y, 1), (X, M)), ("transpose", tf.transpose, (X,)),
    ("reshape", lambda x: tf.reshape(x, (3, 2)), (X,)), ("concat", lambda x, y: tf.concat([x, y], 1), (X, X)),
    ("stack", lambda x, y: tf.stack([x, y]), (X, X)), ("split", lambda x: tf.split(x, 3), (V,)),
    ("tile", lambda x: tf.tile(x, (2, 2)), (X,)), ("pad", lambda x: tf.pad(x, ((1, 1), (0, 2))), (X,)),
    ("reverse", lambda x: tf.reverse(x, [0]), (V,)), ("roll", lambda x: tf.roll(x, 1, 0), (X,)),
    ("slice", lambda x: x[:, 1:], (X,)), ("strided", lambda x: x[::2, ::-1], (X,)), ("where", tf.where, (B, X, X)),
    ("gather", lambda x, i: tf.gather(x, tf.clip_by_value(i, 0, 5)), (V, N)),
    ("one_hot", lambda i: tf.one_hot(i, 4), (N,)), ("range", lambda x: x + tf.range(6.0), (V,)),
    ("clip", lambda x: tf.clip_by_value(x, 0.0, 0.5), (X,)), ("expand", lambda x: tf.expand_dims(x, 1), (X,)),
    ("squeeze", lambda x: tf.squeeze(x[:1]), (X,)), ("broadcast", lambda x: tf.broadcast_to(x, (4, 2, 3)), (X,)),
    ("sort", tf.sort, (V,)), ("argsort", tf.argsort, (V,)), ("top_k", lambda x: tf.math.top_k(x, 2), (V,)),
    ("cast", lambda x: [tf.cast(x, t) for t in (tf.int32, tf.bfloat16, tf.float64, tf.bool)], (X,)),
    ("bitcast", lambda x: tf.bitcast(x, tf.int32), (X,)), ("eye", lambda x: x + tf.eye(3), (M,)),
    ("band_part", lambda x: tf.linalg.band_part(x, 1, 0), (M,)), ("diag", tf.linalg.diag_part, (M,)),
    ("trace", tf.linalg.trace, (M,)), ("triangular", tf.linalg.triangular_solve, (M, M)),
    ("segment", lambda x: tf.math.unsorted_segment_sum(x, [0, 1, 0, 1, 2, 2], 3), (V,)),
    ("scatter", lambda x: tf.tensor_scatter_nd_add(x, [[0], [2]], [1.0, 2.0]), (V,)),
    ("scatter set", lambda x: tf.tensor_scatter_nd_update(x, [[0], [2]], [1.0, 2.0]), (V,)),
    ("conv", lambda x, k: tf.nn.conv2d(x, k, 1, "SAME"), (IMAGE, KERNEL)),
    ("conv strided", lambda x, k: tf.nn.conv2d(x, k, 2, "VALID"), (IMAGE, KERNEL)),
    ("depthwise", lambda x, k: tf.nn.depthwise_conv2d(x, k, (1, 1, 1, 1), "SAME"), (IMAGE, KERNEL)),
    ("max_pool", lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"), (IMAGE,)),
    ("avg_pool", lambda x: tf.nn.avg_pool2d(x, 2, 1, "SAME"), (IMAGE,)),
    ("batch_norm", lambda x: tf.nn.batch_normalization(x, 0.5, 2.0, 0.1, 1.5, 1e-3), (X,)),
    ("softmax cross entropy", lambda x, y: tf.nn.softmax_cross_entropy_with_logits(y, x), (X, X)),
    ("while", _loop, (X,)), ("cond", _branch, (S, X)), ("fft", lambda x: tf.signal.fft(tf.complex(x, x)), (X,)),
    ("rfft", tf.signal.rfft, (X,)), ("complex", lambda x: tf.math.real(tf.exp(tf.complex(x, x))), (X,)),
    ("stateless_uniform", lambda x: x + tf.random.stateless_uniform((2, 3), (1, 2)), (X,)),
    ("bitwise", lambda i: tf.bitwise.bitwise_and(i, 6) + tf.bitwise.left_shift(i, 1), (N,)),
    ("switch", lambda s, x: tf.switch_case(tf.cast(s, tf.int32), [lambda: x, lambda: x * 2, lambda: x + 3]), (S, X)),
]  # fmt: skip


def programs() -> list[tuple[str, Any, tuple[Any, ...]]]:
    found = [(f"math.{n}", getattr(tf.math, n, None) or getattr(tf, n, None), (X,)) for n in UNARY]
    found += [(f"math.f16.{n}", getattr(tf.math, n, None) or getattr(tf, n, None), (H,)) for n in UNARY[:24]]
    found += [(f"math.{n}", getattr(tf.math, n, None) or getattr(tf, n, None), (X, X)) for n in BINARY]
    found += [(f"math.s32.{n}", getattr(tf.math, n, None) or getattr(tf, n, None), (N, N)) for n in INTEGERS]
    for name in REDUCTIONS:
        function = getattr(tf.math, name)
        given = B if name in ("reduce_all", "reduce_any") else X
        found.append((f"reduce.{name}", lambda x, f=function: f(x, 1), (given,)))
    found += [(f"nn.{n}", getattr(tf.nn, n), (X,)) for n in NN]
    found += [(f"grad.{n}", _grad(getattr(tf.nn, n)), (X,)) for n in NN]
    found += [(f"grad.{n}", _grad(getattr(tf.math, n)), (X,)) for n in ("sin", "exp", "tanh", "sqrt", "log", "cumsum")]
    found += ROWS
    return [(name, function, specs) for name, function, specs in found if function]


def _positional(function: Any) -> Any:
    """The function without parameters that TensorFlow would want to be named."""

    def call(*given: Any) -> Any:
        return function(*given)

    return call


def main(arguments: list[str]) -> int:
    with Path(arguments[0]).open("w") as file:
        for name, function, specs in programs():
            values = [tf.constant(np.ones(spec.shape, spec.dtype.as_numpy_dtype)) for spec in specs]
            try:
                made = tf.function(_positional(function), jit_compile=True, autograph=False)
                text = made.experimental_get_compiler_ir(*values)(stage="stablehlo")
                print(json.dumps({"name": f"tf {name}", "form": "tf", "text": text}), file=file)
            except Exception as error:
                print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0][:120]}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
