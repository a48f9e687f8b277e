"""What a report says of a predicate that a loop carries: the id that it is computed from, on the user's line."""

from __future__ import annotations

import pytest

import xbuild as xb

TEXT = """HloModule m, num_partitions=4

add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }

meet { m = f32[2] parameter(0)
  ROOT psum = f32[2] all-reduce(m), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add }

pass { ROOT q = f32[2] parameter(0) }

body { s = (s32[], f32[2], u32[], pred[]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(n, one)
  x = f32[2] get-tuple-element(s), index=1
  id = u32[] get-tuple-element(s), index=2
  hoisted = pred[] get-tuple-element(s), index=3
  three = u32[] constant(3)
  inside = pred[] compare(id, three), direction=LT, metadata={source_file="m.py" source_line=8}
  y = f32[2] conditional(PREDICATE, x, x), true_computation=meet, false_computation=pass
  ROOT t = (s32[], f32[2], u32[], pred[]) tuple(next, y, PASSED, hoisted) }

test { u = (s32[], f32[2], u32[], pred[]) parameter(0)
  k = s32[] get-tuple-element(u), index=0
  five = s32[] constant(5)
  ROOT go = pred[] compare(k, five), direction=LT }

step { p = f32[2] parameter(0)
  given = u32[] parameter(1)
  zero = s32[] constant(0)
  last = u32[] constant(2)
  before = pred[] compare(given, last), direction=LE, metadata={source_file="m.py" source_line=4}
  init = (s32[], f32[2], u32[], pred[]) tuple(zero, p, given, before)
  loop = (s32[], f32[2], u32[], pred[]) while(init), condition=test, body=body
  ROOT r = f32[2] get-tuple-element(loop), index=1 }

ENTRY e { v = f32[2] parameter(0)
  me = u32[] partition-id()
  ROOT out = f32[2] call(v, me), to_apply=step }
"""


def report(predicate: str, passed: str) -> str:
    text = TEXT.replace("PREDICATE", predicate).replace("PASSED", passed)
    verdict = xb.check(xb.parse_hlo(text, origins=True))
    assert verdict.kind == "deadlock"
    return " ".join(str(verdict).split())


@pytest.mark.parametrize(
    ("predicate", "equation"),
    [("inside", "inside = (partition-id < 3) m.py:8"), ("hoisted", "before = (partition-id <= 2) m.py:4")],
)
def test_a_predicate_that_a_loop_carries_is_followed_to_its_id(predicate: str, equation: str) -> None:
    said = report(predicate, "id")
    assert equation in said
    assert "a conditional whose predicate depends on partition-id" in said


def test_state_that_a_trip_changes_is_not_followed() -> None:
    said = report("inside", "three")
    assert "(s[2] < 3)" in said
    assert "partition-id" not in said


LOOP = """HloModule m, num_partitions=2

add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }

body { s = (f32[], f32[]) parameter(0)
  x = f32[] get-tuple-element(s), index=0
  rest = f32[] get-tuple-element(s), index=1
  half = f32[] multiply(x, x), metadata={source_file="m.py" source_line=6}
  psum = f32[] all-reduce(x), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add, metadata={SCOPE source_file="m.py" source_line=7}
  ROOT t = (f32[], f32[]) tuple(half, rest) }

test { u = (f32[], f32[]) parameter(0)
  k = f32[] get-tuple-element(u), index=0
  most = f32[] get-tuple-element(u), index=1
  ROOT go = pred[] compare(k, most), direction=GT }

ENTRY e { v = f32[] parameter(0)
  tolerance = f32[] parameter(1)
  init = (f32[], f32[]) tuple(v, tolerance)
  loop = (f32[], f32[]) while(init), condition=test, body=body
  ROOT r = f32[] get-tuple-element(loop), index=0 }
"""  # noqa: E501


@pytest.mark.parametrize(
    ("scope", "function"),
    [
        ("", "(maximum, or, and) to the values"),
        ('op_name="mine/total"', "(maximum, or, and) to the values"),
        ('op_name="jit(f)/while/body/psum"', "(maximum), such as jax.lax.pmax, to the predicate or to the values"),
        ('op_name="psum"', "(maximum), such as jax.lax.pmax, to the predicate or to the values"),
    ],
)
def test_a_loop_that_data_decide_names_what_communicates_inside(scope: str, function: str) -> None:
    verdict = xb.check(xb.parse_hlo(LOOP.replace("SCOPE", scope), origins=True))
    assert verdict.kind == "depends"
    said = " ".join(str(verdict).split())
    assert "go = (state[0] > tolerance)" in said
    assert "decides loop; state[0] is computed at m.py:6 cause" in said
    assert "devices communicate inside (all-reduce psum, m.py:7), and the data decide which of them" in said
    assert f"apply an all-reduce {function}" in said
