"""Values of ops that slide a window over an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from shape_inference import PrimitiveType
from shape_inference.convolutions import ConvolutionDimensionNumbers
from shape_inference.windows import Window
from xbuild.core.attributes import Array

from ..kernels.convolving import convolve
from ..kernels.folds import Arrays
from ..kernels.scattering import combine_at
from ..kernels.sliding import BLOCK, fold_windows, selected
from ..kernels.windowing import in_parts
from ..rules import compute
from ..rules.region import AppliedComputation


@compute
def reduce_window(operands: Arrays, init_values: Arrays, *, to_apply: AppliedComputation, window: Window) -> Any:
    types = to_apply.types[: len(operands)]
    arrays = tuple(np.asarray(o).astype(t, copy=False) for o, t in zip(operands, types, strict=True))
    inits = tuple(np.asarray(i).astype(t, copy=False) for i, t in zip(init_values, types, strict=True))
    results = fold_windows(to_apply, arrays, inits, window)
    return results if len(results) > 1 else results[0]


@compute
def select_and_scatter(
    operand: Array,
    source: Array,
    init_value: Array,
    *,
    select: AppliedComputation,
    scatter: AppliedComputation,
    window: Window,
) -> Array:
    operand, source = np.asarray(operand), np.asarray(source)
    result = np.full(operand.shape, init_value, operand.dtype)
    for part in in_parts(window, operand.shape, BLOCK):
        chosen, values = selected(select, operand[part], window).reshape(-1), source[part].reshape(-1)
        if chosen.size and chosen.min() < 0:
            chosen, values = chosen[chosen >= 0], values[chosen >= 0]
        combine_at(scatter, (result[part].reshape(-1),), chosen, (values,))
    return result


@compute
def convolution(
    lhs: Array,
    rhs: Array,
    *,
    window: Window,
    dimension_numbers: ConvolutionDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    operand_precision: tuple[str, ...],
    preferred_element_type: PrimitiveType | None,
) -> Array:
    return convolve(lhs, rhs, window, dimension_numbers, feature_group_count, batch_group_count, preferred_element_type)
