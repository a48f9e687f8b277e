"""Gather, scatter and sort: modes of what is out of bounds, repeated places, ties, batches."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, ops

from .entry import Entry, entry, normal, positive, ties

MODES = ("clip", "fill", "promise_in_bounds")
PLACES = {"inside": [3, 0, 2], "repeated": [1, 3, 1, 1], "outside": [7, -2, 1], "of an array": [[0, 1], [4, 4]]}


def read(mode: str) -> Any:
    return lambda x, i: x.at[i].get(mode=mode)


def written(method: str, mode: str, **flags: Any) -> Any:
    return lambda x, i, u: getattr(x.at[i], method)(u, mode=mode, **flags)


def updates(places: Any) -> Any:
    return normal(*np.shape(places), 3)


def gathers() -> list[Entry]:
    return [
        entry(f"rows {word}, {mode}", read(mode), normal(5, 3), np.asarray(places))
        for word, places in PLACES.items()
        for mode in MODES
        if not (word == "outside" and mode == "promise_in_bounds")
    ]


def scatters() -> list[Entry]:
    return [
        entry(
            f"{method} to rows {word}, {mode}", written(method, mode), normal(5, 3), np.asarray(places), updates(places)
        )
        for method in ("add", "set", "max", "min", "subtract")
        for word, places in PLACES.items()
        for mode in ("clip", "drop")
        if method not in ("set", "max", "min") or word != "of an array"
    ]


def batched_rows(x: Any, i: Any) -> Any:
    return jax.vmap(lambda row, places: row[places])(x, i)


def batched_sums(x: Any, i: Any, u: Any) -> Any:
    return jax.vmap(lambda row, places, updates: row.at[places].add(updates))(x, i, u)


def block(x: Any, i: Any) -> Any:
    """Blocks of 2 by 3 at index vectors, as lax.gather has them."""
    numbers = lax.GatherDimensionNumbers(offset_dims=(1, 2), collapsed_slice_dims=(), start_index_map=(0, 1))
    return lax.gather(x, i, numbers, (2, 3), mode="clip")


def block_sums(x: Any, i: Any, u: Any) -> Any:
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(1, 2), inserted_window_dims=(), scatter_dims_to_operand_dims=(0, 1)
    )
    return lax.scatter_add(x, i, u, numbers, mode="fill")


def blocks_overwritten(x: Any, i: Any, u: Any) -> Any:
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(1, 2), inserted_window_dims=(), scatter_dims_to_operand_dims=(0, 1)
    )
    return lax.scatter(x, i, u, numbers, mode="fill")


GATHERS: list[Entry] = [
    *gathers(),
    entry("element", lambda x: x[1, 2], normal(3, 4)),
    entry("row by a negative index", lambda x: x[-1], normal(3, 4)),
    entry("index arrays for two dimensions", lambda x, i, j: x[i, j], normal(4, 5), [0, 3, 3], [1, 4, 4]),
    entry("index array behind a slice", lambda x, i: x[:, i], normal(3, 4), [0, 3, 3]),
    entry("mask", lambda x: x[np.array([True, False, True])], normal(3, 2)),
    entry("take", lambda x, i: jnp.take(x, i, axis=1), normal(3, 4), [2, 0, 2]),
    entry("take_along_axis", lambda x, i: jnp.take_along_axis(x, i, 1), normal(2, 4), [[0, 0, 3], [1, 2, 1]]),
    entry("rows of batches", batched_rows, normal(2, 5, 3), [[0, 4], [1, 1]]),
    entry("blocks", block, normal(5, 6), [[0, 1], [4, 2], [2, 9]]),
    entry("embedding", lambda table, ids: jnp.tanh(table[ids]).sum(1), normal(7, 4), [[0, 3, 3], [6, 1, 0]]),
    entry("one hot", lambda w: jax.nn.one_hot(jnp.array([0, 2]), 3) @ w, normal(3, 4)),
    entry("choose", lambda x, y: jnp.choose(jnp.array([0, 1, 1]), [x, y], mode="clip"), normal(3), normal(3)),
]

SCATTERS: list[Entry] = [
    *scatters(),
    entry(
        "multiply rows, unique", written("multiply", "clip", unique_indices=True), normal(5, 3), [3, 0, 2], normal(3, 3)
    ),
    entry(
        "multiply rows, dropping",
        written("multiply", "drop", unique_indices=True),
        normal(5, 3),
        [3, 9, 2],
        normal(3, 3),
    ),
    entry("set rows, unique", written("set", "clip", unique_indices=True), normal(5, 3), [3, 0, 2], normal(3, 3)),
    entry("the later of two updates stays", lambda x, u: x.at[jnp.array([1, 1])].set(u), normal(3), [5.0, 7.0]),
    entry("set a slice", lambda x, u: x.at[1:3].set(u), normal(5, 2), normal(2, 2)),
    entry("set an element", lambda x, v: x.at[1, 2].set(v), normal(3, 4), normal()),
    entry("set under a mask", lambda x, v: x.at[np.array([True, False, True])].set(v), normal(3, 2), normal()),
    entry("divide a row", lambda x, v: x.at[1].divide(v), normal(3, 2), positive(2)),
    entry("sums of batches", batched_sums, normal(2, 5, 3), [[0, 4], [1, 1]], normal(2, 2, 3)),
    entry("block sums, dropping", block_sums, normal(5, 6), [[0, 1], [4, 2], [2, 3]], normal(3, 2, 3)),
    entry(
        "blocks overwritten, overlapping", blocks_overwritten, normal(5, 6), [[0, 1], [1, 2], [4, 4]], normal(3, 2, 3)
    ),
    entry("segment_sum", lambda x: ops.segment_sum(x, jnp.array([0, 1, 0, 2]), 3), normal(4, 2)),
    entry("segment_max", lambda x: ops.segment_max(x, jnp.array([0, 1, 0, 1]), 2), normal(4)),
    entry("bincount with weights", lambda w: jnp.bincount(jnp.array([0, 1, 1, 3]), w, length=4), normal(4)),
    entry("greatest of equal updates", lambda x, u: x.at[jnp.array([0, 0, 1])].max(u), [1.0, 2.0], [3.0, 3.0, 2.0]),
    entry("histogram by addition", lambda x, u: x.at[jnp.array([[0, 1], [1, 1]])].add(u), normal(3), normal(2, 2)),
]

ORDERS: list[Entry] = [
    entry("sort", jnp.sort, normal(6)),
    entry("sort of columns", lambda x: jnp.sort(x, 0), normal(4, 3)),
    entry("sort, descending", lambda x: jnp.sort(x, descending=True), normal(2, 5)),
    entry("sort of ties", lambda x: jnp.sort(x) * jnp.arange(8.0), ties(8)),
    entry("sort of pairs", lambda k, x: lax.sort((k, x), num_keys=1), normal(2, 5), normal(2, 5)),
    entry("sort by two keys", lambda k, j, x: lax.sort((k, j, x), num_keys=2), ties(7), normal(7), normal(7)),
    entry("sort by integers", lambda k, x: lax.sort((k, x), num_keys=1)[1], [3, 1, 2, 1], normal(4)),
    entry("values in the order of argsort", lambda x, y: y[jnp.argsort(x)], normal(5), normal(5)),
    entry("top_k", lambda x: lax.top_k(x, 3)[0], normal(2, 6)),
    entry("top_k of ties", lambda x: lax.top_k(x, 3)[0], ties(2, 6)),
    entry("top_k along the first dimension", lambda x: lax.top_k(x.T, 2)[0].T, normal(5, 3)),
    entry("median", jnp.median, normal(7)),
    entry("median of rows", lambda x: jnp.median(x, 1), normal(3, 4)),
    entry("quantiles", lambda x: jnp.quantile(x, jnp.array([0.1, 0.5, 0.8])), normal(7)),
    entry("approximate greatest", lambda x: lax.approx_max_k(x, 2)[0], normal(2, 6)),
    entry("sort of complex", lambda x: jnp.sort(x + 1j * x[::-1]), normal(5)),
]

FUNCTIONS = GATHERS + SCATTERS + ORDERS
