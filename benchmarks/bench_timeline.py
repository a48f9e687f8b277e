"""The cost of computing a timeline: many devices, pipelines of one program per stage, a large model."""

from __future__ import annotations

import gzip
import math
import resource
import time
from pathlib import Path
from typing import Any

import pytest

import xbuild as xb
from benchmarks.conftest import Row
from benchmarks.pipelines import ideal_bubble, pipeline
from xbuild.files.targets import load

MESH = xb.Mesh(x=16, y=16, z=16)
PROGRAMS = Path(__file__).parents[2] / "shared" / "cases" / "xla_programs"
FLAT = xb.Machine(flops=1e12, memory_bandwidth=math.inf)
"""A machine on which only products take time, so that a pipeline's bubble is that of its schedule."""


def on_a_mesh(instructions: int) -> xb.Module:
    """One program for 4,096 devices in which every tenth instruction is a collective along one of three axes."""
    builder = xb.Builder("mesh")
    value = xb.parameter(builder, number=0, shape=xb.bf16[512, 512])
    adder = xb.computation(xb.bf16[()], xb.bf16[()])(xb.ops.add)
    groups = [MESH.groups([axis]) for axis in MESH.axes]
    for n in range(instructions):
        if n % 10:
            value = xb.dot(value, value) if n % 3 else xb.ops.add(value, value)
        else:
            value = xb.ops.all_reduce(
                value, to_apply=adder, replica_groups=groups[n // 10 % 3], channel_id=n + 1, use_global_device_ids=True
            )
    return xb.Module("mesh", builder.build(value), num_partitions=MESH.num_devices)


def seconds_of(benchmark: Any, program: xb.Module | xb.ModuleGroup, machine: xb.Machine | str) -> xb.Timeline:
    return benchmark.pedantic(xb.timeline, (program, machine), rounds=1)  # type: ignore[no-any-return]


def test_many_devices(benchmark: Any, rows: list[Row]) -> None:
    module = on_a_mesh(10_000)
    before = _peak()
    found = seconds_of(benchmark, module, "v5p")
    assert len(found.classes) == 1
    what = f"timeline of 10,000 instructions, {found.num_devices:,} devices, 3 axes"
    rows.append(Row(what, benchmark.stats.stats.median, unit="s"))
    rows.append(Row("  memory beside the program", _peak() - before, unit="MB"))
    rows.append(Row("  memory of the process", _peak(), unit="MB"))


@pytest.mark.parametrize("count", [1_000, 10_000, 100_000])
def test_growth(rows: list[Row], count: int) -> None:
    """The time per instruction must hardly grow over two decades."""
    module = on_a_mesh(count)
    start = time.process_time()
    xb.timeline(module, "v5p")
    seconds = time.process_time() - start
    rows.append(Row(f"timeline of an instruction of {count:,} on 4,096 devices", seconds / count))


@pytest.mark.parametrize(("stages", "microbatches", "chunks"), [(64, 256, 1), (16, 64, 4)])
def test_pipeline(benchmark: Any, rows: list[Row], stages: int, microbatches: int, chunks: int) -> None:
    found = seconds_of(benchmark, pipeline(stages, microbatches, chunks), FLAT)
    what = f"timeline of {stages} stages in {chunks} chunks, {microbatches} microbatches"
    rows.append(Row(what, benchmark.stats.stats.median, unit="s"))
    ideal = ideal_bubble(stages, microbatches, chunks)
    rows.append(Row("  bubble, and that of the formula", 100 * found.bubble / found.seconds, 100 * ideal, "%"))


@pytest.mark.skipif(not PROGRAMS.exists(), reason="the programs of XLA are not here")
@pytest.mark.parametrize("name", ["hlo_llama31_405b_bf16_64x8", "hlo_mixtral_8x7b_bf16_2x8"])
def test_large_model(benchmark: Any, rows: list[Row], name: str, tmp_path: Path) -> None:
    file = tmp_path / f"{name}.hlo"
    file.write_bytes(gzip.decompress((PROGRAMS / f"{name}.hlo.gz").read_bytes()))
    program = load(str(file))
    found = seconds_of(benchmark, program, "h100")
    rows.append(Row(f"timeline of {name}, {found.num_devices} devices", benchmark.stats.stats.median, unit="s"))


def _peak() -> float:
    """The peak memory of this process, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
