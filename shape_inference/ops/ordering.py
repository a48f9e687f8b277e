"""Shapes of sort and topk."""

from __future__ import annotations

from collections.abc import Sequence

from .. import dims
from ..dims import array, element_type
from ..rules import infer, refuse
from ..types import AnyShape, ProgramShape, Shape, TupleShape, array_shape, pred, s32
from .elementwise import BITS, REAL_NUMBER, Types

ORDERED: Types = frozenset({*BITS[0], *REAL_NUMBER[0]}), "pred, integer or floating point"


@infer
def sort(operands: Sequence[AnyShape], *, to_apply: ProgramShape, dimension: int, is_stable: bool) -> AnyShape:
    arrays = dims.alike(operands)
    dims.dimension("dimension", dimension, dims.operand_name(0, operands), arrays[0])
    pairs = [array_shape(each.dtype, ()) for each in arrays for _ in range(2)]
    dims.check_call("the comparator to_apply", to_apply, pairs, "the element that it compares")
    dims.check_result("the comparator to_apply", to_apply, array_shape(pred, ()), "must return")
    return arrays[0] if len(arrays) == 1 else TupleShape(arrays)


@infer
def topk(operand: AnyShape, *, k: int, largest: bool) -> TupleShape:
    shape = array("operand", operand)
    if not shape.dims:
        refuse(
            "rank_too_small",
            f"expected an operand of rank 1 or more, got {shape}; topk searches the last dimension",
        )
    element_type("operand", shape, *ORDERED)
    if k < 0:
        refuse("negative_size", f"expected k in 0..{shape.dims[-1]} for operand {shape}, got {k}")
    if k > shape.dims[-1]:
        refuse(
            "index_out_of_range",
            f"k={k} exceeds the extent {shape.dims[-1]} of dimension {shape.rank - 1} of operand {shape}",
        )
    extents, flags = (*shape.dims[:-1], k), dims.dynamic_of(shape.rank, (*shape.dynamic[:-1], False))
    return TupleShape((Shape(shape.dtype, extents, flags), Shape(s32, extents, flags)))
