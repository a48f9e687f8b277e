"""One channel id for several sends and recvs that pairs or pipelines tell apart, and loops without an end."""

from __future__ import annotations

import numpy as np
import pytest

import xbuild as xb
from interpreter import execute

PAIRS = "_xla_send_recv_source_target_pairs"


def transfer(name: str, pairs: str, operand: str = "x", pipeline: str = "") -> str:
    more = f', _xla_send_recv_pipeline="{pipeline}"' if pipeline else ""
    notes = f'frontend_attributes={{{PAIRS}="{pairs}"{more}}}'
    return f"""
      r.{name} = (f32[], u32[], token[]) recv(t), channel_id=1, {notes}
      s.{name} = (f32[], u32[], token[]) send({operand}, t), channel_id=1, {notes}
      sd.{name} = token[] send-done(s.{name}), channel_id=1
      rd.{name} = (f32[], token[]) recv-done(r.{name}), channel_id=1
      v{name} = f32[] get-tuple-element(rd.{name}), index=0"""


def program(*transfers: str, result: str) -> str:
    return f"""HloModule m, is_scheduled=true, replica_count=3
    ENTRY e {{
      x = f32[] parameter(0)
      t = token[] after-all(){"".join(transfers)}
      ROOT out = f32[] {result}
    }}"""


AROUND = program(transfer("1", "{{0,1},{1,2}}"), transfer("2", "{{2,0}}", "v1"), result="add(v1, v2)")


def test_sends_of_one_channel_are_told_apart_by_their_pairs() -> None:
    module = xb.parse_hlo(AROUND)
    assert xb.check(module).kind == "ok"
    results = [float(np.asarray(each)) for each in execute(module, [[1.0], [2.0], [3.0]])]
    assert results == [2.0, 1.0, 2.0]  # device 0 gets from 2 what 2 got from 1, and others get from the one before


def test_sends_of_one_channel_are_told_apart_by_their_pipelines() -> None:
    pairs = "{{0,1}}"
    text = program(transfer("1", pairs, pipeline="0"), transfer("2", pairs, "v1", "1"), result="add(v1, v2)")
    assert xb.check(xb.parse_hlo(text)).kind == "ok"


@pytest.mark.parametrize("second", ["{{0,1}}", "{{1,2},{0,1}}"])
def test_sends_of_one_channel_with_a_pair_in_common_are_refused(second: str) -> None:
    verdict = xb.check(xb.parse_hlo(program(transfer("1", "{{0,1}}"), transfer("2", second), result="copy(x)")))
    assert [each.kind for each in verdict.findings][:1] == ["duplicate_channel"]


def test_pairs_of_which_no_recv_has_a_half_are_refused() -> None:
    lines = AROUND.splitlines()
    at = next(n for n, line in enumerate(lines) if " r.2 = " in line)
    lines[at] = lines[at].replace("{{2,0}}", "{{1,0}}")
    assert "peer_mismatch" in {each.kind for each in xb.check(xb.parse_hlo("\n".join(lines))).findings}


LOOP = f"""HloModule endless, is_scheduled=true, replica_count=2
cond {{ c = f32[] parameter(0) ROOT always = pred[] constant(true) }}
body {{
  x = f32[] parameter(0)
  t = token[] after-all()
  s = (f32[], u32[], token[]) send(x, t), channel_id=1, frontend_attributes={{{PAIRS}="{{{{0,1}}}}"}}
  sd = token[] send-done(s), channel_id=1
  ROOT y = f32[] copy(x)
}}
ENTRY e {{
  x = f32[] parameter(0)
  t = token[] after-all()
  r = (f32[], u32[], token[]) recv(t), channel_id=1, frontend_attributes={{{PAIRS}="{{{{0,1}}}}"}}
  rd = (f32[], token[]) recv-done(r), channel_id=1
  ROOT w = f32[] while(x), condition=cond, body=body
}}"""


def test_of_a_loop_without_an_end_one_trip_is_checked_and_the_verdict_says_so() -> None:
    verdict = xb.check(xb.parse_hlo(LOOP))
    assert verdict.kind == "ok"
    assert verdict.notes == ("while w never ends, since its condition is constant; the verdict covers one trip",)
    assert verdict.notes[0] in str(verdict)
    assert verdict.to_dict()["notes"] == list(verdict.notes)


def test_a_transfer_that_no_trip_has_is_refused_in_a_loop_without_an_end() -> None:
    cut = "\n".join(line for line in LOOP.splitlines() if not line.startswith(("  s = ", "  sd = ")))
    assert xb.check(xb.parse_hlo(cut)).kind == "error"


GROUP = f"""HloModule group, replica_count=2
together {{
  p = f32[] parameter(0)
  q = token[] parameter(1)
  s = (f32[], u32[], token[]) send(p, q), channel_id=1, frontend_attributes={{{PAIRS}="{{{{0,1}}}}"}}
  r = (f32[], u32[], token[]) recv(q), channel_id=1, frontend_attributes={{{PAIRS}="{{{{0,1}}}}"}}
  ROOT both = ((f32[], u32[], token[]), (f32[], u32[], token[])) tuple(s, r)
}}
ENTRY e {{
  x = f32[] parameter(0)
  t = token[] after-all()
  a = ((f32[], token[]), ((f32[], u32[], token[]), (f32[], u32[], token[])), s32[]) async-start(x, t), calls=together
  ROOT d = ((f32[], u32[], token[]), (f32[], u32[], token[])) async-done(a)
}}"""


def test_a_group_is_checked_and_drawn_and_refused_by_a_run() -> None:
    module = xb.parse_hlo(GROUP)
    assert str(xb.check(module)) == "ok: no schedule can deadlock: devices 0 and 1 run one program, which has 1 channel"
    assert "async-start" in str(xb.viz(module))
    assert xb.parse_hlo(module.to_hlo()).to_hlo() == module.to_hlo()
    with pytest.raises(ValueError, match=r"an async-start of several collectives and transfers, but cannot run it"):
        execute(module, [[1.0], [1.0]])


def test_a_start_of_what_computes_and_communicates_is_no_group() -> None:
    text = GROUP.replace("send(p, q)", "send(n, q)").replace("  q = token", "  n = f32[] negate(p)\n  q = token")
    assert xb.check(xb.parse_hlo(text)).findings[0].kind == "disallowed_computation"
