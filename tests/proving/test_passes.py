"""`prove_passes` and `xbuild prove`: dumps with a fault planted after a pass, and the layouts before and after it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import xbuild as xb
from tests.proving.test_proof import layer, unsharded, without_result
from xbuild.cli import main

WHOLE = unsharded(layer("{'a'}, {}")).to_hlo()
CUT = without_result(xb.shard.partition(layer("{'a'}, {}")).module).to_hlo()
SQUARED = CUT.replace("ROOT z = ", "w2 = f32[4,12] add(y, y)  ROOT z = ")
ALONE = re.sub(r"all-reduce\((\S+)\),[^\n]*", r"copy(\1)", CUT)
REORDERED = WHOLE.replace("w = f32[16,12] parameter(1)", "unused = f32[] constant(1)  w = f32[16,12] parameter(1)")
SINE = REORDERED.replace("tanh(", "sine(")
PASSES = [
    "simplifier.after_start", "simplifier.after_algsimp.before_dce", "spmd.after_shardy.before_partitioning",
    "spmd-cleanup.after_pipeline-start.before_cse", "spmd.after_partitioning.before_end", "cpu.after_fusion",
]  # fmt: skip


def write_dump(folder: Path, texts: list[str], name: str = "jit_f", number: int = 1) -> str:
    """A dump of a module: the text before optimizations, after each pass, and after optimizations."""
    folder.mkdir(exist_ok=True)
    stem = f"module_{number:04}.{name}"
    names = [f"{stem}.before_optimizations.txt"]
    names += [f"{stem}.{place:04}.{each}.txt" for place, each in enumerate(PASSES[: len(texts) - 2])]
    names.append(f"{stem}.cpu_after_optimizations.txt")
    for each, text in zip(names, texts, strict=True):
        (folder / each).write_text(text)
    return str(folder)


RIGHT = [WHOLE, WHOLE, REORDERED, REORDERED, CUT, CUT, SQUARED, SQUARED]


def test_right_passes_have_no_guilty_one(tmp_path: Path) -> None:
    found = xb.prove_passes(write_dump(tmp_path, RIGHT))
    assert found, str(found)
    assert (found.guilty, found.proof, found.between, found.unread) == (None, None, (), ())
    assert found.partitioner == "spmd: partitioning"  # whose texts begin with those of a pipeline inside it
    assert [str(change) for change in found.changes] == ["spmd: partitioning: all-reduce 0 -> 1"]
    assert found.issues == ()
    assert str(found).startswith("equal: ")


@pytest.mark.parametrize(
    ("at", "text", "guilty", "other"),
    [
        (3, SINE, "spmd: shardy", "sine"),
        (4, ALONE, "spmd: partitioning", "copy"),
        (6, CUT.replace("tanh(", "sine("), "cpu: fusion", "sine"),
        (7, CUT.replace("tanh(", "sine("), "after", "sine"),
    ],
)
def test_the_first_wrong_pass_is_named(tmp_path: Path, at: int, text: str, guilty: str, other: str) -> None:
    texts = [*RIGHT[:at], *[text] * (8 - at)]
    if at == 3:  # the partitioner keeps the fault
        texts[4:] = [CUT.replace("tanh(", "sine(")] * 4
    found = xb.prove_passes(write_dump(tmp_path, texts))
    assert found.kind == "different"
    assert found.guilty == guilty
    assert found.proof is not None
    assert found.proof.kind == "different"
    assert [each.opcode for each in found.instructions][-1] == other
    (issue,) = found.issues
    assert issue.level == "error"
    assert f"after the pass {guilty}" in issue.message
    assert f"after the pass {guilty}" in str(found)


def test_texts_that_cannot_be_read_are_candidates(tmp_path: Path) -> None:
    texts = [*RIGHT[:4], CUT, "HloModule broken ENTRY {", ALONE, ALONE]
    found = xb.prove_passes(write_dump(tmp_path, texts))
    assert found.guilty == "cpu: fusion"
    assert found.between == ("spmd: partitioning",)
    (sentence,) = found.unread
    assert "spmd: partitioning" in sentence


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["prove", *arguments])


def test_the_command_prints_a_line_for_each_module(tmp_path: Path) -> None:
    dump = write_dump(tmp_path, [WHOLE, CUT], "jit_right", 1)
    write_dump(tmp_path, [WHOLE, ALONE], "jit_wrong", 2)
    write_dump(tmp_path, [WHOLE, "HloModule broken ENTRY {"], "jit_broken", 3)
    found = run(dump)
    lines = found.stdout.splitlines()
    assert found.exit_code == 1
    assert [line.split()[:2] for line in lines] == [
        ["jit_right", "equal,"], ["jit_wrong", "different:"], ["jit_broken", "not"],
    ]  # fmt: skip
    assert run(f"{dump}#jit_right").exit_code == 0
    assert run(f"{dump}#jit_wrong").stdout.startswith("different: ")
    document = json.loads(run(dump, "--json").stdout)
    assert [each["kind"] for each in document["programs"]] == ["equal", "different", "error"]


def test_the_command_finds_the_pass(tmp_path: Path) -> None:
    dump = write_dump(tmp_path, [*RIGHT[:6], ALONE, ALONE])
    found = run(dump, "--by", "pass")
    assert found.exit_code == 1
    assert "computes a different function after the pass cpu: fusion" in found.stdout
    document = json.loads(run(dump, "--by", "pass", "--format", "json").stdout)
    assert (document["schema"], document["pass"]) == ("xbuild.prove.by_pass/1", "cpu: fusion")


def test_a_proof_of_a_dump_says_how_to_find_the_pass(tmp_path: Path) -> None:
    dump = write_dump(tmp_path, [*RIGHT[:6], ALONE, ALONE], "jit_f", 1)
    assert f"notice: xbuild prove {dump} --by pass names the pass\n" in run(dump).stderr
    write_dump(tmp_path, [WHOLE, ALONE], "jit_short", 2)
    assert "write the dump again with XLA_FLAGS=" in run(f"{dump}#jit_short").stderr
    write_dump(tmp_path, RIGHT, "jit_right", 3)
    for quiet in ((f"{dump}#jit_right",), (f"{dump}#jit_f", "--by", "pass")):
        assert "notice" not in run(*quiet).stderr


def test_the_command_on_two_programs(tmp_path: Path) -> None:
    before, after = tmp_path / "before.hlo", tmp_path / "after.hlo"
    before.write_text(WHOLE)
    after.write_text(re.sub(r", sharding=\{[^\n]*\}(?=\n)", "", CUT))
    specs = "--mesh", "a=2,b=4", "--in-specs", "P('a','b');P('b')", "--out-specs", "P('a')"
    assert run(str(before), str(after), *specs).stdout.startswith("equal: ")
    after.write_text(ALONE)
    assert run(str(before), str(after)).exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["before.hlo"], "names one program; expected a second program"),
        (["before.hlo", "after.hlo", "--by", "pass"], "--by pass takes a JAX function or a dump folder"),
        (["before.hlo", "after.hlo", "--in-specs", "a"], "is not a spec"),
        (["before.hlo", "after.hlo", "--mesh", "a=2"], "--mesh has no effect without --in-specs or --out-specs"),
        (["before.hlo", "after.hlo", "--in-specs", "P()", "--mesh", "a"], "is not a mesh"),
    ],
)
def test_wrong_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("before.hlo", "after.hlo"):
        (tmp_path / name).write_text(WHOLE)
    found = run(*arguments)
    assert found.exit_code == 2
    assert message in " ".join(found.stderr.split())


STEP = """
import jax

@jax.jit
def step(x):
    return jax.numpy.sin(x) @ x.T

lowered = step.lower(jax.ShapeDtypeStruct((3, 4), "float32"))
given = step, (jax.ShapeDtypeStruct((3, 4), "float32"),)
"""


@pytest.mark.parametrize("name", ["lowered", "given"])
def test_a_jax_function_is_compiled_with_the_text_after_each_pass(tmp_path: Path, name: str) -> None:
    pytest.importorskip("jax")
    (tmp_path / "f.py").write_text(STEP)
    found = run(f"{tmp_path}/f.py:{name}", "--by", "pass", "--json")
    assert found.exit_code == 0, found.output
    facts = json.loads(found.stdout)
    assert facts["kind"] == "equal"
    assert facts["texts"] > 2


def test_functions_and_dumps_are_told_apart(tmp_path: Path) -> None:
    jax = pytest.importorskip("jax")
    found = xb.prove_passes(lambda x, y: x + 2.0 * y, xb.f32[2, 3], kwargs={"y": xb.f32[3]})
    assert found, str(found)
    assert found.texts > 2
    assert not [*tmp_path.iterdir()]
    with pytest.raises(TypeError, match="a dump takes no arguments"):
        xb.prove_passes(write_dump(tmp_path, RIGHT), xb.f32[2])
    with pytest.raises(TypeError, match="got int"):
        xb.prove_passes(3)
    assert jax.config.jax_enable_compilation_cache
