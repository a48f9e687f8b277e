"""The verdict before the run on loops, conditionals and calls around communication."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import Stopped, execute
from tests.checking.spmd_programs import spmd, total
from tests.conformance.deadlock import failure
from tests.conformance.deadlock_cases.programs import prepared
from tests.support.small_programs import Item, case_of, transfer


def counted(limit: Any, step: Any) -> Any:
    """A loop to a limit that the state carries, with another leaf that varies."""

    def program(*arguments: xb.Value) -> xb.Value:
        builder = arguments[0].builder
        zero = xb.ops.constant(builder, literal=np.int32(0))
        state = xb.ops.tuple_([zero, limit(*arguments), arguments[0]])

        def condition(state: xb.Value) -> xb.Value:
            counter, bound, _ = state
            return xb.ops.compare(counter, bound, direction="LT")

        def body(state: xb.Value) -> xb.Value:
            counter, bound, x = state
            one = xb.ops.constant(state.builder, literal=np.int32(1))
            return xb.ops.tuple_([xb.ops.add(counter, one), bound, step(x)])

        return xb.ops.while_(state, condition=condition, body=body)

    return program


def a_constant(x: xb.Value, *rest: xb.Value) -> xb.Value:
    return xb.ops.constant(x.builder, literal=np.int32(3))


def test_a_counter_is_uniform_beside_what_varies() -> None:
    verdict = xb.check(spmd(counted(a_constant, total), xb.f32[2]))
    assert (verdict.kind, verdict.scope) == ("ok", "every")


def test_a_limit_of_each_device_is_data() -> None:
    verdict = xb.check(spmd(counted(lambda x, n: n, total), xb.f32[2], xb.s32[()]))
    assert verdict.kind == "depends"
    assert "if the predicate of while" in str(verdict)
    assert "differs between devices 0 and 1" in str(verdict)


def test_an_all_reduced_limit_is_uniform() -> None:
    largest = spmd(counted(lambda x, n: xb.ops.all_reduce(n, to_apply=xb.maximum), total), xb.f32[2], xb.s32[()])
    assert xb.check(largest).kind == "ok"


@pytest.mark.parametrize(("inner", "kind"), [([(0, 1), (2, 3)], "ok"), ([(0, 2), (1, 3)], "depends"), ([], "depends")])
def test_groups_that_agree_may_meet(inner: Any, kind: str) -> None:
    halves = [(0, 1), (2, 3)]
    limit = lambda x, n: xb.ops.all_reduce(n, to_apply=xb.maximum, replica_groups=halves)  # noqa: E731
    program = spmd(counted(limit, lambda x: total(x, replica_groups=inner)), xb.f32[2], xb.s32[()], replicas=4)
    assert xb.check(program).kind == kind


@pytest.mark.parametrize(
    ("groups", "kind"),
    [
        ([[(0, 1), (2, 3)], [(0, 2), (1, 3)]], "ok"),
        ([[(0, 1), (2, 3)], [(0, 3), (1, 2)]], "ok"),
        ([[(0, 1), (2, 3)], [(0, 1), (2, 3)]], "depends"),
        ([[(0, 1, 2), (3,)], [(0, 3), (1,), (2,)]], "depends"),
        ([[(0, 1, 2), (3,)], [(0, 3), (1, 2)]], "depends"),
    ],
)
def test_a_limit_that_is_reduced_along_one_axis_after_the_other(groups: Any, kind: str) -> None:
    def limit(x: xb.Value, n: xb.Value) -> xb.Value:
        for each in groups:
            n = xb.ops.all_reduce(n, to_apply=xb.maximum, replica_groups=each)
        return n

    assert xb.check(spmd(counted(limit, total), xb.f32[2], xb.s32[()], replicas=4)).kind == kind


def by_replica(x: xb.Value, *rest: xb.Value) -> xb.Value:
    one = xb.ops.constant(x.builder, literal=np.int32(1))
    return xb.ops.add(xb.convert(xb.ops.replica_id(x.builder), xb.s32), one)


def test_trips_by_replica_id_are_refused() -> None:
    verdict = xb.check(spmd(counted(by_replica, total), xb.f32[2]))
    assert verdict.findings[0].kind == "trip_count_mismatch"
    assert "runs 1 trip on device 0 and 2 trips on device 1" in str(verdict)
    text = " ".join(str(verdict).split())
    assert "the devices in the longer loop then wait forever" in text
    assert re.search(
        r"on all of these devices: its bound, add\.\d+ \(\S+_control_flow\.py:\d+ in by_replica\), is computed from "
        "replica-id",
        text,
    )


def test_partitions_of_a_replica_agree_on_its_id() -> None:
    step = lambda x: total(x, replica_groups=[(0, 1), (2, 3)], channel_id=1, use_global_device_ids=True)  # noqa: E731
    assert xb.check(spmd(counted(by_replica, step), xb.f32[2], num_partitions=2)).kind == "ok"


def chosen(index: Any) -> Any:
    """A collective in one branch only."""

    def program(*arguments: xb.Value) -> xb.Value:
        x = arguments[0]
        return xb.ops.conditional(index(*arguments), (x, x), branch_computations=(total, lambda x: xb.ops.negate(x)))

    return program


def is_first(x: xb.Value) -> xb.Value:
    zero = xb.ops.constant(x.builder, literal=np.uint32(0))
    return xb.ops.compare(xb.ops.replica_id(x.builder), zero, direction="EQ")


def test_a_collective_that_only_one_branch_reaches() -> None:
    module = spmd(chosen(is_first), xb.f32[2])
    verdict = xb.check(module)
    assert verdict.kind == "deadlock"
    assert verdict.findings[0].cause == "MISSING_MEMBER"
    assert "device 1 never reaches all-reduce" in str(verdict)
    with pytest.raises(Stopped):
        execute(module, [[[1.0, 2.0]]] * 2, check=False)


def test_a_branch_by_data_depends() -> None:
    module = spmd(chosen(lambda x, p: p), xb.f32[2], xb.pred[()])
    assert xb.check(module).kind == "depends"
    execute(module, [[[1.0, 2.0], True]] * 2)
    with pytest.raises(Stopped):
        execute(module, [[[1.0, 2.0], True], [[1.0, 2.0], False]])


def test_branches_without_communication_are_nobodys_business() -> None:
    def program(x: xb.Value, p: xb.Value) -> xb.Value:
        return total(xb.ops.conditional(p, (x, x), branch_computations=(xb.ops.negate, xb.ops.abs)))

    assert xb.check(spmd(program, xb.f32[2], xb.pred[()])).kind == "ok"


def loop(name: str, body: list[Item], trips: int = 2, known: bool = True) -> Item:
    counts = {str(device): trips for device in range(4)}
    return {
        "op": "while",
        "name": name,
        "deps": [],
        "trips": counts,
        "trips_known": known,
        "condition": [],
        "body": body,
    }


def call(name: str, body: list[Item]) -> Item:
    return {"op": "call", "name": name, "deps": [], "body": body}


def test_different_trips_of_different_programs_are_refused() -> None:
    send, recv = transfer(1, 0, 1)
    verdict = xb.check(prepared(case_of([loop("a", send, 3)], [loop("b", recv, 2)])).program)
    assert verdict.findings[0].kind == "trip_count_mismatch"


def test_a_deadlock_inside_a_loop_is_found_and_repaired() -> None:
    (send1, recv1), (send2, recv2) = transfer(1, 0, 1), transfer(2, 1, 0)
    verdict = xb.check(prepared(case_of([loop("a", [*send1, *recv2])], [loop("b", [*send2, *recv1])])).program)
    assert verdict.kind == "deadlock"
    assert "in while a" in str(verdict)
    assert verdict.repair is not None
    assert verdict.repair.text == "on device 1 move recv1 before send2"
    assert [c.name for c, _ in verdict.repair.orders[1]] == ["b_body"]


def test_a_free_loop_body_is_reordered_and_runs() -> None:
    (send1, recv1), (send2, recv2) = transfer(1, 0, 1), transfer(2, 1, 0)
    case = case_of([loop("a", [*send1, *recv2])], [loop("b", [*send2, *recv1])], schedule="free")
    made = prepared(case)
    verdict = xb.check(made.program)
    assert verdict.kind == "ok"
    assert any(c.name.endswith("_body") for device in (0, 1) for c, _ in verdict.orders(device))
    assert failure(case) is None


def test_two_loops_that_would_have_to_be_one() -> None:
    (send1, recv1), (send2, recv2) = transfer(1, 0, 1), transfer(2, 0, 1)
    case = case_of([loop("a", send1), loop("b", send2)], [loop("c", [*recv1, *recv2])])
    verdict = xb.check(prepared(case).program)
    assert verdict.findings[0].kind == "companion_conflict"
    assert {"a", "b"} <= {i.name for i in verdict.findings[0].instructions}


def test_calls_are_entered() -> None:
    (send1, recv1), (send2, recv2) = transfer(1, 0, 1), transfer(2, 0, 1)
    case = case_of([call("a", send1), call("b", send2)], [call("c", [*recv1, *recv2])])
    assert failure(case) is None
    assert failure({**case, "schedule": "free"}) is None


def test_crossed_calls() -> None:
    (send1, recv1), (send2, recv2) = transfer(1, 0, 1), transfer(2, 1, 0)
    case = case_of([call("a", [*send1]), call("b", [*recv2])], [call("c", [*send2]), call("d", [*recv1])])
    verdict = xb.check(prepared(case).program)
    assert verdict.kind == "deadlock"
    assert verdict.repair is not None
    assert "move d before c" in verdict.repair.text
    assert failure({**case, "schedule": "free"}) is None


def test_a_call_cannot_be_left_and_entered_again() -> None:
    (send1, recv1), (send2, recv2), (send3, recv3) = transfer(1, 0, 1), transfer(2, 1, 0), transfer(3, 0, 1)
    recv2[0]["deps"], recv2[1]["deps"] = [], ["recv2"]
    first = [call("a", [*send1, {**send3[0], "deps": ["sent1"]}, send3[1]]), call("b", recv2)]
    second = [call("c", [*recv1]), call("d", [{**send2[0], "deps": []}, send2[1]]), call("e", recv3)]
    second[1]["deps"], second[2]["deps"] = ["c"], ["d"]
    verdict = xb.check(prepared(case_of(first, second, schedule="free")).program)
    assert verdict.findings[0].kind == "companion_conflict"
    assert "inline" in str(verdict)
