"""Two programs run in floating point on the same numbers, as a witness that they differ by more than rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shape_inference import XbuildError

from ..runtime.report import Stopped
from ..runtime.run import execute
from . import draws

if TYPE_CHECKING:
    from .comparison import Comparison
    from .run import Subject

_TRIES = 3


def apart(comparison: Comparison) -> float | None:
    """The largest distance between their results, as a part of the size of the result; None where a run stops."""
    try:
        with np.errstate(all="ignore"):
            return max(_distance(comparison, number) for number in range(_TRIES))
    except (XbuildError, Stopped):
        return None


def _distance(comparison: Comparison, number: int) -> float:
    arrays, cut = comparison.inputs(number, draws.number, exact=True)
    left = _results(comparison.one, arrays, comparison)
    right = _results(comparison.other, cut, comparison)
    found = 0.0
    for output in range(len(right[0])):
        expected, given = comparison.pair(output, left, right, exact=True)
        found = max(found, *(_of_size(a, b) for a, b in zip(expected, given, strict=True)))
    return found


def _results(subject: Subject, rows: Any, comparison: Comparison) -> list[list[Any]]:
    inputs = []
    for module, row in zip(subject.modules, rows, strict=True):
        left = list(row)
        inputs.append([draws.nested(left, parameter.shape) for parameter in module.entry.parameters])
    found = execute(subject.program, inputs, limits=comparison.limits)
    return [draws.flat(value, m.entry.root.shape) for value, m in zip(found, subject.modules, strict=True)]


def _of_size(expected: Any, given: Any) -> float:
    """The distance of two arrays by the size of the larger numbers; 1 where one has a NaN that the other has not."""
    if expected.dtype.kind in "biu" and expected.dtype.isbuiltin == 1:
        return float(np.any(expected != given))
    a, b = (each.astype(np.complex128 if each.dtype.kind == "c" else np.float64) for each in (expected, given))
    if not a.size:
        return 0.0
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if not np.array_equal(np.isfinite(a) | same, np.isfinite(b) | same) or np.any(~same & ~np.isfinite(a)):
        return 1.0
    size = max(float(np.abs(a[np.isfinite(a)]).max(initial=0.0)), 1e-30)
    return float(np.abs(np.where(same, 0, a - b)).max(initial=0.0)) / size
