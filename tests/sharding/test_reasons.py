"""Reasons of inserted collectives: what they say is so in the program of a device, and reads as it should."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from attrs import evolve

import xbuild as xb
from shape_inference import XbuildError
from xbuild.sharding.partition import Communication, Partitioned
from xbuild.sharding.partition.explaining import ValueExplanation
from xbuild.sharding.partition.reasons import Reason, scope_in

from .campaign import program
from .propagation.jax_texts import texts
from .reasons import faults

AXES = "mesh['x'=2,'y'=2], "
ADD = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n"
LESS = "less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = pred[] compare(a, b), direction=LT }\n"


def parts_of(body: str, others: str = "", **options: Any) -> Partitioned:
    return xb.shard.partition(xb.parse_hlo(f"HloModule m\n{others}ENTRY e {{\n{body}\n}}"), **options)


def cut(dims: str) -> str:
    return f"sharding={{{AXES}[{dims}]}}"


def reasons(found: Partitioned) -> list[str]:
    assert not list(faults(found))
    return [each.reason for each in found.communications]


def test_partial_sums_name_the_factor_the_axes_and_who_wants_the_result() -> None:
    found = parts_of(f"""
      x = f32[8,16] parameter(0), {cut("{'x'}, {'y'}")}
      w = f32[16,4] parameter(1), {cut("{'y'}, {}")}
      h = f32[8,4] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
      ROOT t = f32[8,4] tanh(h)""")
    assert reasons(found) == [
        "h (<hlo>:6) contracts k, dimension 1 of x and dimension 0 of w, both sharded along `y`; each device holds "
        "a partial sum; the partial results are added here because t (<hlo>:7) takes h sharded along `x` in dimension 0"
    ]
    facts = found.communications[0].to_dict()["why"]
    assert facts["reduced"] == [
        {"factor": "k", "axes": ["y"], "dimensions": [{"value": "x", "dim": 1}, {"value": "w", "dim": 0}]}
    ]
    assert (facts["wanted_by"], facts["combiner"], facts["line"]) == (["t"], "add", "<hlo>:6")


def test_parts_of_a_sum_are_cut_where_the_user_wants_them_cut() -> None:
    found = parts_of(f"""
      x = f32[64,256] parameter(0), {cut("{}, {'y'}")}
      w = f32[256,64] parameter(1), {cut("{'y'}, {}")}
      h = f32[64,64] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, {cut("{'y'}, {}")}
      ROOT t = f32[64,64] tanh(h)""")
    (only,) = reasons(found)
    assert (
        "holds a partial sum; the partial results are added and scattered here because t (<hlo>:7) takes h sharded"
        in only
    )


def test_a_maximum_is_joined_by_maximum() -> None:
    largest = "largest { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] maximum(a, b) }\n"
    found = parts_of(
        f"""
      x = f32[8,16] parameter(0), {cut("{}, {'y'}")}
      c = f32[] constant(-inf)
      ROOT m = f32[8] reduce(x, c), dimensions={{1}}, to_apply=largest""",
        largest,
    )
    assert reasons(found) == [
        "m (<hlo>:7) reduces dimension 1 of x, sharded along `y`; each device holds a partial maximum; "
        "the partial results are combined by maximum here because the program returns m replicated (no axes "
        "propagated to this value)"
    ]


def test_a_sort_says_what_it_needs_whole_and_where_the_result_is_wanted() -> None:
    found = parts_of(
        f"""
      x = f32[8,16] parameter(0), {cut("{}, {'y'}")}
      ROOT s = f32[8,16] sort(x), dimensions={{1}}, to_apply=less""",
        LESS,
    )
    taken, made = reasons(found)
    assert taken == (
        "s (<hlo>:6) takes x (<hlo>:5) sharded along `y` in dimension 0, but x is sharded along `y` in dimension 1: s "
        "sorts along all of dimension 1"
    )
    assert made == (
        "s (<hlo>:6) is produced sharded along `y` in dimension 0, but is needed sharded along `y` in dimension 1 "
        "(its axes propagate from x (<hlo>:5)); s sorts along all of dimension 1"
    )


def test_the_other_choice_is_told_with_its_bytes() -> None:
    found = parts_of(f"""
      x = f32[8,4] parameter(0), {cut("{}, {'x'}")}
      w = f32[4,6] parameter(1), {cut("{'x'}, {}")}
      ROOT y = f32[8,6] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}""")
    first, _ = found.communications
    assert first.reason.endswith(
        "with dimension 1 sharded, y would produce partial results; combining partial results of y along `x` would "
        "send 192 bytes instead of 112"
    )
    other = first.to_dict()["why"]["alternative"]
    assert (other["bytes"], other["chosen_bytes"]) == (2 * 96, sum(each.bytes for each in found.communications))


def test_neighbours_say_how_far_they_are() -> None:
    found = parts_of(f"""
      x = f32[16] parameter(0), {cut("{'x'}")}
      c = f32[] constant(0)
      ROOT p = f32[16] pad(x, c), padding=1_-1""")
    (only,) = reasons(found)
    assert only == (
        "p (<hlo>:6) pads dimension 0 of x, sharded along `x` (8 per device): a device lacks up to 1 element before "
        "its own shard; here the device receives element 7 from the shard of the device 1 place before it "
        "along `x`"
    )


LOOP = """cond { s = (s32[], f32[8]) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(5)
  ROOT r = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[8]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  v = f32[8] get-tuple-element(s), index=1  one = s32[] constant(1)  j = s32[] add(i, one)
  u = f32[8] sort(v), dimensions={0}, to_apply=less  ROOT r = (s32[], f32[8]) tuple(j, u) }
"""


def test_a_collective_in_a_loop_costs_each_trip() -> None:
    found = parts_of(
        f"""
      x = f32[8] parameter(0), {cut("{'x'}")}
      z = s32[] constant(0)
      t = (s32[], f32[8]) tuple(z, x)
      w = (s32[], f32[8]) while(t), condition=cond, body=body
      ROOT r = f32[8] get-tuple-element(w), index=1""",
        LESS + LOOP,
    )
    (only,) = found.costs("v5e")
    assert only.communication.reason.startswith("u (<hlo>:7) takes v")
    assert (only.runs, only.is_known, only.total_bytes) == (5, True, 5 * only.communication.bytes)
    assert only.total_seconds == pytest.approx(5 * only.seconds)
    (slow,) = found.costs(xb.Machine(flops=1e12, memory_bandwidth=1e11, links=xb.Link(bandwidth=1e6, alpha=1e-3)))
    assert slow.seconds == pytest.approx(1e-3 + only.communication.bytes / 1e6, rel=0.1)


def test_explain_takes_collectives_values_and_objects() -> None:
    module = xb.parse_hlo(f"""HloModule m
    ENTRY e {{
      x = f32[8,16] parameter(0), {cut("{'x'}, {'y'}")}
      w = f32[16,4] parameter(1), {cut("{'y'}, {}")}
      ROOT h = f32[8,4] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
    }}""")
    found = xb.shard.partition(module)
    (only,) = found.communications
    assert xb.shard.explain(found, only.name) is only
    assert xb.shard.explain(found, found.module.entry[only.name]) is only
    told = xb.shard.explain(found, module.entry["h"])
    assert isinstance(told, ValueExplanation)
    assert told.inserted == (only,)
    assert "dimension 0 along x" in str(told)
    assert only.name in str(told)
    assert told.to_dict()["kind"] == "propagated"
    assert "no collectives inserted for this value" in str(
        xb.shard.explain(found, "%x").__class__(name="x", sharding=None, inserted=())
    )
    with pytest.raises(XbuildError) as refused:
        xb.shard.explain(found, "nowhere")
    assert refused.value.kind == "undefined_name"
    plain = xb.shard.partition(found.whole, propagate=False, mesh=found.mesh)
    assert "no sharding was propagated to this value" in str(xb.shard.explain(plain, "h"))


def test_advice_holds_what_it_says() -> None:
    mesh = xb.Mesh(data=2, model=2)
    layer = xb.Module("layer", xb.computation(xb.f32[8, 4], xb.f32[4, 6])(lambda x, w: xb.tanh(xb.dot(x, w))))
    stated = xb.shard.annotated(layer, {0: xb.P("data", None), 1: xb.P("model", None)}, mesh=mesh)
    found = xb.shard.partition(stated)
    [advice] = xb.shard.advise(found, found.communications[0].name)
    assert (advice.value, advice.bytes, advice.bytes_before) == ("parameter.2", 0, 48)
    assert (advice.held, advice.held_before) == (96, 48)
    assert str(advice).endswith(" instead of 48, and holds 96 bytes of parameter.2 instead of 48")
    assert str(evolve(advice, held=48)).endswith(", and holds as many bytes of parameter.2 as before")
    followed = xb.shard.partition(xb.shard.annotated(stated, {advice.value: advice.sharding}), mesh=mesh)
    assert followed.communications == ()
    plain = xb.shard.partition(found.whole, propagate=False, mesh=mesh)
    assert xb.shard.advise(plain, plain.communications[0].name) == ()
    with pytest.raises(XbuildError):
        xb.shard.advise(found, "nothing")


def test_scopes_are_those_of_the_author() -> None:
    assert scope_in("jit(f)/jit(main)/attention/softmax/exp") == "attention/softmax"
    assert scope_in("") == ""


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_reasons_of_random_programs_are_so(start: int) -> None:
    kinds = Counter[str]()
    for seed in range(start, start + 50):
        found = program(seed).partitioned()
        assert list(faults(found)) == [], seed
        kinds.update(_kind(each) for each in found.communications)
        assert all(each.seconds >= 0 for each in found.costs())
    assert len(kinds) >= 4


def _kind(each: Communication) -> str:
    assert isinstance(each.why, Reason)
    return each.why.kind


@pytest.mark.slow
@pytest.mark.oracle
def test_reasons_of_programs_of_jax_are_so() -> None:
    pytest.importorskip("jax")
    kinds = Counter[str]()
    for name, text in texts():
        found = xb.shard.partition(xb.parse_stablehlo(text))
        assert list(faults(found)) == [], name
        kinds.update(_kind(each) for each in found.communications)
    assert kinds["partial results"] >= 30
    assert kinds["operand"] >= 20
