"""MLIR bytecode, and programs that jax.export serialized, as text: jaxlib reads them in a process of its own."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

from ...text.spelling.faults import Fault, HloParseError, parse_error

MAGIC = b"ML\xefR"
"""How MLIR bytecode begins."""

_ESCAPED = MAGIC.decode("utf-8", errors="surrogateescape")
SECONDS = 120
_LENGTH = 4  # bytes before a list of bytes in a serialized program of JAX, a number that counts them
_CHILD = Path(__file__).with_name("bytecode_child.py")


def as_text(given: str | bytes, file: str | None = None) -> str:
    """The text that is given, decoded; of bytecode what jaxlib writes for it.

    Raises HloParseError of bytecode that jaxlib does not read, and where it is not installed (missing_extra).
    """
    if isinstance(given, str):
        raw = _encoded(given) if _ESCAPED in given else b""
        found = bytecode_in(raw)
        return given if found is None else _converted(found, file)
    found = bytecode_in(bytes(given))
    return bytes(given).decode("utf-8", errors="surrogateescape") if found is None else _converted(found, file)


def _encoded(text: str) -> bytes:
    """The bytes that were decoded as text; none of what no bytes decode to."""
    try:
        return text.encode("utf-8", errors="surrogateescape")
    except UnicodeEncodeError:
        return b""


def bytecode_in(raw: bytes) -> bytes | None:
    """The bytecode that bytes are, or hold as a program serialized by JAX does; None of others."""
    if raw.startswith(MAGIC):
        return raw
    begin = raw.find(MAGIC) if b"\x00" in raw[:64] else -1
    if begin < _LENGTH:
        return None
    count = int.from_bytes(raw[begin - _LENGTH : begin], "little")
    return raw[begin : begin + count] if len(MAGIC) <= count <= len(raw) - begin else None


@lru_cache(maxsize=4)
def _converted(raw: bytes, file: str | None) -> str:
    if importlib.util.find_spec("jaxlib") is None:
        message = "this is MLIR bytecode, which jaxlib turns into text, and jaxlib is not installed"
        raise _refused("missing_extra", message, file, "pip install 'xbuild-hlo[xla]', or give the module as text")
    command = [sys.executable, "-P", str(_CHILD)]
    try:
        done = subprocess.run(command, input=raw, capture_output=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise _refused("syntax", f"jaxlib did not read this MLIR bytecode in {SECONDS} s", file) from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or [f"it ended with {done.returncode}"]
        raise _refused("syntax", f"jaxlib does not read this MLIR bytecode: {said[-1][:300]}", file)
    return done.stdout.decode("utf-8", errors="surrogateescape")


def _refused(kind: str, message: str, file: str | None, *hints: str) -> HloParseError:
    return parse_error("", file or "<mlir>", [Fault(kind, message, 0, hints)], 1)
