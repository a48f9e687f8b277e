"""`parse` reads HLO or StableHLO, as text or bytes, and tells them apart by how they begin.

The reader of StableHLO is imported only for StableHLO.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from shape_inference.bounds import CHILD_BYTES, CONVERSION, MOST_CONVERTED

from ...core.graph import Module
from ...core.hooks import program_in
from ...process.child import TooMuchOutputError, run_bounded
from ...text.reader import parse_hlo
from ...text.scanner import Fault, HloParseError, parse_error

# ----------------------------------------------------------------------------
# Parts of a text, one module each. Empty lines precede a part, so that line numbers are those of the text.

_BORDER = re.compile(r"^[ \t]*+// -----[^\n]*+$", re.MULTILINE)
_COMMENTS = re.compile(r"(?:\s++|//[^\n]*+)*+")


def split_modules(text: str) -> list[str]:
    """The parts of a text that hold more than comments."""
    return ["\n" * text.count("\n", 0, begin) + text[begin:end] for begin, end in module_ranges(text)]


def module_ranges(text: str) -> list[tuple[int, int]]:
    """Begin and end of each part."""
    borders = [0, *(found.start() for found in _BORDER.finditer(text)), len(text)]
    return [(begin, end) for begin, end in itertools.pairwise(borders) if _has_content(text, begin, end)]


def _has_content(text: str, begin: int, end: int) -> bool:
    comments = _COMMENTS.match(text, begin, end)
    return comments is not None and comments.end() < end


# ----------------------------------------------------------------------------
# Programs as bytes (MLIR bytecode, exports of JAX, HLO protos): jaxlib converts them to text in a child process.

MAGIC = b"ML\xefR"
"""The first bytes of MLIR bytecode."""

_ESCAPED = MAGIC.decode("utf-8", errors="surrogateescape")
SECONDS = 120
_LENGTH = 4  # a program serialized by JAX has this many bytes before a byte string: its length
_CHILD = Path(__file__).with_name("bytecode_child.py")
_FIRST = 0x0A  # key of field 1 of a proto, if it is a string or message; a newline in text
_NESTED = 3  # HloSnapshot holds HloProto, which holds HloModuleProto


def as_text(given: str | bytes, file: str | None = None) -> str:
    """A program as text: decoded, or for MLIR bytecode and a HloModuleProto converted by jaxlib.

    Raises HloParseError if jaxlib cannot read the bytes, or is not installed (missing_extra).
    """
    is_text = isinstance(given, str)
    raw = _bytes_in(given) if isinstance(given, str) else bytes(given)
    found = bytecode_in(raw)
    if found is not None:
        return _convert_with_jaxlib(found, "MLIR bytecode", file)
    found = module_proto_in(raw)
    if found is not None:
        return _convert_with_jaxlib(found, "serialized HLO module", file)
    return given if is_text else raw.decode("utf-8", errors="surrogateescape")  # type: ignore[return-value]


def _bytes_in(text: str) -> bytes:
    """The bytes from which a text was decoded, if they may be a program; otherwise no bytes."""
    if _ESCAPED not in text and not text.startswith(chr(_FIRST)):
        return b""
    try:
        return text.encode("utf-8", errors="surrogateescape")
    except UnicodeEncodeError:
        return b""


def bytecode_in(raw: bytes) -> bytes | None:
    """The MLIR bytecode in bytes, which may be a program serialized by JAX; None if there is none."""
    if raw.startswith(MAGIC):
        return raw
    begin = raw.find(MAGIC) if b"\x00" in raw[:64] else -1
    if begin < _LENGTH:
        return None
    count = int.from_bytes(raw[begin - _LENGTH : begin], "little")
    return raw[begin : begin + count] if len(MAGIC) <= count <= len(raw) - begin else None


def module_proto_in(raw: bytes) -> bytes | None:
    """The HloModuleProto in bytes, which may be a HloProto or HloSnapshot; None if there is none.

    Source: XLA, xla/service/hlo.proto; Protocol Buffers, Encoding.
    """
    for _ in range(_NESTED):
        first = _first_field(raw)
        if first is None:
            return None
        if first[:1] != bytes([_FIRST]):  # the first field is the name of a module
            return raw
        raw = first
    return None


def _first_field(raw: bytes) -> bytes | None:
    """The first field of a proto, if it is field 1 and has a length; None for any other bytes."""
    if raw[:1] != bytes([_FIRST]):
        return None
    first, place = None, 0
    while place < len(raw):
        key, place = _varint(raw, place)
        number, kind = key >> 3, key & 7
        if kind == 2:
            length, place = _varint(raw, place)
            first = raw[place : place + length] if first is None else first
            place += length
        elif kind == 0:
            _, place = _varint(raw, place)
        elif kind in (1, 5):
            place += 8 if kind == 1 else 4
        else:
            return None
        if not number:
            return None
    return first if place == len(raw) else None


def _varint(raw: bytes, place: int) -> tuple[int, int]:
    """The varint at a place, and the place after it; past the end if there is no varint."""
    value = shift = 0
    for byte in raw[place : place + 10]:
        place += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, place
    return 0, len(raw) + 1


@lru_cache(maxsize=4)
def _convert_with_jaxlib(raw: bytes, what: str, file: str | None) -> str:
    if importlib.util.find_spec("jaxlib") is None:
        message = f"reading {_a(what)} needs jaxlib, which is not installed"
        hint = "run `pip install 'xbuild-hlo[xla]'`, or pass the module as text"
        raise _refusal("missing_extra", message, file, hint)
    command = [sys.executable, "-P", str(_CHILD)]
    most = max(MOST_CONVERTED, CONVERSION * len(raw))
    try:
        done = run_bounded(command, raw, seconds=SECONDS, most=most, memory=CHILD_BYTES + CONVERSION * len(raw))
    except subprocess.TimeoutExpired:
        raise _refusal("syntax", f"jaxlib did not finish reading this {what} within {SECONDS} s", file) from None
    except TooMuchOutputError:
        message = f"the text of these {len(raw):,} bytes of {what} exceeds the limit of {most:,} bytes"
        raise _refusal("overflow", message, file) from None
    if done.status:
        messages = done.said.decode(errors="replace").strip().splitlines() or [f"exit status {done.status}"]
        raise _refusal("syntax", f"jaxlib cannot read this {what}: {messages[-1][:300]}", file)
    return done.output.decode("utf-8", errors="surrogateescape")


def _a(what: str) -> str:
    return what if what.startswith("MLIR") else f"a {what}"


def _refusal(kind: str, message: str, file: str | None, *hints: str) -> HloParseError:
    return parse_error("", file or "<mlir>", [Fault(kind, message, 0, hints)], 1)


# ----------------------------------------------------------------------------
# `parse`: the module of a text in either language

_FILE = re.compile(r"\.(?:hlo|mlir|mlirbc|pb|txt|py(?::\w+)?)(?:\.gz)?(?:#[^#/\\]+)?$")
_MLIR = re.compile(
    r"""(?:\s++|//[^\n]*+)*+
    (?: [#!][A-Za-z_][\w.$-]*+\s*+=
      | module\b\s*+(?:@|attributes\b|\{\s*+(?:\}|["%\#]|//|func\.func\b|sdy\.mesh\b|shard\.grid\b|mesh\.mesh\b))
      | (?:func\.func|sdy\.mesh|stablehlo\.mesh|shard\.grid|mesh\.mesh)\b
      | "(?:builtin\.module|func\.func)"
      | \{-\#
    )""",
    re.VERBOSE | re.ASCII,
)


def is_path(text: str) -> bool:
    """Whether a text names a file or folder: one line without braces, with the suffix of a program or a place."""
    if not text or any(mark in text for mark in "\n{"):
        return False
    return _FILE.search(text) is not None or os.path.isdir(text.partition("#")[0])


def is_mlir(text: str) -> bool:
    """Whether a text begins like MLIR."""
    return _MLIR.match(text) is not None


def parse(
    text: Any,
    file: str | None = None,
    *,
    origins: bool = False,
    replicas: int | None = None,
    partitions: int | None = None,
    shapes: Mapping[str, int] | None = None,
) -> Module:
    """Read a module from HLO or StableHLO; the beginning of the text determines the format.

    `text` is program text, bytes, a file path, or an object from JAX: a jitted function without arguments, or a Traced,
    Lowered, Compiled or Exported object. This function takes the same arguments as `xb.parse_hlo` and
    `xb.parse_stablehlo`, and raises the same errors. `shapes` is only for StableHLO, and `origins` only for HLO.

    >>> import xbuild as xb
    >>> hlo = xb.parse("ENTRY main { ROOT x = f32[2] parameter(0) }")
    >>> stablehlo = xb.parse("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }")
    >>> xb.same_structure(hlo, stablehlo)
    True

    Source: the grammars of HLO text and of MLIR.
    """
    if not isinstance(text, str | bytes | bytearray) or (isinstance(text, str) and is_path(text)):
        counts = {"replicas": replicas, "partitions": partitions, "shapes": shapes}
        found = program_in(text, **{name: count for name, count in counts.items() if count})
        if isinstance(found, Module):
            return found
    if isinstance(text, str | bytes | bytearray):
        text = as_text(text if isinstance(text, str) else bytes(text), file)
    if isinstance(text, str) and is_mlir(text):
        from .reader import parse_stablehlo

        return parse_stablehlo(text, file, replicas=replicas, partitions=partitions, shapes=shapes)
    if shapes:
        raise ValueError("shapes= applies only to StableHLO, got HLO text")
    return parse_hlo(text, file, origins=origins, replicas=replicas, partitions=partitions)
