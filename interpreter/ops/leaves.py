"""Values of ops without operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from shape_inference import Shape

from ..folds import Array
from ..rules import compute


@compute
def iota(*, shape: Shape, iota_dimension: int) -> Array:
    counted = np.arange(shape.dims[iota_dimension]).astype(_counter(shape)).astype(shape.dtype.dtype)
    column = counted.reshape([-1 if dim == iota_dimension else 1 for dim in range(shape.rank)])
    return np.broadcast_to(column, shape.dims)


def _counter(shape: Shape) -> Any:
    """Integers wrap from 64 bits, floats round once from f64."""
    return np.int64 if shape.dtype.is_integer else np.float64
