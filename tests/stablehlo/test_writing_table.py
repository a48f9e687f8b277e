"""The table of what each op becomes: whole, and the document is made of it."""

from __future__ import annotations

from pathlib import Path

from xbuild.core.op import OPS
from xbuild.reference.stablehlo_table import document
from xbuild.stablehlo.spelling import OP_NAMES
from xbuild.stablehlo.writing.writer import REFUSED, lines, values

ROOT = Path(__file__).parents[2]


def test_every_op_has_one_rule() -> None:
    assert lines.keys() | values.keys() | {"parameter"} == OPS.keys()
    assert not lines.keys() & values.keys()


def test_ops_without_a_name_say_what_becomes_of_them() -> None:
    unnamed = OPS.keys() - OP_NAMES.keys() - {"parameter"}
    assert [opcode for opcode in sorted(unnamed) if not (lines.get(opcode) or values[opcode]).__doc__] == []
    assert unnamed >= REFUSED


def test_the_document_is_up_to_date() -> None:
    """`python -m xbuild.reference.stablehlo_table` writes it."""
    assert (ROOT / "docs" / "stablehlo.md").read_text() == document()
