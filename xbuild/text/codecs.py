"""How HLO text spells the attributes of each op: by their types, and a row for each op that goes its own way."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import attrs
from attrs import frozen

from shape_inference import AnyShape, Dims, PrimitiveType, Shape, pred

from ..attributes import Padding, Region, Regions, ReplicaGroups, SourceTargetPairs
from ..graph import Instruction
from ..op import OPS
from .writer import Writer

Write: TypeAlias = Callable[[Writer, Any], str]

_ALWAYS: Any = object()  # equals no value


@frozen
class Attribute:
    """An attribute as `key=value`; left out where it is None or its default."""

    name: str
    key: str
    write: Write
    default: Any = _ALWAYS

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def text(self, writer: Writer, instruction: Instruction) -> str:
        value = getattr(instruction.attributes, self.name)
        if value is None or value == self.default:
            return ""
        return f", {self.key}={self.write(writer, value)}"


@frozen
class Joined:
    """Attributes that HLO spells together, in a way of their own; `text` gives `, key=value`, or nothing."""

    names: tuple[str, ...]
    text: Callable[[Writer, Instruction], str]


Spelling: TypeAlias = Attribute | Joined


def told(*names: str) -> Joined:
    """Attributes that the text has no word for: the shape says them."""
    return Joined(names, lambda writer, instruction: "")


def braces(values: typing.Iterable[Any]) -> str:
    return f"{{{','.join(map(str, values))}}}"


def nested(values: typing.Iterable[typing.Iterable[Any]]) -> str:
    return braces(map(braces, values))


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f'"{escaped}"'


def _plain(function: Callable[[Any], str]) -> Write:
    return lambda writer, value: function(value)


_integer = _plain(str)
_flag = _plain(lambda value: "true" if value else "false")
_listed = _plain(braces)
_groups = _plain(nested)
_one_in_a_list = _plain(lambda value: f"{{{value}}}")

# None: the shape of the result (or of an operand) says it.
BY_TYPE: dict[Any, Write | None] = {
    int: _integer,
    int | None: _integer,
    float: _plain(lambda value: repr(value).removesuffix(".0")),
    bool: _flag,
    str: _plain(quoted),
    Dims: _listed,
    tuple[str, ...]: _listed,
    ReplicaGroups: _groups,
    SourceTargetPairs: _groups,
    Region: lambda writer, region: writer.called(region),
    Regions: lambda writer, regions: f"{{{', '.join(map(writer.called, regions))}}}",
    Padding: _plain(lambda dims: "x".join(_padding(each) for each in dims)),
    Shape: None,
    AnyShape: None,
    PrimitiveType: None,
    PrimitiveType | None: None,
}


def _padding(dim: Any) -> str:
    return f"{dim.low}_{dim.high}" + (f"_{dim.interior}" if dim.interior else "")


def _slice(writer: Writer, instruction: Instruction) -> str:
    a = instruction.attributes
    strides = a.strides or (1,) * len(a.start_indices)
    ranges = (
        f"[{low}:{high}]" if step == 1 else f"[{low}:{high}:{step}]"
        for low, high, step in zip(a.start_indices, a.limit_indices, strides, strict=True)
    )
    return f", slice={{{', '.join(ranges)}}}"


def _branches(writer: Writer, instruction: Instruction) -> str:
    branches = list(map(writer.called, instruction.attributes.branch_computations))
    if getattr(instruction.operands[0].shape, "dtype", None) is pred and len(branches) == 2:
        return f", true_computation={branches[0]}, false_computation={branches[1]}"
    return f", branch_computations={{{', '.join(branches)}}}"


def _exchanged_dimension(writer: Writer, instruction: Instruction) -> str:
    """HLO has one dimension for both; where they differ, `expansion` writes several instructions."""
    a = instruction.attributes
    if a.split_dimension is None:
        return ""
    if a.concat_dimension in (None, a.split_dimension):
        return f", dimensions={{{a.split_dimension}}}"
    return f", split_dimension={a.split_dimension}, concat_dimension={a.concat_dimension}"


PAIRS = "_xla_send_recv_source_target_pairs"

_PAIRS_ELSEWHERE = told("source_target_pairs")  # frontend_attributes has them
_GROUPS = Attribute("replica_groups", "replica_groups", _groups)

# What is no string here goes by its type, under its own name; the order is XLA's.
ROWS: dict[str, tuple[str | Spelling, ...]] = {
    "all_gather": (
        "channel_id", _GROUPS, Attribute("all_gather_dimension", "dimensions", _one_in_a_list), "use_global_device_ids",
        told("shard_count"),
    ),
    "all_reduce": ("channel_id", _GROUPS, "use_global_device_ids", "to_apply"),
    "all_to_all": (
        "channel_id", _GROUPS, Joined(("split_dimension", "concat_dimension", "split_count"), _exchanged_dimension),
    ),
    "broadcast": (told("sizes"), "dimensions"),
    "collective_permute": ("channel_id", "source_target_pairs"),
    "concatenate": (Attribute("dimension", "dimensions", _one_in_a_list),),
    "conditional": (Joined(("branch_computations",), _branches),),
    "constant": (told("literal"),),
    "dot": (
        "lhs_batch_dims", "lhs_contracting_dims", "rhs_batch_dims", "rhs_contracting_dims", "operand_precision",
        told("preferred_element_type"),
    ),
    "outfeed": (Attribute("outfeed_shape", "outfeed_shape", lambda writer, shape: writer.shape(shape)), "outfeed_config"),
    "parameter": (told("number", "shape"),),
    "recv": (told("shape"), "channel_id", "is_host_transfer", _PAIRS_ELSEWHERE),
    "reduce": ("dimensions", "to_apply"),
    "reduce_scatter": (
        "channel_id", _GROUPS, "use_global_device_ids", Attribute("scatter_dimension", "dimensions", _one_in_a_list), "to_apply",
        told("shard_count"),
    ),
    "reshape": (told("new_sizes"),),
    "send": ("channel_id", "is_host_transfer", _PAIRS_ELSEWHERE),
    "slice": (Joined(("start_indices", "limit_indices", "strides"), _slice),),
    "transpose": (Attribute("permutation", "dimensions", _listed),),
}  # fmt: skip


@functools.cache
def spellings(opcode: str) -> tuple[Spelling, ...]:
    """How each attribute of an op is spelled, in the order of the text."""
    record = OPS[opcode].attributes
    fields = attrs.fields_dict(record) if record else {}
    row = ROWS.get(opcode, tuple(fields))
    return tuple(_by_type(fields[each]) if isinstance(each, str) else each for each in row)


def _by_type(field: attrs.Attribute[Any]) -> Spelling:
    write = _writer(field.type)
    return told(field.name) if write is None else Attribute(field.name, field.name, write, _ALWAYS if field.default is attrs.NOTHING else field.default)


def _writer(annotation: Any) -> Write | None:
    if annotation in BY_TYPE:
        return BY_TYPE[annotation]
    parts = (annotation, *typing.get_args(annotation))
    if any(typing.get_origin(part) is typing.Literal for part in parts):
        return _integer
    raise TypeError(f"no spelling for attributes of type {annotation}")


def attributes_text(writer: Writer, instruction: Instruction) -> str:
    """Everything after the operands: the op's attributes, then what any instruction may have, in XLA's order."""
    text = "" if instruction.attributes is None else "".join(
        [spelling.text(writer, instruction) for spelling in spellings(instruction.opcode)]
    )
    if instruction.annotations or instruction.control or instruction.opcode in ("send", "recv") or writer.style.metadata:
        text += _common(writer, instruction)
    return text


def _common(writer: Writer, instruction: Instruction) -> str:
    notes = instruction.annotations
    parts = [
        f"sharding={notes['sharding']}" if "sharding" in notes else "",
        _frontend(instruction),
        f"control-predecessors={{{writer.references(instruction.control)}}}" if instruction.control else "",
        _metadata(writer, instruction) if writer.style.metadata else "",
        _backend(notes["backend_config"]) if "backend_config" in notes else "",
    ]
    return "".join(f", {part}" for part in parts if part)


def _frontend(instruction: Instruction) -> str:
    given: Mapping[str, str] = instruction.annotations.get("frontend_attributes", {})
    pairs = getattr(instruction.attributes, "source_target_pairs", ()) if instruction.opcode in ("send", "recv") else ()
    entries = {**({PAIRS: nested(pairs)} if pairs else {}), **given}
    return f"frontend_attributes={{{','.join(f'{key}={quoted(value)}' for key, value in entries.items())}}}" if entries else ""


def _metadata(writer: Writer, instruction: Instruction) -> str:
    entries = dict(instruction.annotations.get("metadata", {}))
    source = writer.source(instruction)
    if source is not None and "source_file" not in entries:
        entries |= {"source_file": source.file, "source_line": source.line}
    words = (f"{key}={quoted(value) if isinstance(value, str) else value}" for key, value in entries.items())
    return f"metadata={{{' '.join(words)}}}" if entries else ""


def _backend(config: str) -> str:
    return f"backend_config={config if config.startswith('{') else quoted(config)}"
