"""Values drawn in a terminal: a small table of numbers, or bars of block means, coloured by magnitude."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core.attributes import Array
from ..traces import Summary, summary
from ..traces.saying import said
from ..traces.summary import numbers
from .face import HEATS, Line, Piece

ROWS, COLUMNS = 16, 12
"""The extents of the largest table of numbers; larger values are shown by bars."""


def picture(value: Any, blocks: str) -> Iterator[Line]:
    """The lines that show a value: as a table of numbers, or as bars of `blocks` where there are too many numbers."""
    if isinstance(value, tuple):
        for number, part in enumerate(value):
            lines = [*picture(part, blocks)]
            yield [f"({number}) ", *lines[0]] if lines else [f"({number})"]
            yield from (["    ", *line] for line in lines[1:])
        return
    if isinstance(value, np.ndarray) and _is_small(value):
        yield from _table(value)
        return
    yield [said(value)]
    told = summary(value) if isinstance(value, np.ndarray) and value.ndim else value
    if isinstance(told, Summary) and told.cells.size:
        yield from _bars(told.cells, blocks)


def _is_small(value: Array) -> bool:
    if value.ndim == 1:
        return 0 < value.size <= 64
    return value.ndim == 2 and 0 < value.size <= ROWS * COLUMNS and value.shape[-1] <= COLUMNS


def _table(value: Array) -> Iterator[Line]:
    """The rows of a table of numbers, right-aligned; a vector has eight numbers in a row."""
    per_row = 8 if value.ndim == 1 else value.shape[-1]
    texts, warmth = [_number(each) for each in value.flat], _heat(numbers(value)).ravel().tolist()
    width = max(map(len, texts))
    for start in range(0, value.size, per_row):
        row, heats = texts[start : start + per_row], warmth[start : start + per_row]
        yield [Piece(text.rjust(width + 2 * (n > 0)), f"heat{heat}") for n, (text, heat) in
               enumerate(zip(row, heats, strict=True))]  # fmt: skip


def _bars(cells: Array, blocks: str) -> Iterator[Line]:
    for row in _heat(cells).tolist():
        yield ["  ", *(Piece(blocks[heat] * 2, f"heat{heat}") for heat in row)]


def spark(value: Any, blocks: str) -> list[Piece]:
    """A short vector as one line of bars; empty for other values."""
    if not isinstance(value, np.ndarray) or value.ndim != 1 or not 1 < value.size <= 64:
        return []
    return [Piece(blocks[heat], f"heat{heat}") for heat in _heat(numbers(value)).tolist()]


def _heat(array: Array) -> Array:
    """The step of each element on a scale from the least to the largest; an element that is not finite gets 0."""
    finite = np.where(np.isfinite(array), array, np.nan)
    if np.isnan(finite).all():
        return np.zeros(array.shape, np.int64)
    low, high = float(np.nanmin(finite)), float(np.nanmax(finite))
    with np.errstate(all="ignore"):
        share = np.nan_to_num((finite / 2 - low / 2) / (high / 2 - low / 2 or 1.0))
    return np.clip((share * HEATS).astype(np.int64), 0, HEATS - 1)


def _number(value: Any) -> str:
    if value.dtype.kind == "b":
        return str(bool(value)).lower()
    if value.dtype.kind in "iu":
        return str(value)
    if value.dtype.kind == "c":
        return f"{complex(value):.4g}"
    try:
        return f"{float(value):.5g}"
    except (TypeError, ValueError):
        return str(value)
