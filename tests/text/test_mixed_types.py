"""Element types, channels and orders that HLO text leaves to XLA: what it converts or takes is in the module."""

from __future__ import annotations

import numpy as np
import pytest

import xbuild as xb

PRODUCT = """HloModule m

ENTRY e {{
  a = {}[2,3] parameter(0)
  b = {}[3,2] parameter(1)
  ROOT d = {}[2,2] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
"""
A, B = [[1, 2, -3], [4, 0, 1]], [[2, 1], [1, 1], [0, 2]]
TYPES = [
    ("s8", "bf16", "bf16"), ("f32", "s32", "f32"), ("u8", "f16", "f32"), ("f32", "f32", "s32"), ("bf16", "bf16", "s8"),
]  # fmt: skip
SUM = """HloModule m, replica_count=2

sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

ENTRY e {
  a = bf16[2] parameter(0)
  ROOT r = bf16[2] all-reduce(a), replica_groups={{0,1}}, to_apply=sum
}
"""
ORDER = "HloModule m ENTRY e { a = f32[2] parameter(0) ROOT c = pred[2] compare(a, a), direction=LE, type=UNSIGNED }"
PASSED = """HloModule m, replica_count=2

ENTRY e {
  x = f32[2] parameter(0)
  t = token[] after-all()
  r = (f32[2], s32[], token[]) recv(t), frontend_attributes={_xla_send_recv_source_target_pairs={{0,1}}}
  s = (f32[2], u32[], token[]) send(x, t), frontend_attributes={_xla_send_recv_source_target_pairs={{0,1}}}
  d = token[] send-done(s)
  g = (f32[2], token[]) recv-done(r)
  ROOT v = f32[2] get-tuple-element(g), index=0
}
"""
MAPPED = """HloModule m

twice {
  x = f32[] parameter(0)
  ROOT y = f32[] add(x, x)
}

ENTRY e {
  a = f32[2,3] parameter(0)
  ROOT r = f32[2,3] map(a), dimensions={}, to_apply=twice
}
"""


@pytest.mark.parametrize("types", TYPES, ids=" ".join)
def test_a_product_of_mixed_types_is_read_with_converts(types: tuple[str, str, str]) -> None:
    a = np.abs(np.array(A)) if types[0] == "u8" else np.array(A)
    module = xb.parse_hlo(PRODUCT.format(*types))
    assert "convert(" in str(module)
    assert str(xb.parse_hlo(str(module))) == str(module)
    dtypes = [xb.parse_hlo(PRODUCT.format(*types)).entry.parameters[n].shape.dtype.dtype for n in (0, 1)]
    found = xb.evaluate(module.entry, a.astype(dtypes[0]), np.array(B).astype(dtypes[1]))
    assert np.array_equal(np.asarray(found).astype(np.int64), a @ np.array(B))


def test_an_all_reduce_in_a_wider_type_gives_the_written_one() -> None:
    module = xb.parse_hlo(SUM)
    assert str(module.entry.root.shape) == "bf16[2]"
    found = xb.execute(module, [[[1.0, 2.0]], [[3.0, 5.0]]])
    assert np.asarray(found[0]).astype(np.float32).tolist() == [4.0, 7.0]


def test_an_order_of_other_types_is_left_out() -> None:
    module = xb.parse_hlo(ORDER)
    assert "UNSIGNED" not in str(module)
    assert xb.evaluate(module.entry, [-1.0, 2.0]).tolist() == [True, True]


def test_transfers_without_a_channel_meet_by_their_pairs() -> None:
    module = xb.parse_hlo(PASSED)
    assert xb.check(module).kind == "ok"
    zeros, passed = xb.execute(module, [[[1.0, 2.0]], [[3.0, 4.0]]])
    assert (zeros.tolist(), passed.tolist()) == ([0.0, 0.0], [1.0, 2.0])


def test_a_map_without_dimensions_maps_all() -> None:
    found = xb.evaluate(xb.parse_hlo(MAPPED).entry, np.ones((2, 3), np.float32))
    assert found.tolist() == [[2.0] * 3] * 2
