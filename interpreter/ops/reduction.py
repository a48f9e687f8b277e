"""Values of reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from shape_inference import TupleShape

from ..kernels.folds import Arrays, fold
from ..rules import compute
from ..rules.region import AppliedComputation


@compute
def reduce(operands: Arrays, init_values: Arrays, *, to_apply: AppliedComputation, dimensions: tuple[int, ...]) -> Any:
    types = to_apply.types[: len(operands)]
    arrays = tuple(np.asarray(o).astype(t, copy=False) for o, t in zip(operands, types, strict=True))
    inits = tuple(np.asarray(i).astype(t, copy=False) for i, t in zip(init_values, types, strict=True))
    results = fold(to_apply, arrays, inits, tuple(sorted(dimensions)))
    return results if isinstance(to_apply.computation.root.shape, TupleShape) else results[0]
