"""Attributes of ops that state extents, for the parts of a device."""

from __future__ import annotations

from typing import Any

from ..parts.tables import Cut, local_attributes


@local_attributes
def broadcast(cut: Cut) -> dict[str, Any]:
    return {"sizes": cut.result_dims()}


@local_attributes
def reshape(cut: Cut) -> dict[str, Any]:
    return {"new_sizes": cut.result_dims()}


@local_attributes
def slice(cut: Cut) -> dict[str, Any]:
    """Dimensions that are cut are taken whole."""
    attributes, dims = cut.instruction.attributes, cut.operand_dims(0)
    is_cut = [bool(dim.axes) for dim in _sharding(cut).dims]
    pairs = zip(attributes.limit_indices, dims, is_cut, strict=True)
    return {"limit_indices": tuple(local if here else limit for limit, local, here in pairs)}


@local_attributes
def dynamic_slice(cut: Cut) -> dict[str, Any]:
    return {"dynamic_slice_sizes": cut.result_dims()}


@local_attributes
def gather(cut: Cut) -> dict[str, Any]:
    """Slices are whole along dimensions of the operand that are cut, or have the extent 1 there."""
    attributes, dims = cut.instruction.attributes, cut.operand_dims(0)
    sizes = zip(attributes.slice_sizes, dims, _sharding(cut).dims, strict=True)
    return {"slice_sizes": tuple(min(size, local) if dim.axes else size for size, local, dim in sizes)}


def _sharding(cut: Cut) -> Any:
    return cut.operands[0]
