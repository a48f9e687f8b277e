"""Application of a scalar computation to every element of arrays: lifted to arrays if possible, else per element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shape_inference import Shape, leaves

from ..rules.limits import check_time, timed
from ..rules.region import AppliedComputation
from .folds import Array, Arrays, like


def applied(region: AppliedComputation, operands: Sequence[Array]) -> Arrays:
    """The results of the computation on arrays of one shape: one array of this shape for each result value."""
    if region.lifted:
        check_time()
        results = _as_tuple(region.lifted(*operands))
        return tuple(np.asarray(like(operands[0], each)) for each in results)
    return _each_alone(region, operands)


def _each_alone(region: AppliedComputation, operands: Sequence[Array]) -> Arrays:
    elements = timed(zip(*(each.ravel() for each in operands), strict=True))
    rows = [_as_tuple(region.scalar(*values)) for values in elements]
    shape = operands[0].shape
    types = [leaf.dtype.dtype for leaf in leaves(region.computation.root.shape) if isinstance(leaf, Shape)]
    return tuple(np.array([row[n] for row in rows], dtype).reshape(shape) for n, dtype in enumerate(types))


def _as_tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)
