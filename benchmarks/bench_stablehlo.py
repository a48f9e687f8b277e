"""The speed of reading StableHLO text, in thousands of operations a second, against our reader of HLO text."""

from __future__ import annotations

import functools

import pytest

import xbuild as xb
from benchmarks.conftest import SideBySide

SIZES = [1_000, 10_000, 100_000]
WAYS = ["without locations", "with locations"]

_LINES = [
    ("add(v{0}, v{1})", "stablehlo.add %v{0}, %v{1} : tensor<8x16xf32>"),
    ("tanh(v{0})", "stablehlo.tanh %v{0} : tensor<8x16xf32>"),
    (
        "dot(v{0}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
        "stablehlo.dot_general %v{0}, %w, contracting_dims = [1] x [0] : "
        "(tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>",
    ),
    ("maximum(v{0}, v{1})", "stablehlo.maximum %v{0}, %v{1} : tensor<8x16xf32>"),
    ("reverse(v{0}), dimensions={{1}}", "stablehlo.reverse %v{0}, dims = [1] : tensor<8x16xf32>"),
]


@functools.lru_cache(maxsize=2)
def texts(count: int, way: str) -> tuple[str, str]:
    """The HLO text and StableHLO text of one program; locations are metadata in HLO."""
    is_located = way == "with locations"
    hlo = ["HloModule m\n\nENTRY main {", "  v0 = f32[8,16]{1,0} parameter(0)", "  w = f32[16,16]{1,0} parameter(1)"]
    mlir = ["func.func public @main(%v0: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> tensor<8x16xf32> {"]
    locations = ['#loc = loc("model.py":3:4)']
    for number in range(count):
        ours, theirs = (line.format(number, max(0, number - 3)) for line in _LINES[number % 5])
        note = f', metadata={{op_name="f/op{number}" source_file="model.py" source_line=3}}' if is_located else ""
        root = "ROOT " if number == count - 1 else ""
        hlo.append(f"  {root}v{number + 1} = f32[8,16]{{1,0}} {ours}{note}")
        mlir.append(f"  %v{number + 1} = {theirs}{f' loc(#loc{number + 1})' if is_located else ''}")
        locations.append(f'#loc{number + 1} = loc("f/op{number}"(#loc))')
    mlir += [f"  return %v{count} : tensor<8x16xf32>", "}", *(locations if is_located else [])]
    return "\n".join([*hlo, "}\n"]), "\n".join([*mlir, ""])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("count", SIZES)
def test_read(side_by_side: SideBySide, count: int, way: str) -> None:
    """Both readers infer all shapes again and compare them."""
    hlo, mlir = texts(count, way)
    side_by_side.rate(
        f"read StableHLO {way}, of {count:,}, beside HLO",
        lambda: xb.parse_stablehlo(mlir),
        lambda: xb.parse_hlo(hlo),
        units=count,
        rounds=max(1, min(15, 100_000 // count)),
    )
