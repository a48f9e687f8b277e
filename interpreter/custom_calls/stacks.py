"""Support for LAPACK's targets: a function of one matrix applied to stacks of matrices, names for four types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np

from shape_inference import TupleShape
from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction


def names(routine: str, kinds: str = "sdcz") -> Iterator[str]:
    """The targets of a LAPACK routine, one for each element type, such as `lapack_sgetrf_ffi`."""
    return (f"lapack_{kind}{routine}_ffi" for kind in kinds)


def stacked(
    function: Callable[..., tuple[Any, ...]], types: list[Any], operand: Array, *more: Array
) -> tuple[Any, ...]:
    """Apply a function to each matrix of a stack and its further operands; one array for each result."""
    batch = operand.shape[:-2]
    stacks = [each.reshape(prod(batch), *each.shape[len(batch) :]) for each in (operand, *more)]
    rows = [function(*matrices) for matrices in zip(*stacks, strict=True)]
    columns = zip(*rows, strict=True) if rows else ([] for _ in types)
    return tuple(_put_together(list(column), batch, leaf) for column, leaf in zip(columns, types, strict=True))


def _put_together(column: list[Any], batch: tuple[int, ...], leaf: Any) -> Any:
    found = np.array(column, leaf.dtype.dtype) if column else np.empty((0, *leaf.dims[len(batch) :]), leaf.dtype.dtype)
    return found.reshape(batch + found.shape[1:])


def results(instruction: Instruction) -> list[Any]:
    """The shapes of the results of a custom call, as a list."""
    return list(instruction.shape.elements) if isinstance(instruction.shape, TupleShape) else [instruction.shape]


def adjoint(matrix: Array) -> Array:
    return np.conj(np.swapaxes(matrix, -1, -2))
