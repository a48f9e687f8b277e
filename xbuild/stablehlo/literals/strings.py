"""Strings of MLIR text: their bytes as text, and back."""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"((?:\\[0-9a-fA-F]{2})++)|\\(.)", re.DOTALL)
_KNOWN = {"n": "\n", "t": "\t"}


def unescaped(text: str) -> str:
    r"""The characters of a string between its quotes: `\n`, `\t`, `\\`, `\"`, and bytes of UTF-8 as two hex digits.

    >>> unescaped(r'a\22b\\c\C3\A4')
    'a"b\\cä'
    """
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(match: re.Match[str]) -> str:
    if match[1] is None:
        return _KNOWN.get(match[2], match[2])
    return bytes.fromhex(match[1].replace("\\", "")).decode("utf-8", errors="surrogateescape")
