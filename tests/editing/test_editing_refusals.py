"""Edits that are refused: what the message names, and that the program stays as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from tests.editing.edited_program import HEADER, edited


def refusal(module: xb.Module, edit: Callable[[xb.Editor[xb.Module]], object]) -> Any:
    """What an edit is refused with; the editor goes on as if it had not been tried."""
    with xb.edit(module) as editor:
        with pytest.raises((xb.BuildError, xb.ShapeError)) as caught:
            edit(editor)
        editor.rename("dead", "unused")
    assert str(editor.result) == str(module).replace("dead", "unused")
    assert "test_editing_refusals.py" in str(caught.value)
    return caught.value


# what is refused

FOREIGN = xb.iota(xb.Builder("b"), shape=xb.f32[2], iota_dimension=0)
STRAY = xb.Instruction("iota", "i", xb.f32[2])


def test_a_clash_names_both(module: xb.Module) -> None:
    def edit(editor: xb.Editor[xb.Module]) -> None:
        editor.replace_operand("z", "lhs", xb.constant(editor.builder, literal=np.zeros(3, np.float32), name="w"))

    with xb.edit(module) as editor, pytest.raises(xb.ShapeError) as caught:
        edit(editor)
    assert caught.value.kind == "dimension_mismatch"
    for words in ("lhs  f32[3]  %w", "rhs  f32[2]  %k", "operand lhs would be %w: f32[3] in place of %y: f32[2]"):
        assert words in str(caught.value)


def test_a_clash_further_down_is_refused_before_anything_changes() -> None:
    module = xb.parse_hlo("ENTRY e { x = f32[2] parameter(0) y = tanh(x) z = negate(y) ROOT t = add(z, x) }")
    with xb.edit(module) as editor:
        with editor.after("x"):
            twice = xb.concatenate([editor["x"], editor["x"]], dimension=0)
        with pytest.raises(xb.ShapeError) as caught:
            editor.replace_operand("y", 0, twice)
        assert editor["z"].shape == xb.f32[2]
        editor.remove(twice)
    assert "%t: operand operand would be %concatenate.5: f32[4] in place of %x: f32[2]" in str(caught.value)
    assert str(editor.result) == str(module)


@pytest.mark.parametrize(
    ("kind", "words", "edit"),
    [
        ("in_use", "%y: f32[2] is used by %k, %z", lambda e: e.remove("y")),
        ("in_use", "%n: s32[] is used by %k", lambda e: e.remove("n")),
        ("in_use", "%z: f32[2] is the root of main", lambda e: e.remove("z")),
        ("in_use", "%y: f32[2] is used by %z", lambda e: e.remove("y", "k", "dead")),
        ("used_too_early", "%y: f32[2] would precede %x: f32[2]{0}", lambda e: e.move("y", before="x")),
        ("used_too_early", "%k: f32[2] would precede %y: f32[2]", lambda e: e.move("y", after="k")),
        ("used_too_early", "%y: f32[2] would precede %z: f32[2]", lambda e: e.replace_operand("y", 0, "z")),
        ("cycle", "%y: f32[2] would depend on itself", lambda e: e.replace_operand("y", 0, "y")),
        ("duplicate_name", "main already has an instruction %x", lambda e: e.rename("y", "x")),
        ("invalid_operand", "no operand 'left'; it has lhs, rhs", lambda e: e.replace_operand("z", "left", "y")),
        ("invalid_operand", "has no operand 2", lambda e: e.replace_operand("z", 2, "y")),
        ("undefined_name", "no instruction 'yy'", lambda e: e.remove("yy")),
        ("undefined_name", "no computation 'g'", lambda e: e.root("g")),
        ("foreign_value", "%a: f32[2] belongs to computation f", lambda e: e.replace_operand("z", 0, "a")),
        ("foreign_value", "belongs to builder", lambda e: e.remove(FOREIGN)),
        ("foreign_value", "%i is not an instruction of module m", lambda e: e.remove(STRAY)),
        ("not_a_call", "expected a call or a fusion, got negate %y: f32[2]", lambda e: e.inline("y")),
        ("builder_finished", "not available until", lambda e: e.result),
        ("invalid_attribute", "negate has no attribute 'dimensions'", lambda e: e.set_attributes("y", dimensions=(0,))),
    ],
)  # fmt: skip
def test_refusals(module: xb.Module, kind: str, words: str, edit: Callable[[Any], object]) -> None:
    error = refusal(module, edit)
    assert error.kind == kind
    assert words in str(error)


def test_what_was_removed_is_gone(module: xb.Module) -> None:
    with xb.edit(module) as editor:
        editor.remove("dead")
        with pytest.raises(xb.BuildError, match="is no longer an instruction of main"):
            editor.rename(module.entry["dead"], "alive")


def test_what_was_removed_is_not_used(module: xb.Module) -> None:
    def edit(editor: xb.Editor[xb.Module]) -> None:
        dead = editor["dead"]
        editor.remove("dead")
        xb.abs(dead, name="late")

    with pytest.raises(xb.BuildError, match="recording %late: %dead is not an instruction of main"):
        edited(module, edit)
    foreign = xb.control(after=[FOREIGN])
    foreign_refusal = pytest.raises(xb.BuildError, match=r"%iota\.1 is not an instruction of main")
    with foreign_refusal, xb.edit(module) as editor, foreign:
        xb.abs(editor["x"])


def test_an_editor_gives_one_result(module: xb.Module) -> None:
    with xb.edit(module) as editor:
        pass
    with pytest.raises(xb.BuildError, match="this editor is closed"), editor:
        pass


def test_the_parameters_count_on() -> None:
    def edit(editor: xb.Editor[xb.Module]) -> None:
        editor.set_root("y")
        editor.remove("t", "x")

    with pytest.raises(xb.BuildError, match=r"parameter numbers \[1\]"):
        edited(xb.parse_hlo(HEADER), edit)


def test_more_refusals(module: xb.Module) -> None:
    with pytest.raises(xb.BuildError, match="would precede"), xb.edit(module) as editor, editor.after("x"):
        xb.negate(editor["z"])
    with pytest.raises(xb.BuildError, match="names instructions of f, g"), xb.edit(_two_of_a_name()) as editor:
        editor.rename("a", "b")
    with pytest.raises(TypeError, match="expected an instruction, its name or its value"), xb.edit(module) as editor:
        editor.remove(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="exactly one of before= and after="), xb.edit(module) as editor:
        editor.move("y")
    with pytest.raises(ValueError, match="is not a valid name"), xb.edit(module) as editor:
        editor.rename("y", "3")
    with xb.edit(module) as editor:
        y = editor["y"]
    with pytest.raises(xb.BuildError, match="is already built"):
        xb.abs(y)


def _two_of_a_name() -> xb.Module:
    return xb.parse_hlo(
        "f { a = f32[] parameter(0) ROOT n = negate(a) } g { a = f32[] parameter(0) ROOT n = tanh(a) } "
        "ENTRY e { x = f32[] parameter(0) y = call(x), to_apply=f ROOT z = call(y), to_apply=g }"
    )


def test_a_callers_clash_is_told_at_the_end_of_the_block(module: xb.Module) -> None:
    editor = xb.edit(module)

    def edit() -> None:
        with editor:
            editor.set_root(xb.reshape(editor.root("f"), new_sizes=[2, 1]))

    with pytest.raises(xb.ShapeError) as caught:
        edit()
    assert "%z: its callee has changed" in str(caught.value)
    with pytest.raises(xb.BuildError):
        _ = editor.result
