"""Functions that move elements, and reductions of them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax, nn

from .entry import Entry, cplx, entry, normal, positive, ties


def spread(shape: Any, dims: Any) -> Any:
    return lambda x: lax.broadcast_in_dim(x, shape, dims)


def padded(*config: tuple[int, int, int]) -> Any:
    return lambda x, value: lax.pad(x, value, config)


def reduced(name: str, function: Any, *axes: Any) -> list[Entry]:
    return [entry(f"{name} over {axis}", lambda x, axis=axis: function(x, axis=axis), normal(2, 3, 4)) for axis in axes]


def accumulated(name: str, function: Any, draw: Any) -> list[Entry]:
    return [
        entry(
            f"{name} along {axis}{' backwards' * reverse}",
            lambda x, axis=axis, reverse=reverse: function(x, axis=axis, reverse=reverse),
            draw(3, 5),
        )
        for axis in (0, 1)
        for reverse in (False, True)
    ]


MOVES: list[Entry] = [
    entry("reshape", lambda x: x.reshape(4, 3) * 2, normal(2, 6)),
    entry("ravel", jnp.ravel, normal(2, 3, 2)),
    entry("transpose", jnp.transpose, normal(2, 3)),
    entry("transpose (2, 0, 1)", lambda x: x.transpose(2, 0, 1), normal(2, 3, 4)),
    entry("moveaxis", lambda x: jnp.moveaxis(x, 0, 2), normal(2, 3, 4)),
    entry("reverse", lambda x: lax.rev(x, (0, 2)), normal(2, 3, 4)),
    entry("broadcast of a scalar", spread((2, 3), ()), normal()),
    entry("broadcast of a row", spread((2, 3), (1,)), normal(3)),
    entry("broadcast of a column", spread((2, 3), (0, 1)), normal(2, 1)),
    entry("broadcast of ones", spread((4, 2, 3), (1, 2)), normal(1, 1)),
    entry("broadcast to nothing", spread((0, 3), (1,)), normal(3)),
    entry("concatenate", lambda x, y: jnp.concatenate([x, y, x], 1), normal(2, 3), normal(2, 2)),
    entry("stack", lambda x, y: jnp.stack([x, y], 1), normal(2, 3), normal(2, 3)),
    entry("split", lambda x: jnp.split(x, 3, axis=1), normal(2, 6)),
    entry("slice", lambda x: x[1:3, 2:], normal(4, 5)),
    entry("slice with strides", lambda x: lax.slice(x, (1, 0), (8, 5), (3, 2)), normal(9, 5)),
    entry("slice of nothing", lambda x: x[2:2], normal(4, 5)),
    entry("slice backwards", lambda x: x[::-2], normal(7)),
    entry("pad", padded((1, 2, 0), (0, 1, 0)), normal(2, 3), normal()),
    entry("pad inside", padded((1, 0, 2)), normal(4), normal()),
    entry("pad that crops", padded((-1, -2, 0)), normal(6), normal()),
    entry("pad that crops inside", padded((-2, 3, 1)), normal(6), normal()),
    entry("pad that crops most", padded((-3, -2, 1)), normal(4), normal()),
    entry("dynamic_slice", lambda x, i: lax.dynamic_slice(x, (i, 1), (2, 2)), normal(4, 5), 1),
    entry("dynamic_slice out of bounds", lambda x, i: lax.dynamic_slice(x, (i, -3), (2, 2)), normal(4, 5), 9),
    entry(
        "dynamic_update_slice", lambda x, u, i: lax.dynamic_update_slice(x, u, (i, 1)), normal(4, 5), normal(2, 2), 1,
    ),
    entry(
        "dynamic_update_slice out of bounds", lambda x, u, i: lax.dynamic_update_slice(x, u, (i, -2)),
        normal(4, 5), normal(2, 2), 7,
    ),
    entry("dynamic_index_in_dim", lambda x, i: lax.dynamic_index_in_dim(x, i, 1), normal(3, 4), 2),
    entry("squeeze and expand", lambda x: jnp.expand_dims(jnp.squeeze(x), (0, 2)), normal(2, 1, 3)),
    entry("tile", lambda x: jnp.tile(x, (2, 3)), normal(2, 3)),
    entry("repeat", lambda x: jnp.repeat(x, 3, axis=1), normal(2, 3)),
    entry("roll", lambda x: jnp.roll(x, (1, 2), (0, 1)), normal(3, 4)),
    entry("tril and triu", lambda x: jnp.tril(x) + 2 * jnp.triu(x, 1), normal(4, 4)),
    entry("diag", jnp.diag, normal(4)),
    entry("diagonal", lambda x: jnp.diagonal(x, 1), normal(4, 5)),
    entry("trace", jnp.trace, normal(4, 4)),
    entry("kron", jnp.kron, normal(2, 2), normal(2, 3)),
    entry("meshgrid", lambda x, y: jnp.meshgrid(x, y), normal(2), normal(3)),
    entry("complex transpose", lambda z: jnp.conj(z).T, cplx(2, 3)),
    entry("vander", jnp.vander, normal(3)),
    entry("cross", jnp.cross, normal(2, 3), normal(2, 3)),
    entry("diff", lambda x: jnp.diff(x, n=2), normal(6)),
    entry("interp", lambda x, y: jnp.interp(x, jnp.linspace(-3, 3, 7), y), normal(5), normal(7)),
]  # fmt: skip

REDUCTIONS: list[Entry] = [
    *reduced("sum", jnp.sum, None, 0, (0, 2)),
    *reduced("mean", jnp.mean, None, 1),
    *reduced("max", jnp.max, None, 0, (1, 2)),
    *reduced("min", jnp.min, None, 2),
    *reduced("prod", jnp.prod, None, 1, (0, 2)),
    *reduced("var", jnp.var, None, 1),
    *reduced("std", jnp.std, 0),
    *reduced("logsumexp", nn.logsumexp, None, 1),
    *reduced("softmax", nn.softmax, 1, 2),
    *reduced("log_softmax", nn.log_softmax, 0, 2),
    *reduced("ptp", jnp.ptp, 1),
    entry("max of ties", lambda x: x.max(0), ties(5, 3)),
    entry("min of ties", lambda x: x.min(), ties(5, 3)),
    entry("max of [3, 1, 3]", jnp.max, [3.0, 1.0, 3.0]),
    entry("prod with one zero", jnp.prod, [2.0, 0.0, 3.0]),
    entry("prod with two zeros", jnp.prod, [2.0, 0.0, 0.0, 3.0]),
    entry("prod of rows with zeros", lambda x: x.prod(1), [[1.0, 2.0, 3.0], [0.0, 2.0, 3.0], [0.0, 0.0, 3.0]]),
    entry("sum of complex", jnp.sum, cplx(2, 3)),
    entry("prod of complex", lambda z: jnp.prod(z, 0), cplx(3, 2)),
    entry("sum of nothing", lambda x: x.sum(0), normal(0, 3)),
    entry("norm", jnp.linalg.norm, normal(3, 4)),
    entry("norm of rows", lambda x: jnp.linalg.norm(x, axis=1), normal(3, 4)),
    entry("norm, largest", lambda x: jnp.linalg.norm(x, jnp.inf), normal(4)),
    entry("value at argmax", lambda x: x[jnp.argmax(x)] * 2, normal(5)),
    entry("values at argmin", lambda x: jnp.take_along_axis(x, x.argmin(1, keepdims=True), 1), normal(3, 5)),
    entry("any and all", lambda x: jnp.where(jnp.all(x > -9, 0), x.sum(0), 0), normal(3, 2)),
    *accumulated("cumsum", lax.cumsum, normal),
    *accumulated("cumprod", lax.cumprod, normal),
    *accumulated("cummax", lax.cummax, normal),
    *accumulated("cummin", lax.cummin, normal),
    *accumulated("cumlogsumexp", lax.cumlogsumexp, normal),
    entry("weighted average", lambda x, w: jnp.average(x, weights=w), normal(5), positive(5)),
    entry("gradient of a product", jax.grad(lambda x: jnp.prod(x)), normal(4)),
    entry("gradient of max", jax.grad(lambda x: jnp.max(jnp.sin(x) * x)), normal(4)),
]

FUNCTIONS = MOVES + REDUCTIONS
