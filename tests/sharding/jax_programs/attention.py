"""Attention: heads, sequences, caches of keys and values, chunks in a scan, a ring of devices."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from .layers import BOTH, CUBE, softmax
from .record import Program, f32, i32

X = f32(4, 8, 32)
HEADS = [f32(32, 4, 8)] * 3 + [f32(4, 8, 32)]
CUT_HEADS = [*[[None, "model"]] * 3, ["model"]]


def attention(x: Any, q: Any, k: Any, v: Any, o: Any) -> Any:
    a, b, c = (jnp.einsum("bsd,dhe->bshe", x, w) for w in (q, k, v))
    scores = jnp.einsum("bqhe,bkhe->bhqk", a, b)
    rows, columns = (lax.broadcasted_iota(jnp.int32, (x.shape[1],) * 2, dim) for dim in (0, 1))
    weights = softmax(jnp.where(rows >= columns, scores, -1e9))
    return jnp.einsum("bhqk,bkhe,hed->bqd", weights, c, o)


def split_heads(x: Any, q: Any) -> Any:
    y = (x @ q).reshape(x.shape[0], x.shape[1], 4, -1).transpose(0, 2, 1, 3)
    return (softmax(y @ y.transpose(0, 1, 3, 2)) @ y).transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[1], -1)


def cache(kv: Any, new: Any, at: Any) -> Any:
    kv = lax.dynamic_update_slice(kv, new, (0, at, 0))
    return kv, kv.sum(1)


def rotary(x: Any, angles: Any) -> Any:
    a, b = jnp.split(x, 2, -1)
    cos, sin = jnp.cos(angles)[None, :, None], jnp.sin(angles)[None, :, None]
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def decode(x: Any, keys: Any, values: Any, q: Any, kv: Any, o: Any, at: Any) -> Any:
    """One token with groups of queries for each head of keys: caches [batch, length, heads, features]."""
    queries = jnp.einsum("bd,dghe->bghe", x, q)
    key, value = jnp.einsum("bd,dphe->pbhe", x, kv)
    keys = lax.dynamic_update_slice(keys, key[:, None], (0, at, 0, 0))
    values = lax.dynamic_update_slice(values, value[:, None], (0, at, 0, 0))
    scores = jnp.einsum("bghe,blhe->bghl", queries, keys)
    seen = lax.broadcasted_iota(jnp.int32, scores.shape, 3) <= at
    mixed = jnp.einsum("bghl,blhe->bghe", softmax(jnp.where(seen, scores, -1e9)), values)
    return jnp.einsum("bghe,ghed->bd", mixed, o), keys, values


def flash(q: Any, k: Any, v: Any) -> Any:
    """Attention over chunks of keys in a scan, with running maxima and sums: [batch, heads, length, features]."""

    def chunks(x: Any) -> Any:
        return jnp.moveaxis(x.reshape(*x.shape[:2], 4, -1, x.shape[-1]), 2, 0)

    def step(state: Any, chunk: Any) -> Any:
        most, total, sums = state
        key, value = chunk
        scores = q @ key.swapaxes(-1, -2)
        new = jnp.maximum(most, scores.max(-1))
        e, scale = jnp.exp(scores - new[..., None]), jnp.exp(most - new)
        return (new, total * scale + e.sum(-1), sums * scale[..., None] + e @ value), None

    start = (jnp.full(q.shape[:3], -1e9), jnp.zeros(q.shape[:3]), jnp.zeros(q.shape))
    _, total, sums = lax.scan(step, start, (chunks(k), chunks(v)))[0]
    return sums / total[..., None]


def ring(mesh: Any, q: Any, k: Any, v: Any) -> Any:
    """Attention whose keys and values go round a ring of devices, in a manual region."""

    def on_device(q: Any, k: Any, v: Any) -> Any:
        size = mesh.shape["seq"]
        around = [(each, (each + 1) % size) for each in range(size)]
        most = lax.pcast(jnp.full(q.shape[:3], -1e9), ("data", "seq"), to="varying")
        total, sums = jnp.zeros_like(most), jnp.zeros_like(q)
        for _ in range(size):
            scores = q @ k.swapaxes(-1, -2)
            new = jnp.maximum(most, scores.max(-1))
            e, scale = jnp.exp(scores - new[..., None]), jnp.exp(most - new)
            most, total, sums = new, total * scale + e.sum(-1), sums * scale[..., None] + e @ v
            k, v = (lax.ppermute(each, "seq", around) for each in (k, v))
        return sums / total[..., None]

    spec = P("data", None, "seq")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(spec,) * 3, out_specs=spec)(q, k, v)


def cross(x: Any, memory: Any, q: Any, k: Any, v: Any, o: Any) -> Any:
    """Attention over another sequence, grouped by heads."""
    a = jnp.einsum("bsd,dhe->bhse", x, q)
    b, c = (jnp.einsum("btd,dhe->bhte", memory, w) for w in (k, v))
    return jnp.einsum("bhse,hed->bsd", softmax(a @ b.swapaxes(-1, -2)) @ c, o)


QKV = (f32(8, 4, 8, 16),) * 3
CACHE = f32(4, 16, 2, 8)
DECODE = (f32(4, 32), CACHE, CACHE, f32(32, 3, 2, 8), f32(32, 2, 2, 8), f32(3, 2, 8, 32), i32())
CUT_DECODE = [
    ["data"],
    ["data", None, "model"],
    ["data", None, "model"],
    [None, None, "model"],
    [None, None, "model"],
    [None, "model"],
    None,
]

PROGRAMS = [
    Program("attention, heads", attention, (X, *HEADS), {"model": 4}, [None, *CUT_HEADS]),
    Program("attention, data and heads", attention, (X, *HEADS), BOTH, [["data"], *CUT_HEADS]),
    Program("attention, sequence", attention, (X, *HEADS), {"seq": 8}, [[None, "seq"], None, None, None, None]),
    Program("attention of split heads", split_heads, (X, f32(32, 32)), BOTH, [["data"], [None, "model"]]),
    Program(
        "attention over another sequence",
        cross,
        (X, f32(4, 16, 32), *HEADS),
        CUBE,
        [["data", "seq"], ["data"], *CUT_HEADS],
        [["data", "seq"]],
    ),
    Program(
        "key and value cache", cache, (f32(4, 16, 8), f32(4, 1, 8), i32()), BOTH, [["data", None, "model"], None, None]
    ),
    Program("rotary positions", rotary, (f32(4, 8, 4, 8), f32(8, 4)), CUBE, [["data", "seq", "model"], None]),
    Program("decoding with grouped queries", decode, DECODE, BOTH, CUT_DECODE, [["data"], *CUT_DECODE[1:3]]),
    Program("attention in chunks", flash, QKV, BOTH, [["data", "model"]] * 3),
    Program("ring attention", ring, QKV, {"data": 2, "seq": 4}, [["data", None, "seq"]] * 3, takes_mesh=True),
]
