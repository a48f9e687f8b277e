"""The commands viz, ops, explain and why, and the help: pictures, and sentences about ops, kinds and instructions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import xbuild as xb
from shape_inference import KINDS
from tests.commands.command_line import usage, xbuild
from xbuild.core.op import OPS
from xbuild.reference.explanations import EXPLANATIONS


@pytest.mark.usefixtures("folder")
def test_viz() -> None:
    assert xbuild("viz", "programs.py:summed").stdout.startswith("summed\n├─ P x")
    assert xbuild("viz", "programs.py:summed", "-o", "out.dot").stdout == "wrote out.dot\n"
    assert Path("out.dot").read_text().startswith("digraph")
    assert usage(xbuild("viz", "programs.py:summed", "-o", "out.gif")).startswith(
        "'out.gif': expected a file name that ends in one of"
    )


@pytest.mark.usefixtures("folder")
def test_viz_without_an_engine_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    from xbuild.pictures import graphviz

    def missing(*_: str) -> list[str]:
        raise graphviz.DrawingError("no layout engine is here")

    monkeypatch.setattr(graphviz, "_command", missing)
    result = xbuild("viz", "programs.py:summed", "-o", "out.png")
    assert result.exit_code == 1
    assert result.stderr == "no layout engine is here\n"
    assert not Path("out.png").exists()


def test_ops_lists_every_op_in_its_family_with_a_sentence() -> None:
    result = xbuild("ops")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    listed = [line.split()[0] for line in lines if re.match(r"  \S", line)]
    assert sorted(listed) == sorted(schema.declaration.__name__ for schema in OPS.values())
    assert "[no " not in result.stdout, "each op has a rule for its shape and one for its value"
    assert "Collectives: every member of a group brings a value, and each gets a result." in lines
    assert [line for line in lines if line.startswith(" ") and len(line) > 80] == []


def test_ops_with_signatures() -> None:
    lines = xbuild("ops", "--signatures").stdout.splitlines()
    assert "  get_tuple_element(operand: Value, *, index: int) -> Value  (GetTupleElement)" in lines


def test_explain_an_instruction_without_its_option() -> None:
    said = usage(xbuild("explain", "step.hlo", "add.3"))
    assert "unexpected 'add.3'; `xbuild explain step.hlo --of add.3` explains an instruction of a program" in said


def test_explain_an_op() -> None:
    text = xbuild("explain", "get-tuple-element").stdout
    assert text.startswith(
        "xb.ops.get_tuple_element(operand: Value, *, index: int) -> Value\nget-tuple-element in HLO text"
    )
    assert "Source: Operation Semantics, GetTupleElement" in text
    assert xbuild("explain", "while_").stdout.startswith("xb.ops.while_(")
    assert "dimensions: int | Sequence[int] | None = None" in xbuild("explain", "reduce").stdout


def test_why_an_instruction_is_there(tmp_path: Path) -> None:
    gradient = xb.grad(lambda x: xb.reduce(xb.tanh(x), 0.0, xb.add))(xb.f32[3])
    path = tmp_path / "gradient.hlo"
    for style in ("short", "full"):
        path.write_text(xb.Module("m", gradient).to_hlo(style=style))
        said = xbuild("why", str(path), "tanh.2.vjp").stdout
        assert "propagates cotangents back through tanh.2 = f32[3]" in said
        assert "used by tanh.2.vjp.1" in said
    assert usage(xbuild("why", str(path), "tanh.9")).endswith(
        "has no instruction %tanh.9; `xbuild show` prints all instructions"
    )


def test_explain_a_kind() -> None:
    assert xbuild("explain", "self_send").stdout == "self_send: A device sends to itself.\n"
    assert usage(xbuild("explain", "self_sent")).endswith("neither an op nor a known term; did you mean 'self_send'?")


def test_each_kind_is_explained_in_a_sentence() -> None:
    assert EXPLANATIONS.keys() == KINDS
    for sentence in EXPLANATIONS.values():
        assert sentence[0].isupper()
        assert sentence.endswith(".")


def test_help_names_the_exit_codes() -> None:
    assert "The exit status is 0 for ok, 1 if the program is refused or its run stops early, 2" in " ".join(
        xbuild("--help").stdout.split()
    )
