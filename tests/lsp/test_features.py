"""What a document answers: hover, definitions, rename, outline, folds, completions, problems."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.programs import HLO, INLINE, MLIR, STUCK
from tests.lsp.test_index import find
from xbuild.core.graph import MetadataSource, Source
from xbuild.lsp import features
from xbuild.lsp.document import Document, read
from xbuild.lsp.index import Definition
from xbuild.lsp.text import Text

ROOT = Path(__file__).parents[2]


def opened(source: str, file: str = "program.hlo") -> Document:
    text = Text(source)
    return Document(text, file, read(text, file))


def hovered(source: str, marked: str) -> str:
    found = features.hover(opened(source), find(source, marked))
    return found.markdown if found else ""


# Hover


@pytest.mark.parametrize(
    ("source", "marked", "facts"),
    [
        (HLO, "ROOT %to|tal", ["**shape** `f32[]`, 4 bytes", "**used by** no instruction"]),
        (HLO, "%x| = f32[8]{0} parameter(0), sharding",
         ["**shape** `f32[8]{0}`, 32 bytes", "**layout** `{0}`", "**sharding** `{devices=[2]<=[2]}`",
          "**used by** `init`"]),
        (HLO, "%lo|op = ",
         ["**trips** 5", "**calls** condition `below`, body `step`", "36 bytes", "**used by** `last`"]),
        (HLO, "%la|st = f32[8]{0}", ["**made by** `model/layer.py:12` in `loss`"]),
        (HLO, "ROOT %total = f32[] re|duce", ["Reduce the operands over `dimensions`", "Operation Semantics"]),
        (HLO, "condition=%below, bo|dy", ["body is an attribute of"]),
        (HLO, "to_apply=%a|dd", ["(f32[], f32[]) -> f32[]", "**instructions** 3", "**called by** `total`"]),
        (HLO, "ENTRY %ma|in", ["the entry computation", "**instructions** 7"]),
        (HLO, "%five = s3|2[]", ["element type s32"]),
        (MLIR, "%to|tal = stablehlo.add", ["**shape** `f32[2]`, 8 bytes", "**made by** `/home/me/model.py:9`"]),
        (MLIR, "stablehlo.wh|ile", ["in StableHLO  stablehlo.while"]),
        (MLIR, "call @sc|ale", ["**called by** `0`"]),
        (MLIR, "%ar|g0: tensor<2xf32>, %arg1", ["**shape** `f32[2]`", "**used by** `0`"]),
        (MLIR, "%fi|ve = ", ["**shape** `s32[]`, 4 bytes", "**used by** `2`"]),
    ],
)  # fmt: skip
def test_hover(source: str, marked: str, facts: list[str]) -> None:
    text = hovered(source, marked)
    for fact in facts:
        assert fact in text, text


def test_hover_after_an_edit_uses_the_last_program() -> None:
    document = opened(HLO)
    text = Text(HLO.replace("negate", "negat").replace("direction=LT", "direction="))
    edited = Document(text, "program.hlo", document.reading, is_current=False)
    found = features.hover(edited, find(text.source, "%lo|op = "))
    assert found is not None
    assert "**trips** 5" in found.markdown
    assert "*from the last text that could be read*" in found.markdown


def test_hover_shows_text_of_the_file_as_text() -> None:
    source = 'ENTRY e { ROOT x = f32[2] parameter(0), metadata={op_name="a" source_file="`<b>\\033```" source_line=3} }'
    text = hovered(source, "ROOT |x")
    assert "\033" not in text
    assert text.count("```") == 4 - 2 * ("why" not in text)
    assert "`'<b>" in text


# Definitions


@pytest.mark.parametrize(
    ("source", "marked", "wanted"),
    [
        (HLO, "while(%in|it)", "init"),
        (HLO, "to_apply=%a|dd", "add"),
        (HLO, "%la|st = f32[8]{0}", "model/layer.py:12"),
        (HLO, "%ze|ro = f32[]", "/home/me/model.py:7"),
        (HLO, "%lo|op = ", "loop"),
        (HLO, "direc|tion=LT", None),
        (MLIR, "call @sc|ale", "scale"),
        (MLIR, "%to|tal = stablehlo", "/home/me/model.py:9"),
    ],
)
def test_definition(source: str, marked: str, wanted: str | None) -> None:
    found = features.definition(opened(source), find(source, marked))
    if isinstance(found, MetadataSource):
        assert f"{found.file}:{found.line}" == wanted
    else:
        assert (found.name if isinstance(found, Definition) else None) == wanted


def test_the_users_line_is_found_from_each_word_of_an_instruction() -> None:
    document = opened(HLO)
    for marked in (
        "get-tuple-el|ement(%loop)",
        'metadata={op_name="y" stack_fr|ame_id=1}',
        "ROOT %total = f32[] reduce(%la|st",
    ):
        found = features.user_line(document, find(HLO, marked))
        assert found is not None
        assert (found.file, found.line, found.function) == ("model/layer.py", 12, "loss")


def test_links_lead_to_the_lines_that_metadata_states() -> None:
    (begin, end, source), *more = opened(HLO).python_links()
    assert not more
    assert (HLO[begin:end], source.line) == ("/home/me/model.py", 7)


@pytest.mark.parametrize(
    ("file", "path"),
    [
        ("model.py", "/work/space/model.py"),
        ("/tmp/model.py", "/tmp/model.py"),
        ("//host/share/model.py", None),
        ("\\\\host\\share\\model.py", None),
        ("<string>", None),
        ("", None),
        ("a\0b", None),
    ],
)
def test_paths_of_source_files(file: str, path: str | None) -> None:
    assert features.path_of(Source(file, 1, ""), ["/work/space"]) == path


# Rename


@pytest.mark.parametrize(
    ("source", "marked", "name", "count"),
    [
        (HLO, "while(%in|it)", "state", 2),
        (HLO, "to_apply=%a|dd", "%plus", 2),
        (HLO, "tuple(%start, %|x)", "given", 2),
        (INLINE, "add(p, |q)", "second", 2),
        (MLIR, "add %|1#1", "looped", 2),
        (MLIR, "call @sc|ale", "@twice", 2),
        (MLIR, "return %|2, ", "5", 2),
    ],
)
def test_rename_leaves_the_program_the_same(source: str, marked: str, name: str, count: int) -> None:
    import xbuild as xb

    document = opened(source)
    places = features.rename(document, find(source, marked), name)
    assert len(places) == count
    renamed = source
    for begin, end in sorted(places, reverse=True):
        renamed = f"{renamed[:begin]}{name.lstrip('%@')}{renamed[end:]}"
    assert xb.same_structure(xb.parse(renamed), xb.parse(source))


@pytest.mark.parametrize(
    ("source", "marked", "name", "message"),
    [
        (HLO, "while(%in|it)", "loop", "'loop' is already the name of the instruction on line 42"),
        (HLO, "to_apply=%a|dd", "step", "'step' is already the name of the computation on line 28"),
        (HLO, "while(%in|it)", "a b", "for example, 'a_b' is valid"),
        (HLO, "while(%in|it)", "ROOT", "is not a valid name in HLO text"),
        (HLO, "direc|tion=LT", "x", "only instructions and computations"),
        (MLIR, "%to|tal = ", "c", "'c' is already the name of the instruction on line 4"),
        (MLIR, "%to|tal = ", "a b", "is not a valid MLIR name"),
        ("ENTRY e { ROOT x = f32[] negate(missing) }", "negate(mis|sing)", "y", "'missing' is not defined"),
    ],
)
def test_rename_refuses_names_that_are_invalid_or_used(source: str, marked: str, name: str, message: str) -> None:
    with pytest.raises(features.RenameError) as caught:
        features.rename(opened(source), find(source, marked), name)
    assert message in str(caught.value)


# Outline and folding


def test_outline() -> None:
    found = features.outline(opened(HLO))
    assert [(each.name, each.kind, each.detail) for each in found] == [
        ("add", "computation", "3 instructions"),
        ("below", "computation", "4 instructions"),
        ("step", "computation", "6 instructions"),
        ("main", "entry", "7 instructions"),
    ]
    assert [(each.name, each.detail) for each in found[1].members] == [
        ("state", "(s32[], f32[8]) parameter"),
        ("i", "s32[] get-tuple-element"),
        ("five", "s32[] constant"),
        ("less", "pred[] compare"),
    ]
    for each in found:
        assert each.start <= each.begin <= each.end <= each.stop
        assert all(each.start <= m.start <= m.begin <= m.end <= m.stop <= each.stop for m in each.members)
    assert [each.detail for each in features.outline(opened(MLIR))[0].members][2:6] == [
        "call", "stablehlo.constant", "stablehlo.constant", "stablehlo.constant",
    ]  # fmt: skip


def test_folds_of_computations_regions_and_literals() -> None:
    source = "ENTRY e {\n  x = f32[2,2] constant({\n    {1, 2},\n    {3, 4} })\n\n  ROOT y = f32[2,2] negate(x)\n}\n"
    assert features.folds(opened(source)) == [(0, 6), (1, 3)]
    assert features.folds(opened(MLIR)) == [(0, 21), (1, 16), (7, 10), (10, 13), (17, 20)]


# Completion


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("ENTRY e {\n  x = f32[2] parameter(0)\n  y = f32[2] neg|\n}", ["negate"]),
        ("ENTRY e {\n  xs = f32[2] parameter(0)\n  y = f32[2] add(xs, x|\n}", ["xs"]),
        ("add { a = f32[] parameter(0) }\nENTRY e {\n  x = f32[] parameter(0)\n  y = map(x), to_apply=|\n}", ["add"]),
        ("ENTRY e {\n  x = f32[2] parameter(0)\n  y = pred[2] compare(x, x), dir|\n}", ["direction="]),
        ("func.func @main(%arg0: tensor<2xf32>) {\n  %0 = stablehlo.neg|\n}", ["stablehlo.negate"]),
        ("func.func @main(%arg0: tensor<2xf32>) {\n  %0 = stablehlo.add %ar|\n}", ["arg0"]),
        ("func.func @main(%arg0: tensor<2xf32>) {\n  %0 = call @m|\n}", ["main"]),
    ],
)  # fmt: skip
def test_completion(source: str, words: list[str]) -> None:
    before, _, after = source.partition("|")
    found = features.completions(opened(before + after), len(before))
    assert [each.word for each in found] == words
    assert all(
        source[each.begin : len(before)] in ("", *(word[: len(before) - each.begin] for word in words))
        for each in found
    )


# Problems


def issues_of(source: str) -> dict[str, list[dict[str, Any]]]:
    """What the process that checks and lints answers, by stage."""
    request = json.dumps({"text": source, "file": "program.hlo", "seconds": 60})
    command = [sys.executable, "-P", str(ROOT / "xbuild" / "lsp" / "analysis_child.py")]
    done = subprocess.run(command, input=request, capture_output=True, text=True, check=True)
    return {answer["stage"]: answer["issues"] for answer in map(json.loads, done.stdout.splitlines())}


def test_each_fault_is_at_its_line_and_column_with_its_hint() -> None:
    lines = ("x = f32[2] parameter(0)", "y = f32[2] negat(x)", "z = f32[2] add(x, xx)", "ROOT w = f32[3] negate(x)")
    source = "ENTRY e {\n  " + "\n  ".join(lines) + "\n}"
    faults = read(Text(source), "program.hlo").faults
    assert [(each.rule, source[each.begin : each.end]) for each in faults] == [
        ("unknown_opcode", "negat"), ("undefined_name", "xx"), ("shape_mismatch", "negate"),
    ]  # fmt: skip
    assert faults[0].message == "xbuild has no op 'negat'\nhint: did you mean 'negate'?"


def test_faults_of_each_module_of_a_text() -> None:
    part = "HloModule m\nENTRY e { x = f32[] parameter(0)  ROOT y = f32[] negat(x) }\n"
    source = f"{part}// -----\n{part.replace('negat', 'negate')}// -----\n{part}"
    reading = read(Text(source), "program.hlo")
    assert [source.count("\n", 0, each.begin) for each in reading.faults] == [1, 7]
    assert [part.module is not None for part in reading.parts] == [False, True, False]


def test_a_deadlock_is_at_its_instructions() -> None:
    document = opened(STUCK)
    issues = issues_of(STUCK)["check"]
    (problem, *_) = features.problems_of(document, [each for each in issues if each["level"] == "error"])
    assert (problem.rule, STUCK[problem.begin : problem.end]) == ("deadlock", "sent")
    assert "fix: move posted before sent" in problem.message
    assert "posted" in {STUCK[begin:end].split()[0].strip("%") for begin, end, _ in problem.also}


def test_issues_without_an_instruction_are_at_the_first_word() -> None:
    issue = {
        "begin": 0, "rule": "note", "level": "note", "message": "m", "fix": "", "line": None, "computation": None,
        "instructions": [], "related": [],
    }  # fmt: skip
    (problem,) = features.problems_of(opened(HLO), [issue])
    assert HLO[problem.begin : problem.end] == "HloModule"
