"""Models as they are trained: layers, attention, recurrent nets, a transformer's step, and their losses."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from .entry import Entry, cplx, entry, layers, normal, positive, tree, within


def layer_norm(x: Any, scale: Any, offset: Any) -> Any:
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + offset


def rms_norm(x: Any, scale: Any) -> Any:
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale


def batch_norm(x: Any, scale: Any, offset: Any) -> Any:
    mean, variance = x.mean(0), x.var(0)
    return (x - mean) / jnp.sqrt(variance + 1e-3) * scale + offset


def group_norm(x: Any, scale: Any) -> Any:
    groups = x.reshape(x.shape[0], 2, -1)
    centred = groups - groups.mean(-1, keepdims=True)
    return (centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)).reshape(x.shape) * scale


def cross_entropy(logits: Any, labels: Any) -> Any:
    return -jnp.take_along_axis(nn.log_softmax(logits), labels[:, None], 1).mean()


def mlp(params: Any, x: Any) -> Any:
    for layer in params:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return x


def mlp_loss(params: Any, x: Any, labels: Any) -> Any:
    return cross_entropy(mlp(params, x), labels)


def convnet(k1: Any, k2: Any, w: Any, x: Any, labels: Any) -> Any:
    roles = ("NHWC", "HWIO", "NHWC")
    x = nn.relu(lax.conv_general_dilated(x, k1, (1, 1), "SAME", dimension_numbers=roles))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = nn.relu(lax.conv_general_dilated(x, k2, (2, 2), "SAME", dimension_numbers=roles))
    return cross_entropy(x.reshape(x.shape[0], -1) @ w, labels)


def separable(depth: Any, point: Any, x: Any) -> Any:
    roles = ("NHWC", "HWIO", "NHWC")
    x = lax.conv_general_dilated(x, depth, (1, 1), "SAME", dimension_numbers=roles, feature_group_count=x.shape[-1])
    return nn.gelu(lax.conv_general_dilated(x, point, (1, 1), "VALID", dimension_numbers=roles))


def residual_block(k1: Any, k2: Any, x: Any) -> Any:
    inner = nn.relu(lax.conv(x, k1, (1, 1), "SAME"))
    return nn.relu(x + lax.conv(inner, k2, (1, 1), "SAME"))


def attention(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(q.shape[-1])
    if mask is not None:
        scores = jnp.where(mask, scores, -1e30)
    return jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(scores), v)


def causal(q: Any, k: Any, v: Any) -> Any:
    return attention(q, k, v, jnp.tril(jnp.ones((q.shape[1], k.shape[1]), bool)))


def linear_attention(q: Any, k: Any, v: Any) -> Any:
    """One step after the other, with a matrix as state."""
    step = lambda s, qkv: (s + jnp.outer(qkv[1], qkv[2]), qkv[0] @ (s + jnp.outer(qkv[1], qkv[2])))  # noqa: E731
    return lax.scan(step, jnp.zeros((k.shape[1], v.shape[1])), (q, k, v))[1]


def rotary(x: Any) -> Any:
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None] * (0.1 ** jnp.arange(half))
    a, b = x[..., :half], x[..., half:]
    sin, cos = jnp.sin(angles)[None, :, None], jnp.cos(angles)[None, :, None]
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def transformer_block(p: Any, x: Any) -> Any:
    heads = lambda y: y.reshape(*y.shape[:2], 2, -1)  # noqa: E731
    y = layer_norm(x, p["s1"], p["b1"])
    q, k, v = (heads(y @ p[name]) for name in ("wq", "wk", "wv"))
    x = x + causal(rotary(q), rotary(k), v).reshape(x.shape) @ p["wo"]
    y = layer_norm(x, p["s2"], p["b2"])
    return x + nn.gelu(y @ p["w1"]) @ p["w2"]


BLOCK = {
    "s1": normal(8), "b1": normal(8), "s2": normal(8), "b2": normal(8), "w1": normal(8, 16), "w2": normal(16, 8),
    **{name: normal(8, 8) for name in ("wq", "wk", "wv", "wo")},
}  # fmt: skip


def stacked(chance: Any) -> Any:
    """Two blocks, each of their arrays in one."""
    blocks = layers(2, **BLOCK)(chance)
    return {name: np.stack([block[name] for block in blocks]) for name in BLOCK}


def hinge(w: Any, x: Any, y: Any) -> Any:
    return jnp.mean(jnp.maximum(0, 1 - y * (x @ w)) ** 2)


def huber(x: Any, y: Any) -> Any:
    return jnp.where(abs(x - y) < 1, 0.5 * (x - y) ** 2, abs(x - y) - 0.5).sum()


def logistics(p: Any, mean: Any, scale: Any, x: Any) -> Any:
    """The logarithm of a mixture of logistic functions."""
    return nn.logsumexp(jnp.log(p) + nn.log_sigmoid((x[:, None] - mean) / scale), 1)


def transformer_loss(table: Any, blocks: Any, ids: Any) -> Any:
    x = table[ids]
    for block in blocks:
        x = transformer_block(block, x)
    logits = (x @ table.T)[:, :-1]
    picked = jnp.take_along_axis(nn.log_softmax(logits), ids[:, 1:, None], -1)
    return -picked.mean()


def transformer_scanned(blocks: Any, x: Any) -> Any:
    """The blocks stacked, one trip of a scan each."""
    return lax.scan(lambda y, block: (transformer_block(block, y), None), x, blocks)[0]


def lstm_step(w: Any, b: Any, state: Any, x: Any) -> Any:
    h, c = state
    i, f, g, o = jnp.split(jnp.concatenate([x, h], -1) @ w + b, 4, -1)
    c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
    h = nn.sigmoid(o) * jnp.tanh(c)
    return (h, c), h


def lstm(w: Any, b: Any, xs: Any) -> Any:
    zero = jnp.zeros((xs.shape[1], b.shape[0] // 4))
    return lax.scan(lambda state, x: lstm_step(w, b, state, x), (zero, zero), xs)[1]


def gru(w: Any, u: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        z, r = jnp.split(nn.sigmoid(jnp.concatenate([x, h]) @ w), 2)
        h = (1 - z) * h + z * jnp.tanh(jnp.concatenate([x, r * h]) @ u)
        return h, h

    return lax.scan(step, jnp.zeros(u.shape[1]), xs)[1]


def mixture(gate: Any, experts: Any, x: Any) -> Any:
    """Each row goes to the two experts that it prefers."""
    weights, chosen = lax.top_k(nn.softmax(x @ gate), 2)
    outputs = jnp.einsum("bd,bkde->bke", x, experts[chosen])
    return jnp.einsum("bk,bke->be", weights, outputs)


def ragged_experts(experts: Any, x: Any, sizes: Any) -> Any:
    return nn.silu(lax.ragged_dot(x, experts, sizes))


def vae_loss(enc: Any, dec: Any, x: Any, noise: Any) -> Any:
    mean, log_scale = jnp.split(x @ enc, 2, -1)
    z = mean + jnp.exp(log_scale) * noise
    kl = 0.5 * jnp.sum(mean**2 + jnp.exp(2 * log_scale) - 2 * log_scale - 1)
    return jnp.sum((nn.sigmoid(z @ dec) - nn.sigmoid(x)) ** 2) + kl


def contrastive(a: Any, b: Any) -> Any:
    a, b = (y / jnp.linalg.norm(y, axis=1, keepdims=True) for y in (a, b))
    logits = a @ b.T / 0.1
    return -jnp.diag(nn.log_softmax(logits)).mean()


def trained(params: Any, x: Any, labels: Any) -> Any:
    """Two steps of gradient descent, through which a gradient goes."""
    for _ in range(2):
        slopes = jax.grad(mlp_loss)(params, x, labels)
        params = jax.tree.map(lambda p, g: p - 0.1 * g, params, slopes)
    return mlp_loss(params, x, labels)


_BATCH = [2, 0, 1, 2]
_QKV = (normal(2, 5, 2, 4),) * 3

FUNCTIONS: list[Entry] = [
    entry("an MLP", mlp, layers(3, w=normal(4, 4), b=normal(4)), normal(5, 4)),
    entry("loss of an MLP", mlp_loss, layers(2, w=normal(3, 3), b=normal(3)), normal(4, 3), _BATCH),
    entry("loss after training an MLP", trained, layers(2, w=normal(3, 3), b=normal(3)), normal(4, 3), _BATCH),
    entry("a convnet", convnet, normal(3, 3, 1, 4), normal(3, 3, 4, 4), normal(16, 3), normal(4, 8, 8, 1), _BATCH),
    entry("a separable convolution", separable, normal(3, 3, 1, 4), normal(1, 1, 4, 6), normal(2, 5, 5, 4)),
    entry("a residual block", residual_block, normal(3, 3, 3, 3), normal(3, 3, 3, 3), normal(2, 3, 5, 5)),
    entry("attention", attention, *_QKV),
    entry("causal attention", causal, *_QKV),
    entry("attention across", attention, normal(2, 3, 2, 4), normal(2, 5, 2, 4), normal(2, 5, 2, 4)),
    entry("linear attention", linear_attention, normal(4, 3), normal(4, 3), normal(4, 2)),
    entry("rotary attention", lambda q, k, v: attention(rotary(q), rotary(k), v), *_QKV),
    entry("a transformer block", transformer_block, tree(**BLOCK), normal(2, 5, 8)),
    entry("a transformer's step", transformer_loss, normal(7, 8), layers(2, **BLOCK), [[1, 3, 0, 6], [2, 2, 5, 4]]),
    entry("a transformer as a scan", transformer_scanned, stacked, normal(2, 4, 8)),
    entry("an LSTM", lstm, normal(7, 16), normal(16), normal(5, 2, 3)),
    entry("a GRU", gru, normal(7, 8), normal(7, 4), normal(5, 3)),
    entry("a mixture of experts", mixture, normal(4, 5), normal(5, 4, 3), normal(6, 4)),
    entry("experts in runs", ragged_experts, normal(3, 4, 2), normal(6, 4), [1, 3, 2]),
    entry("layer norm", layer_norm, normal(3, 6), normal(6), normal(6)),
    entry("RMS norm", rms_norm, normal(3, 6), normal(6)),
    entry("batch norm", batch_norm, normal(5, 3), normal(3), normal(3)),
    entry("group norm", group_norm, normal(3, 6), normal(6)),
    entry("loss of a VAE", vae_loss, normal(4, 6), normal(3, 4), normal(5, 4), normal(5, 3)),
    entry("a contrastive loss", contrastive, normal(4, 3), normal(4, 3)),
    entry("dropout with a given mask", lambda x, w, keep: jnp.where(keep, x @ w / 0.8, 0.0), normal(3, 4), normal(4, 5),
          [[True, False, True, True, False]] * 3),
    entry("gated linear units", lambda x, w, v: nn.silu(x @ w) * (x @ v), normal(3, 4), normal(4, 5), normal(4, 5)),
    entry("squared hinge loss", hinge, normal(3), normal(8, 3), normal(8)),
    entry("focal loss", lambda x: -jnp.mean((1 - nn.sigmoid(x)) ** 2 * nn.log_sigmoid(x)), normal(6)),
    entry("a complex layer", lambda w, z: jnp.abs(z @ w), cplx(3, 3), cplx(2, 3)),
    entry("Huber loss", huber, normal(9), normal(9)),
    entry("mixture of logistics", logistics,
          within(0.1, 0.9, 3), normal(3), positive(3), normal(5)),
]  # fmt: skip
