"""Attention in blocks with running maxima, written with JAX in several ways, right and broken, beside plain attention.

`python -m tests.equivalence.flash [WORD]...` prints the verdict on each pair whose name contains a word, and the time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from attrs import frozen

import xbuild as xb

ROOT = Path(__file__).parents[2]
LENGTH, FEATURES, BLOCK, DEVICES = 8, 4, 2, 4
FAULTS = ("no rescaling", "denominator not rescaled", "block left out", "maximum too large", "mask off by one")


@frozen
class Case:
    """Two programs as StableHLO text, and the kind of the verdict."""

    name: str
    plain: str
    blocks: str
    kind: str

    def verdict(self) -> Any:
        return xb.equivalent(self.plain, self.blocks)


def cases(*words: str) -> list[Case]:
    """The cases whose names contain one of the words, traced by JAX in a process of its own."""
    flags = f"--xla_force_host_platform_device_count={DEVICES}"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.equivalence.flash", "--texts", *words],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return [Case(*row) for row in json.loads(done.stdout.splitlines()[-1])]


# ----------------------------------------------------------------------------
# The programs; what follows runs in the process that has JAX.


def plain(q: Any, k: Any, v: Any, *, causal: bool) -> Any:
    """Softmax of all scores at once."""
    import jax
    from jax import numpy as jnp

    scores = q @ k.T / jnp.sqrt(FEATURES).astype(q.dtype)
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), scores, -jnp.inf)
    return jax.nn.softmax(scores, axis=-1) @ v


def first_state(q: Any, fault: str) -> Any:
    """The maximum, the sum and the product before the first block."""
    from jax import numpy as jnp

    low = 1e3 if fault == "maximum too large" else -jnp.inf
    return jnp.full(q.shape[:1], low, q.dtype), jnp.zeros(q.shape[:1], q.dtype), jnp.zeros(q.shape, q.dtype)


def added(state: Any, q: Any, k: Any, v: Any, mask: Any, fault: str) -> Any:
    """The state with one more block of keys and values."""
    from jax import numpy as jnp

    top, total, product = state
    scores = q @ k.T / jnp.sqrt(FEATURES).astype(q.dtype)
    scores = scores if mask is None else jnp.where(mask, scores, -jnp.inf)
    new = jnp.maximum(top, scores.max(-1))
    safe = jnp.where(jnp.isinf(new), 0.0, new).astype(q.dtype)  # a row of which no key has been seen
    weights, scale = jnp.exp(scores - safe[:, None]), jnp.exp(top - safe)
    total = total if fault == "denominator not rescaled" else total * scale
    product = product if fault == "no rescaling" else product * scale[:, None]
    return new, total + weights.sum(-1), product + weights @ v


def mask_of(first_row: Any, rows: int, first_key: Any, keys: int, fault: str) -> Any:
    """Which keys each row of a causal attention sees."""
    from jax import numpy as jnp

    ahead = 1 if fault == "mask off by one" else 0
    return first_row + jnp.arange(rows)[:, None] + ahead >= first_key + jnp.arange(keys)[None]


def scanned(q: Any, k: Any, v: Any, *, causal: bool, fault: str) -> Any:
    """A scan over blocks of keys."""
    import jax
    from jax import lax
    from jax import numpy as jnp

    def body(state: Any, block: Any) -> Any:
        number, keys, values = block
        mask = mask_of(0, LENGTH, number * BLOCK, BLOCK, fault) if causal else None
        return added(state, q, keys, values, mask, fault), None

    blocks = jnp.arange(LENGTH // BLOCK), *(x.reshape(-1, BLOCK, FEATURES) for x in (k, v))
    if fault == "block left out":
        blocks = jax.tree.map(lambda x: x[1:], blocks)
    (_, total, product), _ = lax.scan(body, first_state(q, fault), blocks)
    return product / total[:, None]


def unrolled(q: Any, k: Any, v: Any, *, causal: bool, fault: str) -> Any:
    """The blocks one after the other."""
    state = first_state(q, fault)
    for first in range(0, LENGTH, BLOCK):
        if fault == "block left out" and first == 2 * BLOCK:
            continue
        mask = mask_of(0, LENGTH, first, BLOCK, fault) if causal else None
        state = added(state, q, k[first : first + BLOCK], v[first : first + BLOCK], mask, fault)
    return state[2] / state[1][:, None]


def looped(q: Any, k: Any, v: Any, *, causal: bool, fault: str) -> Any:
    """A loop that takes the blocks out of the arrays."""
    from jax import lax

    def body(number: Any, state: Any) -> Any:
        keys, values = (lax.dynamic_slice_in_dim(x, number * BLOCK, BLOCK) for x in (k, v))
        mask = mask_of(0, LENGTH, number * BLOCK, BLOCK, fault) if causal else None
        return added(state, q, keys, values, mask, fault)

    first = 1 if fault == "block left out" else 0
    _, total, product = lax.fori_loop(first, LENGTH // BLOCK, body, first_state(q, fault))
    return product / total[:, None]


def split(q: Any, k: Any, v: Any, *, causal: bool, fault: str) -> Any:
    """Two halves, each with its own maximum, that are combined at the end."""
    from jax import numpy as jnp

    halves = slice(LENGTH // 2), slice(LENGTH // 2, LENGTH)
    masks = [mask_of(0, LENGTH, half.start or 0, LENGTH // 2, fault) if causal else None for half in halves]
    states = [
        added(first_state(q, fault), q, k[half], v[half], mask, "") for half, mask in zip(halves, masks, strict=True)
    ]
    if fault == "block left out":
        states = states[:1]
    top = states[0][0]
    for each in states[1:]:
        top = jnp.maximum(top, each[0])
    scales = [jnp.exp(each[0] - top) for each in states]
    unscaled = fault == "denominator not rescaled"
    total = sum(each[1] if unscaled else scale * each[1] for scale, each in zip(scales, states, strict=True))
    product = sum(
        each[2] if fault == "no rescaling" else scale[:, None] * each[2]
        for scale, each in zip(scales, states, strict=True)
    )
    return product / total[:, None]


def by_logarithms(q: Any, k: Any, v: Any, *, causal: bool, fault: str) -> Any:
    """Two halves, each normalized, that are combined by the logarithms of their sums, as split keys on devices are."""
    from jax import numpy as jnp

    parts = []
    for first in (0,) if fault == "block left out" else (0, LENGTH // 2):
        half = slice(first, first + LENGTH // 2)
        mask = mask_of(0, LENGTH, first, LENGTH // 2, fault) if causal else None
        top, total, product = added(first_state(q, ""), q, k[half], v[half], mask, "")
        safe = jnp.where(total == 0, 1.0, total).astype(q.dtype)
        parts.append((jnp.where(total == 0, -jnp.inf, top + jnp.log(safe)), product / safe[:, None]))
    whole = parts[0][0]
    for logarithm, _ in parts[1:]:
        whole = jnp.logaddexp(whole, logarithm)
    if fault == "denominator not rescaled":
        whole = parts[0][0]
    if fault == "maximum too large":
        whole = whole + 1.0
    weights = [1.0 if fault == "no rescaling" else jnp.exp(logarithm - whole)[:, None] for logarithm, _ in parts]
    return sum(weight * product for weight, (_, product) in zip(weights, parts, strict=True)).astype(q.dtype)


def ring(*, causal: bool, fault: str) -> Any:
    """Devices hold parts of all arrays; keys and values go round."""
    import jax
    import numpy as np
    from jax import lax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(jax.devices()[:DEVICES]), ("i",))
    spec, own = PartitionSpec("i"), LENGTH // DEVICES

    def body(q: Any, k: Any, v: Any) -> Any:
        here = lax.axis_index("i")
        state = jax.tree.map(lambda x: lax.pcast(x, ("i",), to="varying"), first_state(q, fault))
        for turn in range(DEVICES - 1 if fault == "block left out" else DEVICES):
            mask = mask_of(here * own, own, (here - turn) % DEVICES * own, own, fault) if causal else None
            state = added(state, q, k, v, mask, fault)
            k, v = (lax.ppermute(x, "i", [(d, (d + 1) % DEVICES) for d in range(DEVICES)]) for x in (k, v))
        return state[2] / state[1][:, None]

    mapped = jax.shard_map(body, mesh=mesh, in_specs=(spec,) * 3, out_specs=spec)
    sharding = NamedSharding(mesh, spec)
    return jax.jit(mapped, in_shardings=(sharding,) * 3, out_shardings=sharding)


def of_jax(q: Any, k: Any, v: Any, *, causal: bool, fault: str) -> Any:
    """JAX's own attention, which masks with a large finite number."""
    import jax

    q, k, v = (x[None, :, None] for x in (q, k, v))
    return jax.nn.dot_product_attention(q, k, v, is_causal=causal)[0, :, 0]


WAYS: dict[str, Callable[..., Any]] = {
    "scan": scanned, "unrolled": unrolled, "loop": looped, "halves": split,
    "logarithms": by_logarithms, "ring": ring, "jax.nn": of_jax,
}  # fmt: skip


def texts(words: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    """The rows of the cases."""
    import jax

    for dtype in ("float32", "bfloat16"):
        shapes = [jax.ShapeDtypeStruct((LENGTH, FEATURES), dtype)] * 3
        for causal in (False, True):
            whole = jax.jit(partial(plain, causal=causal)).lower(*shapes).as_text()
            for way, function in WAYS.items():
                for fault in ("", *FAULTS):
                    name = f"{way}, {'causal' if causal else 'full'}, {dtype}{', ' if fault else ''}{fault}"
                    if (fault and way == "jax.nn") or (fault == "mask off by one" and not causal):
                        continue
                    if words and not any(word in name for word in words):
                        continue
                    given = {"causal": causal, "fault": fault}
                    made = function(**given) if way == "ring" else jax.jit(partial(function, **given))
                    # Which logarithm is larger, and the size of what they differ by, are chosen independently.
                    is_open = way == "logarithms" and not causal
                    kind = "different" if fault else "undecided" if is_open else "equal"
                    yield name, whole, made.lower(*shapes).as_text(), kind


def main(words: Sequence[str]) -> int:
    """Print the rows of the cases as JSON, or the verdict on each."""
    if words[:1] == ["--texts"]:
        print(json.dumps([*texts(words[1:])]))
        return 0
    wrong = 0
    for case in cases(*words):
        begun = time.perf_counter()
        kind = case.verdict().kind
        wrong += kind != case.kind
        mark = "" if kind == case.kind else f"  expected {case.kind}"
        print(f"{case.name:56} {kind:10} {time.perf_counter() - begun:.1f} s{mark}", flush=True)
    print(f"{wrong} other than expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
