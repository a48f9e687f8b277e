"""Nested loops, branches and calls: the check takes time by their size, and every command ends at its limit."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import Limits, Stopped, execute, trace
from tests.limits_table import COMMANDS, outcome
from xbuild.checking.dataflow.constant_propagation import CollectiveExchange
from xbuild.checking.dataflow.lattice import Turns
from xbuild.process.limits import DeadlineError, within
from xbuild.running import Evaluator

from .campaign import SECONDS, SLACK, late
from .generator import loops_in_loops, random_nest

EVERY = [(innermost, carried) for innermost in ("none", "known", "decides") for carried in ("a", "i")]


@pytest.mark.parametrize("depth", [2, 7, 12])
@pytest.mark.parametrize(("innermost", "carried"), EVERY)
def test_the_check_of_loops_in_loops_is_no_power_of_their_trips(depth: int, innermost: str, carried: str) -> None:
    module = xb.parse_hlo(loops_in_loops(depth, 4, innermost, carried))
    begun = time.process_time()
    assert xb.check(module).kind == "ok"
    assert time.process_time() - begun < 4


@pytest.mark.parametrize("carried", ["a", "i"])
@pytest.mark.parametrize("depth", [2, 5, 12])
def test_collectives_that_decide_are_walked_once_for_equal_states_of_all_devices(depth: int, carried: str) -> None:
    module = xb.parse_hlo(loops_in_loops(depth, 4, "decides", carried))
    begun = time.process_time()
    assert xb.check(module, max_seconds=30).kind == "ok"
    assert time.process_time() - begun < 4


@pytest.mark.parametrize("depth", [3, 4, 5, 12])
def test_states_that_never_repeat_are_walked_trip_by_trip_up_to_the_deadline(depth: int) -> None:
    text = loops_in_loops(depth, 6, "decides").replace("b = s32[] and(q, one)", "b = s32[] add(a, one)")
    module, begun = xb.parse_hlo(text), time.process_time()
    assert xb.check(module, max_seconds=SECONDS).kind in ("ok", "depends")
    assert time.process_time() - begun < SECONDS + SLACK


@pytest.mark.parametrize(("innermost", "carried"), EVERY)
def test_evaluated_instructions_grow_with_the_depth_and_not_with_its_power(
    innermost: str, carried: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent = Counter[int]()
    spend = CollectiveExchange.spend
    depth = 0

    def counted(self: CollectiveExchange, steps: int) -> None:
        spent[depth] += steps
        spend(self, steps)

    monkeypatch.setattr(CollectiveExchange, "spend", counted)
    for depth in (4, 12):
        xb.check(xb.parse_hlo(loops_in_loops(depth, 4, innermost, carried)))
    assert spent[12] <= 10 * spent[4]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_ends_on_loops_in_loops(command: str, tmp_path: Path) -> None:
    target = tmp_path / "program.hlo"
    target.write_text(loops_in_loops(12, 3, "decides", "i"))
    assert not outcome(target, COMMANDS[command].split(), 6).fault


@pytest.mark.parametrize("seed", range(12))
def test_a_check_returns_at_its_limit(seed: int) -> None:
    assert late(seed, Counter()) == ""


def test_a_collective_whose_result_is_given_up_is_given_up_once() -> None:
    """A device that arrives any number of times and then once more, at one collective, does not start all over."""
    for seed in range(40):
        begun = time.process_time()
        xb.check(xb.parse_hlo(random_nest(seed)), max_seconds=SECONDS)
        assert time.process_time() - begun < SECONDS + SLACK


def test_a_deadline_is_no_unknown_value() -> None:
    """What is evaluated after the deadline raises, and is not taken to have no value."""

    module = xb.Module("m", xb.computation(xb.f32[2])(lambda x: x + 1.0))
    (constant,) = [each for each in module.entry.instructions if each.opcode == "constant"]
    with within(-1), pytest.raises(DeadlineError):
        Evaluator().value(constant, [], (0, 0))
    assert xb.check(module, max_seconds=5).kind == "ok"
    assert not issubclass(DeadlineError, Exception)


def test_turns_are_those_of_a_list() -> None:
    inner, outer = Turns(), Turns()
    for decision in (1, 1, 2):
        inner.append(decision)
    flat = []
    for n in range(4):
        outer.append(n % 2)
        outer.append(inner)
        flat += [n % 2, 1, 1, 2]
    assert [outer.at(turn) for turn in range(len(flat))] == flat
    assert outer.at(99) == flat[-1]
    assert outer.count_decisions() == Counter(flat)
    assert outer.total == len(flat)
    for _ in range(100):
        power = Turns()
        for _ in range(10):
            power.append(outer)
        outer = power
    assert outer.total == len(flat) * 10**100
    assert outer.count_decisions()[2] == flat.count(2) * 10**100


@pytest.mark.parametrize("run", [execute, trace])
def test_the_check_before_a_run_is_in_its_limit(run: Any) -> None:
    module = xb.parse_hlo(loops_in_loops(6, 4, "decides"))
    inputs = [[np.zeros(2, np.float32)]] * 4
    with pytest.raises(Stopped) as caught:
        run(module, inputs, limits=Limits(seconds=1e-4))
    assert caught.value.report.kind == "limit_seconds"
    assert "while the program was checked" in str(caught.value)
