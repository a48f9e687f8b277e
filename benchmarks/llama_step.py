"""A training step of the size of Llama 3.1 405B, sharded by `xb.shard`, proved against the program of one device.

`python -m benchmarks.llama_step` lowers the step with JAX in a child process (loss, gradients, and an update of all
weights), partitions it for a mesh of 64 by 8 devices (weights in parts on both axes, the batch on the first), and
prints the verdict with the time of the processor and the peak of memory. `--fault all-reduce` leaves out the all-reduce
after the second product of each layer, `--fault row` takes the weights of a neighbor at one layer.

Layers, devices, hidden and inner extents and heads are those of the model. The length of a sequence, the extent of a
head and the vocabulary are smaller, since their elements are not interchangeable (causal masks and positions, token
ids): state others by `--sequence`, `--head` and `--vocabulary`. The verdict lists the extents that xbuild reduces.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HIDDEN, INNER, HEADS, KEYS = 16384, 53248, 128, 8


def step(options: argparse.Namespace) -> str:
    """The StableHLO of the step, lowered by JAX for as many devices as the mesh has."""
    rows, parts = map(int, options.mesh.split("x"))
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={rows * parts}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(rows, parts), ("fsdp", "tp"))
    layers, length, head, vocabulary = options.layers, options.sequence, options.head, options.vocabulary
    hidden, inner, heads, keys = options.hidden, options.inner, options.heads, options.keys

    def array(*dims: int) -> Any:
        return jax.ShapeDtypeStruct(dims, jnp.float32)

    def norm(x: Any, w: Any) -> Any:
        return x * jax.lax.rsqrt(jnp.mean(x**2, -1, keepdims=True) + 1e-5) * w

    def turned(x: Any) -> Any:
        half = head // 2
        angles = jnp.arange(length)[:, None, None] * (500000.0 ** (-jnp.arange(half) / half))
        cosine, sine = jnp.cos(angles), jnp.sin(angles)
        a, b = x[..., :half], x[..., half:]
        return jnp.concatenate([a * cosine - b * sine, b * cosine + a * sine], -1)

    def constrained(x: Any) -> Any:
        return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("fsdp", None, None)))

    def layer(x: Any, w: Any) -> tuple[Any, None]:
        h = norm(x, w["n1"])
        q = turned((h @ w["q"]).reshape(rows, length, heads, head)).reshape(rows, length, keys, heads // keys, head)
        k = turned((h @ w["k"]).reshape(rows, length, keys, head))
        v = (h @ w["v"]).reshape(rows, length, keys, head)
        scores = jnp.einsum("bsgqd,btgd->bgqst", q, k) / np.sqrt(head)
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e30)
        seen = jnp.einsum("bgqst,btgd->bsgqd", jax.nn.softmax(scores, -1), v)
        x = x + seen.reshape(rows, length, heads * head) @ w["o"]
        h = norm(x, w["n2"])
        return constrained(x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"]), None

    def loss(w: Any, tokens: Any, labels: Any) -> Any:
        x, _ = jax.lax.scan(layer, constrained(w["emb"][tokens]), w["layers"])
        logits = norm(x, w["norm"]) @ w["out"]
        right = jnp.sum(logits * jax.nn.one_hot(labels, vocabulary), -1)
        return jnp.mean(jax.nn.logsumexp(logits, -1) - right)

    def update(w: Any, tokens: Any, labels: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(w, tokens, labels)
        return jax.tree.map(lambda a, b: a - 0.1 * b, w, gradient), value

    into, back, none = P(None, "fsdp", "tp"), P(None, "tp", "fsdp"), P()
    shapes = {
        "n1": (hidden,), "n2": (hidden,), "q": (hidden, heads * head), "k": (hidden, keys * head),
        "v": (hidden, keys * head), "o": (heads * head, hidden), "gate": (hidden, inner), "up": (hidden, inner),
        "down": (inner, hidden),
    }  # fmt: skip
    specs = {name: none if len(dims) == 1 else back if name in ("o", "down") else into for name, dims in shapes.items()}
    weights = {
        "emb": array(vocabulary, hidden), "out": array(hidden, vocabulary), "norm": array(hidden),
        "layers": {name: array(layers, *dims) for name, dims in shapes.items()},
    }  # fmt: skip
    sharded = {"emb": P("tp", "fsdp"), "out": P("fsdp", "tp"), "norm": none, "layers": specs}
    placed = jax.tree.map(lambda spec: NamedSharding(mesh, spec), sharded, is_leaf=lambda each: isinstance(each, P))
    ids, batch = jax.ShapeDtypeStruct((rows, length), jnp.int32), NamedSharding(mesh, P("fsdp", None))
    jitted = jax.jit(update, in_shardings=(placed, batch, batch), out_shardings=(placed, NamedSharding(mesh, none)))
    return jitted.lower(weights, ids, ids).as_text()


def planted(text: str, fault: str) -> str:
    """The text of the program of a device with a fault in its first loop."""
    name = re.search(r"(\S+) = \S+ all-reduce\(dot", text)
    assert name is not None
    if fault == "all-reduce":
        return re.sub(r"all-reduce\((dot\S*)\),[^\n]*", r"copy(\1)", text, count=1)
    line = re.search(r"\n  (\S+) = (f32\S+) dynamic-slice\((\S+), (get-tuple-element\S+), ([^\n]*)", text)
    assert line is not None
    number = line[4]
    row = (
        f"\n  seventy = s32[] constant(70)\n  is_seventy = pred[] compare({number}, seventy), direction=EQ\n"
        f"  next_one = s32[] constant(71)\n  row = s32[] select(is_seventy, next_one, {number})\n"
        f"  {line[1]} = {line[2]} dynamic-slice({line[3]}, row, {line[5]}"
    )
    return text.replace(line[0], row, 1)


def main(arguments: list[str]) -> int:
    """Print the verdict; gives 1 if it is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = {
        "layers": 126, "sequence": 4, "head": 2, "vocabulary": 512, "hidden": HIDDEN, "inner": INNER, "heads": HEADS,
        "keys": KEYS,
    }  # fmt: skip
    for name, size in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--mesh", default="64x8")
    parser.add_argument("--fault", choices=("all-reduce", "row"))
    parser.add_argument("--lower", type=Path, help="only write the lowered text to this file")
    options = parser.parse_args(arguments)
    if options.lower is not None:
        options.lower.write_text(step(options))
        return 0
    import xbuild as xb

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "step.mlir"
        subprocess.run([sys.executable, "-m", "benchmarks.llama_step", *arguments, "--lower", str(path)], check=True)
        whole = xb.parse(path.read_text())
    begun = time.process_time()
    local = xb.shard.partition(whole)
    print(f"partitioned for {local.module.num_devices} devices in {time.process_time() - begun:.1f} s", flush=True)
    begun, waited = time.process_time(), time.perf_counter()
    layouts = {"inputs": local.in_shardings, "outputs": local.out_shardings}
    other = local if options.fault is None else xb.parse_hlo(planted(local.module.to_hlo(), options.fault))
    verdict = xb.equivalent(whole, other, **({} if options.fault is None else layouts))
    seconds, peak = time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(verdict)
    print(f"{seconds:.0f} s of the processor, {time.perf_counter() - waited:.0f} s in all, peak {peak:.1f} GiB")
    return int(verdict.kind != ("equal" if options.fault is None else "different"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
