"""The summary of a run's results: a line for each output, with its elements or their range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from shape_inference import AnyShape, Shape

from ...files import results as archive


def summary(results: Sequence[Any], shapes: Sequence[AnyShape], *, is_global: bool = False) -> Iterator[str]:
    """A line for each output of each device, or of the whole program."""
    rows = [
        (
            "global" if is_global else f"device {device}",
            f"out{number}",
            str(shape),
            _numbers(np.asarray(leaf), shape),
        )
        for device, (result, whole) in enumerate(zip(results, shapes, strict=True))
        for number, (leaf, shape) in enumerate(archive.leaf_values(result, whole))
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    for row in rows:
        yield "  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]))


def _numbers(array: Any, shape: Shape) -> str:
    """The text of an array: its elements if they are few, else the least, the mean and the largest."""
    if array.size <= 8:
        return " ".join(np.array2string(array, separator=", ", max_line_width=10**6).split())
    if shape.dtype.kind == "complex":
        return f"mean of magnitudes {np.abs(array).mean():.6g}"
    wide = array.astype(np.float64)
    with np.errstate(all="ignore"):
        return f"min {wide.min():.6g}  mean {wide.mean():.6g}  max {wide.max():.6g}"
