"""Values of reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..folds import Array, Arrays, fold
from ..region import Region
from ..rules import compute


@compute
def reduce(operands: Arrays, init_values: Arrays, *, to_apply: Region, dimensions: tuple[int, ...]) -> Any:
    inits = tuple(map(np.asarray, init_values))
    types = [parameter.shape.dtype.dtype for parameter in to_apply.computation.parameters]
    arrays: Arrays = tuple(np.asarray(o).astype(t, copy=False) for o, t in zip(operands, types, strict=False))
    inits = tuple(i.astype(t, copy=False) for i, t in zip(inits, types, strict=False))
    results: tuple[Array, ...] = fold(to_apply, arrays, inits, tuple(sorted(dimensions)))
    return results if len(results) > 1 else results[0]
