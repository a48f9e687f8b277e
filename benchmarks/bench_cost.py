"""The cost of `xb.cost` for thousands of devices: its seconds and its peak memory."""

from __future__ import annotations

import gzip
import os
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

import xbuild as xb
from benchmarks.conftest import Row

FOLDER = Path(os.environ.get("XBUILD_PROGRAMS", "../shared/cases/xla_programs"))
"""The folder of real programs, NAME.hlo.gz; without it those rows are skipped."""

MESH = xb.Mesh(a=16, b=16, c=16)


def layers(count: int) -> xb.Module:
    """A program of `count` instructions on 4,096 devices, whose collectives alternate between three axes."""
    x = xb.parameter(xb.Builder("layers"), number=0, shape=xb.f32[256, 256])
    groups = [MESH.groups((axis,)) for axis in MESH.axes]
    for n in range(count // 4):
        y = xb.tanh(xb.dot(x, x))
        x = xb.all_reduce(y + x, xb.add, replica_groups=groups[n % 3])
    return xb.Module("layers", x.builder.build(x), num_replicas=MESH.num_devices)


def real(name: str, devices: int) -> xb.Module:
    text = gzip.decompress((FOLDER / f"{name}.hlo.gz").read_bytes()).decode()
    return attrs.evolve(xb.parse_hlo(text), num_partitions=devices)


PROGRAMS: dict[str, Callable[[], xb.Module]] = {"10,000 instructions on 4,096 devices": lambda: layers(10_000)}
if FOLDER.is_dir():
    PROGRAMS["Llama 3.1 405B on 512 devices"] = lambda: real("hlo_llama31_405b_bf16_64x8", 512)


def counted(module: xb.Module) -> xb.Cost:
    cost = xb.cost(module)
    cost.memory  # noqa: B018  (found when asked for)
    return cost


@pytest.mark.parametrize("name", PROGRAMS)
def test_cost(rows: list[Row], name: str) -> None:
    module = PROGRAMS[name]()
    start = time.perf_counter()
    counted(module)
    rows.append(Row(f"cost of {name}", time.perf_counter() - start, unit="s"))


@pytest.mark.parametrize("count", [1_000, 10_000, 100_000])
def test_growth(rows: list[Row], count: int) -> None:
    """The time per instruction must hardly grow over two decades."""
    module = layers(count)
    start = time.process_time()
    counted(module)
    seconds = time.process_time() - start
    rows.append(Row(f"cost of an instruction of {count:,} on 4,096 devices", seconds / count))


@pytest.mark.parametrize("name", PROGRAMS)
def test_memory_of_cost(rows: list[Row], name: str) -> None:
    module = PROGRAMS[name]()
    tracemalloc.start()
    try:
        counted(module)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    rows.append(Row(f"memory taken by the cost of {name}", peak / 1e6, unit="MB"))
