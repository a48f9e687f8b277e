"""The table of waiting rules: it covers what communicates, and the parts of the check that wait read it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import xbuild as xb
from shape_inference import TupleShape
from tests.checking.programs_by_hand import loop, many, meet, recv, send, times
from tests.model.compare import disagreement
from tests.model.programs import Ops, Program
from tests.model.writer import written
from xbuild.checking.dataflow.decisions import Decisions
from xbuild.checking.deadlock import level_run
from xbuild.checking.deadlock.level_run import LevelContext
from xbuild.checking.deadlock.levels import LevelStage
from xbuild.checking.model.program import program_of
from xbuild.checking.scenarios.scenarios import Scenarios
from xbuild.checking.scenarios.simulate import is_short_by_counts
from xbuild.checking.structure.collective_matching import collective_identities
from xbuild.checking.structure.transfers import match_transfers
from xbuild.properties.effects import DONE_OF, MEETS, START_OF
from xbuild.properties.waiting import (
    COMPLETED,
    COMPLETING,
    EVENTS,
    KINDS,
    POSTING,
    RECEIVED,
    SENT,
    SILENT,
    EventKind,
)

ROOT = Path(__file__).parents[2]


def test_each_opcode_that_communicates_has_its_rule() -> None:
    communicates = {*MEETS, *DONE_OF, *START_OF, "infeed", "outfeed"}
    assert communicates == KINDS.keys()
    assert {*KINDS.values()} == EVENTS.keys()


def test_opcodes_that_may_go_early_or_late_follow_from_the_rules() -> None:
    """What only posts goes early and what only completes late; sends and blocking collectives do neither."""
    assert {"send_done", "outfeed"} == SILENT
    assert POSTING - {"copy_start"} == {"recv", "async_start"} | {op for op in MEETS if op.endswith("_start")}
    assert {*START_OF} - {"send_done"} == COMPLETING


@pytest.mark.parametrize(("buffers", "needed"), [(0, 3), (2, 1), (3, 0), (float("inf"), 0)])
def test_buffers_take_the_first_sends(buffers: float, needed: int) -> None:
    assert SENT.needed(3, buffers) == needed
    assert RECEIVED.needed(3, buffers) == 3


def test_the_run_states_its_rules_by_itself() -> None:
    """The run and the models of the tests are the check on the table, so none of them reads it."""
    places = ["interpreter/runtime", "interpreter/compiler", "interpreter/ops", "tests/model", "tests/exhaustive"]
    for path in (path for place in places for path in (ROOT / place).rglob("*.py")):
        imports = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom))
        names = {name for node in imports for name in (node.module or "", *(alias.name for alias in node.names))}
        assert not any(name.endswith("waiting") for name in names), path


# Two devices of which one waits for ever by one rule: without the rule each part of the check lets them pass.

Part = Callable[[LevelContext], bool]


def _stops_in_a_level(world: LevelContext) -> bool:
    return bool(LevelStage(world, Decisions(world.program)).stuck)


def _stops_in_a_scenario(world: LevelContext) -> bool:
    scenarios = Scenarios(world, Decisions(world.program))
    return not all(scenarios.ends(world, each) for each in scenarios.enumerated)


def _is_short_of_events(world: LevelContext) -> bool:
    return is_short_by_counts(world, Decisions(world.program))


def in_loops(first: Ops, second: Ops) -> Program:
    """The first device runs two trips, and the second one."""
    return many((loop("a", times(2, 1), *first),), (loop("a", times(2, 1), *second),))


SENDS_FIRST = many((*send(1, 0, 1), *recv(2, 1, 0)), (*send(2, 1, 0), *recv(1, 0, 1)))
TAKES_FIRST = many((*recv(2, 1, 0), *send(1, 0, 1)), (*recv(1, 0, 1), *send(2, 1, 0)))
MEET_CROSSED = many((meet(1), meet(2)), (meet(2), meet(1)))
IN_ORDER = (_stops_in_a_level, _stops_in_a_scenario)


@pytest.fixture
def without(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[EventKind]:
    """A kind of event that waits for none, while the test runs."""
    kind: EventKind = request.param
    awaited = kind.awaits
    object.__setattr__(kind, "awaits", None)
    rules = {opcode: level_run._adder_of(EVENTS[each]) for opcode, each in KINDS.items()}
    monkeypatch.setattr(level_run, "_ADDERS", rules)
    yield kind
    object.__setattr__(kind, "awaits", awaited)


CASES = [
    *((SENT, SENDS_FIRST, part) for part in IN_ORDER),
    *((RECEIVED, TAKES_FIRST, part) for part in IN_ORDER),
    *((COMPLETED, MEET_CROSSED, part) for part in IN_ORDER),
    (SENT, in_loops(send(1, 0, 1), recv(1, 0, 1)), _is_short_of_events),
    (RECEIVED, in_loops(recv(1, 1, 0), send(1, 1, 0)), _is_short_of_events),
    (COMPLETED, in_loops((meet(1),), (meet(1),)), _is_short_of_events),
]


def world_of(program: Program) -> LevelContext:
    whole = program_of(written(program).module)
    return LevelContext(whole, match_transfers(whole)[0], collective_identities(whole))


@pytest.mark.parametrize(("kind", "program", "part"), CASES)
def test_each_part_sees_that_a_device_waits(kind: EventKind, program: Program, part: Part) -> None:
    assert part(world_of(program))
    assert disagreement(program) is None


@pytest.mark.parametrize(("without", "program", "part"), CASES, indirect=["without"])
def test_each_part_reads_the_rule(without: EventKind, program: Program, part: Part) -> None:
    assert not part(world_of(program))


def test_an_infeed_of_the_empty_tuple_takes_no_item() -> None:
    """In a level as in a scenario: such an infeed is not starved where the host gives nothing."""
    builder = xb.Builder("empty")
    x = xb.parameter(builder, number=0, shape=xb.f32[2])
    xb.ops.infeed(xb.after_all(builder=builder), shape=TupleShape())
    module = xb.Module("empty", builder.build(x))
    program = program_of(module)
    world = LevelContext(program, match_transfers(program)[0], collective_identities(program), infeed={0: 0})
    assert not any(part(world) for part in IN_ORDER)
    assert xb.check(module, infeed=[0]).kind == "ok"
