"""Whole programs are read: what is printed comes back, as do programs of XLA, long texts and files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import xbuild as xb
from shape_inference import compatible
from tests.support.stored_programs import HLO, MANIFEST, READ
from xbuild.cli import main
from xbuild.text.expansion import expansion

from ..conformance import corpus, rejects
from ..golden import programs

REJECTS: list[dict[str, Any]] = json.loads((HLO / "rejects.json").read_text())
GOLDEN = (programs.attributes, programs.devices, programs.training_step, programs.loop)


def text_of(entry: dict[str, Any]) -> str:
    return (HLO / entry["file"]).read_text(encoding="utf-8")


# what is printed comes back


def assert_same_structure(found: xb.Computation, expected: xb.Computation) -> None:
    assert [i.name for i in found.instructions] == [i.name for i in expected.instructions]
    assert found.root.name == expected.root.name
    for ours, theirs in zip(found.instructions, expected.instructions, strict=True):
        assert (ours.opcode, ours.segments) == (theirs.opcode, theirs.segments)
        assert compatible(ours.shape, theirs.shape)
        assert [o.name for o in ours.operands] == [o.name for o in theirs.operands]
        assert [o.name for o in ours.control] == [o.name for o in theirs.control]
        assert_same_attributes(ours, theirs)


def assert_same_attributes(ours: xb.Instruction, theirs: xb.Instruction) -> None:
    left, right = ours.attribute_values(), theirs.attribute_values()
    assert left.keys() == right.keys()
    for key, value in left.items():
        if key == "literal":
            assert value.dtype == right[key].dtype
            np.testing.assert_array_equal(value, right[key], strict=True)
        elif isinstance(value, xb.Computation):
            assert value.signature == right[key].signature
        elif not (isinstance(value, tuple) and any(isinstance(each, xb.Computation) for each in value)):
            assert value == right[key], key


@pytest.mark.parametrize("program", GOLDEN, ids=lambda program: program.__name__)
@pytest.mark.parametrize("style", ["short", "percent", "full"])
def test_programs_come_back(program: Any, style: str) -> None:
    module = program()
    text = module.to_hlo(style=style)
    back = xb.parse_hlo(text)
    assert back.to_hlo(style=style) == text
    assert (back.name, back.num_replicas, back.num_partitions) == (
        module.name,
        module.num_replicas,
        module.num_partitions,
    )
    blocks = {each.name: each for each in back.computations}
    if len(blocks) == len({each.name for each in module.computations}) == len(module.computations):
        for computation in module.computations:
            if any(len(expansion(instruction)) > 1 for instruction in computation.instructions):
                continue  # text has more instructions
            assert_same_structure(blocks[computation.name], computation)


@pytest.mark.parametrize("each", [e for e in READ if e["style"] in ("short", "percent")], ids=lambda e: e["file"])
def test_what_xla_printed_is_printed_the_same(each: dict[str, Any]) -> None:
    text = text_of(each)
    assert xb.parse_hlo(text).to_hlo(style=each["style"]).rstrip() == text.rstrip()


@pytest.mark.parametrize("each", MANIFEST, ids=lambda e: e["file"])
def test_corpus(each: dict[str, Any]) -> None:
    assert corpus.failure(HLO, each) is None


@pytest.mark.parametrize("case", REJECTS, ids=lambda case: case["name"])
def test_rejects(case: dict[str, Any]) -> None:
    assert rejects.failure(case) is None


def test_the_corpus_runner_tells_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    each = next(e for e in MANIFEST if e["num_replicas"] == 1 and e["outputs"])
    for name in (each["file"], each["inputs_file"]):
        (tmp_path / name).write_bytes((HLO / name).read_bytes())
    with np.load(HLO / each["outputs_file"]) as stored:
        wrong = {
            key: value if number else np.zeros_like(value) + 77 for number, (key, value) in enumerate(stored.items())
        }
    np.savez(tmp_path / each["outputs_file"], **wrong)
    (tmp_path / "manifest.json").write_text(json.dumps([each, {**each, "file": "missing.hlo"}]))
    assert corpus.main([str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "is expected" in lines[0]
    assert lines[-1] == "0 passed, 2 failed"


def test_the_rejects_runner_tells_what_is_wrong() -> None:
    good, bad = "ENTRY e { x = f32[] parameter(0) }", "ENTRY e { x = f32[] parameter(0) "
    assert rejects.failure({"name": "a", "text": good, "stage": "accepted"}) is None
    assert rejects.failure({"name": "b", "text": bad, "stage": "parse"}) is None
    assert rejects.failure({"name": "c", "text": good, "stage": "compile"})
    assert rejects.failure({"name": "d", "text": bad, "stage": "accepted"})


# at length and from files


@pytest.mark.slow
@pytest.mark.parametrize("style", ["short", "percent", "full"])
def test_a_hundred_thousand_instructions_are_read(style: str) -> None:
    builder = xb.Builder("long")
    x = xb.ops.parameter(builder, number=0, shape=xb.f32[4, 4])
    for _ in range(25_000):
        y = xb.ops.transpose(xb.ops.add(x, x), permutation=(1, 0))
        x = xb.ops.get_tuple_element(xb.ops.tuple_([xb.ops.negate(y)]), index=0)
    text = xb.Module("long", builder.build(x)).to_hlo(style=style)
    module = xb.parse_hlo(text)
    assert len(module.entry.instructions) > 100_000


def test_the_command_line_reads_files_of_hlo(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.hlo", tmp_path / "bad.hlo"
    good.write_text(programs.loop().to_hlo())
    bad.write_bytes(b"ENTRY e {\n  x = f32[2] parameter(0)\n  y = f32[3] negate(x) \xff\n}\n")
    shown = CliRunner().invoke(main, ["show", str(good)])
    assert (shown.exit_code, shown.stdout) == (0, programs.loop().to_hlo())
    assert CliRunner().invoke(main, ["check", str(good)]).exit_code == 0
    refused = CliRunner().invoke(main, ["show", str(bad)])
    assert refused.exit_code == 1
    assert "bad.hlo:3:14: negate: the result is f32[2], but the text states f32[3] [shape_mismatch]" in refused.stderr
