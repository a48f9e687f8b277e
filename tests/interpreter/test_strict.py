"""The strict mode: it finds what it must and nothing else, tells where that began, and changes no result."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest

import xbuild as xb
from interpreter import Finding as StrictFinding
from interpreter import StrictFailure, evaluate, execute, plan_source
from interpreter.compiler.emit import PlanOptions
from interpreter.compiler.plan import plan_of
from interpreter.strict.rules import strict as rules
from shape_inference.kinds import STRICT_KINDS
from tests.interpreter.strict_runs import strictly
from tests.ops.test_cases import FAMILIES
from tests.support.compare import assert_same
from tests.support.strict_programs import PROGRAMS, Program, Row, array, f32, long
from xbuild.core.op import OPS


def rows(findings: Iterable[StrictFinding]) -> list[Row]:
    return [(each.kind, each.instruction.opcode, each.index, each.further) for each in findings]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.id)
def test_what_is_found(program: Program) -> None:
    computation = program.computation()
    result, findings = strictly(computation, *program.arguments)
    assert rows(findings) == program.found
    assert_same(result, evaluate(computation, *program.arguments))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.id)
def test_the_same_is_found_on_each_of_four_devices(program: Program) -> None:
    module = xb.Module("four", program.computation(), num_replicas=4)
    inputs = [program.arguments] * 4
    plain = execute(module, inputs)
    try:
        results, findings = execute(module, inputs, strict=True), ()
    except StrictFailure as failure:
        results, findings = failure.results, failure.findings
    assert_same(results, plain)
    for device in range(4):
        assert rows(each for each in findings if each.device == device) == program.found


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.id)
def test_the_same_kinds_are_found_one_element_after_the_other(program: Program) -> None:
    """In another order of adding, a sum may be born infinite at another step of it."""
    _, findings = strictly(program.computation(), *program.arguments, sequential=True)
    assert {each.kind for each in findings} == {row[0] for row in program.found}


@pytest.mark.parametrize("family", FAMILIES)
def test_no_case_of_any_op_has_another_result(family: str) -> None:
    for case in FAMILIES[family].CASES:
        computation = case.computation()
        result, findings = strictly(computation, *case.arguments)
        assert_same(result, evaluate(computation, *case.arguments))
        assert all(each.instruction in computation.instructions or each.standing.path[1:] for each in findings)


def test_each_kind_is_found_somewhere() -> None:
    elsewhere = {"variance_broken", "race"}  # found in tests/variance and tests/races
    assert {row[0] for program in PROGRAMS for row in program.found} == STRICT_KINDS - elsewhere


def test_nothing_is_paid_where_it_is_off() -> None:
    program = next(each for each in PROGRAMS if each.id == "quotient")
    computation = program.computation()
    before = plan_source(computation)
    _, findings = strictly(computation, *program.arguments)
    assert findings
    assert plan_source(computation) == before
    assert re.search(r"\bs\d+\(", before) is None
    assert re.search(r"\bs\d+\(", plan_of(computation, PlanOptions(strict=True)).source)


def test_integers_without_a_rule_of_their_own_are_not_checked() -> None:
    computation = xb.computation(xb.s32[3])(lambda x: xb.reduce(x * x + x, 0, xb.add))
    assert plan_of(computation, PlanOptions(strict=True)).source == plan_source(computation)


# where


def test_a_loop_tells_the_first_trip_and_counts_the_others() -> None:
    loop = xb.computation(xb.s32[()], xb.s32[()])(
        lambda n, x: xb.while_([n, x], lambda s: s[0] < 5, lambda s: [s[0] + 1, s[1] / 0])
    )
    _, (finding,) = strictly(loop, 0, 2)
    assert (finding.instruction.opcode, finding.further) == ("divide", 4)
    assert [trip for trip in finding.standing.trips if trip] == [1]
    assert str(finding.standing).endswith("trip 1")
    assert finding.values == (("lhs", 2), ("rhs", 0))


def test_the_trip_in_which_it_begins_is_told() -> None:
    loop = xb.computation(xb.s32[()], xb.f32[()])(
        lambda n, x: xb.while_([n, x], lambda s: s[0] < 9, lambda s: [s[0] + 1, s[1] * 1e10])
    )
    _, (finding,) = strictly(loop, 0, 1.0)
    assert (finding.kind, finding.further) == ("inf_born", 0)
    assert [trip for trip in finding.standing.trips if trip] == [4]
    assert float(finding.values[0][1]) == pytest.approx(1e30)


def test_a_branch_in_a_loop_and_a_region_in_a_branch_are_told() -> None:
    def body(s: xb.Value) -> Any:
        inner = xb.conditional(s[0] > 1, s[1], lambda x: xb.map(x, lambda e: 1.0 / e), s[1], lambda x: x - 1.0)
        return [s[0] + 1, inner]

    loop = xb.computation(xb.s32[()], xb.f32[2])(lambda n, x: xb.while_([n, x], lambda s: s[0] < 3, body))
    _, (finding,) = strictly(loop, 0, array(f32, 2, 3))
    words = str(finding.standing)
    assert [word.partition(".")[0] for word in words.split(" in ")] == ["divide", "map", "conditional", "while"]
    assert "true_computation" in words
    assert words.endswith("trip 3")
    assert finding.index == (0,)


def test_a_function_of_its_own_tells_who_called_it() -> None:
    callee = xb.computation(xb.f32[()])(long)
    twice = xb.computation(xb.f32[()], xb.f32[()])(lambda x, y: xb.call(x, callee) + xb.call(y, callee))
    assert plan_of(twice, PlanOptions(strict=True)).source.count("def ") == 2
    _, (finding,) = strictly(twice, 1.0, 0.0)
    call = finding.standing.path[0].instruction
    assert (call.opcode, call.operands[0].attributes.number) == ("call", 1)
    assert [place.instruction.opcode for place in finding.standing.path] == ["call", "log"]


def test_a_function_in_a_loop_of_a_function_tells_the_trip() -> None:
    def loop(x: xb.Value) -> xb.Value:
        for _ in range(80):
            x = x + 0.0
        return xb.while_([x, x], lambda s: s[0] >= 0.0, lambda s: [s[0] - 1.0, xb.call(s[0], long)])[1]

    program = xb.computation(xb.f32[()])(lambda x: xb.call(x, loop))
    _, (finding,) = strictly(program, 2.0)
    assert [place.instruction.opcode for place in finding.standing.path] == ["call", "while", "call", "log"]
    assert finding.standing.trips == (None, 3, None, None)


def test_calls_of_calls_stay_few_functions() -> None:
    computation = xb.computation(xb.f32[()])(long)
    for _ in range(12):
        inner = computation
        computation = xb.computation(xb.f32[()])(lambda x, inner=inner: xb.call(x, inner) + xb.call(x + 1.0, inner))
    assert plan_of(computation, PlanOptions(strict=True)).source.count("def ") <= 13
    _, (finding, *_) = strictly(computation, 0.0)
    assert len(finding.standing.path) == 13


def test_the_chain_leads_from_the_parameters() -> None:
    def body(s: xb.Value) -> Any:
        return [s[0] + 1, s[1] - 1.0, xb.log(s[1])]

    @xb.computation(xb.f32[()], xb.f32[()])
    def program(x: xb.Value, unused: xb.Value) -> xb.Value:
        start = xb.sqrt(x)
        zero = xb.constant(x.builder, 0)
        return xb.while_([zero, start, unused], lambda s: s[0] < 3, body)

    _, (first, *_) = strictly(program, 0.0, 7.0)
    assert [each.opcode for each in first.chain] == ["parameter", "sqrt", "log"]
    assert first.chain[0].attributes.number == 0
    source = first.instruction.source
    assert source is not None
    assert source.file.endswith("test_strict.py")


def test_the_chain_goes_back_through_the_trips_before() -> None:
    def program(n: xb.Value, x: xb.Value) -> xb.Value:
        return xb.while_([n, x], lambda s: s[0] < 4, lambda s: [s[0] + 1, xb.dynamic_slice(s[1], [s[0]], (3,))])[1]

    _, (finding,) = strictly(xb.computation(xb.s32[()], xb.f32[3])(program), 0, [1.0, 2.0, 3.0])
    assert finding.standing.trips[0] == 2
    assert {each.opcode for each in finding.chain} == {"parameter", "add", "dynamic_slice"}


def test_the_chain_leads_into_the_operand_of_the_branch_and_of_the_call() -> None:
    def called(y: xb.Value) -> xb.Value:
        return xb.call([y, y + 1.0], lambda a, b: b / a)

    @xb.computation(xb.pred[()], xb.f32[()], xb.f32[()])
    def program(first: xb.Value, x: xb.Value, y: xb.Value) -> xb.Value:
        return xb.conditional(first, x, xb.neg, xb.sqrt(y), called)

    _, (finding,) = strictly(program, False, 1.0, 0.0)
    assert [each.opcode for each in finding.chain] == ["parameter", "sqrt", "add", "divide"]
    assert finding.chain[0].attributes.number == 2


def test_a_long_chain_is_cut_at_the_far_end() -> None:
    _, (finding,) = strictly(xb.computation(xb.f32[()])(long), 0.0)
    assert finding.chain[-1].opcode == "log"
    assert len(finding.chain) == 12
    assert "70 instructions before" in "\n".join(finding.lines())


HAND_ON = frozenset({
    "add_dependency", "after_all", "all_gather", "all_gather_done", "all_gather_start", "all_reduce_done",
    "all_reduce_start", "all_to_all", "async_done", "async_start", "async_update", "broadcast", "call", "clamp",
    "collective_broadcast", "collective_permute", "collective_permute_done", "collective_permute_start", "compare",
    "complex", "concatenate", "constant", "copy", "copy_done", "copy_start", "domain", "fusion",
    "get_dimension_size", "get_tuple_element", "infeed", "opt_barrier", "outfeed", "pad", "parameter",
    "partition_id", "ragged_all_to_all", "recv", "recv_done", "replica_id", "reshape", "reverse",
    "rng_bit_generator", "rng_get_and_update_state", "scan", "select", "send", "send_done", "slice", "topk",
    "transpose", "tuple", "while",
})  # fmt: skip
"""Ops that hand on what they are given, or what they call gives: nothing can be lost or born in them alone."""


def test_every_op_is_checked_or_can_lose_nothing() -> None:
    assert sorted(set(rules) & HAND_ON) == []
    assert sorted(set(OPS) - set(rules) - HAND_ON) == []


def test_tuples_in_tuples_are_looked_through_without_calls() -> None:
    @xb.computation(xb.f32[2])
    def deep(x: xb.Value) -> xb.Value:
        for _ in range(1500):
            x = xb.get_tuple_element(xb.tuple_(xb.tuple_(x, x), x), 0)[1]
        return x + 1.0

    assert xb.execute(deep, [[[1.0, 2.0]]], strict=True)[0].tolist() == [2.0, 3.0]
