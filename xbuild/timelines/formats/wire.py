"""Messages of protocol buffers as bytes: varints, doubles, texts, lists and messages in messages.

Source: Protocol Buffers documentation, Encoding.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

_VARINT, _FIXED64, _LENGTH = 0, 1, 2


def varint(number: int) -> bytes:
    """A number of 0 or more in groups of seven bits, the lowest first; a negative one as 64 bits."""
    number &= (1 << 64) - 1
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes((*found, number))


def _tag(field: int, wire: int) -> bytes:
    return varint(field << 3 | wire)


def integer(field: int, number: int) -> bytes:
    """A field of an integer, a bool or an enum; proto3 leaves out zeros, which a reader takes for them."""
    return _tag(field, _VARINT) + varint(number) if number else b""


def chosen(field: int, number: int) -> bytes:
    """The same inside a oneof, where a zero is written, too."""
    return _tag(field, _VARINT) + varint(number)


def double(field: int, number: float) -> bytes:
    """A field of a double inside a oneof."""
    return _tag(field, _FIXED64) + struct.pack("<d", number)


def text(field: int, words: str) -> bytes:
    """A field of a string."""
    return message(field, words.encode())


def message(field: int, body: bytes) -> bytes:
    """A field of a message, or of bytes."""
    return _tag(field, _LENGTH) + varint(len(body)) + body


def packed(field: int, numbers: Iterable[int]) -> bytes:
    """A field of repeated integers; empty where there are none."""
    body = b"".join(map(varint, numbers))
    return message(field, body) if body else b""


def delimited(body: bytes) -> bytes:
    """A message with its length in front, as files of several messages have it."""
    return varint(len(body)) + body
