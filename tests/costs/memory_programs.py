"""Programs that are compiled here: run as a script it prints, for each, the scheduled text and what XLA sets aside."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
from jax import lax

Program = tuple[Callable[..., Any], tuple[Any, ...], tuple[int, ...]]
"""A function, the shapes of its arguments, and the arguments that it may overwrite."""


def array(*dims: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(dims, dtype)


def mlp(weights: list[Any], x: Any) -> Any:
    for weight in weights:
        x = jnp.tanh(x @ weight)
    return x


def loss(weights: list[Any], x: Any) -> Any:
    return (mlp(weights, x) ** 2).sum()


def trained(weights: list[Any], x: Any) -> Any:
    return jax.tree.map(lambda weight, grad: weight - 0.1 * grad, weights, jax.grad(loss)(weights, x))


def stacked(weights: Any, x: Any) -> Any:
    return lax.scan(lambda state, weight: (jnp.tanh(state @ weight), None), x, weights)[0].sum()


def rematerialised(weights: Any, x: Any) -> Any:
    step = jax.checkpoint(lambda state, weight: (jnp.tanh(jnp.tanh(state @ weight) @ weight), None))
    return lax.scan(step, x, weights)[0].sum()


def attention(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.softmax(q @ k.swapaxes(-1, -2) / 8.0) @ v


def convolved(image: Any, kernel: Any) -> Any:
    for _ in range(3):
        image = jax.nn.relu(lax.conv_general_dilated(image, kernel, (1, 1), "SAME"))
    return image


def cached(cache: Any, row: Any, position: Any) -> Any:
    return lax.dynamic_update_slice(cache, row, (position, 0))


def filled(cache: Any, rows: Any) -> Any:
    def step(n: Any, state: Any) -> Any:
        return lax.dynamic_update_slice(state, rows[n][None] * 2, (n, 0))

    return lax.fori_loop(0, rows.shape[0], step, cache)


def chosen(index: Any, x: Any) -> Any:
    return lax.switch(index, [lambda y: jnp.sin(y) @ y, lambda y: y * 2, lambda y: (y @ y) @ y], x)


def searched(x: Any) -> Any:
    return lax.while_loop(lambda s: jnp.abs(s[0]).max() > 1e-3, lambda s: (s[0] @ s[0] * 0.1, s[1] + 1), (x, 0))


def embedded(table: Any, ids: Any, target: Any) -> Any:
    return jax.grad(lambda t: ((t[ids] - target) ** 2).sum())(table)


def normed(x: Any, scale: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * scale


def summed(x: Any) -> Any:
    mesh = jax.sharding.Mesh(jax.devices()[:4], ("i",))
    spec = jax.sharding.PartitionSpec("i")
    body = jax.shard_map(lambda y: lax.psum(y @ y.T, "i") @ y, mesh=mesh, in_specs=spec, out_specs=spec)
    return body(x)


def summed_at_once(*arrays: Any) -> Any:
    mesh = jax.sharding.Mesh(jax.devices()[:4], ("i",))
    spec = jax.sharding.PartitionSpec()

    def step(*arrays: Any) -> Any:
        return sum(jnp.sin(each).sum() for each in lax.psum(tuple(each @ each for each in arrays), "i"))

    return jax.shard_map(step, mesh=mesh, in_specs=(spec,) * len(arrays), out_specs=spec, check_vma=False)(*arrays)


SQUARE = array(512, 512)
LAYERS = [array(256, 1024), array(1024, 1024), array(1024, 256)]

PROGRAMS: dict[str, Program] = {
    "mlp": (mlp, (LAYERS, array(64, 256)), ()),
    "mlp, gradient": (jax.grad(loss), (LAYERS, array(512, 256)), ()),
    "mlp, step": (trained, (LAYERS, array(512, 256)), ()),
    "mlp, step, donated": (trained, (LAYERS, array(512, 256)), (0,)),
    "scan over layers": (stacked, (array(8, 256, 256), array(128, 256)), ()),
    "scan over layers, gradient": (jax.grad(stacked), (array(8, 256, 256), array(128, 256)), ()),
    "checkpointed layers, gradient": (jax.grad(rematerialised), (array(8, 256, 256), array(128, 256)), ()),
    "attention": (attention, (array(8, 128, 64),) * 3, ()),
    "attention, gradient": (jax.grad(lambda *a: attention(*a).sum(), (0, 1, 2)), (array(8, 128, 64),) * 3, ()),
    "convolutions": (convolved, (array(2, 16, 64, 64), array(16, 16, 3, 3)), ()),
    "convolutions, gradient": (
        jax.grad(lambda *a: convolved(*a).sum(), (0, 1)), (array(2, 16, 64, 64), array(16, 16, 3, 3)), ()
    ),
    "cache": (cached, (array(4096, 64), array(1, 64), array(dtype=jnp.int32)), ()),
    "cache, donated": (cached, (array(4096, 64), array(1, 64), array(dtype=jnp.int32)), (0,)),
    "loop that fills": (filled, (array(1024, 64), array(1024, 64)), ()),
    "loop that fills, donated": (filled, (array(1024, 64), array(1024, 64)), (0,)),
    "switch": (chosen, (array(dtype=jnp.int32), SQUARE), ()),
    "loop of products": (searched, (SQUARE,), ()),
    "embedding, gradient": (embedded, (array(2048, 64), array(256, dtype=jnp.int32), array(256, 64)), ()),
    "layer norm": (normed, (array(512, 512), array(512)), ()),
    "sort": (lambda x: jnp.sort(x, axis=-1), (array(64, 4096),), ()),
    "sort with places": (lambda x: jnp.argsort(x, axis=-1), (array(64, 4096),), ()),
    "running sum": (lambda x: jnp.cumsum(x, axis=0), (array(1024, 128),), ()),
    "fft": (lambda x: jnp.fft.ifft(jnp.fft.fft(x) * 2), (array(256, 512),), ()),
    "chain of elementwise": (lambda x: jnp.sin(jnp.cos(x) * 2) + x, (SQUARE,), ()),
    "products in a row": (lambda a, b: ((a @ b) @ a) @ b, (SQUARE, SQUARE), ()),
    "transposes": (lambda a: a.T @ a + (a @ a).T, (SQUARE,), ()),
    "sum over devices": (summed, (array(512, 256),), ()),
    "sum over devices of a product": (summed_at_once, (array(256, 256),), ()),
    "sums over devices at once": (summed_at_once, (array(256, 256),) * 2, ()),
}  # fmt: skip


def _said(name: str, text: str, found: Any) -> None:
    sizes = {each: getattr(found, f"{each}_size_in_bytes") for each in ("argument", "output", "temp", "alias")}
    print(json.dumps({"name": name, "text": text, **sizes}), flush=True)


def of_programs() -> None:
    for name, (function, shapes, donated) in PROGRAMS.items():
        compiled = jax.jit(function, donate_argnums=donated).lower(*shapes).compile()
        _said(name, compiled.as_text(), compiled.memory_analysis())


def of_texts(folder: Path) -> None:
    """Of the HLO texts in a folder those that XLA compiles for at most four devices."""
    from interpreter.engines.client import _compiled, ready_lapack

    ready_lapack()
    counts = {each["file"]: each for each in json.loads((folder / "manifest.json").read_text())}
    for path in sorted(folder.glob("*.hlo")):
        sizes = [counts.get(path.name, {}).get(f"num_{each}", 1) for each in ("replicas", "partitions")]
        if sizes[0] * sizes[1] <= 4:
            try:
                with jax.enable_x64(True):
                    _, executable = _compiled(path.read_text(), *sizes, "cpu")
            except jax.errors.JaxRuntimeError as error:
                print(f"{path.name}: {error}", file=sys.stderr)
                continue
            _said(path.stem, executable.hlo_modules()[0].to_string(), executable.get_compiled_memory_stats())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        of_texts(Path(sys.argv[1]))
    else:
        of_programs()
