"""Programs made by hand being edited, extraction and difference on the command line, and the page on editing."""

from __future__ import annotations

import doctest
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import xbuild as xb
from tests.editing.edited_program import TEXT
from xbuild.cli import main
from xbuild.editing.draft import ComputationDraft, Order

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
        with pytest.raises(xb.BuildError, match="depend on each other in a cycle"):
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
    draft = ComputationDraft(module.entry, xb.Builder("b"))
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
    assert (done.exit_code, done.output.strip()) == (0, f"wrote {part}")
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
        "different: 1 instruction changed\nmodule is_scheduled: True -> False\n"
        "main: 6 matched, 1 changed\n  ~ dead = f32[2] abs(k)\n      opcode: tanh -> abs\n"
    )
    after.write_text(TEXT.replace("dead", "unused").replace("exponential", "log"))
    done = run.invoke(main, ["diff", str(before), str(after)])
    assert done.output == (
        "different: 2 instructions changed\n"
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
