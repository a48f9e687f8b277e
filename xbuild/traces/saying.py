"""Values as one line of text, and as plain data for JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from .summary import Summary, summary

FEW = 12


def said(value: Any, most: int = FEW) -> str:
    """A value as text: its elements where there are few, else its range and mean.

    >>> import numpy as np
    >>> said(np.array([1.5, 2.5], np.float32)), said(np.zeros((8, 8), np.float32))
    ('[1.5, 2.5]', 'f32[8,8] 0 .. 0, mean 0')
    """
    if value is None:
        return "not kept"
    if isinstance(value, tuple):
        return f"({', '.join('-' if each is None else said(each, most) for each in value)})"
    if isinstance(value, Summary):
        return str(value)
    array = np.asarray(value)
    if array.size > most:
        return str(summary(array))
    return " ".join(np.array2string(array, separator=", ", max_line_width=10**6).split()).replace("[ ", "[")


def plain(value: Any, most: int = 1 << 12) -> Any:
    """A value as JSON: nested lists, or the figures of a large array; elements that are not finite are texts."""
    if isinstance(value, tuple):
        return [plain(each, most) for each in value]
    if isinstance(value, np.ndarray | np.generic) and value.size <= most:
        return _listed(np.asarray(value))
    if value is None:
        return None
    told = value if isinstance(value, Summary) else summary(value)
    names = ("type", "low", "high", "mean", "nans", "infs")
    return {"dims": list(told.dims), **{name: getattr(told, name) for name in names}}


def _listed(array: Any) -> Any:
    kind = array.dtype.kind
    if kind in "biu":
        return array.tolist()
    if kind == "c":
        return np.stack([array.real, array.imag], -1).tolist()
    wide = array.astype(np.float64)
    return wide.tolist() if np.isfinite(wide).all() else np.where(np.isfinite(wide), wide, wide.astype(str)).tolist()
