"""Parameter shapes of the computations that each op calls; a Python function is traced with these shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import dims
from .rules import refuse, region_parameters
from .types import AnyShape, Shape


def _scalars(operands: Sequence[AnyShape]) -> tuple[AnyShape, ...]:
    return tuple(shape.dtype[()] if isinstance(shape, Shape) else shape for shape in operands)


@region_parameters
def call(operands: Sequence[AnyShape], *, to_apply: Any) -> dict[str, Any]:
    return {"to_apply": operands}


@region_parameters
def while_(init: AnyShape, *, condition: Any, body: Any) -> dict[str, Any]:
    return {"condition": (init,), "body": (init,)}


@region_parameters
def conditional(
    branch_index: AnyShape, branch_operands: Sequence[AnyShape], *, branch_computations: Any
) -> dict[str, Any]:
    return {"branch_computations": tuple((operand,) for operand in branch_operands)}


@region_parameters
def fusion(operands: Sequence[AnyShape], *, calls: Any, **attributes: Any) -> dict[str, Any]:
    return {"calls": operands}


@region_parameters
def scan(
    operands: Sequence[AnyShape], *, dimension: int, num_carries: int, to_apply: Any, **attributes: Any
) -> dict[str, Any]:
    inputs = max(len(operands) - num_carries, 0)
    return {"to_apply": (*scan_slices(operands[:inputs], dimension), *operands[inputs:])}


@region_parameters
def reduce(
    operands: Sequence[AnyShape], init_values: Sequence[AnyShape], *, to_apply: Any, dimensions: Any
) -> dict[str, Any]:
    return {"to_apply": _scalars(init_values) * 2}


@region_parameters
def all_reduce(operands: Sequence[AnyShape], *, to_apply: Any, **attributes: Any) -> dict[str, Any]:
    return {"to_apply": _scalars(operands[:1]) * 2}


@region_parameters
def all_reduce_start(operands: Sequence[AnyShape], *, to_apply: Any, **attributes: Any) -> dict[str, Any]:
    return {"to_apply": _scalars(operands[:1]) * 2}


@region_parameters
def async_start(operands: Sequence[AnyShape], *, calls: Any, **attributes: Any) -> dict[str, Any]:
    return {"calls": operands}


@region_parameters
def reduce_scatter(operands: Sequence[AnyShape], *, to_apply: Any, **attributes: Any) -> dict[str, Any]:
    return {"to_apply": _scalars(operands[:1]) * 2}


@region_parameters
def scatter(
    operands: Sequence[AnyShape],
    scatter_indices: AnyShape,
    updates: Sequence[AnyShape],
    *,
    to_apply: Any,
    **attributes: Any,
) -> dict[str, Any]:
    return {"to_apply": _scalars(operands) * 2}


@region_parameters
def reduce_window(
    operands: Sequence[AnyShape], init_values: Sequence[AnyShape], *, to_apply: Any, **attributes: Any
) -> dict[str, Any]:
    return {"to_apply": _scalars(init_values) * 2}


@region_parameters
def select_and_scatter(
    operand: AnyShape, source: AnyShape, init_value: AnyShape, *, select: Any, scatter: Any, **attributes: Any
) -> dict[str, Any]:
    return {"select": _scalars((operand, operand)), "scatter": _scalars((init_value, init_value))}


@region_parameters
def sort(operands: Sequence[AnyShape], *, to_apply: Any, **attributes: Any) -> dict[str, Any]:
    return {"to_apply": tuple(scalar for scalar in _scalars(operands) for _ in range(2))}


@region_parameters
def map(operands: Sequence[AnyShape], *, to_apply: Any, **attributes: Any) -> dict[str, Any]:
    return {"to_apply": _scalars(operands)}


def scan_slices(inputs: Sequence[AnyShape], dimension: int) -> list[Shape]:
    """The shapes of the inputs without the scanned dimension."""
    slices = []
    for number, operand in enumerate(inputs):
        shape = dims.array(f"operands[{number}]", operand)
        if not shape.dims:
            refuse("rank_too_small", f"operands[{number}] is {shape}, which has no dimension to scan")
        dims.dimension("dimension", dimension, f"operands[{number}]", shape)
        kept_dims = [dim for dim in range(shape.rank) if dim != dimension]
        flags = dims.dynamic_of(len(kept_dims), (shape.dynamic[dim] for dim in kept_dims if shape.dynamic))
        slices.append(Shape(shape.dtype, tuple(shape.dims[dim] for dim in kept_dims), flags))
    return slices
