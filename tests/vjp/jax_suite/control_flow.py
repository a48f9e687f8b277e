"""Branches, loops, scans, and functions that call others."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .entry import Entry, entry, normal


def step(carry: Any, x: Any) -> Any:
    new = jnp.tanh(carry * x + 0.1)
    return new, new * x


def with_matrix(w: Any, xs: Any) -> Any:
    """A matrix that stays the same in each step."""
    return lax.scan(lambda h, x: (jnp.tanh(w @ h + x), h.sum()), jnp.zeros(3), xs)


def power(x: Any, count: int) -> Any:
    return lax.fori_loop(0, count, lambda _, y: y * x + jnp.sin(y), jnp.ones_like(x))


def branches(index: Any, x: Any) -> Any:
    return lax.switch(index, [jnp.sin, lambda y: y * y, lambda y: y.sum() * jnp.ones_like(y)], x)


def with_counter(x: Any) -> Any:
    return lax.fori_loop(2, 6, lambda i, y: y.at[i].set(y[i - 1] * x[i] + y[i]), x)


def while_counted(x: Any) -> Any:
    """A loop that is written with a count; JAX differentiates the same as a scan."""
    return lax.fori_loop(0, 4, lambda i, y: y * jnp.cos(y) + i * x, x)


def nested(x: Any) -> Any:
    inner = lambda y, _: (jnp.sin(y) * x, None)  # noqa: E731
    return lax.scan(lambda y, _: (lax.scan(inner, y, None, 2)[0] + x, y), x, None, 3)


def branch_in_scan(x: Any, flags: Any) -> Any:
    def body(y: Any, flag: Any) -> Any:
        y = lax.cond(flag, jnp.sin, lambda z: z * x, y)
        return y, y

    return lax.scan(body, x, flags)


def pooled(x: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (2,), (2,), "VALID") * x[:3]


def factored(a: Any, _: Any) -> Any:
    factor = jnp.linalg.cholesky(a @ a.T + 2 * jnp.eye(3))
    return factor, jnp.log(jnp.diag(factor)).sum()


def rows_added(x: Any, i: Any) -> Any:
    places = jnp.asarray(i)
    return lax.fori_loop(0, 3, lambda n, y: y.at[places[n]].add(jnp.sin(y[places[n - 1]])), x)


FUNCTIONS: list[Entry] = [
    entry("cond, taken", lambda p, x: lax.cond(p, jnp.sin, lambda y: y * y, x), True, normal(3)),
    entry("cond, not taken", lambda p, x: lax.cond(p, jnp.sin, lambda y: y * y, x), False, normal(3)),
    entry("cond by the data", lambda x: lax.cond(x.sum() > 0, lambda y: y * 2, jnp.tanh, x), normal(3)),
    entry(
        "cond of two operands", lambda p, x, y: lax.cond(p, jnp.multiply, lambda a, b: a, x, y),
        True, normal(3), normal(3),
    ),
    entry("cond in cond", lambda p, x: lax.cond(
        p, lambda y: lax.cond(y[0] > 0, jnp.sin, jnp.cos, y), lambda y: y, x), True, normal(3)),
    *(entry(f"switch to {n}", branches, n, normal(3)) for n in (0, 1, 2, 7)),
    entry("scan", lambda c, xs: lax.scan(step, c, xs), normal(), normal(5)),
    entry("scan of arrays", lambda c, xs: lax.scan(step, c, xs), normal(3), normal(4, 3)),
    entry("scan backwards", lambda c, xs: lax.scan(step, c, xs, reverse=True), normal(3), normal(4, 3)),
    entry("scan with a captured matrix", with_matrix, normal(3, 3), normal(5, 3)),
    entry("scan without inputs", lambda x: lax.scan(lambda c, _: (jnp.sin(c) * x, c), x, None, length=4), normal(3)),
    entry("scan of no step", lambda c, xs: lax.scan(step, c, xs), normal(3), normal(0, 3)),
    entry("scan, unrolled", lambda c, xs: lax.scan(step, c, xs, unroll=2), normal(3), normal(4, 3)),
    entry("scan in scan", nested, normal(3)),
    entry("cond in scan", branch_in_scan, normal(3), [True, False, True]),
    entry("scan with an integer carry", lambda x: lax.scan(
        lambda c, y: ((c[0] + 1, c[1] * y), c[1]), (0, jnp.ones(())), x)[1], normal(4)),
    entry("sort in a scan", lambda x: lax.scan(lambda c, _: (jnp.sort(jnp.sin(c) * x), c[0]), x, None, 3), normal(4)),
    entry("sort in a cond", lambda p, x: lax.cond(p, lambda y: jnp.sort(y) * x, lambda y: y, x), True, normal(4)),
    entry("pool in a map", lambda xs: lax.map(pooled, xs), normal(3, 6)),
    entry("factor in a scan", lambda a: lax.scan(factored, a, None, 2), normal(3, 3)),
    entry("rows in a fori_loop", rows_added, normal(4), [2, 0, 2]),
    entry("map", lambda xs: lax.map(lambda x: jnp.sin(x) * x.sum(), xs), normal(3, 2)),
    entry("fori_loop", lambda x: power(x, 5), normal(3)),
    entry("fori_loop of no trip", lambda x: power(x, 0) * x, normal(3)),
    entry("fori_loop with the counter", with_counter, normal(6)),
    entry("fori_loop that adds its counter", while_counted, normal(3)),
    entry("associative_scan", lambda x: lax.associative_scan(jnp.multiply, x), normal(6)),
    entry("checkpoint", jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)) * x), normal(3)),
    entry("vmap of grad", jax.vmap(jax.grad(lambda x: jnp.sin(x) * x**2)), normal(4)),
    entry("jit in jit", jax.jit(lambda x: jax.jit(jnp.sin)(x) * jax.jit(jnp.sin)(x + 1)), normal(3)),
    entry("Hessian", jax.hessian(lambda x: jnp.sum(jnp.sin(x) * x[::-1] ** 2)), normal(3)),
    entry("jvp", lambda x, v: jax.jvp(lambda y: jnp.tanh(y) * y, (x,), (v,)), normal(3), normal(3)),
    entry("jacobian by reverse mode", jax.jacrev(lambda x: jnp.outer(x, jnp.sin(x))), normal(3)),
]  # fmt: skip
