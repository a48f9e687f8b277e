"""Convolutional nets: cut by examples, by features, and in space; strides, dilation, pooling, norms over a batch."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .layers import BOTH, DATA
from .record import Program, f32

SPACE = {"h": 4, "w": 2}
MIXED = {"data": 2, "h": 4}
NAMES = ("NHWC", "HWIO", "NHWC")


def conv(x: Any, w: Any, stride: int = 1, dilation: int = 1, groups: int = 1) -> Any:
    return lax.conv_general_dilated(
        x,
        w,
        (stride, stride),
        "SAME",
        rhs_dilation=(dilation, dilation),
        dimension_numbers=NAMES,
        feature_group_count=groups,
    )


def pooled(x: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def convnet(x: Any, w: Any, u: Any, v: Any) -> Any:
    y = pooled(jax.nn.relu(conv(x, w)))
    return jax.nn.relu(conv(y, u)).mean((1, 2)) @ v


def convnet_loss(*args: Any) -> Any:
    return convnet(*args).sum()


def batch_norm(x: Any, scale: Any, shift: Any) -> Any:
    mean = x.mean((0, 1, 2))
    variance = (x * x).mean((0, 1, 2)) - mean * mean
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + shift


def residual(x: Any, w: Any, u: Any, scale: Any, shift: Any) -> Any:
    """A residual block with norms over the whole batch."""
    y = jax.nn.relu(batch_norm(conv(x, w), scale, shift))
    return jax.nn.relu(x + batch_norm(conv(y, u), scale, shift))


def residual_gradient(x: Any, *weights: Any) -> Any:
    return jax.grad(lambda each: jnp.mean(residual(x, *each) ** 2))(weights)


def unet(x: Any, w: Any, down: Any, up: Any, out: Any) -> Any:
    """One level down and up again, joined with what came in."""
    y = jax.nn.relu(conv(x, w))
    low = jax.nn.relu(conv(pooled(y), down))
    high = lax.conv_transpose(low, up, (2, 2), "SAME", dimension_numbers=NAMES)
    return conv(jnp.concatenate([y, high], -1), out)


def depthwise(x: Any, w: Any, point: Any) -> Any:
    """A convolution of each feature alone, then a product over features."""
    return jax.nn.relu(conv(x, w, groups=x.shape[-1])) @ point[0, 0]


def averaged(x: Any) -> Any:
    """Means over 3 x 3 windows with a stride of 2."""
    return lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "SAME") / 9.0


IMAGE, KERNELS = f32(8, 16, 16, 4), (f32(3, 3, 4, 8), f32(3, 3, 8, 16), f32(16, 12))
BLOCK = (f32(8, 16, 16, 8), f32(3, 3, 8, 8), f32(3, 3, 8, 8), f32(8), f32(8))
UNET = (f32(8, 16, 16, 4), f32(3, 3, 4, 8), f32(3, 3, 8, 16), f32(2, 2, 16, 8), f32(3, 3, 16, 4))

PROGRAMS = [
    Program("convnet, data", convnet, (IMAGE, *KERNELS), DATA, [["data"], None, None, None]),
    Program("convnet, space", convnet, (IMAGE, *KERNELS), SPACE, [[None, "h", "w"], None, None, None]),
    Program("convnet, features", convnet, (IMAGE, *KERNELS), BOTH, [["data"], [None, None, None, "model"], None, None]),
    Program(
        "convnet gradient",
        jax.grad(convnet_loss, (1, 2)),
        (IMAGE, *KERNELS),
        DATA,
        [["data"], None, None, None],
        [None, None],
    ),
    Program(
        "convnet gradient, space",
        jax.grad(convnet_loss, (1, 2)),
        (IMAGE, *KERNELS),
        MIXED,
        [["data", "h"], None, None, None],
        [None, None],
    ),
    Program("strided convolution", lambda x, w: conv(x, w, 2), (IMAGE, KERNELS[0]), BOTH, [["data", "model"], None]),
    Program(
        "dilated convolution",
        lambda x, w: conv(x, w, dilation=2),
        (IMAGE, KERNELS[0]),
        MIXED,
        [["data", "h"], None],
        [["data", "h"]],
    ),
    Program(
        "depthwise convolution, space",
        depthwise,
        (IMAGE, f32(3, 3, 1, 4), f32(1, 1, 4, 8)),
        MIXED,
        [["data", "h"], None, None],
        [["data", "h"]],
    ),
    Program("average pooling, space", averaged, (IMAGE,), MIXED, [["data", "h"]], [["data", "h"]]),
    Program("residual block, batch norm", residual, BLOCK, MIXED, [["data", "h"], *[None] * 4], [["data", "h"]]),
    Program("residual block gradient", residual_gradient, BLOCK, DATA, [["data"], *[None] * 4], [None] * 4),
    Program("u-net, space", unet, UNET, MIXED, [["data", "h"], *[None] * 4], [["data", "h"]]),
]
