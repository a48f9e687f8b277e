"""The scenario stage part by part: without each of them the verdict of some program is less precise, or wrong."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import field, frozen

import xbuild as xb
from tests.checking.hlo_texts import SENDS, TAKES
from tests.checking.programs_by_hand import CROSSED, OWN, choice, loop, many, meet, recv, send, times
from tests.model.compare import checked, disagreement
from tests.model.generator import SCANS, WIDE, random_program
from tests.model.programs import Decision, Op, Ops, Program
from xbuild.checking.dataflow.decisions import Decisions
from xbuild.checking.deadlock.levels import LevelStage
from xbuild.checking.scenarios import scenarios, search, simulate, stage
from xbuild.checking.scenarios.scenarios import Choice, Choices

Patch = tuple[Any, str, Any]  # an attribute of a module or class, and another value
Check = Callable[[], xb.Verdict]
NOT_ALL = "the check could not try all cases"


@frozen(eq=False)
class Case:
    """A program, and what its verdict is with a part of the stage and without it; `bounds` hold in both."""

    part: str
    program: Program | Check
    disabled: Patch
    whole: str
    without: str
    bounds: Sequence[Patch] = ()
    told: Callable[[xb.Verdict], str] = field(default=lambda verdict: verdict.kind)

    def check(self) -> str:
        verdict = checked(self.program)[1] if isinstance(self.program, Program) else self.program()
        return self.told(verdict)


def nothing(*_: Any) -> None:
    return None


def false(*_: Any) -> bool:
    return False


def true(*_: Any) -> bool:
    return True


def second(_: Any, other: Any) -> Any:
    return other


def empty(*_: Any) -> tuple[()]:
    return ()


def how(verdict: xb.Verdict) -> str:
    """The kind, and whether the reason is that not all was tried."""
    return f"{verdict.kind}, {NOT_ALL}" if NOT_ALL in str(verdict) else verdict.kind


def first_message(verdict: xb.Verdict) -> str:
    return verdict.findings[0].message


def branch_orders(verdict: xb.Verdict) -> str:
    """The transfers of branches that device 1 runs in another order than the recorded one."""
    orders = [[i.name for i in order if i.opcode in ("send", "recv")] for _, order in verdict.orders(1)]
    return str(["recv3", "send4"] in orders)


# Programs.

BITS: dict[str, Any] = {"domains": ((0, 1),)}


def by_turns(decision: Decision, ops: Ops) -> Op:
    return loop("a", times(2, 2), choice("b", decision, *ops))


def branches(name: str, decision: Decision, first: Ops, second: Ops) -> Op:
    return Op("choice", name, decision=decision, inside=(first, second))


def both_ways(device: int, channels: tuple[int, int]) -> Ops:
    """A send, then a recv, on a device; the other has the same channels the other way round."""
    mine, theirs = channels[::-1] if device else channels
    return (*send(mine, device, 1 - device), *recv(theirs, 1 - device, device))


def meeting_in_branch(device: int) -> Ops:
    """Devices that meet first, device 1 in a branch; then a branch in which both send before they receive."""
    first = choice("c", OWN, meet(1)) if device else meet(1)
    later = branches("d", Decision("agreed", 1), (meet(5),), both_ways(device, (3, 4)))
    return (*both_ways(device, (6, 7)), first, later)


def searched() -> xb.Verdict:
    return xb.check(xb.ModuleGroup({0: xb.parse_hlo(SENDS), 1: xb.parse_hlo(TAKES)}))


def free_search() -> xb.Verdict:
    sends = SENDS.replace(", control-predecessors={d}", "")
    return xb.check(xb.ModuleGroup({0: xb.parse_hlo(sends), 1: xb.parse_hlo(TAKES)}))


ONE_OR_TWO_TRIPS = """
cond { s = (s32[], token[]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  zero = s32[] constant(0)
  ROOT more = pred[] compare(n, zero), direction=GT }
body { s = (s32[], token[]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  t = token[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  left = s32[] subtract(n, one)
  item = (f32[], token[]) infeed(t)
  u = token[] get-tuple-element(item), index=1
  ROOT next = (s32[], token[]) tuple(left, u) }
ENTRY e { n = s32[] parameter(0)
  zero = s32[] constant(0)
  one = s32[] constant(1)
  two = s32[] constant(2)
  p = pred[] compare(n, zero), direction=GT
  count = s32[] select(p, one, two)
  t = token[] after-all()
  state = (s32[], token[]) tuple(count, t)
  ROOT w = (s32[], token[]) while(state), condition=cond, body=body }
"""
CALLBACK = """
add { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }
ENTRY e { x = f32[] parameter(0)
  c = f32[] custom-call(x), custom_call_target="log", custom_call_has_side_effect=true
  ROOT a = f32[] all-reduce(c), to_apply=add }
"""


def one_or_two_trips() -> xb.Verdict:
    return xb.check(xb.parse_hlo(ONE_OR_TWO_TRIPS), infeed=[2])


def with_callback() -> xb.Verdict:
    return xb.check(xb.parse_hlo(f"HloModule m, replica_count=2\n{CALLBACK}"))


def one_infeed() -> xb.Verdict:
    return xb.check(xb.parse_hlo("ENTRY e { t = token[] after-all() ROOT i = (f32[], token[]) infeed(t) }"))


FEEDS = branches("a", OWN, (Op("infeed", "f"),), (Op("infeed", "g"),))
STARVED = many((FEEDS, meet(1)), (meet(1),), infeed=(0, 0), **BITS)
FILLS = many(
    (loop("a", times(2, 2), choice("b", times(0, 0), *send(1, 0, 1))), meet(2)),
    (loop("a", times(2, 2), choice("b", times(1, 1), *recv(1, 0, 1))), meet(2)),
    send_buffers=1,
)
THREE = [choice(name, Decision("own", n), meet(n + 1)) for n, name in enumerate("abc")]
OPPOSITE = many((*THREE,), (*THREE[::-1],), domains=((0, 1),) * 3)
SENDS_IN_LOOP = (loop("a", OWN, *send(1, 0, 1)),)
COUNTED = many(SENDS_IN_LOOP, (loop("a", times(0, 5), *recv(1, 0, 1)),), domains=((4, 5),))
BUFFERED = many(SENDS_IN_LOOP, (loop("a", times(0, 0), *recv(1, 0, 1)),), send_buffers=10, domains=((10, 11),))
TURNS = many(
    (by_turns(Decision("own", 0, turns=True), send(1, 0, 1)),),
    (by_turns(Decision("known", 0, (0, 0), turns=True), recv(1, 0, 1)),),
    domains=((0, 1, 2, 3),),
)
REORDERED = many(meeting_in_branch(0), meeting_in_branch(1), given=False, domains=((0, 1),) * 2)
STUCK_AT_ONCE = many(*[(*ops, choice("c", OWN, meet(9))) for ops in CROSSED], **BITS)
MET_IN_BRANCH = many((meet(1), meet(2)), (choice("c", OWN, meet(1)), meet(2)), **BITS)
SEARCHED, HOPELESS = random_program(404_779), random_program(10_017_690, WIDE)


ENTER = Choices.__attrs_post_init__


def _without_trips(choices: Choices) -> None:
    ENTER(choices)
    choices.trips.clear()


ONE = [(scenarios, "MOST_SCENARIOS", 1)]
NOT_LISTED = [(search, "MOST_ORDERS", 0), (search, "MOST_STEPS", 20)]
VAGUE = f"depends, {NOT_ALL}"

ONE_STEP, MORE_STEPS = [(search, "MOST_STEPS", 1)], [(search, "MOST_STEPS", 3000)]
Stage, Scenarios = stage.ScenarioStage, scenarios.Scenarios

CASES = [
    # scenarios.py: choices
    Case("one value is one choice", searched, (Decisions, "decider", nothing), "ok", "depends"),
    Case("values that a choice can take", one_or_two_trips, (Choice, "may_be", true), "ok", "depends"),
    # scenarios.py: domains
    Case("thresholds", BUFFERED, (scenarios.Domains, "_thresholds", empty), "depends", "ok"),
    Case("known trip counts", COUNTED, (Choices, "__attrs_post_init__", _without_trips), "depends", VAGUE,
         [(scenarios, "MOST_LOOPS", 0)], how),
    Case("values by turns", TURNS, (scenarios, "BY_TURNS", ()), "depends", "deadlock"),
    # scenarios.py
    Case("scenarios of no order", HOPELESS, (Scenarios, "is_hopeless", false), "deadlock", "depends", MORE_STEPS),
    Case("starved whatever the decisions", STARVED, (Scenarios, "is_starved", false), "deadlock", "depends", ONE),
    Case("devices that take items", random_program(38), (Scenarios, "may_take_item", true), "ok", "depends"),
    # search.py
    Case("orders of the levels", searched, (search, "MOST_ORDERS", 0), "ok", "depends", ONE_STEP),
    Case("orders of both", REORDERED, (search, "_merge_orders", second), "True", "False", (), branch_orders),
    Case("search", SEARCHED, (search.Search, "order", nothing), "depends", "error"),
    Case("possible instructions first", SEARCHED, (search._Attempt, "_extend_greedily", nothing), "depends", VAGUE,
         [(search, "MOST_STEPS", 25)], how),
    Case("posting early", free_search, (search, "POSTING", frozenset()), "ok", "depends", NOT_LISTED),
    Case("completing late", free_search, (search, "COMPLETING", frozenset()), "ok", "depends", NOT_LISTED),
    # event_counts.py
    Case("counts", random_program(55, SCANS), (stage, "is_short_by_counts", false), "deadlock", "depends",
         [(simulate, "MOST_EVENTS", 4)]),
    # stage.py
    Case("the stage", searched, (Stage, "conclusion", nothing), "ok", "error"),
    Case("levels that fill buffers", FILLS, (LevelStage, "_fills_buffers", false), "deadlock", "ok"),
    Case("stops before all decisions", STUCK_AT_ONCE, (Stage, "_is_certain", False), "deadlock", "depends", ONE),
    Case("partners inside branches", MET_IN_BRANCH, (Stage, "_may_come", false), "depends", "deadlock", ONE),
    Case("what was not tried", OPPOSITE, (Stage, "_is_decided", true), "depends", "deadlock", ONE),
    Case("external waits that were simulated", one_or_two_trips, (Stage, "_is_simulated", false), "ok", "depends"),
    # external_waits.py
    Case("infeeds", one_infeed, (stage, "_infeed_findings", empty), "depends", "ok"),
    Case("callbacks", with_callback, (stage, "_callback_findings", empty), "depends", "ok"),
]  # fmt: skip
SMALL = [case for case in CASES if isinstance(case.program, Program) and case.program is not HOPELESS]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.part) for case in CASES])
def test_a_part_is_needed(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    for patch in case.bounds:
        monkeypatch.setattr(*patch)
    assert case.check() == case.whole
    monkeypatch.setattr(*case.disabled)
    assert case.check() == case.without


@pytest.mark.parametrize("case", [pytest.param(case, id=case.part) for case in SMALL])
def test_the_verdict_of_the_whole_stage_is_that_of_the_model(case: Case) -> None:
    assert isinstance(case.program, Program)
    assert disagreement(case.program) is None


def test_a_condition_names_the_choices_that_matter_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    program = random_program(404_779)
    shorter = first_message(checked(program)[1])

    def condition(self: scenarios.Scenarios, good: Any, bad: Any, _: Any) -> tuple[str, Any]:
        pairs = zip(self.choices, good, bad, strict=True)
        return " and ".join(choice.text(there) for choice, here, there in pairs if here != there), bad

    monkeypatch.setattr(scenarios.Scenarios, "condition", condition)
    assert len(shorter) < len(first_message(checked(program)[1]))


def test_nothing_but_the_entries_of_the_stage_is_imported() -> None:
    """The check imports `xbuild.checking.scenarios`, or its entry for runtimes, and no other module of it."""
    root = Path(xb.__file__).parent
    for path in (path for path in root.rglob("*.py") if path.parent != root / "checking" / "scenarios"):
        nodes = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom))
        names = {node.module or "" for node in nodes} - {"scenarios.runtime_stage"}
        assert not any("scenarios." in name for name in names), path
