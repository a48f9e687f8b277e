"""A gradient that XLA compiles to a wrong program, proved wrong before it runs (openxla/xla issue 42481).

The fault appears with jaxlib 0.10.2; newer versions refuse these programs. `python -m examples.miscompiled` compiles
one program for eight CPU devices, checks whether it computes the function that JAX lowered, and runs it to compare the
result with NumPy. `python -m examples.miscompiled --all` tests 105 combinations of shardings in a few minutes.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
from attrs import frozen

import xbuild as xb
from examples.extras import wanted

with wanted("xla"):
    import jax
    from jax.sharding import AxisType
    from jax.sharding import PartitionSpec as P

ROWS, FEATURES, BATCH, LENGTH = 16, 4, 4, 4

# Shardings of the embedding table, of its copy for the lookup, and of the ids and the rows that are looked up.
PARAMETERS: list[Any] = [P("tp", None), P(), P("dp", None), P(None, "tp"), P("dp", "tp")]
RESHARDS: list[Callable[[], Any] | None] = [
    lambda: P("tp", None, reduced={"dp"}),
    lambda: P(None, None, reduced={"dp"}),
    lambda: P(None, None, reduced={"tp"}),
    lambda: P(None, None, reduced={"dp", "tp"}),
    lambda: P(None, "tp", reduced={"dp"}),
    lambda: P("dp", None, reduced={"tp"}),
    None,
]
LOOKUPS: list[tuple[Any, Any]] = [
    (P("dp", "tp"), P("dp", "tp", None)),
    (P("dp", None), P("dp", None, None)),
    (P("dp", None), P("dp", None, "tp")),
]
COMBINATIONS = [*product(PARAMETERS, RESHARDS, LOOKUPS)]


@frozen
class Outcome:
    """The verdict of xbuild on one compiled program, its time in seconds, and the largest error against NumPy."""

    verdict: Any
    seconds: float
    error: float

    @property
    def is_wrong(self) -> bool:
        return self.error > 1e-4


def lower(parameter: Any, reshard: Callable[[], Any] | None, lookup: tuple[Any, Any]) -> tuple[Any, tuple[Any, Any]]:
    """The lowered gradient of an embedding lookup under these shardings, and its arguments."""
    random = np.random.default_rng(0)
    ids = random.integers(0, ROWS, (BATCH, LENGTH)).astype(np.int32)
    table = random.normal(size=(ROWS, FEATURES)).astype(np.float32)

    def loss(table: Any, ids: Any) -> Any:
        weights = table if reshard is None else jax.reshard(table, reshard())
        rows = weights.at[ids].get(out_sharding=lookup[1])
        return (rows * rows).sum()

    arguments = jax.device_put(table, parameter), jax.device_put(ids, lookup[0])
    return jax.jit(jax.grad(loss)).lower(*arguments), arguments


def largest_error(compiled: Any, table: Any, ids: Any) -> float:
    """Run the compiled gradient, and return its largest error against NumPy."""
    values, numbers = np.asarray(table), np.asarray(ids).ravel()
    expected = np.zeros_like(values)
    np.add.at(expected, numbers, 2 * values[numbers])
    return float(np.abs(np.asarray(compiled(table, ids)) - expected).max())


def compile_and_compare(parameter: Any, reshard: Callable[[], Any] | None, lookup: tuple[Any, Any]) -> Outcome:
    """Compile the gradient of an embedding lookup under these shardings, prove or refute it, and run it."""
    lowered, arguments = lower(parameter, reshard, lookup)
    compiled = lowered.compile()
    begin = time.perf_counter()
    verdict = xb.prove(lowered, compiled)
    seconds = time.perf_counter() - begin
    return Outcome(verdict, seconds, largest_error(compiled, *arguments))


def outcomes() -> Iterator[Outcome]:
    """Yield the outcome for every combination of shardings."""
    for combination in COMBINATIONS:
        yield compile_and_compare(*combination)


def use_eight_devices() -> None:
    jax.config.update("jax_num_cpu_devices", 8)
    jax.set_mesh(jax.make_mesh((4, 2), ("dp", "tp"), axis_types=(AxisType.Explicit,) * 2))


def main() -> None:
    parser = argparse.ArgumentParser(description="Prove that XLA compiled a gradient to a wrong program.")
    parser.add_argument("--all", action="store_true", help="All 105 combinations of shardings, and a table.")
    is_all = parser.parse_args().all
    if jax.__version__ != "0.10.2":
        print(f"expected jax 0.10.2, which has the fault, got jax {jax.__version__}: pip install jax==0.10.2")
        return
    use_eight_devices()
    if not is_all:
        outcome = compile_and_compare(PARAMETERS[0], RESHARDS[0], LOOKUPS[0])
        print(outcome.verdict)
        print(f"\nXLA compiled the program without a warning. In a run, its largest error is {outcome.error:.1f}.")
        return
    results = list(outcomes())
    counts = Counter((result.is_wrong, result.verdict.kind) for result in results)
    for (is_wrong, kind), count in sorted(counts.items()):
        print(f"{count:>3} compiled {'wrong' if is_wrong else 'right'}: {kind}")
    seconds = sorted(result.seconds for result in results)
    print(f"{len(results)} programs; median {seconds[len(seconds) // 2]:.2f} s each")


if __name__ == "__main__":
    main()
