"""Verdicts where branches and trip counts are known before the run: from constants, ids, collectives, or bounds."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import Stopped, execute

ADD = """add { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] add(a, b) }
"""
PAIRS = 'frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1}}"}'


def two_branches(index: str) -> xb.Module:
    """Four partitions, of which 0 and 1, 2 and 3 sum in one of two branches: which, `index` says of `id`."""
    sums = "".join(
        f"{name} {{ p = s32[] parameter(0)\n  ROOT r = s32[] all-reduce(p), channel_id={n}, "
        "replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=add }\n"
        for n, name in ((1, "x"), (2, "y"))
    )
    return xb.parse_hlo(f"""HloModule m, num_partitions=4
{ADD}{sums}decided {{ id = u32[] parameter(0)
  {index} }}
ENTRY e {{ p = s32[] parameter(0)
  u = u32[] partition-id()
  i = s32[] call(u), to_apply=decided
  ROOT c = s32[] conditional(i, p, p), branch_computations={{x, y}} }}""")


HALVES = {
    "shift": "one = u32[] constant(1) d = u32[] shift-right-logical(id, one) ROOT c = s32[] convert(d)",
    "float": "f = f32[] convert(id) h = f32[] constant(0.5) m = f32[] multiply(f, h) g = f32[] floor(m) "
    "ROOT c = s32[] convert(g)",
    "log2": "f = f32[] convert(id) l = f32[] log(f) z = f32[] constant(0.5) q = pred[] compare(l, z), direction=GT "
    "ROOT c = s32[] convert(q)",
    "power": "i = s32[] convert(id) two = s32[] constant(2) d = s32[] divide(i, two) ROOT c = s32[] power(d, two)",
    "count-leading-zeros": "z = u32[] count-leading-zeros(id) k = u32[] constant(31) q = pred[] compare(z, k), "
    "direction=LT ROOT c = s32[] convert(q)",
    "popcnt": "k = u32[] constant(2) a = u32[] and(id, k) b = u32[] popcnt(a) ROOT c = s32[] convert(b)",
    "sign": "two = u32[] constant(2) d = u32[] divide(id, two) i = s32[] convert(d) ROOT c = s32[] sign(i)",
    "bitcast-convert": "two = u32[] constant(2) d = u32[] divide(id, two) ROOT c = s32[] bitcast-convert(d)",
    "gather": "t = s32[4] constant({0, 0, 1, 1}) r = u32[1] reshape(id) g = s32[1] gather(t, r), offset_dims={0}, "
    "collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=0, slice_sizes={1} ROOT c = s32[] reshape(g)",
    "reduce": "b = u32[2] broadcast(id), dimensions={} t = u32[2] constant({2, 3}) "
    "e = pred[2] compare(b, t), direction=EQ f = pred[] constant(false) o = pred[] reduce(e, f), dimensions={0}, "
    "to_apply={ q = pred[] parameter(0) w = pred[] parameter(1) ROOT z = pred[] or(q, w) } ROOT c = s32[] convert(o)",
    "concatenate": "r = u32[1] reshape(id) n = u32[1] constant({9}) q = u32[2] concatenate(n, r), dimensions={0} "
    "s = u32[1] slice(q), slice={[1:2]} v = u32[] reshape(s) two = u32[] constant(2) d = u32[] divide(v, two) "
    "ROOT c = s32[] convert(d)",
    "dot": "r = u32[1] reshape(id) i = s32[1] convert(r) k = s32[] constant(2) v = s32[2] pad(i, k), padding=0_1 "
    "w = s32[2] constant({1, 0}) d = s32[] dot(v, w), lhs_contracting_dims={0}, rhs_contracting_dims={0} "
    "ROOT c = s32[] divide(d, k)",
    "sort": "b = u32[3] broadcast(id), dimensions={} t = u32[3] constant({1, 0, 5}) m = u32[3] xor(b, t) "
    "s = u32[3] sort(m), dimensions={0}, to_apply={ p = u32[] parameter(0) q = u32[] parameter(1) "
    "ROOT l = pred[] compare(p, q), direction=LT } h = u32[1] slice(s), slice={[0:1]} v = u32[] reshape(h) "
    "two = u32[] constant(2) d = u32[] divide(v, two) ROOT c = s32[] convert(d)",
}


@pytest.mark.parametrize("index", HALVES.values(), ids=HALVES)
def test_what_is_computed_from_ids_is_known(index: str) -> None:
    """The halves take one branch each, by every op that can say so."""
    lines = re.sub(r" (?=(?:ROOT )?\w+ = [a-z]\w*\[(?![^{]*\}))", "\n  ", index)
    module = two_branches(lines)
    verdict = xb.check(module)
    inputs = [[np.int32(n)] for n in range(4)]
    try:
        ended = len(execute(module, inputs, check=False)) == 4
    except Stopped:
        ended = False
    assert verdict.kind == ("ok" if ended else "deadlock")


COLLECTIVES = {
    "collective-permute": "s32[] collective-permute(id), source_target_pairs={{0,1},{1,2},{2,0}}",
    "all-reduce": "s32[] all-reduce(id), replica_groups={{0,1},{2}}, to_apply=add",
    "reduce-scatter": "s32[1] reduce-scatter(three), dimensions={0}, replica_groups={}, to_apply=add",
    "all-to-all": "s32[3] all-to-all(three), dimensions={0}, replica_groups={}",
    "all-gather": "s32[3] all-gather(one), dimensions={0}, replica_groups={}",
    "all-reduce-start": "s32[] all-reduce-start(id), replica_groups={{0,1},{2}}, to_apply=add",
}


@pytest.mark.parametrize("name", COLLECTIVES)
@pytest.mark.parametrize("least", [0, 1, 2, 3, 4])
def test_collectives_of_known_operands_are_known(name: str, least: int) -> None:
    """Each device goes as it is computed to go: the verdict is how the run ends, whatever the data."""
    call = COLLECTIVES[name]
    shape = call.partition(" ")[0]
    done = f"  d = {shape} all-reduce-done(from)\n" if name.endswith("start") else f"  d = {shape} copy(from)\n"
    first = "" if shape == "s32[]" else "  h = s32[1] slice(d), slice={[0:1]}\n  v = s32[] reshape(h)\n"
    module = xb.parse_hlo(f"""HloModule m, is_scheduled=true, replica_count=3
{ADD}x {{ p = s32[] parameter(0)
  ROOT r = s32[] all-reduce(p), replica_groups={{}}, to_apply=add }}
y {{ p = s32[] parameter(0)
  ROOT r = s32[] copy(p) }}
ENTRY e {{ u = u32[] replica-id()
  id = s32[] convert(u)
  one = s32[1] reshape(id)
  three = s32[3] iota(), iota_dimension=0
  from = {call}
{done}{first}  k = s32[] constant({least})
  q = pred[] compare({"v" if first else "d"}, k), direction=GE
  ROOT c = s32[] conditional(q, id, id), true_computation=x, false_computation=y }}""")
    try:
        execute(module, [[]] * 3, check=False)
        ended = True
    except Stopped:
        ended = False
    assert xb.check(module).kind == ("ok" if ended else "deadlock")


INDICES = {  # of three branches, of which the last communicates
    "and": ("o = s32[] constant(1)\n  i = s32[] and(p, o)", "ok"),
    "and of a higher bit": ("o = s32[] constant(4)\n  i = s32[] and(p, o)", "depends"),
    "shifted": ("o = u32[] constant(31)\n  u = u32[] bitcast-convert(p)\n  s = u32[] shift-right-logical(u, o)\n"
                "  i = s32[] convert(s)", "ok"),
    "arithmetic shift": ("o = u32[] constant(31)\n  u = u32[] bitcast-convert(p)\n"
                         "  s = u32[] shift-right-arithmetic(u, o)\n  i = s32[] bitcast-convert(s)", "depends"),
    "remainder": ("o = u32[] constant(2)\n  u = u32[] bitcast-convert(p)\n  s = u32[] remainder(u, o)\n"
                  "  i = s32[] convert(s)", "ok"),
    "signed remainder": ("o = s32[] constant(2)\n  i = s32[] remainder(p, o)", "depends"),
    "clamp": ("z = s32[] constant(0)\n  o = s32[] constant(1)\n  i = s32[] clamp(z, p, o)", "ok"),
    "minimum and maximum": ("z = s32[] constant(0)\n  o = s32[] constant(1)\n  m = s32[] minimum(p, o)\n"
                            "  i = s32[] maximum(m, z)", "ok"),
    "minimum alone": ("o = s32[] constant(1)\n  i = s32[] minimum(p, o)", "depends"),
    "truth": ("z = s32[] constant(0)\n  q = pred[] compare(p, z), direction=GT\n  i = s32[] convert(q)", "ok"),
    "table": ("t = s32[4] constant({0, 1, 1, 0})\n  s = s32[1] dynamic-slice(t, p), dynamic_slice_sizes={1}\n"
              "  i = s32[] reshape(s)", "ok"),
    "a two in a table": ("t = s32[4] constant({0, 1, 2, 0})\n"
                         "  s = s32[1] dynamic-slice(t, p), dynamic_slice_sizes={1}\n"
                         "  i = s32[] reshape(s)", "depends"),
    "difference": ("i = s32[] subtract(p, p)", "ok"),
    "exclusive or": ("i = s32[] xor(p, p)", "ok"),
    "computed twice": ("o = s32[] constant(3)\n  a = s32[] multiply(p, o)\n  k = s32[] constant(3)\n"
                       "  b = s32[] multiply(p, k)\n  i = s32[] subtract(a, b)", "ok"),
    "equal to itself": ("q = pred[] compare(p, p), direction=NE\n  t = s32[] constant(2)\n  z = s32[] constant(0)\n"
                        "  i = s32[] select(q, t, z)", "ok"),
    "a float equal to itself": ("q = pred[] compare(f, f), direction=NE\n  t = s32[] constant(2)\n"
                                "  z = s32[] constant(0)\n  i = s32[] select(q, t, z)", "depends"),
    "a float less than itself": ("q = pred[] compare(f, f), direction=LT\n  t = s32[] constant(2)\n"
                                 "  z = s32[] constant(0)\n  i = s32[] select(q, t, z)", "ok"),
    "gathered bit": ("o = s32[] constant(1)\n  b = s32[] and(p, o)\n  w = s32[1] reshape(b)\n"
                         "  g = s32[2] all-gather(w), dimensions={0}\n  h = s32[1] slice(g), slice={[1:2]}\n"
                         "  r = s32[] reshape(h)\n  u = u32[] replica-id()\n  v = s32[] convert(u)\n"
                         "  i = s32[] multiply(r, v)", "ok"),
    "anything": ("i = s32[] copy(p)", "depends"),
}  # fmt: skip


@pytest.mark.parametrize("name", INDICES)
def test_bounds_tell_which_branches_there_may_be(name: str) -> None:
    index, kind = INDICES[name]
    module = xb.parse_hlo(f"""HloModule m, replica_count=2
{ADD}a {{ ROOT p = s32[] parameter(0) }}
b {{ ROOT p = s32[] parameter(0) }}
c {{ p = s32[] parameter(0)
  ROOT r = s32[] all-reduce(p), to_apply=add }}
ENTRY e {{ p = s32[] parameter(0)
  f = f32[] parameter(1)
  {index}
  ROOT c = s32[] conditional(i, p, p, p), branch_computations={{a, b, c}} }}""")
    assert xb.check(module).kind == kind


def test_a_loop_is_counted_for_each_of_the_few_values_that_decide_it() -> None:
    """At most one trip, so that one item is enough."""
    text = """HloModule m
body { p = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] get-tuple-element(p), index=1
  t = token[] after-all()
  f = (s32[], token[]) infeed(t)
  o = s32[] constant(1)
  j = s32[] add(i, o)
  ROOT r = (s32[], s32[]) tuple(j, n) }
condition { p = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] get-tuple-element(p), index=1
  ROOT q = pred[] compare(i, n), direction=LT }
ENTRY e { p = s32[] parameter(0)
  o = s32[] constant(MASK)
  n = s32[] and(p, o)
  z = s32[] constant(0)
  s = (s32[], s32[]) tuple(z, n)
  ROOT w = (s32[], s32[]) while(s), condition=condition, body=body }"""
    kinds = [xb.check(xb.parse_hlo(text.replace("MASK", mask)), infeed={0: 1}).kind for mask in ("1", "2")]
    assert kinds == ["ok", "depends"]


def group(*entries: str, is_scheduled: bool = True) -> xb.ModuleGroup:
    head = f"is_scheduled={str(is_scheduled).lower()}, replica_count=2"
    return xb.ModuleGroup({n: xb.parse_hlo(f"HloModule m{n}, {head}\n{ADD}{e}") for n, e in enumerate(entries)})


SUM = "all-reduce(p), channel_id=1, replica_groups={{0,1}}, to_apply=add"
OUTSIDE = f"ENTRY e {{ p = s32[] parameter(0)\n  ROOT t = s32[] {SUM} }}"
NEITHER = "ENTRY e { ROOT p = s32[] parameter(0) }"


def inside(index: str, first: str, second: str) -> str:
    return f"""a {{ p = s32[] parameter(0)
  ROOT t = s32[] {first} }}
b {{ p = s32[] parameter(0)
  ROOT u = s32[] {second} }}
ENTRY e {{ p = s32[] parameter(0)
  k = s32[] {index}
  ROOT c = s32[] conditional(k, p, p), branch_computations={{a, b}} }}"""


@pytest.mark.parametrize("is_scheduled", [True, False])
@pytest.mark.parametrize(
    ("programs", "kind"),
    [
        ((inside("constant(0)", SUM, "copy(p)"), OUTSIDE), "ok"),
        ((inside("constant(1)", SUM, "copy(p)"), OUTSIDE), "deadlock"),
        ((inside("copy(p)", SUM, "copy(p)"), OUTSIDE), "depends"),
        ((inside("copy(p)", SUM, SUM), OUTSIDE), "ok"),
        ((inside("copy(p)", SUM, SUM), inside("copy(p)", SUM, SUM)), "ok"),
        ((inside("copy(p)", SUM, SUM), inside("constant(0)", SUM, "copy(p)")), "ok"),
        ((inside("constant(1)", SUM, "copy(p)"), NEITHER), "ok"),
        ((inside("constant(0)", SUM, "copy(p)"), NEITHER), "error"),
    ],
)
def test_a_collective_in_a_branch_may_meet_one_outside(
    programs: tuple[str, str], kind: str, is_scheduled: bool
) -> None:
    made = group(*programs, is_scheduled=is_scheduled)
    verdict = xb.check(made)
    assert verdict.kind == kind
    ends = set()
    for first in (0, 1):
        for second in (0, 1):
            try:
                execute(made, [[np.int32(first)], [np.int32(second)]], check=False)
                ends.add(True)
            except Stopped:
                ends.add(False)
    assert ends == {"ok": {True}, "depends": {True, False}}.get(kind, {False})


def test_a_device_that_is_none_is_told_as_that() -> None:
    pairs = '{_xla_send_recv_source_target_pairs="{{0,1}}"}'
    send = """ENTRY e { x = s32[] parameter(0)
  t = token[] after-all()
  s = (s32[], u32[], token[]) send(x, t), channel_id=1, frontend_attributes=PAIRS
  ROOT d = token[] send-done(s), channel_id=1 }"""
    verdict = xb.check(group(send.replace("PAIRS", pairs.replace("1", "5")), NEITHER))
    assert verdict.findings[0].kind == "device_out_of_range"
    assert "s names device 5 as a target, out of 0..1" in verdict.findings[0].message
    assert "add a recv" not in str(verdict)
    assert (
        xb.check(group(send.replace("PAIRS", pairs), NEITHER)).findings[0].message
        == "s of device 0 on channel 1 has no recv"
    )


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


def test_a_given_order_may_be_all_that_is_wrong() -> None:
    """What the data may decide in another order is no reason to say that none runs."""
    module = xb.parse_hlo(f"""HloModule m, is_scheduled=true, replica_count=2
{ADD}fed {{ p = s32[] parameter(0)
  t = token[] after-all()
  f = (s32[], token[]) infeed(t)
  ROOT g = s32[] get-tuple-element(f), index=0 }}
unfed {{ ROOT p = s32[] parameter(0) }}
ENTRY e {{ p = s32[] parameter(0)
  t = token[] after-all()
  s = (s32[], u32[], token[]) send(p, t), channel_id=1, {PAIRS}
  sd = token[] send-done(s), channel_id=1
  a = s32[] all-reduce(p), replica_groups={{}}, to_apply=add
  r = (s32[], u32[], token[]) recv(t), channel_id=1, {PAIRS}
  rd = (s32[], token[]) recv-done(r), channel_id=1
  ROOT c = s32[] conditional(a, p, p), branch_computations={{fed, unfed}} }}""")
    verdict = xb.check(module, infeed={0: 0, 1: 0})
    assert (verdict.kind, verdict.scope) == ("deadlock", "given")
