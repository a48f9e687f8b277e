"""Values of ops that read or update a slice of an array."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from shape_inference import Dims
from xbuild.core.attributes import Array

from ..rules import compute


@compute
def slice(operand: Array, *, start_indices: Dims, limit_indices: Dims, strides: Dims) -> Array:
    steps = strides or (1,) * len(start_indices)
    return operand[
        tuple([builtins.slice(a, b, s) for a, b, s in zip(start_indices, limit_indices, steps, strict=True)])
    ]


@compute
def dynamic_slice(operand: Array, start_indices: Sequence[Array], *, dynamic_slice_sizes: Dims) -> Array:
    window: Array = operand[_window_slices(start_indices, operand.shape, dynamic_slice_sizes)]
    return window


@compute
def dynamic_update_slice(operand: Array, update: Array, start_indices: Sequence[Array]) -> Array:
    result = np.array(operand)
    result[_window_slices(start_indices, operand.shape, update.shape)] = update
    return result


def _window_slices(starts: Sequence[Array], extents: Dims, sizes: Dims) -> tuple[Any, ...]:
    """The slices of these sizes, with starts clamped; starts are Python ints, which hold unsigned 64-bit values."""
    numbers: Iterable[Any] = starts[0] if len(starts) == 1 and starts[0].ndim else starts
    clamped = [max(0, min(int(i), n - size)) for i, n, size in zip(numbers, extents, sizes, strict=True)]
    return tuple([builtins.slice(i, i + size) for i, size in zip(clamped, sizes, strict=True)])
