"""Fillers of views whose elements are summed along one dimension and padded along another: each stands once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from tests.sharding.campaign import KINDS, fault, program

CROPPED_BESIDE = """HloModule m
ENTRY e {
  p = s32[3,3] parameter(0), sharding={mesh['z'=4], [{}, {'z'}]}
  c = s32[] constant(FILLER)
  ROOT r = s32[3,1] pad(p, c), padding=-2_2x-1_-1, sharding={mesh['z'=4], [{'z'}, {}]}
}"""
SLICED_THEN_PADDED = """HloModule m
ENTRY e {
  p = f32[8,8] parameter(0), sharding={mesh['x'=4], [{}, {'x'}]}
  s = f32[6,1] slice(p), slice={[0:6], [COLUMN:COLUMN_AFTER]}
  c = f32[] constant(FILLER)
  ROOT r = f32[HEIGHT,1] pad(s, c), padding=LOW_HIGHx0_0, sharding={mesh['x'=4], [{'x'}, {}]}
}"""
TWO_DIMENSIONS = """HloModule m
ENTRY e {
  p = f32[8,8,4] parameter(0), sharding={mesh['x'=2,'y'=2], [{'x'}, {'y'}, {}]}
  c = f32[] constant(FILLER)
  ROOT r = f32[2,1,7] pad(p, c), padding=-5_-1x-3_-4x2_1
}"""


def _same(text: str, given: Any) -> None:
    module = xb.parse_hlo(text)
    made = xb.shard.partition(module)
    assert xb.check(made.module).kind == "ok"
    assert made.run(given).tobytes() == xb.evaluate(module.entry, given).tobytes()


@pytest.mark.parametrize("filler", ["1", "-7", "0", "2147483647"])
def test_a_crop_of_a_cut_dimension_beside_a_pad(filler: str) -> None:
    _same(CROPPED_BESIDE.replace("FILLER", filler), np.arange(9, dtype=np.int32).reshape(3, 3))


@pytest.mark.parametrize("filler", ["1", "-1", "-0.0", "inf", "nan"])
@pytest.mark.parametrize(("column", "low", "high"), [(3, 0, 2), (7, 4, 4)])
def test_a_slice_of_a_cut_dimension_before_a_pad(filler: str, column: int, low: int, high: int) -> None:
    words = {
        "COLUMN_AFTER": column + 1, "COLUMN": column, "FILLER": filler, "HEIGHT": 6 + low + high, "LOW": low,
        "HIGH": high,
    }  # fmt: skip
    text = SLICED_THEN_PADDED
    for word, value in words.items():
        text = text.replace(word, str(value))
    _same(text, np.arange(64, dtype=np.float32).reshape(8, 8))


@pytest.mark.parametrize("filler", ["3", "-0.0"])
def test_two_cut_dimensions_of_which_devices_hold_a_part(filler: str) -> None:
    _same(TWO_DIMENSIONS.replace("FILLER", filler), np.arange(256, dtype=np.float32).reshape(8, 8, 4))


@pytest.mark.parametrize("axes", ["{'x'}", "{}"])
def test_a_zero_keeps_its_sign(axes: str) -> None:
    """Of one row that all devices want, devices add what they hold."""
    text = f"""HloModule m
    ENTRY e {{
      p = f32[8,4] parameter(0), sharding={{mesh['x'=4], [{{'x'}}, {{}}]}}
      ROOT s = f32[1,4] slice(p), slice={{[5:6], [0:4]}}, sharding={{mesh['x'=4], [{{}}, {axes}]}}
    }}"""
    _same(text, np.full((8, 4), -0.0, np.float32))


def test_parts_of_a_sum_keep_the_sign_of_a_zero() -> None:
    text = """HloModule m
    ENTRY e {
      p = f32[] parameter(0), sharding={mesh['x'=4], [], unreduced={'x'}}
      ROOT b = f32[4] broadcast(p), dimensions={}, sharding={mesh['x'=4], [{'x'}]}
    }"""
    _same(text, np.float32(-0.0))


@pytest.mark.parametrize("seed", range(25))
def test_chains_of_views_move_each_bit(seed: int) -> None:
    assert fault(program(seed, [KINDS["views"]])) is None


@pytest.mark.parametrize("padding", [(8, -6), (2, 1)])
def test_a_filler_of_another_precision_than_the_operand(padding: tuple[int, int]) -> None:
    """The result has the wider type, also where no element of the operand is left in it."""

    @xb.computation(xb.f64[6])
    def program(x: xb.Value) -> xb.Value:
        filled = xb.ops.pad(x, xb.constant(x.builder, literal=np.float32(1 / 3)), padding=[padding])
        return filled * filled + filled

    made = xb.shard.partition(xb.shard.annotated(xb.Module("m", program), {0: xb.P("x")}, mesh=xb.Mesh(x=4)))
    found = made.run(np.arange(6.0))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, xb.evaluate(program, np.arange(6.0)), strict=True)


@pytest.mark.parametrize("index", [0, 2, 7, 9])
def test_a_dynamic_slice_keeps_the_sign_of_zero(index: int) -> None:
    text = """HloModule m
ENTRY e {
  a = f32[9] parameter(0), sharding={mesh['x'=4], [{'x'}]}
  i = s32[] parameter(1)
  ROOT g = f32[2] dynamic-slice(a, i), dynamic_slice_sizes={2}
}"""
    module = xb.parse_hlo(text)
    given = np.array([1, 2, -0.0, 4, -0.0, 6, 7, -0.0, -0.0], np.float32), np.int32(index)
    assert xb.shard.partition(module).run(*given).tobytes() == xb.evaluate(module.entry, *given).tobytes()
