"""Deadlocks from public bug reports: the verdict or the report names the cause, and the repaired program runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import Refused, Stopped, execute
from tests.conformance.deadlock import unnamed
from tests.conformance.deadlock_cases.programs import prepared
from tests.support.small_programs import case_of, crossed, transfer

X = xb.f32[4]


def ones(devices: int) -> list[list[Any]]:
    return [[np.full(4, device + 1, np.float32)] for device in range(devices)]


# Three collective-permutes over four partitions, between the pairs 0-1, 2-3 and 1-2 (openxla/xla#44530).

PAIRS = {"left": ((0, 1),), "right": ((2, 3),), "middle": ((1, 2),)}


def permutes(*order: str) -> xb.Module:
    def program(x: xb.Value) -> xb.Value:
        total = x
        for name in order:
            channel = 1 + list(PAIRS).index(name)
            total = total + xb.collective_permute(x, PAIRS[name], channel_id=channel, name=name)
        return total

    return xb.Module("permutes", xb.computation(X)(program), num_partitions=4, is_scheduled=True)


def test_three_permutes_in_one_order_run() -> None:
    module = permutes("left", "right", "middle")
    assert xb.check(module).kind == "ok"
    assert [result[0] for result in execute(module, ones(4))] == [1.0, 3.0, 5.0, 7.0]


def test_three_permutes_in_orders_that_cross() -> None:
    orders = {
        0: ("left", "middle", "right"),
        1: ("middle", "left", "right"),
        2: ("middle", "right", "left"),
        3: ("right", "middle", "left"),
    }
    group = xb.ModuleGroup({device: permutes(*order) for device, order in orders.items()})
    verdict = xb.check(group)
    assert (verdict.kind, verdict.findings[0].cause) == ("deadlock", "ORDER_INVERSION")
    assert not unnamed(str(verdict), ["left", "middle"])
    with pytest.raises(Stopped) as stopped:
        execute(group, ones(4), check=False)
    assert "wait for each other" in str(stopped.value)
    mended = xb.repaired(verdict)
    assert xb.check(mended).kind == "ok"
    assert [result[0] for result in execute(mended, ones(4))] == [1.0, 3.0, 5.0, 7.0]


# An all-to-all and an all-reduce on two communicators, in an order that depends on the rank: 62, 2 (torchrec#4149).


def step(first: str) -> xb.Module:
    def program(x: xb.Value) -> xb.Value:
        def shuffled() -> xb.Value:
            return xb.ops.all_to_all(
                x, split_dimension=0, concat_dimension=0, split_count=64, channel_id=1, name="shuffle"
            )

        def summed() -> xb.Value:
            return xb.ops.all_reduce(x, to_apply=xb.add, channel_id=2, name="gradients")

        results = {name: {"shuffle": shuffled, "gradients": summed}[name]() for name in sorted(PARTS, key=first.__ne__)}
        return results["shuffle"] + results["gradients"]

    return xb.Module(f"{first}_first", xb.computation(xb.f32[64])(program), num_replicas=64, is_scheduled=True)


PARTS = ("shuffle", "gradients")


def test_two_of_sixty_four_ranks_have_another_order() -> None:
    one, other = step("shuffle"), step("gradients")
    group = xb.ModuleGroup({device: one if device < 62 else other for device in range(64)})
    verdict = xb.check(group)
    assert verdict.kind == "deadlock"
    assert not unnamed(str(verdict), PARTS)
    assert "in different orders" in str(verdict)
    assert len(str(verdict).splitlines()) < 20
    inputs = [[np.full(64, device, np.float32)] for device in range(64)]
    mended = xb.repaired(verdict)
    results, straight = execute(mended, inputs), execute(xb.ModuleGroup(dict.fromkeys(range(64), one)), inputs)
    assert all(map(np.array_equal, results, straight))


# Both ranks send forward before they receive; swapping the two on both is not enough (pytorch#172668).


def test_both_ranks_send_before_they_receive() -> None:
    made = prepared(crossed())
    verdict = xb.check(made.program)
    assert (verdict.kind, verdict.findings[0].cause) == ("deadlock", "P2P_CYCLE")
    assert "both devices send before they post their own recv" in str(verdict)
    with pytest.raises(Refused):
        execute(made.program, made.inputs)
    execute(xb.repaired(verdict), made.inputs)


def test_swapped_on_both_ranks_they_wait_for_values_that_nobody_has_sent() -> None:
    (send1, recv1), (send2, recv2) = transfer(1, 0, 1), transfer(2, 1, 0)
    made = prepared(case_of([*recv2, *send1], [*recv1, *send2]))
    verdict = xb.check(made.program)
    assert verdict.kind == "deadlock"
    assert "wait for a value before they send their own" in str(verdict)
    execute(xb.repaired(verdict), made.inputs)


# The order that a scheduler chose was what deadlocked: the program itself is free of it (google/xls#717).


def test_a_program_that_is_free_runs_though_it_was_recorded_in_an_order_that_hangs() -> None:
    free = prepared(crossed("free"))
    verdict = xb.check(free.program)
    assert (verdict.kind, verdict.scope) == ("ok", "found")
    execute(free.program, free.inputs)
    with pytest.raises(Stopped) as stopped:
        execute(free.program, free.inputs, check=False)
    assert not unnamed(str(stopped.value), ["send1", "send2"])
    recorded = {d: module.entry.instructions for d, module in free.program.modules.items()}  # type: ignore[union-attr]
    assert xb.check(free.program, schedule=recorded).kind == "deadlock"


# One process leaves a loop of all-reduces early and stays alive (jax#38503); the report names it, not only the others.


def test_a_device_that_leaves_a_loop_early_is_named() -> None:
    def train(x: xb.Value) -> xb.Value:
        def trip(state: xb.Value) -> list[xb.Value]:
            step, x, device = state
            stays = (step != 5) | (device != np.uint32(1))
            return [step + 1, xb.conditional(stays, x, summed, x, lambda x: x, name="stays"), device]

        def summed(x: xb.Value) -> xb.Value:
            return xb.all_reduce(x, xb.add, name="psum")

        return xb.while_([0, x, xb.replica_id(x.builder)], lambda state: state[0] < 8, trip, name="steps")[1]

    module = xb.Module("train", xb.computation(X)(train), num_replicas=4)
    finding = xb.check(module).findings[0]
    place = "psum in true_computation of conditional stays in while steps"
    assert finding.message == f"devices 0, 2 and 3 wait at {place} for device 1, which ends first"
    assert finding.cause_text == "device 1 took another branch, or fewer trips, around psum"
    assert [row.waits for row in finding.rows] == ["device 1, which ends first"] * 3
    with pytest.raises(Stopped) as stopped:
        execute(module, ones(4), check=False)
    assert [state.device for state in stopped.value.report.devices if state.cause] == [1]
    assert {*finding.blocked} == {state.device for state in stopped.value.report.devices if not state.ended}
