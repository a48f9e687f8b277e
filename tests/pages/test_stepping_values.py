"""Values in `xbuild step`: printed, drawn as bars, compared between devices, and not kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import trace
from tests.pages.scripts import said
from xbuild.stepping.console import STYLES, StyledText
from xbuild.stepping.looking import inline_bars, value_lines
from xbuild.traces import Trace, summary


def test_values(traces: dict[str, Trace]) -> None:
    lines, failed = said(traces["loop"], "print\nprint v[1]\nprint max(abs(v))\nto end\nprint while.24\n")
    assert not failed
    assert lines[2:7] == [
        "parameter.1 f32[2,3] =", "  0  1  2", "  3  4  5", "parameter.1 v[1] f32[3] = 3  4  5",
        "parameter.1 max(abs(v)) = 5.",
    ]  # fmt: skip
    assert lines[-4:] == ["while.24 =", "  (0) 4", "  (1)   -4  -2.5    -1", "       0.5     2   3.5"]


def test_large_values_are_told_by_bars() -> None:
    wide = np.add.outer(np.arange(32.0), np.arange(64.0)).astype(np.float32)
    first, *rows = [*value_lines(wide, "12345678")]
    assert first == ["f32[32,64] 0 .. 94, mean 47"]
    texts = ["".join(piece.text for piece in row if isinstance(piece, StyledText)) for row in rows]
    assert len(texts) == 16
    assert (texts[0][:2], texts[-1][-2:]) == ("11", "88")
    assert all(list(text) == sorted(text) for text in texts)
    assert [*value_lines(summary(wide), "12345678")][1:] == rows
    assert [piece.text for piece in inline_bars(np.array([0.0, np.nan, 7.0, 14.0]), "12345678")] == ["1", "1", "5", "8"]


@pytest.mark.parametrize(
    "value",
    [
        np.array([True, False]), np.array([1 + 2j, np.nan]), np.array([-(2**63), 2**63 - 1]), np.full(3, np.nan),
        np.array([-np.inf, 1e308, -1e308]), np.zeros((0, 3)), np.zeros((2, 0)), np.zeros(1, xb.bf16.dtype),
        np.array([[1.5]], xb.f8e4m3fn.dtype), np.zeros((3, 4, 5)), None, (np.float32(1), None, (np.zeros(2),)), (),
    ],
    ids=str,
)  # fmt: skip
def test_every_value_has_a_picture(value: Any) -> None:
    for line in value_lines(value, "12345678"):
        assert "\n" not in "".join(piece if isinstance(piece, str) else piece.text for piece in line)
        assert all(piece.style in STYLES for piece in line if isinstance(piece, StyledText))


def test_devices_that_part(traces: dict[str, Trace]) -> None:
    lines, _ = said(traces["loop"], "part 0 1\n")
    assert lines[-10:] == [
        "parameter.1 on device 0 = [[0., 1., 2.], [3., 4., 5.]]",
        "parameter.1 on device 1 = [[0., 2., 4.], [6., 8., 10.]]",
        "the values differ at [0, 1], by at most 5",
        "  element  device 0  device 1",
        "  [0, 1]   1.        2.",
        "  [0, 2]   2.        4.",
        "  [1, 0]   3.        6.",
        "  [1, 1]   4.        8.",
        "  [1, 2]   5.        10.",
        "  5 of 6 elements differ",
    ]
    same, failed = said(traces["loop"], "to end\ndiff while.24 0 1\npart 0 0\n")
    assert same[-1] == "devices 0 and 0 have the same recorded values"
    assert "the same" in same[-2]
    assert not failed


def test_without_values(traces: dict[str, Trace]) -> None:
    lines, failed = said(traces["none"], "n\np\np v[0]\nwhere\ndiff 0 1\nto end\npart 0 1\nlist 2\n")
    assert not failed
    assert "replica-id.2 = not kept" in lines
    assert "not compared: a value was not recorded" in lines


def test_an_empty_tuple_is_printed() -> None:
    module = xb.Module("none", xb.computation(xb.f32[()])(lambda x: xb.tuple_((), builder=x.builder)))
    lines, failed = said(trace(module, [[1.0]]), "to end\nprint\n")
    assert not failed
    assert lines[-1].endswith(" = ()")
