"""How CPU time grows with elements, instructions, trips and replicas: `python -m benchmarks.eval.growth`."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import xbuild as xb

from .children import pin

F = np.float32
REPEATS = 3


def seconds(run: Callable[..., Any], *given: Any) -> float:
    """The least CPU time of a run, of several; short runs are repeated."""
    found, count = [], 1
    for _ in range(REPEATS):
        start = time.process_time()
        for _ in range(count):
            run(*given)
        found.append((time.process_time() - start) / count)
        count = max(1, int(0.02 / max(found[-1], 1e-6)))
    return max(min(found[1:]), 1e-7)


def once_each(run: Callable[[Any], Any], make: Callable[[], Any]) -> float:
    """The least CPU time of a run on something new."""
    found = []
    for _ in range(REPEATS):
        new = make()
        start = time.process_time()
        run(new)
        found.append(time.process_time() - start)
    return max(min(found), 1e-7)


def chain(dims: tuple[int, ...], length: int) -> xb.Computation:
    """So many operations on arrays, one after another."""

    def body(x: Any, y: Any) -> Any:
        value = x
        for _ in range(length // 4):
            value = abs(xb.maximum(value * y, x) - y)
        return value

    return xb.computation(xb.f32[dims], xb.f32[dims])(body)


def by_numpy(x: Any, y: Any, length: int) -> Any:
    value = x
    for _ in range(length // 4):
        value = np.abs(np.maximum(value * y, x) - y)
    return value


def elements() -> Iterator[tuple[str, int, float]]:
    """A chain of 40 operations on vectors: a run, next to NumPy."""
    for size in (100, 1_000, 10_000, 100_000, 1_000_000):
        program, x = chain((size,), 40), np.linspace(1, 2, size, dtype=F)
        xb.evaluate(program, x, x)
        yield "NumPy by hand", size, seconds(by_numpy, x, x, 40)
        yield "xbuild, a run", size, seconds(xb.evaluate, program, x, x)


def instructions() -> Iterator[tuple[str, int, float]]:
    """A chain of n operations: recording, printing, reading, checking, and the first run with its plan."""
    x = np.ones(4, F)
    for size in (100, 1_000, 10_000, 100_000):
        program = xb.Module("m", chain((4,), size))
        text = program.to_hlo()
        yield "record", size, seconds(chain, (4,), size)
        yield "print", size, seconds(program.to_hlo)
        yield "read", size, seconds(xb.parse_hlo, text)
        yield "check", size, once_each(xb.check, partial(xb.parse_hlo, text))
        yield "first run", size, once_each(partial(_run, x=x), partial(chain, (4,), size))


def _run(program: Any, x: Any) -> Any:
    return xb.evaluate(program, x, x)


def trips() -> Iterator[tuple[str, int, float]]:
    """A loop over two numbers: Python by hand, the interpreter, and the engine auto after its choice."""
    program = xb.computation(xb.s32[()], xb.f32[()])(
        lambda n, x: xb.while_(
            xb.tuple_([n, x]), condition=lambda s: s[0] > 0, body=lambda s: xb.tuple_([s[0] - 1, s[1] * 0.5 + 1.0])
        )
    )
    for _ in range(40):
        xb.evaluate(program, 200_000, 1.0, engine="auto")
    for size in (100, 1_000, 10_000, 100_000, 1_000_000):
        yield "NumPy scalars by hand", size, seconds(_loop, size)
        yield "xbuild, a run", size, seconds(xb.evaluate, program, size, 1.0)
        yield "xbuild, engine auto", size, seconds(partial(xb.evaluate, engine="auto"), program, size, 1.0)


def _loop(count: int) -> Any:
    x = F(1)
    while count > 0:
        count, x = count - 1, x * F(0.5) + F(1)
    return x


def replicas() -> Iterator[tuple[str, int, float]]:
    """A step with two all-reduces on f32[64] per replica: the check, and a run, next to stacked NumPy."""

    def body(x: Any) -> Any:
        mean = xb.cross_replica_sum(x * 0.5)
        return xb.tanh(mean) + xb.cross_replica_sum(x * x)

    entry = xb.computation(xb.f32[64])(body)
    for size in (1, 4, 16, 64, 256, 1024):
        program, rows = xb.Module("m", entry, num_replicas=size), [[np.full(64, n, F)] for n in range(size)]
        stacked = np.concatenate([row[0][None] for row in rows])
        yield "check", size, once_each(xb.check, partial(xb.Module, "m", entry, num_replicas=size))
        xb.execute(program, rows)
        yield "xbuild, a run", size, seconds(xb.execute, program, rows)
        yield "NumPy, stacked by hand", size, seconds(_step, stacked)


def _step(x: Any) -> Any:
    return np.tanh((x * F(0.5)).sum(0)) + (x * x).sum(0)


SERIES = {"elements": elements, "instructions": instructions, "trips": trips, "replicas": replicas}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.eval.growth", description=__doc__)
    parser.add_argument("--save", type=Path, metavar="FILE", required=True, help="write the figures to this JSON file")
    given = parser.parse_args()
    pin()
    found: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for name, series in SERIES.items():
        lines = found.setdefault(name, {})
        for label, size, value in series():
            lines.setdefault(label, []).append((size, value))
            print(f"{name:14}{label:26}{size:>10,}{value * 1e3:12.4g} ms", flush=True)
    given.save.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
