"""Ops that hand values on keep the parts that devices hold, and send nothing."""

from __future__ import annotations

import numpy as np
import pytest

import xbuild as xb

from .cases import difference

BARRIER = """HloModule m
ENTRY main {
  x = f32[7,4] parameter(0), sharding={mesh['x'=2,'y'=2], [{'x'}, {}]}
  y = f32[4] parameter(1), sharding={mesh['x'=2,'y'=2], [{'y'}]}
  inner = (f32[4], f32[7,4]) tuple(y, x)
  several = (f32[7,4], (f32[4], f32[7,4])) tuple(x, inner)
  both = (f32[7,4], (f32[4], f32[7,4])) opt-barrier(several)
  a = f32[7,4] get-tuple-element(both), index=0
  b = (f32[4], f32[7,4]) get-tuple-element(both), index=1
  c = f32[4] get-tuple-element(b), index=0
  one = f32[7,4] opt-barrier(a)
  d = f32[7,4] negate(one)
  e = f32[4] negate(c)
  ROOT all = (f32[7,4], f32[4]) tuple(d, e)
}"""


def test_a_barrier_is_one_of_parts() -> None:
    module = xb.parse_hlo(BARRIER)
    found = xb.shard.partition(module)
    assert found.communications == ()
    assert sum(each.opcode == "opt_barrier" for each in found.module.entry.instructions) == 2
    arrays = np.arange(28, dtype=np.float32).reshape(7, 4), np.arange(4, dtype=np.float32)
    assert difference(xb.evaluate(module.entry, *arrays), found.run(*arrays, padding=99)) is None


MANUAL = 'xla.sdy.manual_axes="#sdy<manual_axes{\\"x\\"}>"'
CUT = '"#sdy.sharding_per_value<[<@mesh, [{\\"x\\"}]>]>"'
SHARD = f"""HloModule m, frontend_attributes={{xla.sdy.meshes="{{mesh = #sdy.mesh<[\\"x\\"=2]>}}"}}
body {{
  a = f32[4] parameter(0)
  sent = f32[4] collective-permute(a), channel_id=1, source_target_pairs={{{{0,1}},{{1,0}}}}
  dropped = f32[4] negate(sent)
  ROOT b = f32[4] negate(a)
}}
ENTRY main {{
  x = f32[8] parameter(0), sharding={{mesh['x'=2], [{{'x'}}]}}
  in = f32[4] custom-call(x), custom_call_target="xla.sdy.GlobalToLocalShape",
    frontend_attributes={{xla.sdy.in_shardings={CUT},{MANUAL}}}
  called = f32[4] call(in), to_apply=body
  ROOT out = f32[8] custom-call(called), custom_call_target="xla.sdy.LocalToGlobalShape",
    frontend_attributes={{{MANUAL},xla.sdy.out_shardings={CUT}}}
}}"""


def test_a_collective_of_a_shard_whose_result_is_dropped_sends_nothing() -> None:
    found = xb.shard.partition(xb.parse_hlo(SHARD))
    assert xb.cost(found.module).link_bytes == 0
    given = np.arange(8, dtype=np.float32)
    assert difference(-given, found.run(given)) is None


@pytest.mark.parametrize(
    ("extent", "spec"), [(8, xb.P(("x", "y"))), (8, xb.P(None, "x")), (6, xb.P("x")), (2, xb.P("x"))]
)
def test_the_gradient_of_pooling_stays_where_its_windows_are(extent: int, spec: xb.P) -> None:
    """Two windows on a device, a whole column, three windows on two devices, and one window."""

    def scattered(x: xb.Value, source: xb.Value) -> xb.Value:
        return xb.ops.select_and_scatter(
            x, source, xb.constant(x.builder, np.float32(0)), select=lambda a, b: a >= b, scatter=xb.ops.add,
            window=[xb.WindowDimension(2, stride=2), xb.WindowDimension(1)],
        )  # fmt: skip

    program = xb.computation(xb.f32[extent, 3], xb.f32[extent // 2, 3])(scattered)
    module, mesh = xb.Module("program", program), xb.Mesh(x=2, y=2)
    cut = xb.shard.annotated(module, {0: spec, 1: spec, program.root.name: spec}, mesh=mesh)
    found = xb.shard.partition(cut)
    is_even = extent % 8 == 0
    assert (xb.cost(found.module).link_bytes == 0) == is_even
    arrays = (np.arange(3 * extent) % 5).reshape(extent, 3).astype(np.float32), np.ones((extent // 2, 3), np.float32)
    assert difference(xb.evaluate(program, *arrays), found.run(*arrays, padding=99)) is None
