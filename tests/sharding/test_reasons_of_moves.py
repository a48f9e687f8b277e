"""Reasons of collectives that move elements, totals, results of parts, and values of devices and regions."""

from __future__ import annotations

import pytest

from .test_reasons import ADD, cut, parts_of, reasons

MOST = """most { a = f32[] parameter(0)  i = s32[] parameter(1)  b = f32[] parameter(2)  j = s32[] parameter(3)
  m = f32[] maximum(a, b)  k = s32[] minimum(i, j)  ROOT r = (f32[], s32[]) tuple(m, k) }
"""
CASES = {
    "a roll": (
        """
      x = f32[16] parameter(0), X
      a = f32[3] slice(x), slice={[13:16]}
      b = f32[13] slice(x), slice={[0:13]}
      ROOT r = f32[16] concatenate(a, b), dimensions={0}, X""",
        [
            "r (<hlo>:7) consists of elements of x that move along dimension 0, sharded along `x` (8 per device): a "
            "device lacks up to 3 elements before and 3 elements after its own shard; here the device receives "
            "elements 5 to 7 from the "
            "shard of another device along `x`"
        ],
    ),
    "a stride": (
        """
      x = f32[16] parameter(0), X
      ROOT s = f32[6] slice(x), slice={[5:16:2]}, X""",
        [
            "s (<hlo>:5) takes a slice of dimension 0 of x, sharded along `x` (8 per device): a device lacks up to "
            "1 element after its own shard; here the device receives element 1 from the shard of the device 1 place "
            "after it along `x`"
        ],
    ),
    "a reversal": (
        """
      x = f32[16] parameter(0), X
      ROOT s = f32[16] reverse(x), dimensions={0}, X""",
        [
            "s (<hlo>:5) reverses dimension 0 of x, sharded along `x` (8 per device): a device lacks up to 8 "
            "elements before and 8 elements after its own shard; here the device receives elements 0 to 7 from the "
            "shard of another "
            "device along `x`"
        ],
    ),
    "a scan": (
        """
      x = f32[16] parameter(0), X
      z = f32[] constant(0)
      ROOT s = f32[16] reduce-window(x, z), window={size=16 pad=15_0}, to_apply=add, X""",
        [
            "s (<hlo>:7) scans dimension 0 of x, sharded along `x`; each device scans its own shard and combines the "
            "result with the total of the shards before that shard: all devices take the totals of all shards"
        ],
    ),
    "the greatest and the least": (
        """
      x = f32[4,256] parameter(0), Y
      i = s32[4,256] iota(), iota_dimension=1
      a = f32[] constant(-inf)
      b = s32[] constant(2147483647)
      r = (f32[4], s32[4]) reduce(x, i, a, b), dimensions={1}, to_apply=most
      ROOT g = s32[4] get-tuple-element(r), index=1""",
        [
            "r (<hlo>:10) reduces dimension 1 of x and dimension 1 of i, sharded along `x`; each device reduces its "
            "own shard, gathers the results of all shards, and reduces the gathered results"
        ]
        * 2,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_sentences(name: str) -> None:
    body, wanted = CASES[name]
    others = {"a scan": ADD, "the greatest and the least": MOST}.get(name, "")
    assert reasons(parts_of(body.replace("X", cut("{'x'}")).replace("Y", cut("{}, {'x'}")), others)) == wanted


def test_a_value_of_one_device_is_handed_on() -> None:
    found = parts_of("""
      x = f32[8] parameter(0), sharding={maximal device=2}
      ROOT y = f32[8] tanh(x), sharding={mesh['x'=2,'y'=2], [{'x'}]}""")
    assert reasons(found) == ["x (<hlo>:4) runs only on device 2: the other devices receive x from that device"]
    assert found.communications[0].to_dict()["why"]["kind"] == "one device"
