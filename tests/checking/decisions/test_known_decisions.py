"""Verdicts where branches and trip counts are known before the run: from constants, ids, collectives, or bounds."""

from __future__ import annotations

import re

import numpy as np
import pytest

import xbuild as xb
from interpreter import Stopped, execute
from tests.checking.hlo_texts import ADD


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
