"""Random straight-line programs: the verdict, the order found and the repair, against a simulator of a few lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xbuild as xb
from interpreter import Refused, Stopped, execute
from tests.conformance.deadlock_cases.programs import prepared
from tests.support.small_programs import Item, all_reduce, case_of, transfer


def simulated(case: Mapping[str, Any], orders: Mapping[str, Sequence[str]] | None = None) -> dict[str, list[str]]:
    """Where devices stand when nobody can move: nothing for those that have ended (rules of the cases' `semantics`)."""
    programs = case["programs"]
    free = case["schedule"] == "free" and orders is None
    lists = {
        d: [next(i for i in items if i["name"] == name) for name in orders[d]] if orders else items
        for d, items in programs.items()
    }
    done: set[tuple[str, str]] = set()

    def is_ready(device: str, item: Item) -> bool:
        before = item["deps"] if free else [i["name"] for i in lists[device][: lists[device].index(item)]]
        return (device, item["name"]) not in done and all((device, name) in done for name in before)

    def has_run(op: str, channel: int) -> bool:
        return any(
            (d, i["name"]) in done
            for d, items in lists.items()
            for i in items
            if (i["op"], i.get("channel")) == (op, channel)
        )

    def may_run(item: Item) -> bool:
        if item["op"] == "send":
            return has_run("recv", item["channel"])
        if item["op"] == "recv-done":
            return has_run("send", item["channel"])
        if item["op"] == "all-reduce":
            return all(is_ready(d, i) for d, items in lists.items() for i in items if i["name"] == item["name"])
        return True

    while True:
        ready = [(d, item) for d, items in lists.items() for item in items if is_ready(d, item)]
        moving = [(d, item["name"]) for d, item in ready if may_run(item)]
        if not moving:
            return {device: [i["name"] for d, i in ready if d == device] for device, _ in ready}
        done.update(moving)


@st.composite
def programs(draw: st.DrawFn) -> dict[str, Any]:
    """Straight-line programs of correct structure, in any order that has each start before its done."""
    devices = draw(st.integers(2, 4))
    lists: list[list[list[Item]]] = [[] for _ in range(devices)]
    for channel in range(1, draw(st.integers(1, 5)) + 1):
        source, target = draw(st.permutations(range(devices)))[:2]
        for device, part in zip((source, target), transfer(channel, source, target), strict=True):
            lists[device].append(part)
    for number in range(11, 11 + draw(st.integers(0, 2))):
        for parts in lists:
            parts.append([all_reduce(number)])
    merged = [draw(merges(parts)) for parts in lists]
    for items in merged:
        for place in range(1, len(items)):
            if draw(st.booleans()):
                items[place] = {**items[place], "deps": list({*items[place]["deps"], items[place - 1]["name"]})}
    return case_of(*merged, schedule=draw(st.sampled_from(["given", "free"])))


@st.composite
def merges(draw: st.DrawFn, parts: list[list[Item]]) -> list[Item]:
    left, found = [list(part) for part in parts], []
    while left:
        part = draw(st.sampled_from(range(len(left))))
        found.append(left[part].pop(0))
        left = [each for each in left if each]
    return found


def names(order: Sequence[xb.Instruction], case: Mapping[str, Any], device: int) -> list[str]:
    wanted = {item["name"] for item in case["programs"][str(device)]}
    return [i.name for i in order if i.name in wanted]


@settings(max_examples=300)
@given(programs())
def test_random_programs_get_the_verdict_of_a_simulator(case: dict[str, Any]) -> None:
    standing = simulated(case)
    verdict = xb.check(prepared(case).program)
    assert verdict.kind == ("deadlock" if standing else "ok"), str(verdict)
    if standing:
        blocked = {str(d): sorted(i.name for i in at) for f in verdict.findings for d, at in f.blocked.items()}
        assert blocked == {device: sorted(at) for device, at in standing.items()}
        assert verdict.findings[0].cycle
    else:
        orders = {str(device): names(order, case, device) for device, order in verdict.schedule.items()}
        assert simulated(case, orders) == {}


@settings(max_examples=150)
@given(programs())
def test_repairs_of_random_schedules_run(case: dict[str, Any]) -> None:
    case["schedule"] = "given"
    verdict = xb.check(prepared(case).program)
    if verdict.refused:
        assert (verdict.repair is None) == bool(simulated({**case, "schedule": "free"}))
        assert verdict.scope == ("every" if verdict.repair is None else "given")
    if verdict.repair:
        orders = {str(device): names(order, case, device) for device, order in verdict.repair.schedule.items()}
        assert simulated(case, orders) == {}
        assert verdict.repair.text in " ".join(str(verdict).split())  # the report wraps it


@settings(max_examples=60)
@given(programs())
def test_what_is_ok_runs_and_what_is_not_is_refused(case: dict[str, Any]) -> None:
    made = prepared(case)
    if xb.check(made.program).refused:
        with pytest.raises(Refused):
            execute(made.program, made.inputs)
        with pytest.raises(Stopped):
            execute(made.program, made.inputs, check=False)
    else:
        execute(made.program, made.inputs)
