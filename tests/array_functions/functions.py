"""The functions of `xbuild.array_functions` that JAX has: each by its name there, with its keywords."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

FLOATS = ("float16", "bfloat16", "float32", "float64")

# name in jax.nn or jax.numpy, keywords, the name in xb where it is another
FUNCTIONS: list[tuple[str, dict[str, Any], str]] = [
    ("nn.relu", {}, ""), ("nn.relu6", {}, ""), ("nn.leaky_relu", {}, ""),
    ("nn.leaky_relu", {"negative_slope": 0.25}, ""),
    ("nn.elu", {}, ""), ("nn.elu", {"alpha": 0.5}, ""), ("nn.gelu", {}, ""), ("nn.gelu", {"approximate": False}, ""),
    ("nn.sigmoid", {}, ""), ("nn.silu", {}, ""), ("nn.swish", {}, ""), ("nn.softplus", {}, ""),
    ("nn.log_sigmoid", {}, ""), ("nn.softmax", {}, ""), ("nn.softmax", {"axis": 0}, ""),
    ("nn.softmax", {"axis": (0, -1)}, ""), ("nn.log_softmax", {}, ""), ("nn.log_softmax", {"axis": 1}, ""),
    ("nn.logsumexp", {}, ""), ("nn.logsumexp", {"axis": -1, "keepdims": True}, ""),
    ("numpy.sum", {}, ""), ("numpy.sum", {"axis": (0, 2)}, ""), ("numpy.prod", {"axis": -1}, ""),
    ("numpy.mean", {"axis": -2, "keepdims": True}, ""), ("numpy.mean", {}, ""), ("numpy.var", {"axis": 1}, ""),
    ("numpy.var", {"axis": 1, "ddof": 1}, ""), ("numpy.std", {"axis": -1, "keepdims": True}, ""),
    ("numpy.max", {"axis": 0}, "amax"), ("numpy.max", {}, "amax"), ("numpy.min", {"axis": (1, 2)}, "amin"),
]  # fmt: skip
PLACES: list[tuple[str, dict[str, Any], str]] = [
    ("numpy.argmax", {"axis": 1}, ""), ("numpy.argmax", {}, ""), ("numpy.argmin", {"axis": -1, "keepdims": True}, ""),
    ("numpy.any", {"axis": 0}, ""), ("numpy.all", {"axis": -1}, ""), ("numpy.squeeze", {}, ""),
    ("numpy.expand_dims", {"axis": (0, -1)}, ""),
]  # fmt: skip


def argument(dtype: str) -> Any:
    """An array of three dimensions, of both signs, with large numbers, zeros and equal ones."""
    numbers = np.random.default_rng(3).normal(size=(3, 4, 5)) * 2.0
    numbers[0, 0, 2] = 6.0
    numbers[0, 0, :2], numbers[1, :, 0], numbers[2, 1] = 0.0, 7.5, [-9.0, -2.0, -2.0, 3.0, 3.0]
    return numbers.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def weights(shape: tuple[int, ...], dtype: Any) -> Any:
    """The weights of the sum of which a gradient is taken."""
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 5 - 1.5).astype(dtype)
