"""Annotations of instructions, such as metadata, sharding and backend_config, read and printed in XLA's order."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from shape_inference import XbuildError, refuse
from shape_inference.escaping import hlo_kept, hlo_string, printable

from ..core.graph import Instruction
from ..properties.placement import MESHES
from ..properties.variances import VARIANCE
from .meshes import StatedMesh, read_shardy_meshes
from .scanner import Fault, Scanner
from .shardings import read_sharding
from .spelling import nested_braces, read_pairs

if TYPE_CHECKING:
    from .reader import HloReader
    from .spelling import NameWriter, ParsedInstruction


PAIRS = "_xla_send_recv_source_target_pairs"
PAIRED = ("send", "recv")
IN_NOTES = (*PAIRED, "custom_call")

METADATA = (
    "op_type", "op_name", "source_file", "source_line", "source_end_line", "source_column", "source_end_column",
    "profile_type", "deduplicated_name", "scheduling_name", "stack_frame_id", "metadata_payload", "preserve_layout",
)  # fmt: skip

# XLA numbers the parts of a long tuple: /*index=5*/.
_COMMENT = re.compile(r"(\"[^\"]*+\"|'[^']*+'|/\*(?:[^*]++|\*(?!/))*+\Z)|/\*.*?\*/", re.DOTALL)


class Raw(str):
    """Text that is printed unchanged, without quotes."""

    __slots__ = ()


# Attributes that xbuild keeps without using them; any instruction may have those of COMMON_KEPT.
_ACCURATE = (
    "acos", "acosh", "asin", "asinh", "atanh", "cbrt", "cosh", "cosine", "erf", "exponential", "exponential_minus_one",
    "log", "log_plus_one", "logistic", "rsqrt", "sine", "sinh", "sqrt", "tan", "tanh",
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
    "convolution": ("convolution_kind", "sparsity_config", "algorithm"),
    "copy_start": ("cross_program_prefetch_index",),
    "dot": ("algorithm",),
    "ragged_all_to_all": ("constrain_layout",),
    "reduce_scatter": ("constrain_layout", "mode"),
    "scaled_dot": ("algorithm",),
    "reshape": ("inferred_dimension",),
    "topk": ("is_stable",),  # here topk is always stable
    **dict.fromkeys(_ACCURATE, ("result_accuracy",)),
}
BY_GROUPS = ("constrain_layout",)  # printed with the groups
COMMON_KEPT = ("parameter_replication", "origin", "statistics")


def notes_text(writer: NameWriter, instruction: Instruction) -> str:
    """The text after the attributes of the op: annotations and control predecessors."""
    notes = instruction.annotations
    kept = (*KEPT.get(instruction.opcode, ()), *COMMON_KEPT)
    parts = [
        *(f"{key}={notes[key]}" for key in kept if key in notes and key not in BY_GROUPS),
        f"sharding={notes['sharding']}" if "sharding" in notes else "",
        _frontend_attributes(writer, instruction),
        f"control-predecessors={{{writer.references(instruction.control)}}}" if instruction.control else "",
        _metadata_text(writer, instruction) if writer.style.metadata else "",
        _config_text(instruction),
    ]
    return "".join(f", {part}" for part in parts if part)


def _frontend_attributes(writer: NameWriter, instruction: Instruction) -> str:
    given: Mapping[str, str] = instruction.annotations.get("frontend_attributes", {})
    if writer.style.types and VARIANCE in given:
        given = {key: value for key, value in given.items() if key != VARIANCE}
    pairs = instruction.attributes.source_target_pairs if instruction.opcode in PAIRED else ()
    entries = {**({PAIRS: nested_braces(pairs)} if pairs else {}), **given}
    return f"frontend_attributes={frontend_text(entries)}" if entries else ""


def frontend_text(entries: Mapping[str, str]) -> str:
    """The text of frontend attributes: `{a="b"}`."""
    return f"{{{','.join(f'{key}={_entry_text(value)}' for key, value in entries.items())}}}"


def _metadata_text(writer: NameWriter, instruction: Instruction) -> str:
    entries = dict(instruction.annotations.get("metadata", {}))
    source = writer.source(instruction)
    if source is not None and "source_file" not in entries:
        entries |= {"source_file": source.file, "source_line": source.line}
    words = (f"{key}={_entry_text(value)}" for key, value in entries.items())
    return f"metadata={{{' '.join(words)}}}" if entries else ""


def _entry_text(value: Any) -> str:
    return hlo_string(value) if isinstance(value, str) and not isinstance(value, Raw) else str(value)


def _config_text(instruction: Instruction) -> str:
    """The text of backend_config: unchanged if it is printable and in balanced braces, else quoted."""
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


def read_raw(reader: Scanner) -> Raw:
    """Read a value as text: in braces, in quotes, or a word."""
    if reader.sees("{"):
        return Raw(hlo_kept(reader.braces()))
    if reader.sees('"') or reader.sees("'"):
        return Raw(hlo_string(reader.string()))
    match = reader.scan(_BARE)
    return Raw(hlo_kept(match[0])) if match else reader.expected("a value")


_BARE = re.compile(r"[^\s,(){}\[\]=\"']++")


def _read_value(reader: Scanner) -> Any:
    """Read a value of metadata: a string, a number, or any other word, which is kept as text."""
    if reader.sees('"') or reader.sees("'"):
        return reader.string()
    text = read_raw(reader)
    return int(text) if re.fullmatch(r"-?[1-9][0-9]{0,17}|0", text) else text


def _read_frontend(reader: HloReader) -> dict[str, str]:
    return dict(reader.listed(lambda: _read_entry(reader)))


def read_frontend_text(text: str) -> dict[str, str]:
    """Read frontend attributes from the text of a header: `{a="b"}`; raises ShapeError (invalid_attribute)."""
    scanner = Scanner(text)
    try:
        return dict(scanner.listed(lambda: _read_entry(scanner)))
    except Fault as fault:
        refuse("invalid_attribute", f"the header's frontend_attributes={text[:60]} cannot be read: {fault.message}")


def stated_meshes(annotations: Mapping[str, Any]) -> dict[str, StatedMesh]:
    """The meshes of Shardy in the annotations of a module; none if the text cannot be read, which is only kept."""
    header = str(annotations.get("frontend_attributes", ""))
    if MESHES not in header:
        return {}
    try:
        return read_shardy_meshes(Scanner(read_frontend_text(header).get(MESHES, "{}")))
    except (Fault, XbuildError):
        return {}


def _read_entry(reader: Scanner) -> tuple[str, str]:
    key, _ = reader.key()
    if reader.sees("{"):
        return key, Raw(hlo_kept(reader.braces()))
    return key, reader.string()


def _read_metadata(reader: HloReader) -> dict[str, Any]:
    """Read metadata: entries separated by blanks or commas."""
    reader.expect("{")
    found: dict[str, Any] = {}
    while not reader.take("}"):
        key, place = reader.key()
        if key not in METADATA:
            reader.fail("unknown_attribute", f"unknown metadata key {key!r}", *reader.near(key, METADATA), place=place)
        found[key] = _read_value(reader)
        reader.take(",")
    return found


def _read_sharding(reader: HloReader) -> str:
    return _COMMENT.sub(lambda found: found[1] or "", hlo_kept(read_sharding(reader)))


def _read_config(reader: HloReader) -> str:
    return reader.braces() if reader.sees("{") else reader.string()


COMMON: dict[str, Callable[[HloReader], Any]] = {
    "sharding": _read_sharding,
    "frontend_attributes": _read_frontend,
    "metadata": _read_metadata,
    "backend_config": _read_config,
    **dict.fromkeys(COMMON_KEPT, read_raw),
}


def take_pairs(parsed: ParsedInstruction) -> Any:
    """Take the source-target pairs of a send or recv from its frontend attributes, where HLO stores them."""
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
