"""The verdict on small random programs against a model of every run, the model itself, and collectives that are one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import Stopped, execute
from tests.checking.programs_by_hand import CROSSED, OWN, TRIPS, loop, many, meet
from tests.conformance.deadlock import unnamed
from tests.model.campaign import compare
from tests.model.compare import checked, disagreement
from tests.model.generator import SCANS, random_program
from tests.model.programs import Program, every
from tests.model.runs import Judgement, all_data, ends, explored, judged

CHUNK = 50


@pytest.mark.parametrize("first", range(0, 400, CHUNK))
def test_small_programs_get_the_verdict_of_all_their_runs(first: int) -> None:
    _, wrong = compare(range(first, first + CHUNK), is_small=True)
    assert not wrong


def test_large_programs_run_as_the_verdict_says() -> None:
    _, wrong = compare(range(10), is_small=False)
    assert not wrong


def test_programs_with_scans_get_the_verdict_of_all_their_runs() -> None:
    """Some of them hold what communicates, and some of these run for another number of trips on another device."""
    seeds = range(150)
    _, wrong = compare(seeds, is_small=True, size=SCANS)
    assert not wrong
    programs = [random_program(seed, SCANS) for seed in seeds]
    scans = [op for p in programs for ops in p.lists for op in every(ops) if op.word == "scan" and op.inside[0]]
    assert len(scans) > 50
    assert any(op.decision is not None and len({*op.decision.known}) > 1 for op in scans)


@pytest.mark.parametrize("most", [4, 20])
def test_what_is_too_long_to_follow_is_counted_or_left_open(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr("xbuild.checking.scenarios.simulate.MOST_EVENTS", most)
    found = set()
    for seed in range(200):
        program = random_program(seed, SCANS)
        judgement = judged(program)
        verdict = checked(program)[1]
        kind = "deadlock" if verdict.refused else verdict.kind
        if judgement is not None:
            assert kind in (judgement.kind, "depends"), seed
            found.add((judgement.kind, kind))
    assert {("deadlock", "deadlock"), ("deadlock", "depends"), ("ok", "ok")} <= found


def test_programs_of_every_kind_are_among_them() -> None:
    found = {}
    for seed in range(250):
        program = random_program(seed)
        judgement = judged(program) if program.is_given or not program.is_one else None
        if judgement is not None:
            found[program.is_one, program.is_given, judgement.kind] = seed
    forms, kinds = [(True, True), (False, True), (False, False)], ("ok", "deadlock", "depends")
    assert [key for form in forms for kind in kinds if (key := (*form, kind)) not in found] == []


def test_who_moves_first_decides_nothing() -> None:
    """All interleavings of a program in one order and with one data end alike, so that following one is enough."""
    for seed in range(100):
        program = random_program(seed)
        for number, data in enumerate(all_data(program)):
            if number == 4:
                break
            assert explored(program, data) == {ends(program, data)}


# What the model itself says, of programs written by hand.


@pytest.mark.parametrize(
    ("program", "judgement"),
    [
        (many(*CROSSED), Judgement(False, False, False)),
        (many(*CROSSED, given=False), Judgement(False, True, True)),
        (many(*CROSSED, send_buffers=1), Judgement(True, True, True)),
        (many((loop("a", OWN, meet(1)),), (loop("a", OWN, meet(1)),), **TRIPS), Judgement(False, False, True)),
    ],
)
def test_the_model_knows_what_is_known(program: Program, judgement: Judgement) -> None:
    assert judged(program) == judgement
    assert disagreement(program) is None


# What others let pass with a wrong answer.


def module(function: Any, *more: Any) -> xb.Module:
    return xb.Module("m", xb.computation(xb.f32[4], *more)(function), num_replicas=2)


TOTAL = module(lambda x: xb.all_reduce(x, xb.add, channel_id=1, name="total"))


@pytest.mark.parametrize(
    ("other", "kind", "differ"),
    [
        (
            lambda x: xb.ops.all_gather(x, all_gather_dimension=0, shard_count=2, channel_id=1, name="other"),
            "channel_kind_mix",
            "kinds",
        ),
        (lambda x: xb.all_reduce(x, xb.maximum, channel_id=1, name="other"), "reducer_mismatch", "reducers"),
        (
            lambda x: xb.all_reduce(xb.slice(x, [0], [2]), xb.add, channel_id=1, name="other"),
            "shape_mismatch",
            "shapes",
        ),
        (
            lambda x: xb.get_tuple_element(
                xb.all_reduce((x, xb.slice(x, [0], [2])), xb.add, channel_id=1, name="other"), index=0
            ),
            "shape_mismatch",
            "shapes",
        ),
    ],
)
def test_two_collectives_that_are_one_must_agree(other: Any, kind: str, differ: str) -> None:
    group = xb.ModuleGroup({0: TOTAL, 1: module(other)})
    verdict = xb.check(group)
    assert (verdict.kind, verdict.findings[0].kind) == ("error", kind)
    assert not unnamed(str(verdict), ["total", "other"])
    with pytest.raises(Stopped) as stopped:
        execute(group, [[np.ones(4, np.float32)]] * 2, check=False)
    assert stopped.value.report.kind == "collective_mismatch"
    assert f"their {differ} differ" in str(stopped.value)
    assert not unnamed(str(stopped.value), ["total", "other", "test_model.py"])


def test_a_refused_verdict_is_false() -> None:
    def branch(decides: Any) -> xb.Verdict:
        def program(x: xb.Value, n: xb.Value) -> xb.Value:
            branches = (lambda x: xb.all_reduce(x, xb.add), lambda x: x * 2.0)
            return xb.conditional(decides(n), (x, x), branch_computations=branches)

        return xb.check(xb.Module("m", xb.computation(xb.f32[4], xb.s32[()])(program), num_replicas=2))

    lonely = branch(lambda n: xb.ne(xb.convert(xb.ops.replica_id(n.builder), xb.s32), 0))
    data = branch(lambda n: xb.ne(n, 0))
    wrong = xb.check(xb.ModuleGroup({0: TOTAL, 1: module(lambda x: x)}))
    assert [each.kind for each in (xb.check(TOTAL), data, lonely, wrong)] == ["ok", "depends", "deadlock", "error"]
    assert [bool(each) for each in (xb.check(TOTAL), data, lonely, wrong)] == [True, True, False, False]


def test_one_reducer_written_twice_is_one() -> None:
    again = module(lambda x: xb.all_reduce(x, lambda a, b: a + b, channel_id=1, name="again"))
    group = xb.ModuleGroup({0: TOTAL, 1: again})
    assert xb.check(group).kind == "ok"
    assert execute(group, [[np.ones(4, np.float32)]] * 2)[0].tolist() == [2.0] * 4


def test_different_sums_in_two_branches_are_not_matched_by_arrival() -> None:
    def program(x: xb.Value, first: xb.Value) -> xb.Value:
        x = xb.all_reduce(x, xb.add, name="before")
        branches = (
            lambda x: xb.all_reduce(x, xb.add, name="sum_of_x"),
            lambda x: xb.all_reduce(x * 2.0, xb.add, name="sum_of_2x"),
        )
        return xb.conditional(first, (x, x), branch_computations=branches)

    made, ones = module(program, xb.pred[()]), np.ones(4, np.float32)
    assert xb.check(made).kind == "depends"
    assert execute(made, [[ones, True]] * 2)[0].tolist() == [4.0] * 4
    with pytest.raises(Stopped) as stopped:
        execute(made, [[ones, True], [ones, False]])
    parting = stopped.value.report.parting
    assert parting[0] == "devices 0 and 1 diverge after before (collective 1 of both)"
    assert [name in line for name, line in zip(("sum_of_x", "sum_of_2x"), parting[1:], strict=True)] == [True, True]
    assert all("all-reduce of add, f32[4], one group of all" in line for line in parting[1:])


def test_the_predicate_that_parts_the_devices_is_told() -> None:
    def program(x: xb.Value) -> xb.Value:
        is_first = xb.eq(xb.convert(xb.replica_id(x.builder), xb.s32), 0)
        branches = (lambda x: xb.all_reduce(x, xb.add, name="sum"), lambda x: -x)
        return xb.conditional(is_first, (x, x), branch_computations=branches, name="chosen")

    text = str(xb.check(module(program)))
    assert "(replica-id == 0)" in text
    assert "decides chosen: true_computation on device 0, another branch on device 1" in text
    assert "a collective inside a conditional whose predicate depends on replica-id" in text
    assert "move sum out of chosen" in text


def test_branches_that_run_the_same_collectives_in_other_orders() -> None:
    def program(x: xb.Value) -> xb.Value:
        is_first = xb.eq(xb.convert(xb.replica_id(x.builder), xb.s32), 0)

        def summed(x: xb.Value) -> xb.Value:
            return xb.all_reduce(x, xb.add, name="sum")

        def turned(x: xb.Value) -> xb.Value:
            return xb.collective_permute(x, [(0, 1), (1, 0)], name="turn")

        branches = (lambda x: turned(summed(x)), lambda x: summed(turned(x)))
        return xb.conditional(is_first, (x, x), branch_computations=branches, name="chosen")

    text = str(xb.check(module(program)))
    assert "run the collectives in the same order in all branches of chosen" in text
