"""Functions of one matrix as LAPACK's targets have them: over stacks of matrices, in each of four types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np

from shape_inference import TupleShape
from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction


def names(routine: str, kinds: str = "sdcz") -> Iterator[str]:
    """`lapack_sgetrf_ffi` and so on."""
    return (f"lapack_{kind}{routine}_ffi" for kind in kinds)


def stacked(
    function: Callable[..., tuple[Any, ...]], types: list[Any], operand: Array, *more: Array
) -> tuple[Any, ...]:
    """The function on each matrix of a stack, with what stands beside it; one array for each of its results."""
    batch = operand.shape[:-2]
    stacks = [each.reshape(prod(batch), *each.shape[len(batch) :]) for each in (operand, *more)]
    rows = [function(*matrices) for matrices in zip(*stacks, strict=True)]
    columns = zip(*rows, strict=True) if rows else ([] for _ in types)
    return tuple(_put_together(list(column), batch, leaf) for column, leaf in zip(columns, types, strict=True))


def _put_together(column: list[Any], batch: tuple[int, ...], leaf: Any) -> Any:
    found = np.array(column, leaf.dtype.dtype) if column else np.empty((0, *leaf.dims[len(batch) :]), leaf.dtype.dtype)
    return found.reshape(batch + found.shape[1:])


def results(instruction: Instruction) -> list[Any]:
    """The shapes of the results."""
    return list(instruction.shape.elements) if isinstance(instruction.shape, TupleShape) else [instruction.shape]


def adjoint(matrix: Array) -> Array:
    return np.conj(np.swapaxes(matrix, -1, -2))
