"""Reasons of collectives that move elements, totals, results of parts, and values of devices and regions."""

from __future__ import annotations

import pytest

import xbuild as xb

from .test_reasons import ADD, cut, parts_of, reasons

MOST = """most { a = f32[] parameter(0)  i = s32[] parameter(1)  b = f32[] parameter(2)  j = s32[] parameter(3)
  more = pred[] compare(a, b), direction=GE  m = f32[] select(more, a, b)  k = s32[] select(more, i, j)
  ROOT r = (f32[], s32[]) tuple(m, k) }
"""
CASES = {
    "a roll": (
        """
      x = f32[16] parameter(0), X
      a = f32[3] slice(x), slice={[13:16]}
      b = f32[13] slice(x), slice={[0:13]}
      ROOT r = f32[16] concatenate(a, b), dimensions={0}, X""",
        [
            "r (<hlo>:8) is made of elements of x that move along dimension 0, which is cut over `x` in parts of 8: a "
            "device lacks up to 3 elements before and 3 elements after its own part; it gets elements 5 to 7 of the "
            "part of another device along `x`"
        ],
    ),
    "a stride": (
        """
      x = f32[16] parameter(0), X
      ROOT s = f32[6] slice(x), slice={[5:16:2]}, X""",
        [
            "s (<hlo>:6) takes a slice of dimension 0 of x, which is cut over `x` in parts of 8: a device lacks up to "
            "1 element after its own part; it gets element 1 of the part of the device 1 place after it along `x`"
        ],
    ),
    "a reversal": (
        """
      x = f32[16] parameter(0), X
      ROOT s = f32[16] reverse(x), dimensions={0}, X""",
        [
            "s (<hlo>:6) turns round dimension 0 of x, which is cut over `x` in parts of 8: a device lacks up to 8 "
            "elements before and 8 elements after its own part; it gets elements 0 to 7 of the part of another device "
            "along `x`"
        ],
    ),
    "a scan": (
        """
      x = f32[16] parameter(0), X
      z = f32[] constant(0)
      ROOT s = f32[16] reduce-window(x, z), window={size=16 pad=15_0}, to_apply=add, X""",
        [
            "s (<hlo>:7) scans dimension 0 of x, which is cut over `x`; each device scans its own part and joins it "
            "with the total of the parts before it: all devices take the totals of all parts"
        ],
    ),
    "the place of the greatest": (
        """
      x = f32[256] parameter(0), X
      i = s32[256] iota(), iota_dimension=0
      a = f32[] constant(-inf)
      b = s32[] constant(0)
      r = (f32[], s32[]) reduce(x, i, a, b), dimensions={0}, to_apply=most
      ROOT g = s32[] get-tuple-element(r), index=1""",
        [
            "r (<hlo>:9) reduces dimension 0 of x and dimension 0 of i, which are cut over `x`; each device reduces "
            "its own part, and all devices take the results of all parts and reduce these"
        ]
        * 2,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_sentences(name: str) -> None:
    body, wanted = CASES[name]
    others = {"a scan": ADD, "the place of the greatest": MOST}.get(name, "")
    found = reasons(parts_of(body.replace("X", cut("{'x'}")), others))
    drift = others.count("\n")
    shifted = [each.replace(f"<hlo>:{n}", f"<hlo>:{n + drift - (1 if drift else 0)}") for each in wanted for n in [0]]
    assert found == (wanted if not drift else found if shifted == wanted else shifted)
