"""Edits of programs: what each does, and that all else stays."""

from __future__ import annotations

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate
from tests.editing.edited_program import HEADER, body, edited

from ..golden import programs

# what edits do


def test_nothing_edited_is_the_same_object(module: xb.Module) -> None:
    assert edited(module, lambda editor: editor["x"]) is module


def test_an_edit_changes_what_it_names_and_nothing_else(module: xb.Module) -> None:
    text = str(module)
    found = edited(module, lambda editor: editor.replace_operand("z", "rhs", "y"))
    assert str(found) == text.replace("add(y, k)", "add(y, y)")
    assert str(module) == text
    assert found.computations[0] is module.computations[0]
    assert found.entry["k"] is module.entry["k"]


@pytest.mark.parametrize("which", [0, -2, "lhs"])
def test_an_operand_is_named_by_number_or_by_name(module: xb.Module, which: int | str) -> None:
    found = edited(module, lambda editor: editor.replace_operand("z", which, "x"))
    assert "add(x, k)" in body(found)


def test_recorded_ops_stand_before_their_first_use(module: xb.Module) -> None:
    def edit(editor: xb.Editor[xb.Module]) -> None:
        doubled = xb.multiply(editor["y"], 2.0)
        assert doubled.name == "multiply.12"
        editor.replace_uses("y", doubled)

    names = [i.name for i in edited(module, edit).entry.instructions]
    assert names == ["x", "n", "y", "constant.10", "broadcast.11", "multiply.12", "k", "dead", "z"]


def test_recorded_ops_stand_where_they_are_put(module: xb.Module) -> None:
    def edit(editor: xb.Editor[xb.Module]) -> None:
        with editor.after("x"), xb.control(after=[editor["x"]]), xb.scope("inside"):
            xb.tanh(editor["x"], name="first")
        with editor.before("first"):
            xb.constant(editor.builder, literal=1.0, name="one")
        with editor.after("z"):
            xb.abs(editor["z"], name="last")

    found = edited(module, edit)
    assert [i.name for i in found.entry.instructions] == ["x", "one", "first", "n", "y", "k", "dead", "z", "last"]
    assert "first = f32[2] tanh(x), control-predecessors={x}" in body(found)
    assert found.entry["first"].annotations["metadata"]["op_name"] == "inside"
    assert found.entry.root.name == "z"


def test_all_that_is_recorded_in_a_block_stands_there(module: xb.Module) -> None:
    def edit(editor: xb.Editor[xb.Module]) -> None:
        with editor.after("x"):
            first = xb.abs(editor["x"], name="first")
            with editor.before("k"):
                xb.abs(editor["y"], name="inner")
            xb.add(first, editor["x"], name="second")
            editor.replace_operand("y", 0, first)

    found = edited(module, edit)
    names = [i.name for i in found.entry.instructions]
    assert names == ["x", "first", "second", "n", "y", "inner", "k", "dead", "z"]

    def late(editor: xb.Editor[xb.Module]) -> None:
        with editor.after("k"):
            editor.replace_operand("y", 0, xb.abs(editor["x"], name="first"))

    with pytest.raises(xb.BuildError, match=r"%y: f32.2. would precede %first: f32.2., which it uses"):
        edited(module, late)


def test_shapes_go_on_through_all_that_is_reached() -> None:
    module = xb.parse_hlo(
        "f { a = f32[2] parameter(0) b = tanh(a) ROOT c = negate(b) } "
        "ENTRY e { x = f32[2] parameter(0) y = call(x), to_apply=f z = negate(y) ROOT t = tuple(z, x) }"
    )
    found = edited(
        module, lambda editor: editor.replace_uses("b", xb.concatenate([editor["b"], editor["b"]], dimension=0))
    )
    assert str(found.entry.program_shape) == "(f32[2]) -> (f32[4], f32[2])"
    assert str(xb.parse_hlo(str(found))) == str(found)
    np.testing.assert_array_equal(evaluate(found.entry, [0.0, 0.0])[0], np.zeros(4, np.float32))


def test_attributes_are_set(module: xb.Module) -> None:
    module = xb.parse_hlo("ENTRY e { x = f32[2,3] parameter(0) y = f32[3,2] transpose(x), dimensions={1,0} }")
    with xb.edit(module) as editor:
        editor.set_attributes("y", permutation=(0, 1))
        assert editor["y"].shape == xb.f32[2, 3]
    assert "f32[2,3] transpose(x), dimensions={0,1}" in str(editor.result)


def test_a_handle_keeps_up(module: xb.Module) -> None:
    def edit(editor: xb.Editor[xb.Module]) -> None:
        y = editor["y"]
        editor.rename("y", "w")
        assert y.name == "w"
        editor.replace_operand(y, 0, xb.abs(editor["x"]))
        editor.replace_operand("z", 1, xb.add(y, y, name="sum"))

    assert "sum = f32[2] add(w, w)\n  ROOT z = f32[2] add(w, sum)" in body(edited(module, edit))


def test_a_call_is_inlined(module: xb.Module) -> None:
    found = edited(module, lambda editor: editor.inline("k"))
    assert body(found) == (
        "  x = f32[2]{0} parameter(0), sharding={replicated}\n"
        "  n = s32[] parameter(1)\n"
        '  y = f32[2] negate(x), frontend_attributes={k="v"}\n'
        "  x.1 = f32[2] negate(y), control-predecessors={n}\n"
        "  c = f32[2] exponential(x.1)\n"
        "  dead = f32[2] tanh(c)\n"
        "  ROOT z = f32[2] add(y, c), control-predecessors={c}\n"
        "}\n"
    )
    assert [each.name for each in found.computations] == ["main"]


def test_a_call_of_nothing_but_its_parameter_is_inlined() -> None:
    module = xb.parse_hlo(
        "f { ROOT a = f32[2] parameter(0) } ENTRY e { x = f32[2] parameter(0) n = negate(x) "
        "ROOT k = call(x), to_apply=f, control-predecessors={n} m = tanh(x), control-predecessors={k} }"
    )
    found = edited(module, lambda editor: editor.inline("k"))
    assert found.entry.root is found.entry["x"]
    assert [each.name for each in found.entry["m"].control] == ["n"]


def test_instructions_are_moved_and_removed(module: xb.Module) -> None:
    found = edited(module, lambda editor: editor.move("n", before="x"))
    assert [i.name for i in found.entry.instructions][:2] == ["n", "x"]
    found = edited(module, lambda editor: editor.move("y", after="x"))
    assert [i.name for i in found.entry.instructions][:3] == ["x", "y", "n"]
    found = edited(module, lambda editor: editor.remove("dead"))
    assert str(found) == str(module).replace("  dead = f32[2] tanh(k)\n", "")

    def several(editor: xb.Editor[xb.Module]) -> None:
        editor.replace_operand("z", 1, "y")
        editor.set_root("y")
        editor.remove("k", "z", "dead")

    found = edited(module, several)
    assert [i.name for i in found.entry.instructions] == ["x", "n", "y"]
    assert [each.name for each in found.computations] == ["main"]


def test_other_computations_are_edited_too(module: xb.Module) -> None:
    def edit(editor: xb.Editor[xb.Module]) -> None:
        editor.replace_uses("a", xb.abs(editor["a"], name="size"))
        editor.rename(module.computations[0]["x"], "w")
        assert editor.root("f").name == "c"

    found = edited(module, edit)
    assert "  size = f32[2] abs(a)\n  w = f32[2] negate(size)" in str(found)
    assert found.entry["k"].called[0] is found.computations[0]


def test_a_region_may_be_a_function() -> None:
    with xb.edit(programs.loop()) as editor:
        total = xb.reduce(
            xb.iota(editor.builder, shape=xb.s32[4], iota_dimension=0), 0, to_apply=xb.add, dimensions=[0]
        )
        editor.set_root(total)
    found = editor.result
    assert str(xb.parse_hlo(str(found))) == str(found)
    assert found.entry.root.called[0] in found.computations


def test_a_computation_is_edited_alone() -> None:
    @xb.computation(xb.f32[2])
    def double(x: xb.Value) -> xb.Value:
        return x + x

    with xb.edit(double) as editor:
        editor.set_root(xb.negate(editor.root()))
    assert isinstance(editor.result, xb.Computation)
    np.testing.assert_array_equal(evaluate(editor.result, [1.0, 2.0]), [-2.0, -4.0])


def test_what_a_header_says_stays_as_far_as_it_is_true() -> None:
    module = xb.parse_hlo(HEADER)
    same = edited(module, lambda editor: editor.rename("x", "v"))
    assert same.annotations == module.annotations

    def edit(editor: xb.Editor[xb.Module]) -> None:
        editor.replace_operand("t", 1, xb.concatenate([editor["y"], editor["x"]], dimension=0))

    found = edited(module, edit)
    assert found.annotations["input_output_alias"] == "{ {0}: (0, {}, may-alias) }"
    assert found.annotations["buffer_donor"] == module.annotations["buffer_donor"]
    assert "entry_computation_layout" not in found.annotations
    assert found.annotations["frontend_attributes"] == '{a="b"}'

    def shorter(editor: xb.Editor[xb.Module]) -> None:
        editor.set_root(xb.tuple_(editor["x"]))
        editor.remove("t", "y")

    found = edited(module, shorter)
    assert found.annotations["input_output_alias"] == "{ {0}: (0, {}, may-alias) }"
    assert "buffer_donor" not in found.annotations


def test_a_parameter_is_added() -> None:
    with xb.edit(xb.parse_hlo(HEADER)) as editor:
        z = xb.parameter(editor.builder, number=2, shape=xb.f32[2], name="z")
        editor.replace_operand("t", 0, xb.add(editor["x"], z))
    found = editor.result
    assert str(found.entry.program_shape) == "(f32[2], f32[2], f32[2]) -> (f32[2], f32[2])"
    assert [i.name for i in found.entry.instructions] == ["x", "y", "z", "add.4", "t"]
    assert "entry_computation_layout" not in found.annotations
    assert found.annotations["buffer_donor"] == "{ (1, {}) }"
