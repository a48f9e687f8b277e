"""A scalar computation applied to every element of arrays: on whole arrays where possible, else element by element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shape_inference import Shape, leaves

from ..rules.region import Region
from .folds import Array, Arrays, like


def applied(region: Region, operands: Sequence[Array]) -> Arrays:
    """What the computation gives for arrays of one shape: one array of it for each value of its result."""
    if region.lifted:
        results = _as_tuple(region.lifted(*operands))
        return tuple(np.asarray(like(operands[0], each)) for each in results)
    return _each_alone(region, operands)


def _each_alone(region: Region, operands: Sequence[Array]) -> Arrays:
    rows = [_as_tuple(region.scalar(*values)) for values in zip(*(each.ravel() for each in operands), strict=True)]
    shape = operands[0].shape
    types = [leaf.dtype.dtype for leaf in leaves(region.computation.root.shape) if isinstance(leaf, Shape)]
    return tuple(np.array([row[n] for row in rows], dtype).reshape(shape) for n, dtype in enumerate(types))


def _as_tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)
