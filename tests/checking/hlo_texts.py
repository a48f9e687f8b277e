"""Parts of programs in HLO text: a reducer, a pair of devices, two programs whose order has to be searched."""

from __future__ import annotations

ADD = """add { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] add(a, b) }
"""
PAIRS = 'frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1}}"}'
# Device 0 sends, then receives in one branch; device 1, whose branches are two, must take the sending one first.
SENDS = """
HloModule a
skip { ROOT x = f32[2] parameter(0) }
both { x = f32[2] parameter(0)
  t = token[] after-all()
  c = (f32[2], u32[], token[]) send(x, t), channel_id=1
  d = token[] send-done(c), channel_id=1
  r = (f32[2], u32[], token[]) recv(t), channel_id=2, control-predecessors={d}
  e = (f32[2], token[]) recv-done(r), channel_id=2
  ROOT y = f32[2] get-tuple-element(e), index=0 }
add { p = s32[] parameter(0)
  q = s32[] parameter(1)
  ROOT s = s32[] add(p, q) }
ENTRY e { n = s32[] parameter(0)
  x = f32[2] parameter(1)
  zero = s32[] constant(0)
  m = s32[] all-reduce(n), to_apply=add, channel_id=9
  p = pred[] compare(m, zero), direction=GT
  ROOT b = f32[2] conditional(p, x, x), true_computation=both, false_computation=skip }
"""
TAKES = """
HloModule b
skip { ROOT x = f32[2] parameter(0) }
take { x = f32[2] parameter(0)
  t = token[] after-all()
  r = (f32[2], u32[], token[]) recv(t), channel_id=1
  e = (f32[2], token[]) recv-done(r), channel_id=1
  ROOT y = f32[2] get-tuple-element(e), index=0 }
give { x = f32[2] parameter(0)
  t = token[] after-all()
  c = (f32[2], u32[], token[]) send(x, t), channel_id=2
  d = token[] send-done(c), channel_id=2
  ROOT y = f32[2] copy(x) }
add { p = s32[] parameter(0)
  q = s32[] parameter(1)
  ROOT s = s32[] add(p, q) }
ENTRY e { n = s32[] parameter(0)
  x = f32[2] parameter(1)
  zero = s32[] constant(0)
  m = s32[] all-reduce(n), to_apply=add, channel_id=9
  p = pred[] compare(m, zero), direction=GT
  g = f32[2] conditional(p, x, x), true_computation=give, false_computation=skip
  k = f32[2] conditional(p, x, x), true_computation=take, false_computation=skip
  ROOT s = f32[2] add(g, k) }
"""
