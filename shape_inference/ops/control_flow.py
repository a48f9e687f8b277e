"""Shapes of ops that call computations."""

from __future__ import annotations

from collections.abc import Sequence

from .. import dims
from ..dims import called_with, gives, scalar
from ..rules import infer, refuse
from ..types import AnyShape, Dims, ProgramShape, Shape, compatible, pred, s32


@infer
def call(operands: Sequence[AnyShape], *, to_apply: ProgramShape) -> AnyShape:
    called_with("to_apply", to_apply, operands)
    return to_apply.result


@infer
def while_(init: AnyShape, *, condition: ProgramShape, body: ProgramShape) -> AnyShape:
    called_with("condition", condition, (init,), "init, as operand")
    gives("condition", condition, pred[()], "wanted is")
    called_with("body", body, (init,), "init, as operand")
    gives("body", body, init, "init is")
    return init


@infer
def conditional(
    branch_index: AnyShape, branch_operands: Sequence[AnyShape], *, branch_computations: Sequence[ProgramShape]
) -> AnyShape:
    index = scalar("branch_index", branch_index)
    if index.dtype not in (pred, s32):
        refuse(
            "element_type_unsupported", f"branch_index is {index}: element type {index.dtype} is neither pred nor s32"
        )
    count = len(branch_computations)
    if index.dtype is pred and count != 2:
        refuse("arity_mismatch", f"branch_index is pred[], which chooses between 2 branches, and there are {count}")
    if not count or len(branch_operands) != count:
        refuse(
            "arity_mismatch",
            f"{count} branch_computations and {len(branch_operands)} branch_operands; each branch has one operand",
        )
    for number, (branch, operand) in enumerate(zip(branch_computations, branch_operands, strict=True)):
        called_with(f"branch {number}", branch, (operand,), f"branch_operands[{number}], as operand")
    for number, branch in enumerate(branch_computations[1:], 1):
        if not compatible(branch.result, branch_computations[0].result):
            gives(f"branch {number}", branch, branch_computations[0].result, "branch 0 gives")
    return branch_computations[0].result


@infer
def map(operands: Sequence[AnyShape], *, to_apply: ProgramShape, dimensions: Dims) -> Shape:
    arrays = dims.alike(operands)
    first = arrays[0]
    if len(dimensions) != first.rank:
        refuse(
            "attribute_length_mismatch",
            f"dimensions {list(dimensions)} has {len(dimensions)} entries, and operand {first} has rank {first.rank}; "
            "all are mapped",
        )
    dims.dimensions("dimensions", dimensions, "operand", first, ascending=True)
    called_with("to_apply", to_apply, [each.dtype[()] for each in arrays], "the element of operand")
    result = scalar("the result of to_apply", to_apply.result)
    dynamic = [any(flags) for flags in zip(*(each.dynamic for each in arrays if each.dynamic), strict=True)]
    return Shape(result.dtype, first.dims, dims.dynamic_of(first.rank, dynamic))
