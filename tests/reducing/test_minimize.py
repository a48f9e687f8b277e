"""`xb.minimize`: each condition, laws of the search and of the cuts, limits, and faults hidden in real programs."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import xbuild as xb
from tests.reducing.hiding import hidden, hidden_text
from xbuild.core.graph import Module
from xbuild.reducing import NotHeldError, minimize_text, read_condition
from xbuild.reducing.minimizing import PASSES, count_instructions
from xbuild.reducing.search import valid

CORPUS = Path(__file__).parents[1] / "data" / "hlo"

RING = """
HloModule ring, is_scheduled=true, num_partitions=4
ENTRY e {
  x = f32[64] parameter(0)
  w = f32[64] parameter(1)
  a = f32[64] tanh(x)
  t = token[] after-all()
  send = (f32[64], u32[], token[]) send(a, t), channel_id=1,
    frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1},{1,0}}"}
  sent = token[] send-done(send), channel_id=1
  recv = (f32[64], u32[], token[]) recv(t), channel_id=1,
    frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1},{1,0}}"}
  received = (f32[64], token[]) recv-done(recv), channel_id=1
  b = f32[64] get-tuple-element(received), index=0
  ROOT c = f32[64] add(b, w)
}
"""
LOOP = """
HloModule loop
cond {
  s = (s32[], f32[32], f32[8,4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(12)
  ROOT less = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[32], f32[8,4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[32] get-tuple-element(s), index=1
  m = f32[8,4] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  flat = f32[32] reshape(m)
  v2 = f32[32] multiply(v, flat)
  sine = f32[8,4] sine(m)
  ROOT r = (s32[], f32[32], f32[8,4]) tuple(j, v2, sine)
}
ENTRY e {
  zero = s32[] constant(0)
  v = f32[32] parameter(0)
  m = f32[8,4] parameter(1)
  init = (s32[], f32[32], f32[8,4]) tuple(zero, v, m)
  w = (s32[], f32[32], f32[8,4]) while(init), condition=cond, body=body
  out = f32[32] get-tuple-element(w), index=1
  ROOT last = f32[32] negate(out)
}
"""
BIG = """
HloModule big
ENTRY e {
  x = f32[1024] parameter(0)
  y = f32[1024] tanh(x)
  square = f32[1024,1024] dot(y, y), lhs_contracting_dims={}, rhs_contracting_dims={}
  ROOT s = f32[1024,1024] negate(square)
}
"""
BEFORE = """
HloModule before
ENTRY e {
  x = f32[16] parameter(0)
  y = f32[16] parameter(1)
  a = f32[16] tanh(x)
  b = f32[16] multiply(a, y)
  c = f32[16] subtract(b, y)
  d = f32[16] exponential(c)
  ROOT r = (f32[16], f32[16]) tuple(d, a)
}
"""
AFTER = BEFORE.replace("subtract(b, y)", "subtract(y, b)")


def instructions(module: Module) -> Iterator[Any]:
    return (each for computation in module.computations for each in computation.instructions)


def opcodes(module: Module) -> set[str]:
    return {each.opcode for each in instructions(module)}


CASES = {
    "deadlock": (RING, 6),
    "refused deadlock": (RING, 6),
    "peak > 4 MB": (BIG, 1),
    "command 'grep -qF sine( {}'": (LOOP, 2),
    "command 'grep -qF while('": (LOOP, 6),
}


@pytest.mark.parametrize("condition", CASES)
def test_the_result_is_the_smallest_for_which_the_condition_holds(condition: str) -> None:
    text, count = CASES[condition]
    found = xb.minimize(xb.parse_hlo(text), condition)
    assert (found.after, count_instructions(found.program), found.stopped) == (count, count, "")
    assert read_condition(condition).holds([found.program.to_hlo()], 60)
    assert found.summary.startswith(f"{found.before} instructions -> {count}, {found.tries:,} tries, ")
    assert found.tries < 300


MISSING_MEMBER = """
add {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT r = f32[] add(p, q)
}
yes {
  p = f32[64] parameter(0)
  ROOT r = f32[64] all-reduce(p), channel_id=3, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add
}
no {
  ROOT p = f32[64] parameter(0)
}
"""


def test_a_deadlock_keeps_its_cause() -> None:
    """Behind the missing member is a ring that would be smaller."""
    branch = """  me = u32[] partition-id()
  zero = u32[] constant(0)
  here = pred[] compare(me, zero), direction=EQ
  a = f32[64] conditional(here, x, x), true_computation=yes, false_computation=no"""
    text = RING.replace("ENTRY", f"{MISSING_MEMBER}ENTRY").replace("  a = f32[64] tanh(x)", branch)
    found = xb.minimize(xb.parse_hlo(text), "deadlock").program
    assert [each.cause for each in xb.check(found).findings] == ["MISSING_MEMBER"]
    assert "send" not in opcodes(found)


def test_devices_extents_constants_and_annotations_become_small() -> None:
    found = xb.minimize(xb.parse_hlo(RING), "deadlock").program
    assert found.num_devices == 2
    assert {str(each.shape) for each in found.entry.parameters} == {"f32[1]"}
    loop = xb.minimize(xb.parse_hlo(LOOP), lambda module: "while" in opcodes(module)).program
    assert all(len(each.shape.elements) <= 1 for each in instructions(loop) if each.opcode == "while")
    assert not any(each.annotations.keys() - {"literal"} for each in instructions(loop))


def test_two_programs_lose_the_same_parts() -> None:
    found = xb.minimize(xb.parse_hlo(AFTER), "different", other=xb.parse_hlo(BEFORE))
    assert found.other is not None
    assert xb.equivalent(found.program, found.other).kind == "different"
    assert [each.opcode for each in found.program.entry.instructions] == ["parameter", "parameter", "subtract"]
    names = [[each.name for each in module.entry.parameters] for module in (found.program, found.other)]
    assert names[0] == names[1]
    assert found.program.entry.root.operands[0].name == found.other.entry.root.operands[1].name


@pytest.mark.slow
def test_several_workers_find_what_one_finds() -> None:
    one, two = (xb.minimize(xb.parse_hlo(RING), "deadlock", workers=workers) for workers in (1, 2))
    assert one.program.to_hlo() == two.program.to_hlo()
    assert one.tries == two.tries


def test_a_limit_ends_the_search_with_the_smallest_program_so_far() -> None:
    found = xb.minimize(xb.parse_hlo(RING), "deadlock", seconds=0)
    assert (found.stopped, found.after) == ("limit_seconds", found.before)
    seen: list[int] = []
    xb.minimize(xb.parse_hlo(RING), "deadlock", improved=lambda module, _: seen.append(count_instructions(module)))
    assert seen == sorted(seen, reverse=True)
    assert seen[-1] == 6


def test_an_interrupt_ends_the_search_with_the_smallest_program_so_far() -> None:
    calls = 0

    def interrupted(module: Module) -> bool:
        nonlocal calls
        calls += 1
        if calls == 5:
            raise KeyboardInterrupt
        return "sine" in opcodes(module)

    found = xb.minimize(xb.parse_hlo(LOOP), interrupted)
    assert found.stopped == "interrupted"
    assert "sine" in opcodes(found.program)
    assert found.after < found.before


HALF = """HloModule half, is_scheduled=true
ENTRY main {{
  x = f32[8] parameter(0)
  wave = f32[8] tanh(x)
  t = token[] after-all()
  send = (f32[8], u32[], token[]) send(wave, t), channel_id={own}
  sent = token[] send-done(send), channel_id={own}
  recv = (f32[8], u32[], token[]) recv(t), channel_id={peer}
  received = (f32[8], token[]) recv-done(recv), channel_id={peer}
  got = f32[8] get-tuple-element(received), index=0
  ROOT sum = f32[8] add(got, wave)
}}"""


def test_programs_of_devices_are_reduced_side_by_side() -> None:
    halves = [xb.parse_hlo(HALF.format(own=1 + (n ^ 1), peer=1 + n)) for n in range(4)]
    group = xb.ModuleGroup(halves)
    found = xb.minimize(group, "deadlock")
    assert (found.before, found.after, found.program.num_devices) == (36, 12, 2)
    assert xb.check(found.program).kind == "deadlock"
    by_function = xb.minimize(group, lambda each: each.num_devices > 1 and "tanh" in str(each.modules[1]))
    assert (by_function.after, by_function.program.num_devices) == (3, 2)
    with pytest.raises(ValueError, match="takes one program for all devices"):
        xb.minimize(group, "xla crashes")
    with pytest.raises(NotHeldError):
        xb.minimize(group, "refused shape_mismatch")


def test_wrong_use_is_refused() -> None:
    module = xb.parse_hlo(BIG)
    with pytest.raises(NotHeldError, match=r"deadlock: the verdict of the check is ok"):
        xb.minimize(module, "deadlock")
    with pytest.raises(NotHeldError, match="the function is false"):
        xb.minimize(module, lambda module: False)
    for condition in ("", "deadlocks", "xla", "xla dies", "peak 3", "peak > many", "refused a b", "command", "'"):
        with pytest.raises(ValueError, match=r"expected|quotation"):
            read_condition(condition)
    with pytest.raises(ValueError, match="needs the program `other`"):
        xb.minimize(module, "different")
    with pytest.raises(ValueError, match="takes no program `other`"):
        xb.minimize(module, "deadlock", other=module)
    with pytest.raises(ValueError, match="workers=1"):
        xb.minimize(module, lambda module: True, workers=2)
    with pytest.raises(ValueError, match="at least 1"):
        xb.minimize(module, "deadlock", workers=0)
    with pytest.raises(TypeError, match="expected a program"):
        xb.minimize(3, "deadlock")
    with pytest.raises(ValueError, match="needs a program"):
        minimize_text("no program", "deadlock")


def test_a_condition_that_raises_or_is_too_slow_does_not_hold() -> None:
    condition = read_condition("command 'sleep 5'")
    assert not condition.holds([BIG], 0.2)
    assert not read_condition("command no-such-command").holds([BIG], 5)
    assert not read_condition("deadlock").holds(["no program"], 5)


# ----------------------------------------------------------------------------
# Laws: whatever is removed, the rules of the ops and the reader accept what is left


@pytest.mark.parametrize("each", PASSES, ids=[f"{n} {each.what}" for n, each in enumerate(PASSES)])
def test_what_is_left_is_a_program(each: Any) -> None:
    chance, made = random.Random(each.what), 0
    files = sorted(CORPUS.glob("*.hlo"))
    for file in [*chance.sample(files, 12), *(CORPUS / f"{name}_0.hlo" for name in ("fori", "attention_grad"))]:
        module = xb.parse_hlo(file.read_text())
        parts = list(each.parts(module))
        for _ in range(3):
            chosen = chance.sample(parts, 1 if each.one_by_one else chance.randint(1, len(parts))) if parts else []
            for smaller in valid(lambda module=module, chosen=chosen: each.remove(module, chosen)):
                made += 1
                again = _read(smaller.to_hlo())
                if again is not None:
                    left, right = ([i.shape.plain() for i in instructions(m)] for m in (smaller, again))
                    assert left == right
    assert made or each.what in ("replicas", "partitions", "groups", "channels")


def _read(text: str) -> Module | None:
    """The program of a text; None where a group is missing, of which the shape rules know nothing."""
    try:
        return xb.parse_hlo(text)
    except xb.HloParseError as error:
        if error.kind != "invalid_group":
            raise
        return None


# ----------------------------------------------------------------------------
# Faults hidden in real programs, as modules and as texts

FAULTS = {
    "missing_recv": """
        HloModule fault, is_scheduled=true
        ENTRY e {
          c0 = f32[] constant(0)
          after_all = token[] after-all()
          send1 = (f32[], u32[], token[]) send(c0, after_all), channel_id=1,
            frontend_attributes={_xla_send_recv_source_target_pairs="{{3,0}}"}
          ROOT send1-done = token[] send-done(send1), channel_id=1
        }""",
    "deadlock": RING,
}


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("host", ["attention_grad_0", "batchnorm_0", "assoc_scan_0"])
def test_a_hidden_fault_is_found(kind: str, host: str) -> None:
    module = hidden(xb.parse_hlo(FAULTS[kind]), xb.parse_hlo((CORPUS / f"{host}.hlo").read_text()))
    found = xb.minimize(xb.parse_hlo(module.to_hlo()), f"refused {kind}")
    assert found.after <= 8
    assert xb.check(found.program).findings[0].kind == kind


def test_a_text_that_is_no_program_is_reduced_by_lines() -> None:
    fault = "HloModule f\nENTRY e {\n  a = f32[4] parameter(0)\n  ROOT r = f32[5] reshape(a)\n}\n"
    text = hidden_text(fault, (CORPUS / "attention_grad_0.hlo").read_text())
    with pytest.raises(xb.HloParseError) as refused:
        xb.parse_hlo(text)
    found = minimize_text(text, f"refused {refused.value.kind}")
    assert found.after == 2
    assert "reshape(a.fault)" in found.text
    assert found.before > 20


def test_a_comment_may_follow_the_end_of_a_computation() -> None:
    text = "HloModule m\n\none {\n  x = f32[] parameter(0)\n} // one\n\nENTRY e {\n  y = f32[2] parameter(0)\n"
    text += "  z = f32[3] negate(y)\n} // e\n"
    found = minimize_text(text, "refused shape_mismatch")
    assert "one" not in found.text
    assert found.after == 2


@pytest.mark.oracle
@pytest.mark.slow
def test_a_crash_of_xla_is_reduced() -> None:
    pytest.importorskip("jaxlib")
    fault = "HloModule f\nENTRY e {\n  ROOT r = f32[] conditional()\n}\n"
    found = minimize_text(hidden_text(fault, (CORPUS / "batchnorm_0.hlo").read_text()), "xla crashes", workers=2)
    assert found.after == 1
    assert "conditional()" in found.text


def test_a_condition_on_xla_says_that_jaxlib_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in ("jax", "jaxlib") else find(name))
    with pytest.raises(xb.engines.EngineError, match="real XLA needs JAX, which is not installed"):
        xb.minimize(xb.parse_hlo(BIG), "xla crashes")
