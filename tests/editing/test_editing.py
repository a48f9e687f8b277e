"""Edits of programs: what each does, what it refuses, and that all else stays."""

from __future__ import annotations

import doctest
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import xbuild as xb
from interpreter import evaluate
from xbuild.cli import main
from xbuild.editing.draft import Draft
from xbuild.editing.order import Order

from ..golden import programs

TEXT = """HloModule m, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }

f {
  a = f32[2] parameter(0)
  x = f32[2] negate(a)
  ROOT c = f32[2] exponential(x)
}

ENTRY main {
  x = f32[2]{0} parameter(0), sharding={replicated}
  n = s32[] parameter(1)
  y = f32[2] negate(x), frontend_attributes={k="v"}
  k = f32[2] call(y), to_apply=f, control-predecessors={n}
  dead = f32[2] tanh(k)
  ROOT z = f32[2] add(y, k), control-predecessors={k}
}
"""


@pytest.fixture
def module() -> xb.Module:
    return xb.parse_hlo(TEXT)


def edited(module: xb.Module, edit: Callable[[xb.Editor[xb.Module]], object]) -> xb.Module:
    with xb.edit(module) as editor:
        edit(editor)
    return editor.result


def body(module: xb.Module) -> str:
    return str(module).partition("ENTRY main {\n")[2]


def refusal(module: xb.Module, edit: Callable[[xb.Editor[xb.Module]], object]) -> Any:
    """What an edit is refused with; the editor goes on as if it had not been tried."""
    with xb.edit(module) as editor:
        with pytest.raises((xb.BuildError, xb.ShapeError)) as caught:
            edit(editor)
        editor.rename("dead", "unused")
    assert str(editor.result) == str(module).replace("dead", "unused")
    assert "test_editing.py" in str(caught.value)
    return caught.value


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

    with pytest.raises(xb.BuildError, match=r"%y: f32.2. would stand before %first: f32.2., which it needs"):
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


HEADER = (
    "HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, must-alias) }, buffer_donor={ (1, {}) }, "
    'entry_computation_layout={(f32[2],f32[2])->(f32[2], f32[2])}, frontend_attributes={a="b"}\n'
    "ENTRY e { x = f32[2] parameter(0) y = f32[2] parameter(1) ROOT t = tuple(x, y) }"
)


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
        ("used_too_early", "%y: f32[2] would stand before %x: f32[2]{0}", lambda e: e.move("y", before="x")),
        ("used_too_early", "%k: f32[2] would stand before %y: f32[2]", lambda e: e.move("y", after="k")),
        ("used_too_early", "%y: f32[2] would stand before %z: f32[2]", lambda e: e.replace_operand("y", 0, "z")),
        ("cycle", "%y: f32[2] would need itself", lambda e: e.replace_operand("y", 0, "y")),
        ("duplicate_name", "main has an instruction %x already", lambda e: e.rename("y", "x")),
        ("invalid_operand", "no operand 'left'; it has lhs, rhs", lambda e: e.replace_operand("z", "left", "y")),
        ("invalid_operand", "has no operand 2", lambda e: e.replace_operand("z", 2, "y")),
        ("undefined_name", "no instruction 'yy'", lambda e: e.remove("yy")),
        ("undefined_name", "no computation 'g'", lambda e: e.root("g")),
        ("foreign_value", "%a: f32[2] is of computation f", lambda e: e.replace_operand("z", 0, "a")),
        ("foreign_value", "belongs to builder", lambda e: e.remove(FOREIGN)),
        ("foreign_value", "%i is no instruction of module m", lambda e: e.remove(STRAY)),
        ("not_a_call", "%y: f32[2] is a negate", lambda e: e.inline("y")),
        ("builder_finished", "there is none before", lambda e: e.result),
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
        with pytest.raises(xb.BuildError, match="is no instruction of main any more"):
            editor.rename(module.entry["dead"], "alive")


def test_what_was_removed_is_not_used(module: xb.Module) -> None:
    def edit(editor: xb.Editor[xb.Module]) -> None:
        dead = editor["dead"]
        editor.remove("dead")
        xb.abs(dead, name="late")

    with pytest.raises(xb.BuildError, match="recording %late: %dead is no instruction of main"):
        edited(module, edit)
    foreign = xb.control(after=[FOREIGN])
    with pytest.raises(xb.BuildError, match=r"%iota\.1 is no instruction of main"), xb.edit(module) as editor, foreign:
        xb.abs(editor["x"])


def test_an_editor_gives_one_result(module: xb.Module) -> None:
    with xb.edit(module) as editor:
        pass
    with pytest.raises(xb.BuildError, match="has given its result"), editor:
        pass


def test_the_parameters_count_on() -> None:
    def edit(editor: xb.Editor[xb.Module]) -> None:
        editor.set_root("y")
        editor.remove("t", "x")

    with pytest.raises(xb.BuildError, match=r"parameter numbers \[1\]"):
        edited(xb.parse_hlo(HEADER), edit)


def test_more_refusals(module: xb.Module) -> None:
    with pytest.raises(xb.BuildError, match="would stand before"), xb.edit(module) as editor, editor.after("x"):
        xb.negate(editor["z"])
    with pytest.raises(xb.BuildError, match="names instructions of f, g"), xb.edit(_two_of_a_name()) as editor:
        editor.rename("a", "b")
    with pytest.raises(TypeError, match="names no instruction"), xb.edit(module) as editor:
        editor.remove(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="one of before= and after="), xb.edit(module) as editor:
        editor.move("y")
    with pytest.raises(ValueError, match="no name"), xb.edit(module) as editor:
        editor.rename("y", "3")
    with xb.edit(module) as editor:
        y = editor["y"]
    with pytest.raises(xb.BuildError, match="was built"):
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
    assert "%z: what it calls has changed" in str(caught.value)
    with pytest.raises(xb.BuildError):
        _ = editor.result


# order


def test_programs_made_by_hand_are_edited_in_an_order_that_holds() -> None:
    x = xb.parse_hlo(TEXT).entry["x"]
    y, z = (xb.Instruction("negate", name, xb.f32[2], (x,)) for name in "yz")
    late = xb.Computation("late", (z, y, x), z)
    with xb.edit(late) as editor:
        editor.replace_operand("z", 0, xb.abs(editor["x"], name="a"))
    assert [i.name for i in editor.result.instructions] == ["x", "a", "z", "y"]
    object.__setattr__(y, "operands", (z,))
    object.__setattr__(z, "operands", (y,))
    round_about = xb.Computation("round", (x, y, z), z)
    for edit in (xb.edit, xb.fingerprint, xb.canonical, lambda each: xb.diff(each, late), xb.extract):
        with pytest.raises(xb.BuildError, match="need each other in a cycle"):
            edit(round_about)  # type: ignore[operator]


def test_insertions_at_one_place_keep_their_order() -> None:
    made = [xb.Instruction("iota", f"i{n}", xb.f32[1]) for n in range(700)]
    order = Order(made[:2])
    for each in made[2:600]:
        order.insert([each], before=made[1])
    order.insert(made[600:], before=made[0])
    assert [i.name for i in order] == [i.name for i in (*made[600:], made[0], *made[2:600], made[1])]
    labels = [order.label(i) for i in order]
    assert labels == sorted(set(labels))


def test_users_follow_edits(module: xb.Module) -> None:
    draft = Draft(module.entry, xb.Builder("b"))
    x, y, k = (module.entry[name] for name in "xyk")
    assert {i.name for i in draft.users(y)} == {"k", "z"}
    draft.revise({k: xb.Instruction("negate", "k", k.shape, (x,))}, "")
    assert {i.name for i in draft.users(y)} == {"z"}
    assert {i.name for i in draft.users(x)} == {"y", "k"}


# the command line


def test_extract_on_the_command_line(tmp_path: Path, module: xb.Module) -> None:
    file, part = tmp_path / "m.hlo", tmp_path / "part.hlo"
    file.write_text(TEXT)
    run = CliRunner()
    done = run.invoke(main, ["extract", str(file), "--around", "dead", "--radius", "0", "-o", str(part)])
    assert (done.exit_code, done.output.strip()) == (0, str(part))
    assert "ROOT dead = f32[2] tanh(k)" in part.read_text()
    done = run.invoke(main, ["extract", str(file), "--computation", "f"])
    assert xb.parse_hlo(done.output).entry.name == "f"
    done = run.invoke(main, ["extract", str(file), "--around", "deed"])
    assert done.exit_code == 2
    assert "did you mean 'dead'" in done.output
    assert run.invoke(main, ["extract", str(file), "--around", "x", "--radius", "-1"]).exit_code == 2


def test_diff_on_the_command_line(tmp_path: Path, module: xb.Module) -> None:
    before, after = tmp_path / "a.hlo", tmp_path / "b.hlo"
    before.write_text(TEXT)
    after.write_text(TEXT.replace("tanh(k)", "abs(k)").replace("is_scheduled=true, ", ""))
    run = CliRunner()
    done = run.invoke(main, ["diff", str(before), str(before)])
    assert (done.exit_code, done.output) == (0, "the programs are the same\n")
    done = run.invoke(main, ["diff", str(before), str(after)])
    assert done.exit_code == 1
    assert done.output == (
        "module is_scheduled: True -> False\n"
        "main: 6 matched, 1 changed\n  ~ dead = f32[2] abs(k)\n      opcode: tanh -> abs\n"
    )
    after.write_text(TEXT.replace("dead", "unused").replace("exponential", "log"))
    done = run.invoke(main, ["diff", str(before), str(after)])
    assert done.output == (
        "f: 3 matched, 1 changed\n  ~ c = f32[2] log(x)\n      opcode: exponential -> log\n"
        "main: 6 matched, 1 changed\n  ~ unused = f32[2] tanh(k)  (was dead)\n"
    )
    after.write_text(TEXT.replace("tanh(k)", "abs(k)"))
    done = run.invoke(main, ["diff", "--json", str(before), str(after)])
    assert done.exit_code == 1
    found = json.loads(done.output)
    assert found["same"] is False
    assert found["computations"][0]["changed"][0]["changes"] == [{"what": "opcode", "before": "tanh", "after": "abs"}]


def test_the_operand_of_an_op_of_many_is_told_without_a_name() -> None:
    text = "ENTRY main {{ x = f32[2] parameter(0)  y = f32[2] negate(x)  ROOT t = (f32[2]) tuple({}) }}"
    found = xb.diff(xb.parse_hlo(text.format("x")), xb.parse_hlo(text.format("y")))
    assert "operand: x -> y" in str(found)


# the page


def test_the_page_on_editing() -> None:
    file = Path(__file__).parents[2] / "docs" / "editing.md"
    page = doctest.DocTestParser().get_doctest(file.read_text(), {}, file.name, str(file), 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(page, out=report.append)
    assert runner.failures == 0, "".join(report)
    assert runner.tries > 5
