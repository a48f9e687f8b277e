"""The places of names: each definition with its mentions, in texts that are whole and in texts that are being typed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import xbuild as xb
from tests.lsp.programs import HLO, INLINE, MLIR
from xbuild.core.op import OPS
from xbuild.lsp.index import REGIONS, Definition, HloIndex, MlirIndex, index_of
from xbuild.text.codec_table import spellings
from xbuild.text.custom_codecs import REGIONS as LISTED
from xbuild.text.spelling import REGION

DATA = Path(__file__).parents[1] / "data"


def find(source: str, marked: str) -> int:
    """The offset of `|` in a text that occurs once without it."""
    before, _, after = marked.partition("|")
    assert source.count(before + after) == 1, marked
    return source.index(before + after) + len(before)


def named(source: str, marked: str) -> Definition | None:
    found = index_of(source).at(find(source, marked))
    return found.definition if found else None


def lines_of(source: str, marked: str) -> list[int]:
    """The lines, from 1, that mention the name at a place."""
    index = index_of(source)
    found = index.at(find(source, marked))
    assert found is not None
    assert found.definition is not None
    mentions = index.mentions(found.definition)
    assert all(source[each.begin : each.end] == found.name for each in mentions)
    return [source.count("\n", 0, each.begin) + 1 for each in mentions]


@pytest.mark.parametrize(
    ("source", "marked", "lines"),
    [
        (HLO, "while(%in|it)", [41, 42]),
        (HLO, "tuple(%start, %|x)", [38, 41]),
        (HLO, "tuple(%next, %|x)", [31, 34]),  # the x of the loop body
        (HLO, "/*second*/ %|b", [17, 18]),
        (HLO, "to_apply=%a|dd", [15, 44]),
        (HLO, "%ad|d (a:", [15, 44]),
        (HLO, "condition=%below|,", [21, 42]),
        (HLO, "control-predecessors={%z|ero}", [39, 41, 44]),
        (INLINE, "add(p, |q)", [4, 4]),
        (INLINE, "|r = f32[] reduce", [4, 5]),
        (MLIR, "call @sc|ale", [3, 18]),
        (MLIR, "add %1#1, %ar|g1", [2, 15]),
        (MLIR, "add %|1#1", [7, 15]),
        (MLIR, "LT, %iter|Arg,", [7, 9, 12]),
        (MLIR, "return %|2 : tensor<i1>", [9, 10]),
        (MLIR, "return %|2, ", [12, 13]),
        (MLIR, "return %|0 : tensor", [19, 20]),
    ],
)  # fmt: skip
def test_a_name_is_found_at_its_definition_and_at_each_use(source: str, marked: str, lines: list[int]) -> None:
    assert lines_of(source, marked) == lines


@pytest.mark.parametrize("marked", ['op_name="x %a|dd"', "/*sec|ond*/", 'FileNames\n1 "model/la|yer.py"'])
def test_strings_and_comments_hold_no_names(marked: str) -> None:
    assert named(HLO, marked) is None


@pytest.mark.parametrize(
    ("marked", "kind", "name"),
    [
        ("while(%init), cond|ition", "attribute", "condition"),
        ("w|hile(%init)", "opcode", "while"),
        ("%five = s3|2[]", "shape", "s32"),
        ("(%i, %five), direc|tion=LT", "attribute", "direction"),
    ],
)
def test_other_words(marked: str, kind: str, name: str) -> None:
    found = index_of(HLO).at(find(HLO, marked))
    assert found is not None
    assert (found.kind, found.name) == (kind, name)


@pytest.mark.parametrize("path", sorted((DATA / "hlo").glob("*.hlo")), ids=lambda path: path.stem)
def test_the_index_has_the_names_of_the_reader(path: Path) -> None:
    source = path.read_text()
    module, index = xb.parse_hlo(source), HloIndex(source)
    read = {(each.name, i.name, i.opcode) for each in module.computations for i in each.instructions}
    found = set()
    for each in index.instructions:
        words = list(index.words(each))
        assert all(word.definition for word in words if word.kind in ("instruction", "computation")), each
        opcode = next(word.name for word in words if word.kind == "opcode")
        found.add((each.home.name if each.home else "", each.name, opcode.replace("-", "_")))
    written = {each for each in read if f" {each[1]} =" in source or f"%{each[1]} =" in source}  # others are inferred
    assert {each[:2] for each in found} == {each[:2] for each in written}
    assert {opcode for *_, opcode in found} >= {opcode for *_, opcode in written}


@pytest.mark.parametrize("path", sorted((DATA / "stablehlo").rglob("*.mlir")), ids=lambda path: path.stem)
def test_each_value_of_mlir_has_a_definition(path: Path) -> None:
    index = MlirIndex(path.read_text())
    assert index.instructions or not index.computations
    for each in index.instructions:
        assert all(word.definition for word in index.words(each) if word.kind == "instruction"), each.name


def test_the_keys_of_computations_are_those_of_the_reader() -> None:
    read = {
        key
        for opcode in OPS
        for spelling in spellings(opcode)
        for key, reader in spelling.keys.items()
        if reader in (REGION.read, LISTED.read) or "region()" in _source(reader)
    }
    assert read <= REGIONS


def _source(function: object) -> str:
    import inspect

    try:
        return inspect.getsource(function)  # type: ignore[arg-type]
    except (OSError, TypeError):
        return ""


@pytest.mark.parametrize(
    ("source", "computations"),
    [
        # a brace is missing; the next computation, or the next instruction, is found again
        ("a {\n  x = f32[] parameter(0), sharding={\n  y = f32[] negate(x)\n}\n\nENTRY b {\n  z = f32[] iota()\n}\n",
         {"a": ["x", "y"], "b": ["z"]}),
        ("a {\n  x = f32[] parameter(0)\n\nENTRY b {\n  z = f32[] parameter(0)\n}\n", {"a": ["x"], "b": ["z"]}),
        ('a {\n  x = f32[] parameter(0), metadata={op_name="\n  y = f32[] negate(x)\n}\n', {"a": ["x", "y"]}),
        ("a {\n  x = \n  y = f32[] negate(x)\n}\n", {"a": ["x", "y"]}),
        ("}}}\na { x = f32[] parameter(0) }", {"a": ["x"]}),
        ("HloModule m, x={a=b}\n\n{\n", {}),
    ],
)  # fmt: skip
def test_a_text_that_is_being_typed(source: str, computations: dict[str, list[str]]) -> None:
    found = HloIndex(source).computations
    assert {each.name: [member.name for member in each.members] for each in found} == computations


def test_modules_of_one_text_have_names_of_their_own() -> None:
    part = "HloModule m\nadd { a = f32[] parameter(0) ROOT b = f32[] add(a, a) }\n"
    part += "ENTRY e { x = f32[] parameter(0) ROOT y = f32[] call(x), to_apply=add }\n"
    index = HloIndex(f"{part}// -----\n{part}")
    adds = [each for each in index.computations if each.name == "add"]
    assert [len(index.mentions(each)) for each in adds] == [2, 2]
    assert index.mentions(adds[0])[-1].begin < adds[1].begin < index.mentions(adds[1])[-1].begin


BRACES = "{" * 50_000
HOSTILE = {
    "braces": BRACES,
    "computations": "a {\n" * 50_000,
    "regions": "ENTRY e { x = f32[] map(x), to_apply=" + "{ p = f32[] map(p), to_apply=" * 20_000,
    "one line": "func.func @main() { " + "%a = stablehlo.add %a, %b : tensor<f32> " * 20_000,
    "names": "ENTRY e {\n" + "a a a a a a a a a a " * 50_000,
    "roots": "ENTRY e {\n" + "ROOT " * 100_000,
    "strings": "ENTRY e {\n" + '"' * 100_000,
    "slashes": "ENTRY e {\n" + "\\" * 100_000 + '"\\' * 50_000,
    "comments": "ENTRY e {\n" + "/*" * 100_000,
    "values": "func.func @main() {\n" + "%a, " * 100_000,
    "heads": "a (" * 100_000,
    "frames": "HloModule m\nStackFrames\n" + "1 {file_location_id=1}\n" * 50_000,
}


@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_takes_time_in_proportion(source: str) -> None:
    began = time.process_time()
    index = index_of(source)
    index.at(len(source) // 2)
    for each in [*index.computations[:1], *index.computations[-1:]]:
        index.mentions(each)
        index.visible(each.stop - 1)
        for member in each.members[:1]:
            index.mentions(member)
            list(index.words(member))
    assert time.process_time() - began < 5
