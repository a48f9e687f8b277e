"""Products, convolutions, and windows."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax, nn

from .entry import Entry, cplx, entry, normal, ties


def dot(lhs: Any, rhs: Any, contracting: Any, batch: Any = ((), ())) -> Entry:
    function = lambda a, b: lax.dot_general(a, b, (contracting, batch))  # noqa: E731
    return entry(f"dot_general {lhs} {rhs} {contracting} {batch}", function, normal(*lhs), normal(*rhs))


def conv(name: str, lhs: Any, rhs: Any, roles: Any = None, draw: Any = normal, **keywords: Any) -> Entry:
    given = {"window_strides": (1,) * (len(lhs) - 2), "padding": [(0, 0)] * (len(lhs) - 2), **keywords}
    function = lambda x, k: lax.conv_general_dilated(x, k, dimension_numbers=roles, **given)  # noqa: E731
    return entry(f"convolution {name}", function, draw(*lhs), draw(*rhs))


def einsum(subscripts: str, *dims: Any) -> Entry:
    return entry(f"einsum {subscripts}", lambda *xs: jnp.einsum(subscripts, *xs), *(normal(*each) for each in dims))


def window(name: str, dims: Any, kind: str, size: Any, stride: Any, padding: Any, **dilations: Any) -> Entry:
    fold, init = {"sum": (lax.add, 0.0), "max": (lax.max, -jnp.inf), "min": (lax.min, jnp.inf)}[kind]
    function = lambda x: lax.reduce_window(x, init, fold, size, stride, padding, **dilations)  # noqa: E731
    return entry(f"windows, {kind} {name}", function, normal(*dims))


def ragged(lhs: Any, rhs: Any, sizes: Any) -> Any:
    return lax.ragged_dot(lhs, rhs, sizes)


def selected(x: Any, source: Any) -> Any:
    """The gradient of a pool, which is linear in its cotangent."""
    pool = lambda y: lax.reduce_window(y, -jnp.inf, lax.max, (3,), (2,), [(1, 1)])  # noqa: E731
    return jax.vjp(pool, x)[1](source)[0]


DOTS: list[Entry] = [
    dot((3, 4), (4, 5), ((1,), (0,))),
    dot((4, 3), (5, 4), ((0,), (1,))),
    dot((2, 3, 4), (4, 2, 5), ((2,), (0,)), ((0,), (1,))),
    dot((2, 3, 4), (4, 2, 5), ((2, 0), (0, 1))),
    dot((2, 3, 4, 5), (5, 2, 6, 7, 3), ((3, 1), (0, 4)), ((0,), (1,))),
    dot((2, 3), (2, 3), ((), ()), ((0, 1), (0, 1))),
    dot((2,), (3,), ((), ())),
    dot((3, 0), (0, 4), ((1,), (0,))),
    dot((1, 4), (4, 1), ((1,), (0,))),
    entry("matmul of vectors", jnp.matmul, normal(4), normal(4)),
    entry("matmul of matrix and vector", jnp.matmul, normal(3, 4), normal(4)),
    entry("matmul of stacks", jnp.matmul, normal(2, 3, 4), normal(2, 4, 5)),
    entry("matmul with broadcast stacks", jnp.matmul, normal(2, 1, 3, 4), normal(3, 4, 2)),
    entry("tensordot", lambda a, b: jnp.tensordot(a, b, ((1, 0), (0, 2))), normal(2, 3, 4), normal(3, 5, 2)),
    entry("inner", jnp.inner, normal(2, 3), normal(4, 3)),
    entry("outer", jnp.outer, normal(2), normal(3)),
    entry("vdot of complex", jnp.vdot, cplx(3), cplx(3)),
    entry("complex matmul", jnp.matmul, cplx(2, 3), cplx(3, 2)),
    einsum("bmk,kbn->bmn", (2, 3, 4), (4, 2, 5)),
    einsum("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)),
    einsum("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)),
    einsum("ii->i", (3, 3)),
    einsum("i,i,i->", (3,), (3,), (3,)),
    entry("product in f32 of f64 sums", lambda a, b: lax.dot_general(
        a, b, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float64), normal(2, 3), normal(3, 2)),
    entry("ragged_dot", ragged, normal(6, 3), normal(3, 3, 2), [2, 0, 4]),
    entry("ragged_dot with a rest", ragged, normal(6, 3), normal(3, 3, 2), [2, 1, 1]),
    entry("linear map of a matrix product", lambda a: a @ a.T @ a, normal(3, 3)),
]  # fmt: skip

CONVOLUTIONS: list[Entry] = [
    conv("plain", (2, 3, 8), (4, 3, 3)),
    conv("with strides", (2, 3, 8), (4, 3, 3), window_strides=(2,), padding=[(1, 2)]),
    conv("SAME", (2, 3, 7, 6), (4, 3, 3, 2), padding="SAME"),
    conv("SAME with strides", (2, 3, 7, 6), (4, 3, 3, 2), padding="SAME", window_strides=(2, 3)),
    conv("NHWC", (2, 7, 6, 3), (3, 2, 3, 4), ("NHWC", "HWIO", "NHWC"), padding=[(1, 1), (0, 1)]),
    conv("base with holes", (2, 3, 5), (4, 3, 3), lhs_dilation=(2,), padding=[(1, 1)]),
    conv("kernel with holes", (2, 3, 9), (4, 3, 3), rhs_dilation=(2,), padding=[(1, 0)]),
    conv(
        "all of it", (2, 3, 7), (4, 3, 3), window_strides=(3,), padding=[(4, 3)], lhs_dilation=(3,), rhs_dilation=(2,)
    ),
    conv("cropped", (2, 3, 9), (4, 3, 2), padding=[(-2, -1)]),
    conv("cropped, with strides", (2, 3, 9), (4, 3, 2), window_strides=(2,), padding=[(3, -2)]),
    conv("groups of features", (2, 6, 8), (4, 3, 3), feature_group_count=2, padding=[(1, 1)]),
    conv("groups of features, with strides", (2, 6, 8), (8, 3, 3), feature_group_count=2, window_strides=(2,)),
    conv("every feature apart", (2, 4, 8), (8, 1, 3), feature_group_count=4, padding="SAME"),
    conv("groups of the batch", (6, 3, 8), (4, 3, 3), batch_group_count=2, padding=[(1, 0)]),
    conv("groups of the batch, with strides", (4, 3, 8), (6, 3, 2), batch_group_count=2, window_strides=(3,)),
    conv("three dimensions", (1, 2, 4, 5, 3), (2, 2, 2, 3, 2), padding="VALID"),
    conv("of complex", (2, 3, 5), (4, 3, 2), draw=cplx),
    entry(
        "transposed convolution", lambda x, k: lax.conv_transpose(x, k, (2,), "SAME"), normal(2, 5, 3), normal(3, 3, 4)
    ),
    entry("convolve", lambda x, k: jnp.convolve(x, k, mode="full"), normal(6), normal(3)),
    entry("correlate", lambda x, k: jnp.correlate(x, k, mode="same"), normal(6), normal(3)),
]

WINDOWS: list[Entry] = [
    *(window("plain", (8,), kind, (3,), (1,), "VALID") for kind in ("sum", "max", "min")),
    *(window("with strides", (9, 6), kind, (3, 2), (2, 1), "VALID") for kind in ("sum", "max", "min")),
    *(window("SAME", (7, 6), kind, (3, 2), (2, 2), "SAME") for kind in ("sum", "max", "min")),
    *(window("padded", (7,), kind, (2,), (3,), [(3, 2)]) for kind in ("sum", "max", "min")),
    window("with holes", (9,), "sum", (3,), (1,), [(1, 1)], window_dilation=(2,)),
    window("over holes", (5,), "sum", (3,), (2,), [(1, 2)], base_dilation=(2,)),
    window("with and over holes", (5,), "sum", (3,), (2,), [(2, 2)], base_dilation=(3,), window_dilation=(2,)),
    entry("pool of ties", lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2,), (2,), "VALID"), [1.0, 1, 2, 2]),
    entry("overlapping pool of ties", lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (3,), (1,), "SAME"), ties(9)),
    entry("gradient of a pool, to its cotangent", selected, normal(9), normal(5)),
    entry(
        "average pool", lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 2), (1, 2, 2), "SAME") / 4, normal(2, 5, 5)
    ),
    entry(
        "softmax of pools", lambda x: nn.softmax(lax.reduce_window(x, -jnp.inf, lax.max, (2,), (1,), "SAME")), normal(6)
    ),
]

FUNCTIONS = DOTS + CONVOLUTIONS + WINDOWS
