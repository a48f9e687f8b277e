"""JAX programs with control flow, derivatives, batching, and several devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as Spec

from .jax_functions import CONTRACTION, SHAPING, WINDOWS, F, I, M, Program, S, V, words

CONTROL: list[Program] = [
    ("while", lambda x: lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * 2), (0, x)), (F,)),
    ("while capture", lambda x, y: lax.while_loop(lambda s: s.sum() < y.sum() + 9,
     lambda s: s + jnp.abs(y) + 1, x), (F, F)),
    ("fori", lambda x: lax.fori_loop(0, 4, lambda i, s: s + i * x, x), (F,)),
    ("fori dynamic", lambda x, n: lax.fori_loop(0, n % 5, lambda i, s: s + i * x, x), (F, np.int32(3))),
    ("cond", lambda p, x: lax.cond(p > 0, lambda v: v + 1, lambda v: v * 2, x), (S, F)),
    ("cond capture", lambda p, x, y: lax.cond(p > 0, lambda: x + y, lambda: x * y), (S, F, F)),
    ("cond nested", lambda p, x: lax.cond(p > 0, lambda v: lax.cond(v[0] > 0, jnp.sin, jnp.cos, v), jnp.tan, x),
     (S, V)),
    ("switch", lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda v: v * 2], x), (np.int32(1), F)),
    ("switch two", lambda i, x: lax.switch(i, [lambda v: (v, 1), lambda v: (v * 2, 2)], x), (np.int32(1), F)),
    ("scan", lambda x: lax.scan(lambda c, v: (c + v, c * v), jnp.zeros(3), x), (F,)),
    ("scan reverse", lambda x: lax.scan(lambda c, v: (c + v, c), jnp.zeros(3), x, reverse=True), (F,)),
    ("scan unroll", lambda x: lax.scan(lambda c, v: (c + v, c), jnp.zeros(3), x, unroll=2), (F,)),
    ("scan nested", lambda x: lax.scan(lambda c, v: (lax.scan(lambda a, b: (a + b, a), c, v)[0], c), 0.0, x), (F,)),
    ("map", lambda x: lax.map(jnp.sin, x), (F,)),
    ("associative_scan", lambda x: lax.associative_scan(jnp.add, x), (V,)),
    ("while in cond", lambda p, x: lax.cond(p > 0, lambda v: lax.fori_loop(0, 3, lambda i, s: s + v, v),
     lambda v: v, x), (S, F)),
    ("cond in while", lambda x: lax.fori_loop(0, 4, lambda i, s: lax.cond(i > 2, jnp.sin, jnp.cos, s), x), (F,)),
    ("jit in jit", lambda x: jax.jit(jnp.sin)(x) + jax.jit(jnp.sin)(x * 2), (F,)),
    ("jit twice", lambda x: jax.jit(lambda v: v * 2)(x) + jax.jit(lambda v: v * 2)(x + 1), (F,)),
    ("checkpoint", jax.grad(lambda x: jax.checkpoint(lambda v: jnp.sin(jnp.sin(v)).sum())(x)), (F,)),
    ("custom_jvp", jax.grad(lambda x: jax.nn.relu(x).sum()), (F,)),
    ("custom_vjp", jax.grad(lambda x: jax.nn.logsumexp(x)), (F,)),
    ("no arguments", lambda: jnp.arange(6.0).reshape(2, 3) * 2, ()),
    ("constants", lambda x: x + np.arange(6, dtype=np.float32).reshape(2, 3) / 7, (F,)),
    ("large constant", lambda x: x + np.linspace(0, 1, 900, dtype=np.float32).reshape(300, 3)[:2], (F,)),
    ("integers constant", lambda x: x * np.arange(6).reshape(2, 3).astype(np.int32), (I,)),
    ("strings of names", lambda x: jax.named_scope("a b")(jnp.sin)(x), (F,)),
    ("tuples", lambda x: ((x, {"a": x + 1}), [x * 2]), (F,)),
    ("unused argument", lambda x, y: x, (F, F)),
    ("same twice", lambda x: (x, x), (F,)),
]  # fmt: skip

_SMOOTH = words("sin cos tan tanh exp log1p expm1 sqrt square arctan sinh cosh arcsinh cbrt abs")


def _mlp(weights: Any, x: Any) -> Any:
    for weight in weights:
        x = jnp.tanh(x @ weight)
    return jax.nn.log_softmax(x)


def _norm(x: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def _block(q: Any) -> Any:
    """A step of attention."""
    scores = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, q) / np.float32(np.sqrt(q.shape[-1])))
    return _norm(q + jnp.einsum("bqk,bkd->bqd", scores, q))


def derived() -> Iterator[Program]:
    for name in _SMOOTH:
        function = getattr(jnp, name)
        yield f"grad.{name}", jax.grad(lambda x, f=function: f(x).sum()), (F,)
        yield f"jvp.{name}", lambda x, y, f=function: jax.jvp(f, (x,), (y,)), (F, F)
        yield f"hessian.{name}", jax.hessian(lambda x, f=function: f(x).sum()), (V,)
        yield f"vmap.{name}", jax.vmap(jax.grad(lambda x, f=function: f(x))), (V,)
    for name, function, arguments in (*CONTRACTION, *SHAPING, *WINDOWS):
        if all(np.asarray(each).dtype == np.float32 for each in arguments):
            more = tuple(np.stack([each, each]) for each in arguments)
            yield f"vmap.{name}", jax.vmap(function), more
            yield f"vjp.{name}", lambda *a, f=function: jax.vjp(f, *a)[1](f(*a)), arguments
    yield "model.mlp", _mlp, ([M, M], F)
    yield "model.mlp grad", jax.grad(lambda w, x: _mlp(w, x).sum()), ([M, M], F)
    yield "model.mlp value", jax.value_and_grad(lambda w, x: _mlp(w, x).sum()), ([M, M], F)
    yield "model.mlp vmap", jax.vmap(_mlp, (None, 0)), ([M, M], F)
    yield "model.norm", _norm, (F,)
    yield "model.block", _block, (np.ones((2, 4, 8), np.float32),)
    yield "model.block grad", jax.grad(lambda q: _block(q).sum()), (np.ones((2, 4, 8), np.float32),)


def controlled() -> Iterator[Program]:
    for name, function, arguments in CONTROL:
        yield f"control.{name}", function, arguments


DEVICES = 4


def _collectives() -> dict[str, Any]:
    return {
        "psum": lambda x: lax.psum(x, "a"),
        "psum both": lambda x: lax.psum(x, ("a", "b")),
        "pmax": lambda x: lax.pmax(x, "b"),
        "pmin": lambda x: lax.pmin(x, "a"),
        "pmean": lambda x: lax.pmean(x, "a"),
        "axis_index": lambda x: x + lax.axis_index("a"),
        "all_gather": lambda x: lax.all_gather(x, "a"),
        "all_gather tiled": lambda x: lax.all_gather(x, "b", tiled=True),
        "psum_scatter": lambda x: lax.psum_scatter(x, "a", tiled=True),
        "ppermute": lambda x: lax.ppermute(x, "a", [(0, 1), (1, 0)]),
        "all_to_all": lambda x: lax.all_to_all(x, "a", 0, 0, tiled=True),
        "pshuffle": lambda x: lax.pshuffle(x, "b", [1, 0]),
    }


def parallel() -> Iterator[Program]:
    """Programs of four devices, by shard_map and with shardings on arguments."""
    big = np.ones((8, 4), np.float32)
    mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    for name, function in _collectives().items():
        ins, outs = Spec("a", "b"), Spec(("a", "b"))
        mapped = jax.shard_map(function, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=False)
        yield f"shard_map.{name}", mapped, (big,)
    row = NamedSharding(mesh, Spec("a", None))
    both = NamedSharding(mesh, Spec("a", "b"))
    yield "sharded.sin", jax.jit(jnp.sin, in_shardings=row, out_shardings=both), (big,)
    yield "sharded.matmul", jax.jit(lambda x: x @ x.T, in_shardings=both), (big,)
    yield "sharded.constraint", lambda x: lax.with_sharding_constraint(x * 2, both) + 1, (big,)
