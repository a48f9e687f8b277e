"""Differences of programs: what they name after an edit, and how literals and new numbers are told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import xbuild as xb
from tests.editing.corpus_programs import MODULES, any_instruction, read

# what a difference names


def changes_of(diff: xb.Diff) -> set[tuple[str, str, str, str]]:
    return {
        (row.after.name, change.what, change.before, change.after)
        for each in diff.computations
        for row in each.changed
        for change in row.changes
    }


@given(st.sampled_from(MODULES), st.integers(0, 2**32))
@settings(max_examples=60)
def test_a_difference_names_an_insertion(file: str, seed: int) -> None:
    module = read(file)
    computation, instruction = any_instruction(module, np.random.default_rng(seed))
    users = [i for i in computation.instructions if instruction in i.operands]
    with xb.edit(module) as editor:
        editor.replace_uses(instruction, xb.ops.opt_barrier(editor[instruction], name="barrier"))
    found = xb.diff(module, editor.result)
    (own,) = [each for each in found.computations if not each.same]
    assert [(i.opcode, i.operands[0].name) for i in own.added] == [("opt_barrier", instruction.name)]
    assert not own.removed
    assert {row.after.name for row in own.changed} == {user.name for user in users}
    assert {(b, a) for _, _, b, a in changes_of(found)} <= {(instruction.name, own.added[0].name)}
    assert [change.what for change in own.changes] == ["root"] * (instruction is computation.root)
    assert xb.diff(editor.result, module).to_dict()["computations"][0]["removed"]


@given(st.sampled_from(MODULES), st.integers(0, 2**32))
@settings(max_examples=60)
def test_a_difference_names_an_operand(file: str, seed: int) -> None:
    module = read(file)
    rng = np.random.default_rng(seed)
    computation, instruction = any_instruction(module, rng)
    assume(instruction.operands)
    place = int(rng.integers(len(instruction.operands)))
    earlier = computation.instructions[: computation.instructions.index(instruction)]
    old = instruction.operands[place]
    others = [i for i in earlier if i.shape.plain() == old.shape.plain() and i is not old]
    assume(others)
    new = others[rng.integers(len(others))]
    with xb.edit(module) as editor:
        editor.replace_operand(instruction, place, new)
    assume(not xb.same_structure(module, editor.result))  # two that are the same but for their names
    found = xb.diff(module, editor.result)
    assert {(name, before, after) for name, _, before, after in changes_of(found)} == {
        (instruction.name, old.name, new.name)
    }
    assert not any(each.added or each.removed for each in found.computations)


@given(st.sampled_from(MODULES), st.integers(0, 2**32))
@settings(max_examples=40)
def test_a_difference_names_a_new_name(file: str, seed: int) -> None:
    module = read(file)
    _, instruction = any_instruction(module, np.random.default_rng(seed))
    with xb.edit(module) as editor:
        editor.rename(instruction, "another.name")
    assert changes_of(xb.diff(module, editor.result)) == {("another.name", "name", instruction.name, "another.name")}


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (np.float32([1, -0.0]), ("literal", "{1, 0}", "{1, -0.0}")),
        (np.float32([1, 2, 3]), ("literal", "{1, 0}", "{1, 2, 3}")),
        (np.zeros(40, np.float32), ("literal", "{1, 0}", "40 elements")),
        (np.int32([1, 0]), ("literal", "{1, 0}", "{1, 0}")),
    ],
)
def test_a_difference_of_literals(new: Any, expected: tuple[str, str, str]) -> None:
    found = xb.diff(_constant(np.float32([1, 0])), _constant(new))
    assert expected in {change[1:] for change in changes_of(found)}


def test_a_difference_of_long_literals() -> None:
    old = np.arange(60, dtype=np.float32).reshape(6, 10)
    new = old.copy()
    new[2, 3:5] = [7, np.nan]
    (change,) = changes_of(xb.diff(_constant(old), _constant(new)))
    assert change[1:] == ("literal, 2 of 60 elements, the first at [2, 3]", "23", "7")
    assert xb.diff(_constant(new), _constant(new.copy())).same


def _constant(value: Any) -> xb.Computation:
    builder = xb.Builder("c")
    return builder.build(xb.ops.constant(builder, literal=value))


def test_names_that_were_counted_anew_do_not_tell() -> None:
    def program(*, more: bool) -> xb.Computation:
        builder = xb.Builder("main")
        x = xb.ops.parameter(builder, number=0, shape=xb.f32[4], name="x")
        y = xb.ops.negate(x) if more else x
        z = xb.ops.add(xb.ops.tanh(x), xb.ops.abs(x))
        return builder.build(xb.ops.multiply(xb.ops.add(z, x), xb.ops.add(y, z)))

    found = xb.diff(program(more=False), program(more=True))
    (own,) = found.computations
    assert [i.opcode for i in own.added] == ["negate"]
    assert not own.removed
    others = {(what, before, after) for _, what, before, after in changes_of(found) if what != "name"}
    assert others == {("operand lhs", "x", "negate.1")}
