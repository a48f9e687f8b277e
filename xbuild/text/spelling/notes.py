"""Annotations that any instruction may have (metadata, sharding, backend_config): kept, and printed in XLA's order."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from shape_inference import refuse
from shape_inference.escaping import hlo_kept, hlo_string, printable

from ...core.graph import Instruction
from ...properties.variances import VARIANCE
from .faults import Fault
from .scanner import Scanner
from .shardings import read_sharding
from .words import nested, read_pairs

if TYPE_CHECKING:
    from ..reading.reader import Reader
    from .parsed import ParsedInstruction
    from .writer import Writer

PAIRS = "_xla_send_recv_source_target_pairs"
PAIRED = ("send", "recv")
IN_NOTES = (*PAIRED, "custom_call")

METADATA = (
    "op_type", "op_name", "source_file", "source_line", "source_end_line", "source_column", "source_end_column",
    "profile_type", "deduplicated_name", "scheduling_name", "stack_frame_id", "metadata_payload", "preserve_layout",
)  # fmt: skip

# XLA numbers the parts of a long tuple: /*index=5*/.
_COMMENT = re.compile(r"(\"[^\"]*+\"|'[^']*+')|/\*.*?\*/", re.DOTALL)


class Raw(str):
    """Text that is printed as it stands, without quotes."""

    __slots__ = ()


# Attributes of some ops that xbuild keeps without using them; those of COMMON_KEPT any instruction may have.
_ACCURATE = (
    "cbrt", "cosine", "erf", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "rsqrt", "sine",
    "sqrt", "tan", "tanh",
)  # fmt: skip
KEPT: dict[str, tuple[str, ...]] = {
    "all_gather": ("constrain_layout",),
    "all_gather_start": ("constrain_layout",),
    "all_reduce": ("constrain_layout", "mode"),
    "all_reduce_start": ("constrain_layout", "mode"),
    "all_to_all": ("constrain_layout",),
    "async_start": ("output_to_operand_aliasing",),
    "call": ("is_composite", "output_to_operand_aliasing"),
    "collective_broadcast": ("constrain_layout",),
    "convolution": ("convolution_kind", "sparsity_config"),
    "copy_start": ("cross_program_prefetch_index",),
    "dot": ("algorithm",),
    "ragged_all_to_all": ("constrain_layout",),
    "reduce_scatter": ("constrain_layout", "mode"),
    "scaled_dot": ("algorithm",),
    "reshape": ("inferred_dimension",),
    **dict.fromkeys(_ACCURATE, ("result_accuracy",)),
}
BY_GROUPS = ("constrain_layout",)  # printed with the groups
COMMON_KEPT = ("parameter_replication", "origin", "statistics")


def notes_text(writer: Writer, instruction: Instruction) -> str:
    """The text after the op's own attributes: annotations and control predecessors."""
    notes = instruction.annotations
    kept = (*KEPT.get(instruction.opcode, ()), *COMMON_KEPT)
    parts = [
        *(f"{key}={notes[key]}" for key in kept if key in notes and key not in BY_GROUPS),
        f"sharding={notes['sharding']}" if "sharding" in notes else "",
        _frontend(writer, instruction),
        f"control-predecessors={{{writer.references(instruction.control)}}}" if instruction.control else "",
        _metadata(writer, instruction) if writer.style.metadata else "",
        _backend(instruction),
    ]
    return "".join(f", {part}" for part in parts if part)


def _frontend(writer: Writer, instruction: Instruction) -> str:
    given: Mapping[str, str] = instruction.annotations.get("frontend_attributes", {})
    if writer.style.types and VARIANCE in given:
        given = {key: value for key, value in given.items() if key != VARIANCE}
    pairs = instruction.attributes.source_target_pairs if instruction.opcode in PAIRED else ()
    entries = {**({PAIRS: nested(pairs)} if pairs else {}), **given}
    words = (f"{key}={_entry_text(value)}" for key, value in entries.items())
    return f"frontend_attributes={{{','.join(words)}}}" if entries else ""


def _metadata(writer: Writer, instruction: Instruction) -> str:
    entries = dict(instruction.annotations.get("metadata", {}))
    source = writer.source(instruction)
    if source is not None and "source_file" not in entries:
        entries |= {"source_file": source.file, "source_line": source.line}
    words = (f"{key}={_entry_text(value)}" for key, value in entries.items())
    return f"metadata={{{' '.join(words)}}}" if entries else ""


def _entry_text(value: Any) -> str:
    return hlo_string(value) if isinstance(value, str) and not isinstance(value, Raw) else str(value)


def _backend(instruction: Instruction) -> str:
    """The text of backend_config: as it is if it is balanced braces and printable, otherwise a string in quotes."""
    config = instruction.annotations.get("backend_config")
    if instruction.opcode == "custom_call" and config is None:
        config = instruction.attributes.backend_config or None
    if config is None:
        return ""
    return f"backend_config={config if printable(config) == config and _is_braced(config) else hlo_string(config)}"


def _is_braced(config: str) -> bool:
    scanner = Scanner(config)
    try:
        return scanner.sees("{") and len(scanner.braces()) == len(config)
    except Fault:
        return False


def raw(reader: Scanner) -> Raw:
    """Read one value as raw text: in braces, in quotes, or a word."""
    if reader.sees("{"):
        return Raw(hlo_kept(reader.braces()))
    if reader.sees('"') or reader.sees("'"):
        return Raw(hlo_string(reader.string()))
    match = reader.scan(_BARE)
    return Raw(hlo_kept(match[0])) if match else reader.expected("a value")


_BARE = re.compile(r"[^\s,(){}\[\]=\"']++")


def _value(reader: Scanner) -> Any:
    """A value of metadata: a string, a number, or another word that is kept as it stands."""
    if reader.sees('"') or reader.sees("'"):
        return reader.string()
    text = raw(reader)
    return int(text) if re.fullmatch(r"-?[1-9][0-9]{0,17}|0", text) else text


def _read_frontend(reader: Reader) -> dict[str, str]:
    return dict(reader.listed(lambda: _entry(reader)))


def read_frontend_text(text: str) -> dict[str, str]:
    """The attributes of a frontend as a module's header has them: `{a="b"}`."""
    scanner = Scanner(text)
    return dict(scanner.listed(lambda: _entry(scanner)))


def _entry(reader: Scanner) -> tuple[str, str]:
    key, _ = reader.key()
    if reader.sees("{"):
        return key, Raw(hlo_kept(reader.braces()))
    return key, reader.string()


def _read_metadata(reader: Reader) -> dict[str, Any]:
    """Read metadata: entries that are separated by blanks or commas."""
    reader.expect("{")
    found: dict[str, Any] = {}
    while not reader.take("}"):
        key, place = reader.key()
        if key not in METADATA:
            reader.fail("unknown_attribute", f"metadata has no {key!r}", *reader.near(key, METADATA), place=place)
        found[key] = _value(reader)
        reader.take(",")
    return found


def _read_sharding(reader: Reader) -> str:
    place = reader.skip()
    read_sharding(reader)
    return _COMMENT.sub(lambda found: found[1] or "", hlo_kept(reader.text[place : reader.place]))


def _read_config(reader: Reader) -> str:
    return reader.braces() if reader.sees("{") else reader.string()


COMMON: dict[str, Callable[[Reader], Any]] = {
    "sharding": _read_sharding,
    "frontend_attributes": _read_frontend,
    "metadata": _read_metadata,
    "backend_config": _read_config,
    **dict.fromkeys(COMMON_KEPT, raw),
}


def read_pairs_of(parsed: ParsedInstruction) -> Any:
    """The source-target pairs of send and recv, which HLO keeps among the frontend attributes."""
    given = parsed.notes.get("frontend_attributes", {})
    if PAIRS not in given:
        return ()
    try:
        pairs = read_pairs(Scanner(given[PAIRS]))  # type: ignore[arg-type]  # it calls no computation
    except Fault as fault:
        refuse("invalid_attribute", f"{PAIRS}={given[PAIRS]!r}: {fault.message}")
    rest = {key: value for key, value in given.items() if key != PAIRS}
    parsed.notes.pop("frontend_attributes")
    if rest:
        parsed.notes["frontend_attributes"] = rest
    return pairs
