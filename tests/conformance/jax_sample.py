"""Makes a sample of programs for `tests.conformance.jax`: lowered, compiled and run by JAX on eight devices of the CPU.

python -m tests.conformance.jax_sample tests/data/jax_programs.jsonl.gz
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

DEVICES = 8
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", f"--xla_force_host_platform_device_count={DEVICES}")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax.experimental.shard_alike import shard_alike  # noqa: E402
from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

from tests.conformance.jax import stored  # noqa: E402

Program = tuple[Callable[..., Any], tuple[Any, ...]]


def numbers(*dims: int, dtype: Any = np.float32) -> Any:
    chance = np.random.default_rng(sum(dims) + 1)
    found = chance.normal(size=dims) if np.issubdtype(np.dtype(dtype), np.floating) else chance.integers(-4, 5, dims)
    return found.astype(dtype)


def mesh_of(**sizes: int) -> Mesh:
    count = int(np.prod(list(sizes.values())))
    return Mesh(np.array(jax.devices()[:count]).reshape(*sizes.values()), tuple(sizes))


def put(array: Any, mesh: Mesh, *spec: Any) -> Any:
    return jax.device_put(array, NamedSharding(mesh, P(*spec)))


def on_one_device() -> Iterator[tuple[str, Program]]:
    x, square = numbers(4, 6), numbers(5, 5)
    yield "special_functions", (lambda x: (jnp.arctanh(x / 9), lax.lgamma(x * x + 1), jnp.arcsinh(x)), (x,))
    yield "top_k", (lambda x: lax.top_k(x, 2), (x,))
    yield "approx_max_k", (lambda x: lax.approx_max_k(x, 3), (numbers(2, 32),))
    yield "sort_by_key", (lambda x, k: lax.sort((k, x), num_keys=1), (x, numbers(4, 6)[::-1].copy()))
    yield (
        "int8_weights",
        (lambda x, w: lax.dot(x, w, preferred_element_type=jnp.float32), (x, numbers(6, 3, dtype=np.int8))),
    )
    yield "eigh", (lambda x: jnp.linalg.eigh(x + x.T), (square,))
    yield "svd_and_qr", (lambda x: (jnp.linalg.svd(x)[1], jnp.linalg.qr(x)), (square,))
    yield "solve", (lambda x, b: jnp.linalg.solve(x @ x.T + jnp.eye(5), b), (square, numbers(5, 2)))
    yield "fft", (lambda x: (jnp.fft.rfft(x), jnp.fft.ifft2(x)), (x,))
    yield "conv_and_pool", (conv_and_pool, (numbers(2, 3, 8, 8), numbers(4, 3, 3, 3)))
    yield "scan_and_cond", (scan_and_cond, (x, np.int32(2)))
    yield (
        "while_of_keys",
        (lambda key: jax.random.permutation(jax.random.wrap_key_data(key), 12), (np.array([1, 2], np.uint32),)),
    )
    yield "gather_and_scatter", (lambda x, i: x.at[i].add(x[i] * 2), (x, np.array([3, 0, 3], np.int32)))
    yield "gradient", (jax.grad(lambda w, x: jnp.sum(jax.nn.softmax(jnp.tanh(x @ w)) ** 2)), (numbers(6, 3), x))
    yield "complex_numbers", (lambda x: (jnp.sign(x + 1j * x), jnp.abs(x + 2j), (x + 0j).astype(bool)), (x,))
    yield "composite", (lax.composite(lambda x: jnp.sin(x) ** 2, "sample.squared_sine"), (x,))


def conv_and_pool(x: Any, w: Any) -> Any:
    found = lax.conv_general_dilated(x, w, (2, 1), "SAME", rhs_dilation=(1, 2))
    return found, lax.reduce_window(found, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def scan_and_cond(x: Any, n: Any) -> Any:
    carried, rows = lax.scan(lambda c, row: (c + row, c * row), x[0], x)
    return carried, rows, lax.cond(n > 1, jnp.sin, jnp.cos, x), lax.fori_loop(0, n, lambda i, v: v + i, x)


def on_several_devices() -> Iterator[tuple[str, Program]]:
    line, grid, other = mesh_of(x=4), mesh_of(x=2, y=4), mesh_of(a=4, b=2)
    x, w = numbers(8, 16), numbers(16, 8)
    yield "matmul", (lambda x, w: jnp.tanh(x @ w), (put(x, grid, "x", "y"), put(w, grid, "y")))
    yield "replicated", (lambda x: x + 1, (put(x, line),))
    yield "constraint", (constrained(grid), (put(x, grid, "x"),))
    yield (
        "two_meshes",
        (jax.jit(lambda x: x * 2, out_shardings=NamedSharding(other, P("b", "a"))), (put(x, grid, "x", "y"),)),
    )
    yield "alike", (lambda x, y: [each * 2 for each in shard_alike(x, y)], (put(x, grid, "x", "y"), put(x, grid)))
    yield "collectives", (shard_mapped(collectives, line, (P("x"),), P("x")), (put(x, line, "x"),))
    yield (
        "ring",
        (shard_mapped(ring, line, (P(None, "x"), P("x")), P("x")), (put(x, line, None, "x"), put(w, line, "x"))),
    )
    yield "partly_manual", (partly_manual(grid), (put(x, grid, "x", "y"),))
    yield "pmap", (jax.pmap(lambda x: lax.psum(x, "i") + lax.axis_index("i"), axis_name="i"), (x,))
    yield (
        "pmap_of_scan",
        (jax.pmap(lambda x: lax.scan(lambda c, v: (c + lax.pmax(v, "i"), c), 0.0, x), axis_name="i"), (x,)),
    )
    yield "uneven", (lambda x: jnp.sort(jnp.cumsum(x, 0), 1), (put(numbers(12, 12), line, "x"),))
    yield "training", (jax.jit(jax.grad(loss)), (put(w, grid, None, "y"), put(x, grid, "x")))
    yield "batched_eigh", (lambda x: jnp.linalg.eigh(x @ x.swapaxes(1, 2)), (put(numbers(4, 5, 5), line, "x"),))
    yield "scatter_in_parts", (lambda x, i: x.at[i].set(0), (put(x, grid, "x", "y"), np.array([1, 5], np.int32)))
    yield (
        "random",
        (
            jax.jit(lambda key: jax.random.normal(key, (8, 8)), out_shardings=NamedSharding(line, P("x"))),
            (jax.random.key(3),),
        ),
    )
    yield (
        "loop",
        (lambda x: lax.fori_loop(0, 3, lambda i, v: jnp.roll(v, i, 0) @ v.T @ v * 1e-2, x), (put(x, grid, "x", "y"),)),
    )
    yield "inspected", (inspected, (put(x, line, "x"),))
    yield (
        "convolved",
        (
            lambda x, w: lax.conv(x, w, (1, 1), "SAME"),
            (put(numbers(4, 3, 8, 8), line, None, None, "x"), numbers(2, 3, 3, 3)),
        ),
    )


def constrained(mesh: Mesh) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        y = lax.with_sharding_constraint(x.T, NamedSharding(mesh, P("y", "x")))
        return y.sum(0), y.reshape(4, 4, 8), jnp.concatenate([y, y], 1)

    return function


def shard_mapped(body: Callable[..., Any], mesh: Mesh, taken: Any, given: Any) -> Callable[..., Any]:
    return jax.shard_map(body, mesh=mesh, in_specs=taken, out_specs=given)


def collectives(x: Any) -> Any:
    gathered = lax.all_gather(x, "x", tiled=True)
    scattered = lax.psum_scatter(gathered, "x", scatter_dimension=0, tiled=True)
    turned = lax.all_to_all(x, "x", 1, 0, tiled=True)
    return scattered + lax.pmean(x, "x"), turned.reshape(x.shape) + lax.pmin(x, "x")


def ring(x: Any, w: Any) -> Any:
    count = lax.axis_size("x")

    def step(i: Any, state: Any) -> Any:
        total, part = state
        return total + x[:, :4] @ part, lax.ppermute(part, "x", [(n, (n + 1) % count) for n in range(count)])

    start = lax.pcast(jnp.zeros((8, 8), x.dtype), "x", to="varying")
    return lax.fori_loop(0, count, step, (start, w))[0]


def partly_manual(mesh: Mesh) -> Callable[..., Any]:
    def body(x: Any) -> Any:
        return lax.psum(x, "x") * 2

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P(), axis_names={"x"})


def loss(w: Any, x: Any) -> Any:
    return jnp.mean(jnp.square(jax.nn.relu(x @ w) - 1))


def inspected(x: Any) -> Any:
    y = jnp.sin(x)
    jax.debug.inspect_array_sharding(y, callback=lambda sharding: None)
    return y + x


# Capture


def cut(array: Any, sharding: Any) -> list[dict[str, Any]]:
    """The part of each device, in the order of their numbers."""
    indices = sharding.devices_indices_map(array.shape)
    return [stored(np.asarray(array)[indices[device]]) for device in sorted(indices, key=lambda each: each.id)]


def held(array: Any) -> list[dict[str, Any]]:
    """What each device holds, in the order of their numbers."""
    return [stored(each.data) for each in sorted(array.addressable_shards, key=lambda each: each.device.id)]


def case_of(name: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> dict[str, Any]:
    lowered = (function if hasattr(function, "lower") else jax.jit(function)).lower(*arguments)
    compiled = lowered.compile()
    results = jax.tree.leaves(compiled(*arguments))
    given = jax.tree.leaves(arguments)
    given = [jax.random.key_data(each) if jnp.issubdtype(each.dtype, jax.dtypes.prng_key) else each for each in given]
    taken = jax.tree.leaves(compiled.input_shardings[0])
    text = lowered.as_text()
    found = next((int(line.split("mhlo.num_partitions = ")[1].split()[0]) for line in text.splitlines()[:1]), 1)
    return {
        "id": name, "file": "sample", "test": name, "replicas": 1, "partitions": found, "devices": found,
        "stablehlo": text, "hlo": compiled.as_text(),
        "values": {
            "in": [cut(each, sharding) for each, sharding in zip(given, taken, strict=True)],
            "out": [held(each) for each in results],
            "gin": [stored(each) for each in given], "gout": [stored(each) for each in results],
        },
    }  # fmt: skip


def main(path: str) -> int:
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")  # texts name files without their folders
    cases = [case_of(name, *program) for made in (on_one_device, on_several_devices) for name, program in made()]
    text = "".join(json.dumps(case) + "\n" for case in cases)
    Path(path).write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{len(cases)} programs")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
