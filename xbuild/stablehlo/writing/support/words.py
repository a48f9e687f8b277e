"""Attributes of MLIR: strings, lists of numbers, matrices of ids, dictionaries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from shape_inference.escaping import mlir_string

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*")


def integers(values: Iterable[int]) -> str:
    """A list of 64-bit integers.

    >>> integers([1, 2]), integers([])
    ('array<i64: 1, 2>', 'array<i64>')
    """
    return _array("i64", map(str, values))


def flags(values: Iterable[bool]) -> str:
    return _array("i1", map(flag, values))


def _array(of: str, words: Iterable[str]) -> str:
    text = ", ".join(words)
    return f"array<{of}: {text}>" if text else f"array<{of}>"


def flag(value: Any) -> str:
    return "true" if value else "false"


def listed(values: Iterable[Any]) -> str:
    """Values in brackets, as a pretty form has dimensions."""
    return f"[{', '.join(map(str, values))}]"


def matrix(rows: Sequence[Sequence[int]], columns: int) -> str:
    """A matrix of 64-bit integers.

    >>> matrix([(0, 1), (2, 3)], 2), matrix([], 0)
    ('dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>', 'dense<> : tensor<0x0xi64>')
    """
    text = listed(map(listed, rows)) if rows and columns else ""
    return f"dense<{text}> : tensor<{len(rows)}x{columns}xi64>"


def groups(lists: Sequence[Sequence[int]]) -> str:
    """Replica groups; those that are shorter than the longest are filled with -1."""
    longest = max(map(len, lists), default=0)
    return matrix([(*ids, *(-1,) * (longest - len(ids))) for ids in lists], longest)


def dictionary(entries: Iterable[tuple[str, str]]) -> str:
    """Attributes by name; names that are no identifier are quoted."""
    return f"{{{', '.join([f'{key_text(key)} = {value}' for key, value in entries])}}}"


def key_text(key: str) -> str:
    return key if _BARE.fullmatch(key) else mlir_string(key)


def symbol(name: str) -> str:
    """The name of a module, a function or a target; one that is no identifier is quoted.

    >>> symbol("main"), symbol("all-reduce")
    ('@main', '@"all-reduce"')
    """
    return f"@{key_text(name)}"
