"""No edge of the scheduler's graph is broken: what an event of the check awaits has happened before it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from tests.support.random_programs import random_program
from xbuild.checking.dataflow.decisions import Decisions
from xbuild.checking.deadlock.level_run import LevelContext
from xbuild.checking.scenarios.simulate import ALL, DeviceWalker, SimulatedEvent, communicating_order
from xbuild.core.graph import Instruction
from xbuild.costs.analysis import CostAnalysis
from xbuild.properties.effects import LOOPS, Path
from xbuild.properties.trip_counts import known_trips, never_ends
from xbuild.timelines import building, simulation
from xbuild.timelines.simulation import Simulation
from xbuild.timelines.tape import DeviceClasses, TapeEntry

MACHINE = xb.Machine(flops=1e6, memory_bandwidth=1e7, links=xb.Link(alpha=1e-5, bandwidth=1e6))
EVENTS = {"post", "send", "accept", "receive", "arrive", "complete"}
Passed = dict[int, list[tuple[TapeEntry, float]]]


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> Passed:
    """The entries that each class has passed, each with its clock; all trips of loops are simulated."""
    found: Passed = defaultdict(list)
    latest: list[Simulation] = []

    def watched(name: str) -> Any:
        action = getattr(Simulation, name)

        def run(whole: Simulation, label: int, entry: TapeEntry) -> bool:
            if latest[-1:] != [whole]:  # the recorded order has stopped, and another one is tried
                latest.append(whole)
                found.clear()
            is_done: bool = action(whole, label, entry)
            if is_done and name in EVENTS:
                found[label].append((entry, whole.clock[label]))
            return is_done

        return run

    monkeypatch.setattr(simulation, "_ACTIONS", {name: watched(name) for name in simulation._ACTIONS})
    monkeypatch.setattr(simulation, "_are_equal", lambda *_: False)
    return found


def _decide(line: xb.Timeline, device: int) -> Any:
    """The branch or trips of a unit on a device, as costs and the check have them."""
    decisions, entry = Decisions(line.context.program), line.context.program.class_of[device].module.entry

    def decide(instruction: Instruction, path: Path, _: int) -> int:
        known = decisions.decided(device, instruction, path)
        if instruction.opcode in LOOPS:
            trips = 1 if never_ends(instruction) else known_trips(instruction)
            return trips if trips is not None else known if known is not None else 1
        ((called, _, _),) = CostAnalysis(entry).calls(instruction)
        return known if known is not None else [*instruction.called].index(called)

    return decide


def _events(line: xb.Timeline, device: int) -> tuple[SimulatedEvent, ...]:
    walk = communicating_order(line.context.program.class_of[device])
    found = DeviceWalker(line.context, device, walk, _decide(line, device)).events()
    return tuple(each for each in found if each.does[0].within != "feed")


def broken_edges(line: xb.Timeline, passed: Passed) -> Iterator[str]:
    """What happens before the event that it awaits; the times of a device are those of its class."""
    times: dict[int, dict[Any, list[float]]] = {}
    events = {device: _events(line, device) for device in line.devices}
    together: dict[Any, list[float]] = defaultdict(list)
    for device in line.devices:
        own = passed[line._labels[device]]
        assert len(own) == len(events[device])
        times[device] = defaultdict(list)
        for event, (_, clock) in zip(events[device], own, strict=True):
            times[device][event.does].append(clock)
            if event.common is not None:
                together[event.common].append(clock)
    for device, each in events.items():
        count: Counter[Any] = Counter()
        for event in each:
            count[event.does] += 1
            now = times[device][event.does][count[event.does] - 1]
            for peer, key, number in event.needs:
                done = sorted(together[key]) if peer == ALL else times[peer][key]
                if len(done) < number or done[number - 1] > now * (1 + 1e-12):
                    yield f"{event.site} of device {device} at {now}, {key} of {peer}: {done}"


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_what_is_awaited_comes_before(passed: Passed, first: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(first, first + 50):
        module = random_program(seed).module
        verdict = xb.check(module)
        counts[verdict.kind] += 1
        if verdict.kind == "ok":
            line = xb.timeline(module, MACHINE)
            assert [*broken_edges(line, passed)] == [], f"seed {seed}\n{module}"
    assert counts["ok"] > 10


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_programs_that_deadlock_are_refused(first: int) -> None:
    for seed in range(first, first + 50):
        module = random_program(seed).module
        if xb.check(module).kind == "deadlock":
            with pytest.raises(xb.XbuildError) as refused:
                xb.timeline(module, MACHINE)
            assert "wait for each other" in str(refused.value)


def test_devices_of_one_class_have_the_times_of_each_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timeline in which every device is a class of its own says the same."""
    lines = {seed: xb.timeline(each, MACHINE) for seed, each in _ending(range(150))}

    def alone(context: LevelContext, _: object) -> DeviceClasses:
        return DeviceClasses(context.program.devices, np.arange(len(context.program.devices)))

    monkeypatch.setattr(building, "device_classes", alone)
    for seed, line in lines.items():
        apart = xb.timeline(random_program(seed).module, MACHINE)
        for device in line.devices:
            ours, theirs = (t.classes[t._labels[device]] for t in (line, apart))
            for figure in ("busy", "exposed", "waiting", "end"):
                assert getattr(ours, figure) == pytest.approx(getattr(theirs, figure), abs=1e-12), (seed, device)
    assert sum(len(line.classes) < line.num_devices for line in lines.values()) > 10


def _ending(seeds: range) -> Iterator[tuple[int, xb.Module | xb.ModuleGroup]]:
    """The programs that run to completion, by seed."""
    for seed in seeds:
        module = random_program(seed).module
        if xb.check(module).kind == "ok":
            yield seed, module
