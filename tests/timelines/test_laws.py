"""Laws of timelines: sums of rooflines, steady states, overlap, critical paths, bubbles of pipelines."""

from __future__ import annotations

import importlib
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xbuild as xb
from benchmarks.pipelines import ideal_bubble, pipeline
from tests.cases.case import Case
from tests.costs.test_cost import LOOP
from tests.support.hostile import nested_loops
from xbuild.costs.analysis import CostAnalysis
from xbuild.properties.effects import START_OF
from xbuild.timelines import simulation
from xbuild.timelines.durations import Durations

ALONE = xb.Machine(flops={"f32": 1e9, "f64": 5e8, "bf16": 2e9}, memory_bandwidth=1e9)
SLOW = xb.Machine(flops=1e9, memory_bandwidth=1e9, links=xb.Link(alpha=1e-5, bandwidth=1e8))

ASYNC = """HloModule overlap, num_partitions=4, is_scheduled=true
add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }}
ENTRY main {{
  x = f32[{extent},{extent}] parameter(0)
  begun = f32[{extent},{extent}] all-reduce-start(x), channel_id=1, to_apply=add, replica_groups={{{{0,1,2,3}}}}, GLOBAL
  d = f32[{extent},{extent}] dot(x, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  r = f32[{extent},{extent}] all-reduce-done(begun)
  ROOT t = (f32[{extent},{extent}], f32[{extent},{extent}]) tuple(d, r)
}}
""".replace("GLOBAL", "use_global_device_ids=true")


def roofline_sum(module: xb.Module, machine: xb.Machine) -> float:
    """The seconds of all instructions one after the other, by the rows of the cost."""
    durations = Durations(CostAnalysis(module.entry), machine)
    rows = (row for row in xb.cost(module).rows if row.instruction.opcode not in START_OF)
    return sum(durations.roofline(row.instruction).seconds * row.times for row in rows)


@pytest.mark.parametrize(
    "family", ["contraction", "elementwise", "reduction", "control_flow", "windows", "collectives"]
)
def test_one_device_with_free_links_takes_the_sum_of_its_rooflines(family: str) -> None:
    count = 0
    for case in importlib.import_module(f"tests.cases.{family}").CASES:
        if isinstance(case, Case) and case.oracle:
            module = xb.Module("m", case.computation())
            assert xb.timeline(module, ALONE).seconds == pytest.approx(roofline_sum(module, ALONE))
            count += 1
    assert count > 5


def test_a_roofline_is_the_longer_of_work_and_bytes() -> None:
    x = xb.computation(xb.f32[64, 64])(lambda x: xb.dot(x, x))
    assert xb.timeline(x, ALONE).seconds == pytest.approx(2 * 64**3 / 1e9)
    assert xb.timeline(x, xb.Machine(flops=1e30, memory_bandwidth=1e9)).seconds == pytest.approx(3 * 64 * 64 * 4 / 1e9)
    assert xb.timeline(xb.computation(xb.bf16[64, 64])(lambda x: xb.dot(x, x)), ALONE).seconds == pytest.approx(
        2 * 64**3 / 2e9
    )


@pytest.mark.parametrize("trips", [0, 1, 2, 3, 50, 10**6])
def test_a_loop_takes_as_long_as_its_trips(trips: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = LOOP.replace("constant(5)", f"constant({trips})")
    found = xb.timeline(xb.parse_hlo(text), SLOW)
    one, two = (xb.timeline(xb.parse_hlo(LOOP.replace("constant(5)", f"constant({n})")), SLOW).seconds for n in (1, 2))
    assert found.seconds == pytest.approx(one + (trips - 1) * (two - one))
    assert sum(step.total for step in found.critical_path) == pytest.approx(found.seconds)
    (times,) = found.classes
    assert times.busy + times.exposed + times.waiting == pytest.approx(found.seconds)
    if trips < 100:
        monkeypatch.setattr(simulation, "_are_equal", lambda *_: False)
        assert xb.timeline(xb.parse_hlo(text), SLOW).seconds == pytest.approx(found.seconds)


@given(st.integers(1, 300), st.floats(1e-9, 1e-3), st.floats(1e5, 1e12))
@settings(max_examples=40, deadline=None)
def test_between_a_start_and_its_done_work_hides_communication(extent: int, alpha: float, bandwidth: float) -> None:
    machine = xb.Machine(flops=1e9, memory_bandwidth=1e12, links=xb.Link(alpha=alpha, bandwidth=bandwidth))
    found = xb.timeline(xb.parse_hlo(ASYNC.format(extent=extent)), machine)
    (times,) = found.classes
    hiding, packing = times.busy - _packing(found), _packing(found)
    assert found.seconds == pytest.approx(max(hiding, times.links) + packing)
    assert times.exposed == pytest.approx(max(times.links - hiding, 0), abs=1e-12)
    assert found.lower_bound <= found.seconds * (1 + 1e-12)
    assert sum(step.total for step in found.critical_path) == pytest.approx(found.seconds)


def _packing(line: xb.Timeline) -> float:
    """The seconds of the tuple after the done."""
    return sum(share.seconds for share in line.shares() if share.instruction.opcode == "tuple")


@pytest.mark.parametrize(
    ("stages", "microbatches", "chunks"),
    [(2, 2, 1), (4, 4, 1), (4, 16, 1), (7, 21, 1), (8, 32, 1), (2, 4, 2), (4, 8, 2), (4, 8, 4), (8, 16, 3)],
)
def test_the_bubble_of_a_pipeline_is_that_of_the_formula(stages: int, microbatches: int, chunks: int) -> None:
    group = pipeline(stages, microbatches, chunks)
    found = xb.timeline(group, xb.Machine(flops=1e12, memory_bandwidth=math.inf))
    assert found.bubble / found.seconds == pytest.approx(ideal_bubble(stages, microbatches, chunks), rel=1e-9)
    assert len(found.classes) == stages
    assert sum(step.total for step in found.critical_path) == pytest.approx(found.seconds)


def test_links_make_a_bubble_larger_and_never_the_work() -> None:
    group = pipeline(4, 8)
    free, slow = (xb.timeline(group, xb.Machine(flops=1e12, memory_bandwidth=math.inf, links=link))
                  for link in (xb.Link(), xb.Link(alpha=1e-6, bandwidth=1e10)))  # fmt: skip
    assert slow.busy == pytest.approx(free.busy)
    assert slow.seconds > free.seconds
    assert slow.exposed > 0


@pytest.mark.parametrize("buffers", [0, 1, math.inf])
def test_a_send_without_a_buffer_waits_for_its_recv(buffers: float) -> None:
    late = """HloModule m, num_partitions=2, is_scheduled=true
      ENTRY main {{ x = f32[64,64] parameter(0)  t = token[] after-all()
        {work}
        ROOT r = token[] after-all() }}"""
    send = "s = (f32[64,64], u32[], token[]) send(x, t), channel_id=1  e = token[] send-done(s), channel_id=1"
    recv = """d = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        v = (f32[64,64], u32[], token[]) recv(t), channel_id=1
        w = (f32[64,64], token[]) recv-done(v), channel_id=1"""
    programs = {n: xb.parse_hlo(late.format(work=work)) for n, work in enumerate((send, recv))}
    group = xb.ModuleGroup({n: xb.Module(f"m{n}", each.entry, is_scheduled=True) for n, each in programs.items()})
    found = xb.timeline(group, SLOW, send_buffers=buffers)
    product = 2 * 64**3 / 1e9
    waited = 0 if buffers else product
    assert found.classes[0].waiting == pytest.approx(waited)
    assert found.classes[0].end == pytest.approx(waited + 1e-5 + 64 * 64 * 4 / 1e8)


def test_links_of_two_axes_work_at_once() -> None:
    text = ASYNC.format(extent=64).replace("{{0,1,2,3}}", "{{0,1},{2,3}}")
    other = "more = f32[64,64] all-reduce-start(x), channel_id=2, to_apply=add, replica_groups={{0,2},{1,3}}, "
    text = text.replace("  d = ", f"  {other}use_global_device_ids=true\n  d = ")
    text = text.replace("  ROOT", "  m = f32[64,64] all-reduce-done(more)\n  ROOT")
    module = xb.parse_hlo(text)
    link = xb.Link(alpha=1e-3, bandwidth=1e9)
    both = xb.timeline(module, xb.Machine(flops=1e12, memory_bandwidth=1e12, links=link))
    (times,) = both.classes
    assert times.links == pytest.approx(2 * both.lower_bound)
    assert both.lower_bound < both.seconds < 1.01 * both.lower_bound
    same = xb.parse_hlo(text.replace("{{0,2},{1,3}}", "{{0,1},{2,3}}"))
    assert xb.timeline(same, both.machine).seconds == pytest.approx(times.links, rel=0.01)


def test_what_runs_beside_hides_behind_work() -> None:
    text = """HloModule m, is_scheduled=true
      ENTRY main { x = f32[512,512] parameter(0)
        c = (f32[512,512], f32[512,512], u32[]) copy-start(x)
        d = f32[512,512] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        ROOT e = f32[512,512] copy-done(c) }"""
    found = xb.timeline(xb.parse_hlo(text), ALONE)
    assert found.seconds == pytest.approx(2 * 512**3 / 1e9)
    assert found.exposed == 0


def figures(line: xb.Timeline) -> dict[str, Any]:
    return {name: value for name, value in line.to_dict().items() if isinstance(value, float)}


def test_figures_are_those_of_the_classes() -> None:
    found = xb.timeline(xb.parse_hlo(LOOP), SLOW)
    assert figures(found)["seconds"] == pytest.approx(found.busy + found.exposed + found.bubble)
    assert {span.kind for span in found.spans} == {"compute", "exposed", "link"}


def test_started_collectives_are_among_those_of_the_cost() -> None:
    found = xb.cost(xb.parse_hlo(ASYNC.format(extent=8)))
    assert [each.instruction.name for each in found.collectives] == ["begun"]
    assert found.link_bytes == 2 * 3 * 8 * 8 * 4 // 4


def test_loops_in_loops_are_followed_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each loop two trips are simulated, so that thirty loops would be 2^30."""
    monkeypatch.setattr(simulation, "MOST_TRIPS", 5_000)
    with pytest.raises(
        xb.XbuildError, match="in so many loops that more than 5,000 trips would have to be simulated"
    ) as refused:
        xb.timeline(xb.parse_hlo(nested_loops()), "h100")
    assert refused.value.kind == "limit_trips"
    few, more = (xb.timeline(xb.parse_hlo(nested_loops(depth)), "h100").seconds for depth in (1, 4))
    assert more == pytest.approx(few * 1000**3, rel=1e-3)
