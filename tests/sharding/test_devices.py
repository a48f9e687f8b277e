"""Values on one device: what it alone is given, fed, or computes of its number comes to all."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from shape_inference import XbuildError

TEXT = """HloModule m
ENTRY e {
  p = f32[4] parameter(0), sharding={maximal device=2}
  q = f32[4] parameter(1), sharding={devices=[4]<=[4]}
  i = u32[] partition-id()
  f = f32[] convert(i)
  b = f32[4] broadcast(f), dimensions={}
  s = f32[4] add(p, q), sharding={maximal device=3}
  t = f32[4] add(s, b), sharding={maximal device=1}
  u = f32[4] add(t, b)
  ROOT r = f32[4] negate(u)
}"""


def test_an_argument_of_one_device_is_that_of_all() -> None:
    made = xb.shard.partition(xb.parse_hlo(TEXT))
    assert xb.check(made.module).kind == "ok"
    rows = [[np.full(4, 10 * device, np.float32), np.float32([device])] for device in range(4)]
    (first, *_) = [np.concatenate([np.ravel(each) for each in xb.execute(made.module, rows)])]
    assert first[:4].tolist() == [-21, -22, -23, -24]
    told = "p (<hlo>:3) runs only on device 2: the other devices receive p from that device"
    assert told in [each.reason for each in made.communications]


def test_a_number_of_a_device_is_that_of_the_device_of_the_value() -> None:
    made = xb.shard.partition(xb.parse_hlo(TEXT.replace("u = f32[4] add(t, b)", "u = f32[4] copy(t)")))
    zeros = np.zeros(4, np.float32)
    assert made.run(zeros, zeros).tolist() == [-1] * 4
    global_ = xb.parse_hlo(TEXT.replace("sharding={maximal device=1}", "sharding={replicated}"))
    assert not xb.shard.partition(global_).run(zeros, zeros).any()  # the global program is one of one device


@pytest.mark.parametrize("number", [-0.0, np.inf, np.nan])
def test_what_is_handed_on_keeps_its_bits(number: float) -> None:
    text = re.sub(r"(add|negate)\((\w)[^)]*\)", r"copy(\2)", TEXT)
    made = xb.shard.partition(xb.parse_hlo(text))
    given = np.full(4, number, np.float32)
    assert made.run(given, np.zeros(4, np.float32)).tobytes() == given.tobytes()


FEED = """HloModule m
ENTRY e {
  t = token[] after-all()
  i = (f32[4], token[]) infeed(t), sharding=FED
  p = f32[4] get-tuple-element(i), index=0
  tk = token[] get-tuple-element(i), index=1
  q = f32[4] parameter(0), sharding={devices=[4]<=[4]}
  s = f32[4] add(p, q)
  o = token[] outfeed(s, tk), outfeed_shape=f32[4], sharding={maximal device=1}
  ROOT r = f32[4] negate(s)
}"""


@pytest.mark.parametrize(
    ("fed", "items"),
    [
        ("{{maximal device=2},{maximal device=2}}", {2: [np.arange(4, dtype=np.float32)]}),
        ("{{devices=[4]<=[4]},{replicated}}", {device: [np.float32([device])] for device in range(4)}),
    ],
    ids=["one device", "each its part"],
)
def test_feeds_of_one_device_and_of_parts(fed: str, items: Any) -> None:
    made = xb.shard.partition(xb.parse_hlo(FEED.replace("FED", fed)))
    assert xb.check(made.module, infeed={device: len(each) for device, each in items.items()}).kind == "ok"
    assert made.run(np.ones(4, np.float32), infeed=items).tolist() == [-1, -2, -3, -4]


def test_a_feed_that_names_no_device_is_refused() -> None:
    with pytest.raises(XbuildError, match="but only one device may run it"):
        xb.shard.partition(xb.parse_hlo(FEED.replace(", sharding=FED", "")))


GAPS = """HloModule m
ENTRY e {
  p = f32[8] parameter(0), sharding={devices=[2]0,2}
  q = f32[8] parameter(1), sharding={devices=[4]<=[4]}
  s = f32[8] add(p, q), sharding={devices=[3]3,1,0}
  u = f32[8] reverse(s), dimensions={0}, sharding={devices=[2]<=[2]}
  ROOT r = f32[8] negate(u), sharding={devices=[2]1,3}
}"""


@pytest.mark.parametrize("propagate", [False, True])
@pytest.mark.parametrize("every", ["{devices=[4]<=[4]}", "{devices=[2]3,1}"])
def test_tiles_on_some_devices_are_whole_on_all(every: str, propagate: bool) -> None:
    made = xb.shard.partition(xb.parse_hlo(GAPS.replace("{devices=[4]<=[4]}", every)), propagate=propagate)
    assert made.mesh.num_devices == 4
    assert xb.check(made.module).kind == "ok"
    found = made.run(np.arange(8, dtype=np.float32), np.ones(8, np.float32))
    assert found.tolist() == [-8, -7, -6, -5, -4, -3, -2, -1]
