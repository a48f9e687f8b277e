"""The speed of reading and printing text, in thousands of instructions a second, against XLA's reader and printer."""

from __future__ import annotations

import functools
import tracemalloc
from typing import Any

import pytest

import xbuild as xb
from benchmarks.conftest import Row, SideBySide

SIZES = [1_000, 10_000, 100_000, pytest.param(1_000_000, marks=pytest.mark.slow)]


@functools.lru_cache(maxsize=1)
def text(count: int) -> str:
    """Five kinds of instruction, alternating, each on the previous result."""
    builder = xb.Builder("long")
    x = xb.ops.parameter(builder, number=0, shape=xb.f32[4, 4])
    for _ in range(count // 5):
        y = xb.ops.transpose(xb.ops.add(x, x), permutation=(1, 0))
        x = xb.ops.get_tuple_element(xb.ops.tuple_([xb.ops.negate(y)]), index=0)
    return xb.Module("long", builder.build(x)).to_hlo()


def rounds(count: int) -> int:
    return max(1, min(15, 300_000 // count))


@pytest.mark.parametrize("count", SIZES)
def test_read(side_by_side: SideBySide, count: int) -> None:
    """Ours infers all shapes again and compares them, which XLA's reader leaves to later passes."""
    hlo, source = pytest.importorskip("jaxlib._hlo"), text(count)
    side_by_side.rate(
        f"read and infer, of {count:,}",
        lambda: xb.parse_hlo(source),
        lambda: hlo.hlo_module_from_text(source),
        units=count,
        rounds=rounds(count),
    )


@pytest.mark.parametrize("count", SIZES)
def test_print(side_by_side: SideBySide, count: int) -> None:
    hlo, source = pytest.importorskip("jaxlib._hlo"), text(count)
    ours, reference = xb.parse_hlo(source), hlo.hlo_module_from_text(source)
    side_by_side.rate(f"print, of {count:,}", ours.to_hlo, reference.to_string, units=count, rounds=rounds(count))


@pytest.mark.parametrize("count", SIZES)
def test_print_stablehlo(side_by_side: SideBySide, count: int) -> None:
    """Compared with our printer of HLO text."""
    ours = xb.parse_hlo(text(count))
    side_by_side.rate(
        f"print as StableHLO, of {count:,}", ours.to_stablehlo, ours.to_hlo, units=count, rounds=rounds(count)
    )


def test_memory_of_reading(benchmark: Any, rows: list[Row]) -> None:
    """Memory beyond the text itself; only the module stays."""
    count = 100_000
    source = text(count)

    def read() -> None:
        tracemalloc.start()
        module = xb.parse_hlo(source)
        kept, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(module.entry.instructions) > count // 2
        rows.append(Row("most memory while an instruction is read", most / count, unit="bytes"))
        rows.append(Row("memory of an instruction that was read", kept / count, unit="bytes"))

    benchmark.pedantic(read, rounds=1)
