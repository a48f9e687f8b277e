"""The verdict under a runtime is how runs under it may end, in an exhaustive model and in the run itself."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
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


RED_BLACK = """HloModule m, num_partitions=4, is_scheduled=true
red { a = f32[2] parameter(0)
      ROOT red = f32[2] collective-permute(a), channel_id=1, source_target_pairs={{0,1},{2,3}} }
black { a = f32[2] parameter(0)
        ROOT black = f32[2] collective-permute(a), channel_id=1, source_target_pairs={{1,0},{3,2}} }
ENTRY e { x = f32[2] parameter(0)
  i = u32[] partition-id()
  two = u32[] constant(2)
  odd = u32[] remainder(i, two)
  index = s32[] convert(odd)
  ROOT out = f32[2] conditional(index, x, x), branch_computations={red, black} }
"""


def test_permutes_of_one_channel_in_two_branches_meet_on_xla_cpu() -> None:
    """XLA:CPU returns zeros: no device is a target in the pairs of the permute that it runs itself."""
    module, arguments = xb.parse_hlo(RED_BLACK), [[np.full(2, device + 1, np.float32)] for device in range(4)]
    assert xb.check(module).kind == "deadlock"
    verdict = xb.check(module, runtime="xla_cpu")
    assert verdict.kind == "ok"
    (note,) = verdict.notes
    assert (
        note == "black and red meet with different pairs; each device receives by its own, from none if they name none"
    )
    results = xb.execute(module, arguments, runtime="xla_cpu")
    assert [list(result) for result in results] == [[0, 0]] * 4
    one, other = "{{0,1},{2,3}}", "{{1,0},{3,2}}"
    swapped = xb.parse_hlo(RED_BLACK.replace(one, "PAIRS").replace(other, one).replace("PAIRS", other))
    results = xb.execute(swapped, arguments, runtime="xla_cpu")
    assert [list(result) for result in results] == [[2, 2], [1, 1], [4, 4], [3, 3]]
    assert xb.check(module, runtime="nccl").findings[0].kind == "group_disagreement"
