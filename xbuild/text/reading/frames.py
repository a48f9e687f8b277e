"""The tables of stack frames that HLO text may have before its computations: where an instruction is from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from shape_inference.escaping import hlo_text

from ...core.graph import MetadataSource
from ..codecs.header import TABLES

_TABLE = re.compile(rf"^({'|'.join(TABLES)})$", re.MULTILINE)
_STRING = re.compile(r'^(\d{1,18}) "((?:[^"\\\n]|\\.)*)"$', re.MULTILINE)
_RECORD = re.compile(r"^(\d{1,18}) \{([^}\n]*)\}$", re.MULTILINE)
_FIELD = re.compile(r"(\w+)=(\d{1,18})(?!\d)")  # a longer number is none of a line or a table

Frames = Mapping[int, MetadataSource]


def read_frames(tables: str) -> dict[int, MetadataSource]:
    """The innermost line of each stack frame, by its number; of tables that do not fit, those that do.

    >>> read_frames('''FileNames
    ... 1 "model.py"
    ... FunctionNames
    ... 1 "attention"
    ... FileLocations
    ... 1 {file_name_id=1 function_name_id=1 line=47 end_line=47}
    ... StackFrames
    ... 1 {file_location_id=1 parent_frame_id=1}''')
    {1: MetadataSource(file='model.py', line=47, function='attention')}

    Source: xla/hlo/ir/hlo_module_metadata and stack_frames, as the text of a module prints them.
    """
    parts = _TABLE.split(tables)
    table = dict(zip(parts[1::2], parts[2::2], strict=True))
    files, functions = (_strings(table.get(name, "")) for name in ("FileNames", "FunctionNames"))
    places: dict[int, MetadataSource] = {}
    for number, fields in _records(table.get("FileLocations", "")):
        file, line = files.get(fields.get("file_name_id", 0)), fields.get("line")
        if file and line:
            places[number] = MetadataSource(file, line, functions.get(fields.get("function_name_id", 0), "<unknown>"))
    frames = ((number, fields.get("file_location_id", 0)) for number, fields in _records(table.get("StackFrames", "")))
    return {number: places[place] for number, place in frames if place in places}


def origin(frames: Frames, metadata: Mapping[str, Any]) -> MetadataSource | None:
    """The line of the program that metadata name, by a stack frame or themselves."""
    if found := frames.get(metadata.get("stack_frame_id", 0)):
        return found
    file, line = metadata.get("source_file"), metadata.get("source_line")
    if not (isinstance(file, str) and file and isinstance(line, int)):
        return None
    return MetadataSource(file, line, str(metadata.get("op_name", "")))


def _strings(table: str) -> dict[int, str]:
    return {int(number): hlo_text(text) for number, text in _STRING.findall(table)}


def _records(table: str) -> list[tuple[int, dict[str, int]]]:
    found = _RECORD.findall(table)
    return [(int(number), {key: int(value) for key, value in _FIELD.findall(fields)}) for number, fields in found]
