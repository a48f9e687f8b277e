"""What is too thin for a bar: columns of a few pixels, filled by each category in proportion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from . import Column

STEP = 2.0
"""Pixels of a column."""

_FILLED = 0.02
"""The part of a column below which a category is left out."""


def columns_of(left: np.ndarray, right: np.ndarray, category: Sequence[str], width: float) -> tuple[Column, ...]:
    """The columns of thin bars, of any width; equal columns that follow each other are one.

    >>> columns_of(np.array([0.0, 1.0]), np.array([1.0, 2.0]), ["D", "C"], 4.0)
    (Column(left=0.0, width=2.0, shares=(('C', 0.5), ('D', 0.5))),)
    """
    if not len(left):
        return ()
    names = sorted({*category})
    number = np.array([names.index(each) for each in category])
    covered = np.zeros((int(np.ceil(width / STEP)) + 1, len(names)))
    first = np.minimum((left / STEP).astype(int), len(covered) - 1)
    for step in range(int(np.ceil((right - left).max() / STEP)) + 1):
        low, high = (first + step) * STEP, (first + step + 1) * STEP
        part = np.clip(np.minimum(right, high) - np.maximum(left, low), 0, None)
        np.add.at(covered, (np.minimum(first + step, len(covered) - 1), number), part / STEP)
    return tuple(_merged(np.round(np.minimum(covered, 1.0), 2), names))


def _merged(covered: np.ndarray, names: Sequence[str]) -> Iterator[Column]:
    """The filled columns, each as long as it stays the same."""
    edges = np.flatnonzero((covered[1:] != covered[:-1]).any(axis=1)) + 1
    for first, last in zip([0, *edges.tolist()], [*edges.tolist(), len(covered)], strict=True):
        shares = tuple((name, float(part)) for name, part in zip(names, covered[first], strict=True) if part >= _FILLED)
        if shares:
            yield Column(first * STEP, (last - first) * STEP, shares)
