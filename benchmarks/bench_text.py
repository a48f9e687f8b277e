"""What it costs to read and to print HLO text of 100,000 instructions, against XLA's own reader and printer."""

from __future__ import annotations

from typing import Any

import pytest

import xbuild as xb

INSTRUCTIONS = 100_000


@pytest.fixture(scope="module")
def text() -> str:
    builder = xb.Builder("long")
    x = xb.ops.parameter(builder, number=0, shape=xb.f32[4, 4])
    for _ in range(INSTRUCTIONS // 4):
        y = xb.ops.transpose(xb.ops.add(x, x), permutation=(1, 0))
        x = xb.ops.get_tuple_element(xb.ops.tuple_([xb.ops.negate(y)]), index=0)
    return xb.Module("long", builder.build(x)).to_hlo()


def test_read(side_by_side: Any, text: str) -> None:
    hlo = pytest.importorskip("jaxlib._hlo")
    what = "read, infer and verify an instruction of 100,000"
    side_by_side(what, lambda: xb.parse_hlo(text), lambda: hlo.hlo_module_from_text(text), units=INSTRUCTIONS, rounds=3)


def test_print(side_by_side: Any, text: str) -> None:
    hlo = pytest.importorskip("jaxlib._hlo")
    ours, reference = xb.parse_hlo(text), hlo.hlo_module_from_text(text)
    side_by_side("print an instruction of 100,000", ours.to_hlo, reference.to_string, units=INSTRUCTIONS, rounds=3)
