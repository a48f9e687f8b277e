"""Programs that need themselves: a send that needs its own done, and a computation that calls itself."""

from __future__ import annotations

from typing import Any

import pytest

import xbuild as xb
from tests.checking.hlo_texts import PAIRS

CYCLES = {
    "operand": ("s", "operands", ("x", "sd")),
    "control edge": ("s", "control", ("sd",)),
    "tuple": ("s", "operands", ("x", "packed")),
    "token of several": ("s", "operands", ("x", "both")),
    "loop": ("s", "operands", ("x", "looped")),
    "call": ("s", "operands", ("x", "called")),
    "recv": ("r", "operands", ("taken",)),
    "itself": ("s", "control", ("s",)),
}


@pytest.mark.parametrize("name", CYCLES)
@pytest.mark.parametrize("is_scheduled", [True, False])
def test_a_send_that_needs_its_own_done_is_a_cycle(name: str, is_scheduled: bool) -> None:
    module = xb.parse_hlo(f"""HloModule m, is_scheduled={str(is_scheduled).lower()}, replica_count=2
same {{ ROOT p = token[] parameter(0) }}
never {{ p = token[] parameter(0)
  ROOT f = pred[] constant(false) }}
ENTRY e {{ x = f32[] parameter(0)
  t = token[] after-all()
  r = (f32[], u32[], token[]) recv(t), channel_id=1, {PAIRS}
  s = (f32[], u32[], token[]) send(x, t), channel_id=1, {PAIRS}
  sd = token[] send-done(s), channel_id=1
  rd = (f32[], token[]) recv-done(r), channel_id=1
  taken = token[] get-tuple-element(rd), index=1
  pair = (token[], f32[]) tuple(sd, x)
  packed = token[] get-tuple-element(pair), index=0
  both = token[] after-all(taken, sd)
  looped = token[] while(sd), condition=never, body=same
  called = token[] call(sd), to_apply=same
  ROOT g = f32[] get-tuple-element(rd), index=0 }}""")
    assert xb.check(module).kind == "ok"
    fresh = xb.parse_hlo(str(module))
    changed, attribute, needs = CYCLES[name]
    object.__setattr__(fresh.entry[changed], attribute, tuple(fresh.entry[each] for each in needs))
    found = xb.check(fresh).findings[0]
    assert found.kind == "cycle"
    assert changed in {i.name for i in found.instructions}


def test_a_computation_that_calls_itself_is_refused() -> None:
    @xb.computation(xb.f32[2])
    def inner(x: Any) -> Any:
        return xb.call(x, to_apply=lambda y: xb.cross_replica_sum(y))

    object.__setattr__(inner.root.attributes, "to_apply", inner)
    with pytest.raises(xb.BuildError, match="calls itself at call") as refused:
        xb.check(xb.Module("m", inner, num_replicas=2))
    assert refused.value.kind == "cycle"
