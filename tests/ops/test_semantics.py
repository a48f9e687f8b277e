"""Each heading of Operation Semantics: its function, its rules, and the document's own numbers as a case or a test."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate, execute
from interpreter.rules import compute, planned
from shape_inference import infer
from tests.cases.case import Case
from tests.ops.test_cases import FAMILIES
from tests.test_docs import EXAMPLES
from xbuild.reference.op_names import NAMES

HEADINGS = (Path(__file__).parents[1] / "data" / "operation_semantics_headings.txt").read_text().splitlines()
FORMS = {"Collapse": "collapse", "Conv (convolution)": "conv", "Dot": "dot", "RngNormal": "rng_normal"}
"""The functions of headings that are no op of their own."""

CUBE = np.array([[10, 11, 12], [15, 16, 17]]) + 10 * np.arange(4)[:, None, None]
SEVENS = np.array([[1, 2, 3], [4, 5, 6]])
ROWS = np.arange(12).reshape(4, 3)
FIVE = np.arange(5)
BY_COLUMN = [10, 20, 30, 40, 11, 21, 31, 41, 12, 22, 32, 42, 15, 25, 35, 45, 16, 26, 36, 46, 17, 27, 37, 47]
TEN = np.arange(10)
FOURS = np.arange(1, 9).reshape(2, 2, 2)

# heading: the document's examples, each as the operands that it names, and the result.
NUMBERS: dict[str, list[tuple[tuple[Any, ...], Any]]] = {
    "Broadcast": [((2,), [[2, 2, 2], [2, 2, 2]])],
    "Clamp": [((0, [-1, 5, 9], 6), [0, 5, 6])],
    "Collapse": [((CUBE,), CUBE.reshape(shape)) for shape in (24, (4, 6), (8, 3))],
    "Concatenate": [(([2, 3], [4, 5], [6, 7]), [2, 3, 4, 5, 6, 7]),
                    (([[1, 2], [3, 4], [5, 6]], [[7, 8]]), [[1, 2], [3, 4], [5, 6], [7, 8]])],
    "ConvertElementType": [(([0, 1, 2],), [0, 1, 2])],
    "DotGeneral": [(([[1, 2, 3], [4, 5, 6]], [[1, 1, 1], [2, 2, 2]]), [[6, 12], [15, 30]]),
                   ((FOURS, [[[1, 0], [0, 1]]] * 2), FOURS)],
    "DynamicSlice": [((FIVE, [2]), [2, 3]), ((ROWS, [2, 1]), [[7, 8], [10, 11]])],
    "DynamicUpdateSlice": [((FIVE, [5, 6], [2]), [0, 1, 5, 6, 4]),
                           ((ROWS, [[12, 13], [14, 15], [16, 17]], [1, 1]),
                            [[0, 1, 2], [3, 12, 13], [6, 14, 15], [9, 16, 17]])],
    "GetTupleElement": [((TEN, 5), 5)],
    "Reduce": [((np.tile(SEVENS, (4, 1, 1)),), each)
               for each in ([[4, 8, 12], [16, 20, 24]], [[6, 15]] * 4, [20, 28, 36], 84)],
    "Reshape": [*(((CUBE,), CUBE.reshape(shape)) for shape in (24, (8, 3))),
                *(((CUBE,), np.reshape(BY_COLUMN, shape)) for shape in (24, (8, 3), (2, 6, 2))),
                (([[5]],), 5), ((5,), [[5]])],
    "Select": [(([True, False, False, True], [1, 2, 3, 4], [100, 200, 300, 400]), [1, 200, 300, 4]),
               ((True, [1, 2, 3, 4], [100, 200, 300, 400]), [1, 2, 3, 4])],
    "Slice": [((FIVE,), [2, 3]), ((ROWS,), [[7, 8], [10, 11]])],
    "Sort": [(([3, 1], [42, 50]), ([1, 3], [50, 42]))],
    "Tuple": [((TEN, 5), (TEN, 5))],
}  # fmt: skip
# heading: the case that follows a figure, code or words without numbers.
FOLLOWS = {
    "Gather": ("gather-slices", "gather-slices-by-two-dimensions", "gather-gather-nd"),
    "Iota": ("leaves-iota-f32",),
    "Map": ("control_flow-map-types",),
    "Pad": ("shaping-pad-edges", "shaping-pad-interior", "shaping-pad-two-dimensions"),
    "Reduce": ("reduction-arg-max", "reduction-matrix-0", "reduction-matrix-1"),
    "ReduceWindow": ("windows-pool-max-2x3", "windows-sum-strided"),
    "Rev (reverse)": ("shaping-reverse-10",),
    "SelectAndScatter": ("windows-windows-apart", "windows-windows-overlap"),
    "Sort": ("ordering-sort-columns", "ordering-sort-rows"),
    "While": ("control_flow-while-1000",),
}
# heading: the tests and doctests of examples that need several devices or a host.
ELSEWHERE = {
    "AllToAll": ("interpreter.test_grid.test_the_document_s_all_to_all_over_four_cores",),
    "CrossReplicaSum": ("interpreter.runtime.run.execute",
                        "interpreter.test_grid.test_the_document_s_sum_over_eight_replicas_in_four_groups"),
    "CustomCall": ("ops.test_semantics.test_custom_call_of_the_document",),
    "Infeed": ("ops.test_semantics.test_two_infeeds_are_ordered_by_their_loops",
               "ops.test_semantics.test_infeed_of_an_empty_tuple"),
    "Recv": ("ops.test_semantics.test_channel_instructions_have_the_document_s_order",),
    "Send": ("interpreter.test_grid.test_crossed_sends_are_refused_and_run_with_a_buffer",),
}  # fmt: skip
CASES = {f"{family}-{case.id}": case for family, module in FAMILIES.items() for case in module.CASES}

CITED = "\n".join(inspect.getdoc(form) or "" for form in vars(xb).values() if inspect.isfunction(form))


def functions(heading: str) -> list[str]:
    return [row.name for row in NAMES.values() if row.heading == heading] or [FORMS[heading]]


@pytest.mark.parametrize("heading", HEADINGS)
def test_heading_has_its_functions_and_rules(heading: str) -> None:
    for name in functions(heading):
        text = inspect.getdoc(getattr(xb, name)) or ""
        assert "Source: " in text
        opcode = name.strip("_")
        if heading not in FORMS:
            assert opcode in infer
            assert opcode in compute or opcode in planned
    assert f"Operation Semantics, {heading.split()[0]}" in CITED


def test_headings_of_the_table_are_the_document_s() -> None:
    others = ("StableHLO, ", "xla_builder.h", "HloOpcode")
    named = {row.heading for row in NAMES.values() if not row.heading.startswith(others)}
    assert sorted(named | set(FORMS)) == sorted(HEADINGS)


@pytest.mark.parametrize("heading", HEADINGS)
def test_heading_has_an_example(heading: str) -> None:
    stated = heading in NUMBERS or heading in FOLLOWS or heading in ELSEWHERE
    first = f"Operation Semantics, {heading.split()[0]}"
    assert stated or any(first in case.source for case in CASES.values())


@pytest.mark.parametrize(("heading", "number"), [(h, n) for h, listed in NUMBERS.items() for n in range(len(listed))])
def test_numbers_of_the_document_are_a_case(heading: str, number: int) -> None:
    operands, result = NUMBERS[heading][number]
    assert any(_is(case, operands, result) for case in CASES.values())


def _is(case: Case, operands: tuple[Any, ...], result: Any) -> bool:
    """Whether a case has this result, and these operands among its arguments and attributes."""
    if not _equal(case.result, result):
        return False
    given = [*case.arguments, *(np.array(each) for each in case.arguments), *case.attributes.values()]
    return all(any(_equal(each, operand) for each in given) for operand in operands if np.ndim(operand))


def _equal(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, tuple):
        pairs = isinstance(found, tuple | list) and len(found) == len(wanted)
        return pairs and all(map(_equal, found, wanted))
    try:
        return bool(np.array_equal(found, wanted))
    except (TypeError, ValueError):
        return False


@pytest.mark.parametrize("heading", FOLLOWS)
def test_figures_and_words_have_their_cases(heading: str) -> None:
    assert [name for name in FOLLOWS[heading] if name not in CASES] == []


@pytest.mark.parametrize("heading", ELSEWHERE)
def test_examples_of_several_devices_have_their_tests(heading: str) -> None:
    for name in ELSEWHERE[heading]:
        module, _, test = name.rpartition(".")
        assert name in EXAMPLES or callable(getattr(importlib.import_module(f"tests.{module}"), test))


def test_custom_call_of_the_document() -> None:
    """The document's myfunc writes one element: z[0][0] = x[1] + y[1][0]."""

    @xb.custom_call_target("myfunc")
    def myfunc(x: Any, y: Any) -> Any:
        z = np.zeros((3, 3), np.float32)
        z[0, 0] = x[1] + y[1, 0]
        return z

    program = xb.computation(xb.f32[2], xb.f32[2, 3])(lambda x, y: xb.custom_call((x, y), "myfunc", xb.f32[3, 3]))
    found = evaluate(program, [1.0, 2.0], [[10.0, 20.0, 30.0], [40.0, 50.0, 60.0]])
    assert found.tolist() == [[42, 0, 0], [0, 0, 0], [0, 0, 0]]


def test_two_infeeds_are_ordered_by_their_loops() -> None:
    def summed(token: Any, total: Any) -> Any:
        def step(state: Any) -> Any:
            n, token, total = state
            (item, token) = xb.infeed(token, xb.f32[()])
            return n + 1, token, total * 10.0 + item

        _, token, total = xb.while_((0, token, total), lambda state: state[0] < 2, step)
        return token, total

    builder = xb.Builder("loops")
    first = summed(xb.create_token(builder), xb.constant(builder, 0.0))
    module = xb.Module("loops", builder.build(summed(*first)[1]))
    assert execute(module, [[]], infeed={0: [np.float32(n) for n in (1, 2, 3, 4)]}) == [1234.0]


def test_infeed_of_an_empty_tuple() -> None:
    case = CASES["transfer-infeed-of-nothing"]
    value, nothing = evaluate(case.computation(), *case.arguments)
    assert value.tolist() == case.arguments[0].tolist()
    assert nothing == ()


def test_channel_instructions_have_the_document_s_order() -> None:
    """Recv before Send before RecvDone, Recv before RecvDone, Send before SendDone."""
    sender, receiver = xb.Builder("sender"), xb.Builder("receiver")
    xb.send_sync(xb.parameter(sender, number=0, shape=xb.f32[2]), 1)
    data = xb.recv_sync(xb.f32[2], 1, builder=receiver)
    modules = {0: xb.Module("sender", sender.build()), 1: xb.Module("receiver", receiver.build(data))}
    group = xb.ModuleGroup(modules)
    assert xb.check(group).kind == "ok"
    assert execute(group, {0: [np.array([1, 2], np.float32)], 1: []})[1].tolist() == [1, 2]
    orders = {device: [i.name for i in module.entry.instructions] for device, module in modules.items()}
    for device in modules:
        turned = orders | {device: orders[device][::-1]}
        assert xb.check(group, schedule=turned).kind in ("error", "deadlock")
