"""`xbuild explain WORD`: terms of the glossary, kinds of error, public functions, and words of other frameworks."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import xbuild as xb
from shape_inference import KINDS
from tests.commands.command_line import xbuild
from xbuild.core.op import OPS
from xbuild.reference.concepts import concepts, entries, plain
from xbuild.reference.words import explain_word

DOCS = Path(__file__).parents[2] / "docs"
INSIDE = {
    "across", "block", "compiled part", "congruence class",
    "context (of a check)", "degree (of a value)", "event (of the check)", "hook", "hub", "item", "joint",
    "labels",
    "mark (of an instruction)", "mark (of a run)", "observation", "place (of a number)",
    "reading (of a value)", "reading (of the op set)",
    "request", "segment", "shared block", "skeleton", "span", "spot", "stretch", "tape", "word (over prime fields)",
}  # fmt: skip
"""Terms of the code alone, which no report and no document for users has."""

OF_REPORTS = [
    "Module",
    "channel_id",
    "replica_groups",
    "token",
    "depends",
    "deadlock",
    "schedule",
    "async-pair",
    "donation",
    "variance",
    "psum",
    "matmul",
    "softmax",
    "use_global_device_ids",
    "source_target_pairs",
    "to_apply",
    "control-predecessors",
    "is_scheduled",
    "frontend_attributes",
    "metadata",
    "layout",
    "NaN",
    "trace",
    "repair",
    "strict",
    "exit-status",
    "TARGET",
    "shard_map",
    "PartitionSpec",
    "GSPMD",
    "vmap",
    "jit",
    "einsum",
    "relu",
    "all-reduce",
    "all_gather",
    "AllReduce",
    "DotGeneral",
    "f32",
    "bf16",
    "xb.add",
    "xb.ops.dot",
    "xb.mesh.psum",
    "xb.tpu",
    "while",
    "send-done",
    "fusion",
    "link_bytes",
    "steps",
    "FLOPs",
    "invariant",
    "1f1b",
    "fsdp",
    "pipeline",
    "mfu",
    "roofline",
    "cross-replica-sum",
    "memory-bound",
    "micro-batch",
    "GPipe",
    "zero",
    "ring",
    "broadcast_dimensions",
    "link",
]


def glossary() -> list[str]:
    text = (DOCS / "architecture.md").read_text().partition("## Glossary")[2]
    return [row.strip() for row in re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE)][1:]


def words(term: str) -> list[str]:
    """The words of a term: `form, convenience` is both, and what stands in brackets is none."""
    bare = re.sub(r"\s*\(.*\)", "", term).replace("`", "")
    return bare.split(", ")


@pytest.mark.parametrize("term", [term for term in glossary() if term not in INSIDE])
def test_terms_of_the_glossary(term: str) -> None:
    assert [word for word in words(term) if not explain_word(word)] == []


def test_terms_of_the_code_are_in_the_glossary() -> None:
    assert INSIDE - {*glossary()} == set()


def test_kinds_of_error_and_ops() -> None:
    assert [kind for kind in KINDS if not explain_word(kind)] == []
    assert [
        opcode for opcode, schema in OPS.items() if not explain_word(opcode) or not explain_word(schema.spelling)
    ] == []


def test_public_functions_and_types() -> None:
    public = [name for name in xb.__all__ if callable(getattr(xb, name)) and not inspect.ismodule(getattr(xb, name))]
    assert [
        name for name in public if name not in ("AnyShape", "Dims", "PENDING") and not explain_word(f"xb.{name}")
    ] == []
    on_mesh = [name for name, thing in vars(xb.mesh).items() if inspect.isfunction(thing) and name[0] != "_"]
    assert [name for name in on_mesh if not explain_word(f"xb.mesh.{name}")] == []


def test_attributes_of_ops() -> None:
    assert [name for schema in OPS.values() for name in schema.names if not explain_word(name)] == []


@pytest.mark.parametrize("word", OF_REPORTS)
def test_words_of_reports_and_frameworks(word: str) -> None:
    assert xbuild("explain", word.replace("-", " ") if word == "async-pair" else word).exit_code == 0


def test_entries_are_sentences_with_an_example_or_a_source() -> None:
    for text in set(concepts().values()):
        head, _, body = text.partition("\n\n")
        assert head == head.strip()
        assert re.search(r"[.:]$", body.splitlines()[-1]), head
        assert "Example: " in body or "See " in body, head
        assert max(map(len, body.splitlines())) <= 80, head


def test_entries_point_at_documents_that_there_are() -> None:
    root = DOCS.parent
    for text in concepts().values():
        for path in re.findall(r"\b(?:docs|examples)/[\w./]*\w|\b[A-Z]+\.md", text):
            assert (root / path).exists(), (path, text)


def test_entries_name_functions_and_options_that_there_are() -> None:
    from xbuild.cli import main

    for text in concepts().values():
        for owner, name in re.findall(r"\bxb\.(mesh\.|tpu\.|ops\.)?([A-Za-z_]\w*)", text):
            assert hasattr(getattr(xb, owner.rstrip(".")) if owner else xb, name) or name == "NAME", (name, text)
        for name, rest in re.findall(r"\bxbuild ([a-z]+)((?: [^`\n]*)?)`", text):
            known = {each for option in main.commands[name].params for each in option.opts}
            assert {*re.findall(r"--[a-z-]+", rest)} <= known, text


def test_no_word_has_two_entries() -> None:
    keys = [key for each, _ in entries() for key in {*map(plain, each)}]
    assert sorted({key for key in keys if keys.count(key) > 1}) == []


def test_an_op_shows_both_forms() -> None:
    text = "\n".join(explain_word("reduce"))
    assert "xb.ops.reduce(operands: Values, init_values: Values, *, to_apply: Region, dimensions: Dims)" in text
    assert "the convenience form: xb.reduce(operands: Value | Sequence[Value]" in text
    assert "dimensions: int | Sequence[int] | None = None" in text
