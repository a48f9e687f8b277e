"""Attributes that any op may have, which mean nothing to the op: shardings and the attributes of frontends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from shape_inference.escaping import mlir_string

from ....core.graph import Instruction
from ....text.spelling.words import nested
from ...spelling.op_names import EXPANDED, HLO_OPCODE
from .words import dictionary

if TYPE_CHECKING:
    from .writer import Writer

SHARDING, FRONTEND = "mhlo.sharding", "mhlo.frontend_attributes"
PAIRS = "_xla_send_recv_source_target_pairs"


def notes_text(writer: Writer, instruction: Instruction) -> str:
    """The dictionary of an instruction's annotations with a blank before it, or nothing."""
    if not instruction.annotations and instruction.opcode not in EXPANDED:
        return ""
    entries = [*notes_of(instruction)]
    return f" {dictionary(entries)}" if entries else ""


def notes_of(instruction: Instruction) -> Iterator[tuple[str, str]]:
    """The name and the text of each annotation that StableHLO text keeps."""
    kept = instruction.annotations
    if given := kept.get("frontend_attributes"):
        yield FRONTEND, frontend_text(given)
    if "sharding" in kept:
        yield SHARDING, mlir_string(kept["sharding"])
    if instruction.opcode in EXPANDED:
        yield HLO_OPCODE, mlir_string(instruction.opcode)


def frontend_text(given: Mapping[str, str]) -> str:
    return dictionary((key, mlir_string(value)) for key, value in given.items())


def transfer_notes(instruction: Instruction, done: Instruction | None = None) -> str:
    """Those of a send or recv, which have its pairs as XLA keeps them, too; a sharding is that of the done."""
    pairs = instruction.attributes.source_target_pairs
    given = dict(instruction.annotations.get("frontend_attributes", {}))
    if pairs:
        given = {PAIRS: nested(pairs), **given}
    entries = [(FRONTEND, frontend_text(given))] if given else []
    entries += [(key, text) for key, text in (notes_of(done) if done else ()) if key != FRONTEND]
    return f" {dictionary(entries)}" if entries else ""
