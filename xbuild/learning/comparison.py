"""A solution's results beside those of the specification: tables of numbers, with the wrong ones marked, as HTML."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from shape_inference.escaping import in_html

from .answers import answer_text
from .puzzle import PuzzleRun, differs, leaves_of, type_text

_MOST_ROWS, _MOST_COLUMNS = 16, 16

STYLE = """:root{color-scheme:light dark}
body{margin:0;font:14px/1.4 ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;color:#1d2327}
section{display:flex;flex-wrap:wrap;align-items:flex-start;gap:6px 28px;margin:0 0 12px}
table{border-collapse:collapse;margin:2px 0 8px}
caption{text-align:left;white-space:nowrap;color:#5f6b73;padding:0 0 3px}
td{border:1px solid #8887;padding:2px 7px;text-align:right;min-width:28px}
td.wrong{background:#c62828;color:#fff;font-weight:700}
.spoken{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
@media(prefers-color-scheme:dark){body{color:#e6e9ea}caption{color:#9aa7ae}}"""


def comparison_html(example: PuzzleRun) -> str:
    """The arguments, the results and the expected results of each device, side by side; wrong elements are marked.

    If a result has a different type than expected, its elements are not compared.
    """
    devices = range(len(example.expected))
    return f"<style>{STYLE}</style>" + "".join(_device_html(example, device, len(devices)) for device in devices)


def _device_html(example: PuzzleRun, device: int, devices: int) -> str:
    where = f", device {device}" if devices > 1 else ""
    result = example.results[device] if device < len(example.results) else ()
    yours, spec = leaves_of(result), leaves_of(example.expected[device])
    is_comparable = type_text(result) == type_text(example.expected[device])
    row = example.rows[device] if device < len(example.rows) else ()
    tables = [_tables(f"argument{_number(n, row)}{where}", value) for n, value in enumerate(row)]
    tables += [_tables(f"expected{_number(n, spec)}{where}", value) for n, value in enumerate(spec)]
    tables += [
        _tables(f"yours{_number(n, yours)}{where}", value, spec[n] if is_comparable else None)
        for n, value in enumerate(yours)
    ]
    return f"<section>{''.join(tables)}</section>"


def _number(place: int, values: Any) -> str:
    return f" {place}" if len(values) > 1 else ""


def _tables(words: str, value: Any, expected: Any = None) -> str:
    """An array as a table; one of rank 3 or higher as a table for each matrix."""
    array = np.asarray(value)
    head = f"{words}: {type_text(value)}"
    other = None if expected is None else np.asarray(expected)
    if array.ndim < 3:
        return _table(head, array, other)
    places = [*np.ndindex(*array.shape[:-2])][:_MOST_ROWS]
    tables = [
        _table(f"{head} at [{', '.join(map(str, p))}]", array[p], None if other is None else other[p]) for p in places
    ]
    return f"<div>{''.join(tables)}</div>"


def _table(head: str, array: Any, expected: Any) -> str:
    matrix = np.atleast_2d(array)
    other = None if expected is None else np.atleast_2d(expected)
    rows = "".join(f"<tr>{''.join(_cells(matrix, other, row))}</tr>" for row in range(min(len(matrix), _MOST_ROWS)))
    is_cut = matrix.shape[0] > _MOST_ROWS or matrix.shape[1] > _MOST_COLUMNS
    return f"<table><caption>{in_html(head)}{' (a part)' if is_cut else ''}</caption>{rows}</table>"


def _cells(matrix: Any, expected: Any, row: int) -> Iterator[str]:
    """The elements of a row; for a reader of the screen, a wrong one names the expected number too."""
    for column in range(min(matrix.shape[1], _MOST_COLUMNS)):
        number = in_html(answer_text(matrix[row, column]))
        if expected is None or not differs(matrix[row, column], expected[row, column]):
            yield f"<td>{number}</td>"
        else:
            correct = in_html(answer_text(expected[row, column]))
            yield f'<td class="wrong">{number}<span class="spoken"> is wrong, expected {correct}</span></td>'
