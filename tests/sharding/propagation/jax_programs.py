"""Programs of JAX with shardings of their arguments as people state them, as StableHLO text.

Run as a module it prints a JSON list of [name, text, axes of the mesh, for each argument its spec]; JAX is in that
process alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
Row = tuple[str, str, dict[str, int], list[Any]]


def rows() -> list[Row]:
    """The programs, lowered in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.sharding.propagation.jax_programs"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def _programs() -> Any:
    import jax
    import jax.numpy as jnp
    from jax import lax

    f = jnp.float32

    def mlp(x: Any, a: Any, b: Any) -> Any:
        return jnp.tanh(x @ a) @ b

    def loss(x: Any, a: Any, b: Any) -> Any:
        return jnp.mean(mlp(x, a, b) ** 2)

    def norm(x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)

    def softmax(x: Any) -> Any:
        e = jnp.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def attention(x: Any, q: Any, k: Any, v: Any, o: Any) -> Any:
        a, b, c = (jnp.einsum("bsd,dhe->bshe", x, w) for w in (q, k, v))
        scores = jnp.einsum("bqhe,bkhe->bhqk", a, b)
        length = x.shape[1]
        rows, columns = (lax.broadcasted_iota(jnp.int32, (length, length), dim) for dim in (0, 1))
        weights = softmax(jnp.where(rows >= columns, scores, -1e9))
        return jnp.einsum("bhqk,bkhe,hed->bqd", weights, c, o)

    def split_heads(x: Any, q: Any) -> Any:
        y = (x @ q).reshape(x.shape[0], x.shape[1], 4, -1).transpose(0, 2, 1, 3)
        scores = y @ y.transpose(0, 1, 3, 2)
        return (softmax(scores) @ y).transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[1], -1)

    def block(x: Any, q: Any, k: Any, v: Any, o: Any, a: Any, b: Any) -> Any:
        x = x + attention(norm(x), q, k, v, o)
        return x + jnp.einsum("bsf,fd->bsd", jax.nn.relu(jnp.einsum("bsd,df->bsf", norm(x), a)), b)

    def block_loss(*args: Any) -> Any:
        return jnp.mean(block(*args))

    def scan_layers(x: Any, w: Any) -> Any:
        return lax.scan(lambda c, each: (jnp.tanh(c @ each), c.sum()), x, w)

    def rnn(x: Any, w: Any, u: Any) -> Any:
        def step(h: Any, each: Any) -> Any:
            h = jnp.tanh(each @ w + h @ u)
            return h, h

        return lax.scan(step, jnp.zeros((x.shape[1], u.shape[0]), f), x)[1]

    def power(a: Any, v: Any) -> Any:
        return lax.fori_loop(0, 10, lambda i, w: (a @ w) / jnp.sqrt((w * w).sum()), v)

    def kmeans(x: Any, c: Any) -> Any:
        def trip(state: Any) -> Any:
            c, i = state
            d = ((x[:, None] - c[None]) ** 2).sum(-1)
            hot = (d.argmin(-1)[:, None] == jnp.arange(c.shape[0])).astype(f)
            return hot.T @ x / (hot.sum(0)[:, None] + 1.0), i + 1

        return lax.while_loop(lambda s: s[1] < 5, trip, (c, 0))[0]

    def conv(x: Any, w: Any, stride: int = 1) -> Any:
        return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def convnet(x: Any, w: Any, u: Any, v: Any) -> Any:
        y = jax.nn.relu(conv(x, w))
        y = lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        y = jax.nn.relu(conv(y, u))
        return y.mean((1, 2)) @ v

    def convnet_loss(*args: Any) -> Any:
        return convnet(*args).sum()

    def embed(table: Any, ids: Any) -> Any:
        return table[ids]

    def embed_hot(table: Any, ids: Any) -> Any:
        return (ids[..., None] == jnp.arange(table.shape[0])).astype(f) @ table

    def cross_entropy(x: Any, w: Any, hot: Any) -> Any:
        logits = x @ w
        return -(hot * (logits - jax.nn.logsumexp(logits, -1, keepdims=True))).sum(-1).mean()

    def adam(w: Any, g: Any, m: Any, v: Any) -> Any:
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        return w - 0.1 * m / (jnp.sqrt(v) + 1e-8), m, v

    def moe(x: Any, gate: Any, a: Any, b: Any) -> Any:
        weights = softmax(x @ gate)
        y = jnp.einsum("td,edf->etf", x, a)
        return jnp.einsum("etf,efd,te->td", jax.nn.relu(y), b, weights)

    def stencil(x: Any) -> Any:
        p = jnp.pad(x, 1)
        return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * x

    def roll(x: Any) -> Any:
        return jnp.roll(x, 1, 0) + jnp.concatenate([x[1:], x[:1]], 0)

    def cache(kv: Any, new: Any, at: Any) -> Any:
        kv = lax.dynamic_update_slice(kv, new, (0, at, 0))
        return kv, kv.sum(1)

    def rotary(x: Any, angles: Any) -> Any:
        a, b = jnp.split(x, 2, -1)
        cos, sin = jnp.cos(angles)[None, :, None], jnp.sin(angles)[None, :, None]
        return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)

    def dropout(x: Any, key: Any) -> Any:
        return jnp.where(jax.random.bits(key, x.shape) > 2**30, x, 0.0)

    def branch(x: Any, w: Any, which: Any) -> Any:
        return lax.cond(which > 0, lambda: jnp.tanh(x @ w), lambda: (x @ w) * 2.0)

    def stages(x: Any, w: Any) -> Any:
        return jax.vmap(lambda each, own: jnp.tanh(each @ own))(x, w)

    def gcn(a: Any, x: Any, w: Any, u: Any) -> Any:
        return a @ jax.nn.relu(a @ x @ w) @ u

    def lora(x: Any, w: Any, a: Any, b: Any) -> Any:
        return x @ w + (x @ a) @ b

    def chunked(x: Any, w: Any) -> Any:
        return lax.map(lambda each: jnp.tanh(each @ w), x.reshape(4, -1, x.shape[-1])).reshape(x.shape[0], -1)

    grads = jax.grad(loss, (1, 2))
    d, t, dt = {"data": 4}, {"model": 4}, {"data": 2, "model": 2}
    z = {"data": 2, "seq": 2, "model": 2}
    s = jax.ShapeDtypeStruct
    i = jnp.int32
    x2, wa, wb = s((16, 32), f), s((32, 64), f), s((64, 32), f)
    x3 = s((4, 8, 32), f)
    heads = [s((32, 4, 8), f)] * 3 + [s((4, 8, 32), f)]
    image, kernels = s((8, 16, 16, 4), f), [s((3, 3, 4, 8), f), s((3, 3, 8, 16), f), s((16, 12), f)]
    yield "mlp, data", mlp, (x2, wa, wb), d, [["data", None], None, None]
    yield "mlp, model", mlp, (x2, wa, wb), t, [None, [None, "model"], ["model", None]]
    yield "mlp, data and model", mlp, (x2, wa, wb), dt, [["data", None], [None, "model"], ["model", None]]
    yield "mlp, fully sharded weights", mlp, (x2, wa, wb), dt, [["data", None], ["data", "model"], ["model", "data"]]
    yield "mlp loss", loss, (x2, wa, wb), dt, [["data", None], [None, "model"], ["model", None]]
    yield "mlp gradient, data", grads, (x2, wa, wb), d, [["data", None], None, None]
    yield "mlp gradient, data and model", grads, (x2, wa, wb), dt, [["data", None], [None, "model"], ["model", None]]
    yield "layer norm", norm, (x3,), z, [["data", "seq", "model"]]
    yield "attention, heads", attention, (x3, *heads), t, [None, *[[None, "model"]] * 3, ["model"]]
    yield "attention, data and heads", attention, (x3, *heads), dt, [["data"], *[[None, "model"]] * 3, ["model"]]
    yield "attention, sequence", attention, (x3, *heads), {"seq": 4}, [[None, "seq"], None, None, None, None]
    yield "attention of split heads", split_heads, (x3, s((32, 32), f)), dt, [["data"], [None, "model"]]
    sharded = [*[[None, "model"]] * 3, ["model"], [None, "model"], ["model"]]
    whole = [x3, *heads, s((32, 64), f), s((64, 32), f)]
    yield "transformer block, three axes", block, whole, z, [["data", "seq"], *sharded]
    yield "transformer block, data", block, whole, d, [["data"], *[None] * 6]
    yield "transformer gradient", jax.grad(block_loss, (1, 5)), whole, dt, [["data"], *sharded]
    yield "embedding, vocabulary", embed, (s((64, 32), f), s((4, 8), i)), t, [["model", None], None]
    yield "embedding, features and data", embed, (s((64, 32), f), s((4, 8), i)), dt, [[None, "model"], ["data"]]
    yield "embedding by a product", embed_hot, (s((64, 32), f), s((4, 8), i)), dt, [["model", None], ["data"]]
    yield "embedding gradient", jax.grad(lambda w, n: embed(w, n).sum()), (s((64, 32), f), s((4, 8), i)), dt, [
        ["model", None], ["data"]]  # fmt: skip
    yield "cross entropy, vocabulary", cross_entropy, (x2, s((32, 64), f), s((16, 64), f)), dt, [
        ["data"], [None, "model"], None]  # fmt: skip
    yield "adam", adam, (wa,) * 4, dt, [["data", "model"], None, None, None]
    yield "experts", moe, (x2, s((32, 4), f), s((4, 32, 64), f), s((4, 64, 32), f)), {"data": 2, "expert": 4}, [
        ["data"], None, ["expert"], ["expert"]]  # fmt: skip
    yield "convnet, data", convnet, (image, *kernels), d, [["data"], None, None, None]
    yield "convnet, space", convnet, (image, *kernels), {"h": 2, "w": 2}, [[None, "h", "w"], None, None, None]
    yield "convnet, features", convnet, (image, *kernels), dt, [["data"], [None, None, None, "model"], None, None]
    yield "convnet gradient", jax.grad(convnet_loss, (1, 2)), (image, *kernels), d, [["data"], None, None, None]
    yield "strided convolution", lambda x, w: conv(x, w, 2), (image, kernels[0]), dt, [["data", "model"], None]
    yield "layers in a scan", scan_layers, (x2, s((5, 32, 32), f)), dt, [["data", None], [None, None, "model"]]
    yield "recurrent net", rnn, (s((6, 8, 16), f), s((16, 32), f), s((32, 32), f)), dt, [
        [None, "data"], [None, "model"], None]  # fmt: skip
    yield "power iteration", power, (s((16, 16), f), s((16,), f)), t, [["model", None], None]
    yield "k-means", kmeans, (s((64, 8), f), s((4, 8), f)), dt, [["data", None], None]
    yield "branches", branch, (x2, wa, s((), i)), dt, [["data"], [None, "model"], None]
    yield "fft", jnp.fft.fft, (s((8, 16), jnp.complex64),), dt, [["data", None]]
    yield "sort", lambda x: jnp.sort(x, 1), (x2,), dt, [["data", "model"]]
    yield "cumulative sum", lambda x: jnp.cumsum(x, 1), (x2,), dt, [["data", None]]
    yield "arg max", lambda x: x.argmax(1), (x2,), dt, [["data", "model"]]
    yield "stencil", stencil, (s((16, 16), f),), {"h": 2, "w": 2}, [["h", "w"]]
    yield "rolled", roll, (x2,), dt, [["data", "model"]]
    yield "key and value cache", cache, (s((4, 16, 8), f), s((4, 1, 8), f), s((), i)), dt, [["data", None, "model"],
                                                                                    None, None]  # fmt: skip
    yield "rotary positions", rotary, (s((4, 8, 4, 8), f), s((8, 4), f)), z, [["data", "seq", "model"], None]
    yield "dropout", dropout, (x2, s((2,), jnp.uint32)), dt, [["data", "model"], None]
    yield "scatter of rows", lambda x, n, u: x.at[n].add(u), (wa, s((8,), i), s((8, 64), f)), dt, [
        ["data", "model"], None, None]  # fmt: skip
    yield "cholesky of batches", lambda a: lax.linalg.cholesky(a, symmetrize_input=False), (s((8, 4, 4), f),), d, [
        ["data"]]  # fmt: skip
    yield "stages", stages, (s((4, 8, 16), f), s((4, 16, 16), f)), {"stage": 4}, [["stage"], ["stage"]]
    yield "graph convolution", gcn, (s((16, 16), f), s((16, 32), f), s((32, 32), f), s((32, 8), f)), dt, [
        ["data", None], None, [None, "model"], None]  # fmt: skip
    yield "low rank", lora, (x2, wa, s((32, 4), f), s((4, 64), f)), dt, [["data"], [None, "model"], None, None]
    yield "chunks in a loop", chunked, (x2, wa), dt, [["data"], [None, "model"]]
    yield "split and merged dimension", lambda x: x.reshape(4, 4, 32).transpose(1, 0, 2).reshape(16, 32), (x2,), {
        "data": 8}, [["data"]]  # fmt: skip
    yield "outer product", lambda x, y: jnp.outer(x, y), (s((16,), f), s((32,), f)), {"data": 4}, [["data"], ["data"]]


def _main() -> None:
    import jax

    found = []
    for name, function, arguments, mesh, specs in _programs():
        found.append((name, jax.jit(function, keep_unused=True).lower(*arguments).as_text(), mesh, specs))
    print(json.dumps(found))


if __name__ == "__main__":
    _main()
