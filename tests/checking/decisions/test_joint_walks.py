"""Walks of all devices through one call, kept for equal arguments, decide what walks trip by trip decide."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import xbuild as xb
from tests.nested.blind import program as blind_program
from tests.nested.generator import loops_in_loops, random_nest
from xbuild.checking.dataflow import constant_propagation
from xbuild.checking.dataflow.backward_slice import backward_slices
from xbuild.checking.dataflow.constant_propagation import CollectiveExchange, Propagation, propagate_constants
from xbuild.checking.dataflow.lattice import DecisionFacts
from xbuild.checking.model.program import as_program, program_of
from xbuild.checking.structure.collective_matching import collective_identities
from xbuild.process.limits import DeadlineError, within

Found = Mapping[int, dict[Any, Any]]


def decisions(module: Any) -> Found:
    """For each device what is decided where: the ways, and the decisions in the order of a run as far as these go."""
    program = program_of(as_program(module), None)
    identity = collective_identities(program)
    facts = propagate_constants(program, identity, backward_slices(program, identity), program.devices)
    return {device: {place: _decided(of, place) for place in of.decides} for device, of in facts.items()}


def _decided(facts: DecisionFacts, place: Any) -> Any:
    turns = facts.turns[place]
    return facts.decides[place], turns and (turns.total, [turns.at(n) for n in range(min(turns.total, 2000))])


def trip_by_trip(monkeypatch: pytest.MonkeyPatch, module: Any) -> Found:
    with monkeypatch.context() as patch:
        patch.setattr(Propagation, "_walk_with_others", Propagation._walk)
        patch.setattr(constant_propagation, "MOST_STEPS", 1 << 40)
        return decisions(module)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("draw", [random_nest, blind_program], ids=["nests", "blind"])
def test_random_nests_are_decided_as_trip_by_trip(
    draw: Callable[[int], Any], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        drawn = draw(7000 + seed)
    except xb.XbuildError:
        pytest.skip("no program")
    module = xb.parse_hlo(drawn) if isinstance(drawn, str) else drawn.module
    try:
        with within(1):
            wanted = trip_by_trip(monkeypatch, module)
    except DeadlineError:
        pytest.skip("too many trips to walk each")
    assert decisions(module) == wanted


@pytest.mark.parametrize("carried", ["a", "i"])
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_collectives_that_decide_in_loops_in_loops(depth: int, carried: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = xb.parse_hlo(loops_in_loops(depth, 3, "decides", carried))
    assert decisions(module) == trip_by_trip(monkeypatch, module)


@pytest.mark.parametrize("carried", ["a", "i"])
def test_steps_grow_with_the_depth_and_not_with_its_power(carried: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spent: list[int] = []
    spend = CollectiveExchange.spend

    def counted(self: CollectiveExchange, steps: int) -> None:
        spent[-1] += steps
        spend(self, steps)

    monkeypatch.setattr(CollectiveExchange, "spend", counted)
    for depth in (4, 8, 12):
        spent.append(0)
        begun = time.process_time()
        assert xb.check(xb.parse_hlo(loops_in_loops(depth, 4, "decides", carried))).kind == "ok"
        assert time.process_time() - begun < 4
    assert spent[2] <= 8 * spent[0]


def _uneven(where: str) -> str:
    """A loop in which a sum of device 0 meets that of device 1 in another trip."""
    groups = "replica_groups={{0,1}}, to_apply=sum"
    return f"""
HloModule m, replica_count=2
sum {{ a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] add(a, b) }}
meets {{ p = s32[] parameter(0)
  ROOT r = s32[] all-reduce(p), {groups} }}
passes {{ ROOT p = s32[] parameter(0) }}
inner {{ q = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(q), index=0
  a = s32[] get-tuple-element(q), index=1
  ROOT r = s32[] conditional(i, a, a), branch_computations={{{where}}} }}
trip {{ q = (s32[], s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(q), index=0
  a = s32[] get-tuple-element(q), index=1
  d = s32[] get-tuple-element(q), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  k = s32[] xor(i, d)
  e = s32[] and(k, one)
  g = (s32[], s32[]) tuple(e, a)
  b = s32[] call(g), to_apply=inner
  f = s32[] and(b, one)
  ROOT t = (s32[], s32[], s32[]) tuple(j, f, d) }}
less {{ q = (s32[], s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(q), index=0
  n = s32[] constant(8)
  ROOT c = pred[] compare(i, n), direction=LT }}
whole {{ q = (s32[], s32[], s32[]) parameter(0)
  w = (s32[], s32[], s32[]) while(q), condition=less, body=trip
  ROOT a = s32[] get-tuple-element(w), index=1 }}
sumf {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }}
first {{ p = f32[2] parameter(0)
  ROOT r = f32[2] all-reduce(p), replica_groups={{{{0,1}}}}, to_apply=sumf }}
second {{ ROOT p = f32[2] parameter(0) }}
ENTRY main {{
  z = s32[] constant(0)
  o = s32[] constant(1)
  id = u32[] replica-id()
  d = s32[] convert(id)
  s = (s32[], s32[], s32[]) tuple(z, o, d)
  a = s32[] call(s), to_apply=whole
  x = f32[2] parameter(0)
  ROOT r = f32[2] conditional(a, x, x), branch_computations={{first, second}}
}}
"""


@pytest.mark.parametrize("where", ["meets, passes", "passes, meets", "meets, meets"])
def test_arrivals_that_other_trips_meet_are_not_kept(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = xb.parse_hlo(_uneven(where))
    assert decisions(module) == trip_by_trip(monkeypatch, module)
