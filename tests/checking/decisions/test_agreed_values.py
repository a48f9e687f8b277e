"""Values that decide alike in several places: of one program, of several programs, and of many devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import Stopped, execute
from tests.checking.programs_by_hand import CROSSED, OWN, choice, many, meet, recv, send
from tests.model.compare import checked, disagreement

# In one program.


def test_one_number_that_decides_twice_decides_alike() -> None:
    lists = [(choice("a", OWN, *half(1)), choice("b", OWN, *half(2))) for half in (sending, receiving)]
    program = many(*lists, domains=((0, 1),))
    assert disagreement(program) is None
    crossed = many(*[(choice("a", OWN, meet(1)), choice("b", OWN, meet(2)))] * 2, domains=((0, 1),))
    text = str(checked(crossed)[1])
    assert disagreement(crossed) is None
    assert "depends" in text


def sending(channel: int) -> Any:
    return send(channel, 0, 1)


def receiving(channel: int) -> Any:
    return recv(channel, 0, 1)


# Values that are one in several programs.


Agree = Callable[[xb.Value], xb.Value]


def agreed(x: xb.Value) -> xb.Value:
    return xb.all_reduce(x, xb.maximum, channel_id=1, name="agreed")


def agreed_later(x: xb.Value) -> xb.Value:
    started = xb.ops.all_reduce_start(x, to_apply=xb.maximum, channel_id=1, name="agreed")
    return xb.ops.all_reduce_done(started)


def in_pairs(x: xb.Value) -> xb.Value:
    groups = [[n, n + 1] for n in range(0, 4, 2)]
    return xb.ops.all_reduce(x, to_apply=xb.maximum, channel_id=1, replica_groups=groups, name="agreed")


def gathered(x: xb.Value) -> xb.Value:
    every = xb.ops.all_gather(xb.reshape(x, (1,)), all_gather_dimension=0, shard_count=4, channel_id=1, name="agreed")
    return xb.reduce(every, xb.constant(x.builder, np.int32(0)), xb.maximum, (0,))


def branching(agree: Agree, factor: float = 1.0, devices: int = 4) -> xb.Module:
    """A branch and a loop in which devices meet; a factor makes it another program."""

    def program(x: xb.Value, limit: xb.Value) -> xb.Value:
        limit = agree(limit)
        branches = (lambda x: xb.all_reduce(x * factor, xb.add, channel_id=2, name="sum"), lambda x: -x)
        x = xb.conditional(xb.gt(limit, 1), (x, x), branch_computations=branches)

        def body(state: xb.Value) -> list[xb.Value]:
            counter, limit, x = state
            return [counter + 1, limit, xb.all_reduce(x, xb.add, channel_id=3, name="again") * factor]

        state = [xb.constant(x.builder, np.int32(0)), limit, x]
        return xb.while_(state, condition=lambda state: state[0] < state[1], body=body)[2]

    return xb.Module("branching", xb.computation(xb.f32[2], xb.s32[()])(program), num_replicas=devices)


def group(first: xb.Module, second: xb.Module, devices: int = 4) -> xb.ModuleGroup:
    return xb.ModuleGroup({device: second if device % 2 else first for device in range(devices)})


@pytest.mark.parametrize("agree", [agreed, agreed_later, gathered])
def test_programs_that_agree_decide_alike(agree: Agree) -> None:
    programs = group(branching(agree), branching(agree, 0.5))
    assert xb.check(programs).kind == "ok"
    inputs = [[np.ones(2, np.float32), np.int32(device)] for device in range(4)]
    assert len(execute(programs, inputs)) == 4


def test_programs_of_which_one_begins_early_agree() -> None:
    assert xb.check(group(branching(agreed), branching(agreed_later, 0.5))).kind == "ok"


@pytest.mark.parametrize("agree", [lambda x: x, in_pairs])
def test_programs_that_do_not_agree_depend(agree: Agree) -> None:
    programs = group(branching(agree), branching(agree, 0.5))
    assert xb.check(programs).kind == "depends"
    inputs = [[np.ones(2, np.float32), np.int32(device)] for device in range(4)]
    with pytest.raises(Stopped):
        execute(programs, inputs)


def test_a_value_that_a_loop_changes_on_one_side_only_is_not_one() -> None:
    programs = group(branching(agreed), branching(lambda x: agreed(x) + 1))
    assert xb.check(programs).kind == "depends"


# Many devices.


@pytest.mark.parametrize("devices", [65, 200])
def test_many_devices_that_agree(devices: int) -> None:
    first, second = branching(agreed, devices=devices), branching(agreed, 0.5, devices)
    assert xb.check(group(first, second, devices)).kind == "ok"


def test_a_deadlock_in_a_branch_of_many_devices_depends() -> None:
    idle = (meet(9, 70),)
    first, second = CROSSED
    inside = many((choice("c", OWN, *first), *idle), (choice("c", OWN, *second), *idle), *[idle] * 68)
    assert checked(inside)[1].kind == "depends"
