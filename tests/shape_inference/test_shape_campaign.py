"""The campaign of shape rules: slips are what they say, outcomes are told apart, and real XLA agrees on a slice."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

import xbuild as xb
from shape_inference import PRIMITIVES
from tests.oracle.chance import Chance
from tests.oracle.instance import Instance
from tests.oracle.shapes.__main__ import AGREED, Answer, asked, compared, draw
from tests.oracle.shapes.changes import operand_shape, slipped
from tests.oracle.shapes.known import explanation
from tests.oracle.shapes.program import Program, again, program
from xbuild.core.graph import Instruction
from xbuild.core.op import OPS


def added(extents: tuple[int, ...] = (2, 3), name: str = "f32") -> Program:
    zeros = np.zeros(extents, PRIMITIVES[name].dtype)
    return program(Instance("add", PRIMITIVES[name], (zeros, zeros)))


def with_second_of(old: Program, shape: xb.Shape) -> Program:
    second = old.computation.parameters[1]

    def changed(instruction: Instruction) -> Instruction:
        record = evolve(instruction.attributes, shape=shape) if instruction is second else instruction.attributes
        return evolve(instruction, attributes=record)

    return again(old, changed, "shape")


def test_a_program_that_is_wrong_keeps_its_refusal_and_has_a_text() -> None:
    wrong = with_second_of(added(), xb.f32[2, 4])
    assert wrong.refusal is not None
    assert wrong.refusal.kind == "dimension_mismatch"
    assert "parameter.2 = f32[2,4] parameter(1)" in wrong.text()
    assert "ROOT add.3 = add(parameter.1, parameter.2)" in wrong.text()


def test_bounds_and_tokens_are_made_on_the_spot() -> None:
    text = with_second_of(added(), xb.Shape(xb.f32, (2, 3), (False, True))).text()
    assert "parameter.2 = set-dimension-size(parameter.2.whole, parameter.2.size.1), dimensions={1}" in text


@pytest.mark.parametrize(
    ("second", "answer", "outcome"),
    [
        (xb.f32[2, 3], Answer("compiled", "f32[2,3]{1,0}", ""), "the same shape"),
        (xb.f32[2, 3], Answer("compiled", "f32[2,<=3]{1,0}", ""), "another shape"),
        (xb.f32[2, 3], Answer("", "", "add: shapes differ"), "XLA refuses, accepted here"),
        (xb.f32[2, 3], Answer("converted", "f32[2,3]", "UNIMPLEMENTED: add"), "XLA:CPU is unable, accepted here"),
        (xb.f32[2, 4], Answer("compiled", "f32[2,3]{1,0}", ""), "XLA accepts, refused here"),
        (xb.f32[2, 4], Answer("", "", "add: shapes differ"), "XLA refuses, refused here"),
        (xb.f32[2, 4], Answer("read", "f32[2,3]", ""), "refused here, and XLA was asked no further"),
    ],
)
def test_outcomes_are_told_apart(second: xb.Shape, answer: Answer, outcome: str) -> None:
    assert compared(with_second_of(added(), second), answer) == outcome


def test_what_is_not_known_has_no_explanation() -> None:
    wrong = with_second_of(added(), xb.f32[2, 4])
    assert explanation(wrong, "", "XLA accepts, refused here") is None
    assert explanation(added(), "shapes differ", "XLA refuses, accepted here") is None


def test_half_of_the_programs_are_wrong_and_each_is_told_by_its_number() -> None:
    drawn = [draw(4, number, opcode) for number in range(3) for opcode in OPS]
    refused = sum(each.refusal is not None for each in drawn)
    assert len(drawn) // 5 < refused < len(drawn) * 4 // 5
    assert [each.text() for each in drawn[:40]] == [draw(4, 0, opcode).text() for opcode in [*OPS][:40]]


def test_a_slip_changes_the_program() -> None:
    texts = {slipped(Chance(n), added()).text() for n in range(40)}
    assert len(texts) > 20
    assert operand_shape(Chance(1), added()).change


@pytest.mark.slow
@pytest.mark.oracle
def test_a_slice_agrees_with_real_xla() -> None:
    pytest.importorskip("jaxlib")
    drawn = [draw(4, number, opcode) for number in range(4) for opcode in OPS]
    for ours, theirs in zip(drawn, asked(drawn, is_read_only=True), strict=True):
        outcome = compared(ours, theirs)
        is_known = outcome in AGREED or theirs.is_unable or explanation(ours, theirs.message, outcome)
        assert is_known, f"{outcome}, {ours.change}: {ours.refusal} | {theirs}\n{ours.text()}"
