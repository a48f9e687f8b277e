"""The verdict under a runtime is how runs under it may end, in an exhaustive model and in the run itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import xbuild as xb
from tests.checking.runtimes.compare import RECORDS, fault, fault_with_data, function_of_calls
from tests.checking.runtimes.model import TooManyStates
from tests.checking.runtimes.programs import draw


@pytest.fixture(autouse=True)
def _function() -> Iterator[None]:
    with function_of_calls():
        yield


@pytest.mark.parametrize("name", RECORDS)
def test_the_verdict_is_the_outcome(name: str) -> None:
    (words, runtime), decided = RECORDS[name], 0
    for seed in range(6):
        programs = draw(seed, words)
        try:
            wrong = fault(programs, runtime)
        except TooManyStates:
            continue
        assert not wrong, f"seed {seed}: {wrong}\n{programs.ops}"
        decided += 1
    assert decided >= 3


@pytest.mark.parametrize("name", ["nccl", "xla_cpu", "one place", "eager sends", "two threads", "lock"])
def test_runs_with_data_end_as_the_verdict_says(name: str) -> None:
    runtime = RECORDS[name][1]
    assert {seed: wrong for seed in range(20) if (wrong := fault_with_data(seed, runtime))} == {}


def test_a_large_program_that_all_devices_run_alike_is_not_simulated() -> None:
    def step(value: xb.Value) -> xb.Value:
        pairs = [[2 * n, 2 * n + 1] for n in range(512)]
        for number in range(1, 31):
            groups = pairs if number % 2 else None
            value = xb.all_reduce(value, xb.add, channel_id=number, **({"replica_groups": groups} if groups else {}))
        return value

    module = xb.Module("large", xb.computation(xb.f32[2])(step), num_replicas=1024, is_scheduled=True)
    assert xb.check(module, runtime="nccl").kind == "ok"
    limited = xb.check(module, runtime=xb.Runtime(launches="in_turn"), max_seconds=60)
    assert limited.kind == "deadlock"
    assert limited.findings[0].cause == "TURN"
