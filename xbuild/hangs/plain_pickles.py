"""Reads pickles of plain data: dicts, lists, tuples, strings, numbers, True, False and None, and nothing else.

A pickle is a program, and `pickle.loads` runs it. Before this module unpickles bytes, it checks that each opcode is one
of those that build plain data, so a pickle that names a class, calls a function or reserves memory is refused unread.
Then it bounds what the data hold: lists that contain themselves, and lists that share lists, would otherwise be
walked without end.

Source: Python, `pickletools`, which describes each opcode.
"""

from __future__ import annotations

import io
import pickle
import re
import struct
from typing import Any

from .records import DumpError

MOST_BYTES = 1 << 28
DEEPEST = 12
"""The most lists and dicts inside each other; dumps have five."""

# Opcodes with arguments of fixed length: FRAME, PROTO, marks, empty and filled lists, dicts and tuples, numbers,
# None and bools, and the memo, whose index has one byte. Texts and longer indices are checked one by one.
_FIXED = re.compile(
    rb"(?:\x80[\x02-\x05]|\x95.{8}|[]})(eustaN\x85\x86\x87\x88\x89\x94]|[hqK].|M..|[Jj]....|G.{8}"
    + b"".join(b"|\x8a" + re.escape(bytes([size])) + b".{%d}" % size for size in range(17))
    + rb")+",
    re.DOTALL,
)
_NAMES = {
    b"c": "names a class", b"i": "names a class", b"\x93": "names a class", b"R": "calls a function",
    b"o": "builds an object", b"\x81": "builds an object", b"\x92": "builds an object",
    b"b": "sets the state of an object",
    b"P": "refers to an object outside of it", b"Q": "refers to an object outside of it",
    b"\x82": "names a class by number", b"\x83": "names a class by number", b"\x84": "names a class by number",
}  # fmt: skip


class _PlainUnpickler(pickle.Unpickler):
    """Refuses classes and objects a second time, although no opcode that names them passes the check."""

    def find_class(self, module: str, name: str) -> Any:
        raise DumpError(f"the pickle names the class {module}.{name}")

    def persistent_load(self, identity: Any) -> Any:
        raise DumpError("the pickle refers to an object outside of it")


def read_plain_pickle(data: bytes, most_items: int) -> Any:
    """The plain data of a pickle, with at most `most_items` values; raises DumpError for every other pickle.

    >>> import pickle
    >>> read_plain_pickle(pickle.dumps({"ranks": [0, 1]}), 100)
    {'ranks': [0, 1]}
    """
    if len(data) > MOST_BYTES:
        raise DumpError(f"the pickle has {len(data):,} bytes; the limit is {MOST_BYTES:,}")
    _check_opcodes(data)
    try:
        found = _PlainUnpickler(io.BytesIO(data)).load()
    except DumpError:
        raise
    except Exception as error:  # the unpickler raises any type on malformed bytes
        raise DumpError(f"the pickle is damaged: {error}") from None
    check_plain(found, most_items)
    return found


def _check_opcodes(data: bytes) -> None:
    """Raise DumpError unless each opcode builds plain data."""
    position, end = 0, len(data)
    while position < end:
        if match := _FIXED.match(data, position):
            position = match.end()
        code = data[position : position + 1]
        if code in (b"X", b"\x8c"):  # a text, with its length in 4 bytes or in one
            width = 4 if code == b"X" else 1
            argument = data[position + 1 : position + 1 + width]
            position += 1 + width + int.from_bytes(argument, "little")
            if len(argument) < width or position > end:
                raise DumpError("the pickle is cut off inside a string")
        elif code == b"r":
            index = data[position + 1 : position + 5]
            if len(index) < 4 or struct.unpack("<I", index)[0] > end:
                raise DumpError("the pickle reserves more memory than its length allows")
            position += 5
        elif code == b".":
            return
        elif code in _NAMES:
            raise DumpError(f"the pickle {_NAMES[code]}; a dump contains only plain data")
        else:
            what = f"has the opcode {code!r} at byte {position:,}" if code else "is cut off"
            raise DumpError(f"the pickle {what}; a dump contains only plain data")
    raise DumpError("the pickle is cut off")


def check_plain(data: Any, most_items: int) -> None:
    """Raise DumpError if plain data are nested too deep, contain themselves, or have too many values.

    A list that is shared is counted as often as it is met.
    """
    count = 0
    level: list[Any] = [data]
    for _ in range(DEEPEST):
        inner: list[Any] = []
        for value in level:
            count += len(value) if isinstance(value, (dict, list, tuple)) else 1
            if count > most_items:
                raise DumpError(f"the dump has more than {most_items:,} values")
            if isinstance(value, dict):
                inner += [each for each in value.values() if isinstance(each, (dict, list, tuple))]
            elif isinstance(value, (list, tuple)):
                inner += [each for each in value if isinstance(each, (dict, list, tuple))]
        if not inner:
            return
        level = inner
    raise DumpError(f"the dump has lists that are nested more than {DEEPEST} levels deep, or that contain themselves")
