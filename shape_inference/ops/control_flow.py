"""Shapes of call, while, conditional, map, fusion and scan, which call computations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from .. import dims
from ..dims import check_call, check_result, scalar
from ..regions import scan_slices
from ..rules import infer, refuse
from ..types import AnyShape, Dims, ProgramShape, Shape, TupleShape, compatible, pred, s32


@infer
def call(operands: Sequence[AnyShape], *, to_apply: ProgramShape) -> AnyShape:
    check_call("to_apply", to_apply, operands)
    return to_apply.result


@infer
def while_(init: AnyShape, *, condition: ProgramShape, body: ProgramShape) -> AnyShape:
    check_call("condition", condition, (init,), "init")
    check_result("condition", condition, pred[()], "must return")
    check_call("body", body, (init,), "init")
    check_result("body", body, init, "init is")
    return init


@infer
def conditional(
    branch_index: AnyShape, branch_operands: Sequence[AnyShape], *, branch_computations: Sequence[ProgramShape]
) -> AnyShape:
    index = scalar("branch_index", branch_index)
    if index.dtype not in (pred, s32):
        refuse("element_type_unsupported", f"branch_index is {index}, but its element type must be pred or s32")
    count = len(branch_computations)
    if index.dtype is pred and count != 2:
        refuse("arity_mismatch", f"a branch_index of pred[] requires exactly 2 branches, got {count}")
    if not count or len(branch_operands) != count:
        refuse(
            "arity_mismatch",
            f"expected at least 1 branch and one operand for each branch, got {count} branch_computations and "
            f"{len(branch_operands)} branch_operands",
        )
    names = ("true_computation", "false_computation") if index.dtype is pred else [f"branch {n}" for n in range(count)]
    for number, (branch, operand) in enumerate(zip(branch_computations, branch_operands, strict=True)):
        check_call(names[number], branch, (operand,), f"branch_operands[{number}]")
    for name, branch in zip(names, branch_computations, strict=True):
        if not compatible(branch.result, branch_computations[0].result):
            check_result(name, branch, branch_computations[0].result, f"{names[0]} returns")
    return branch_computations[0].result


@infer
def map(operands: Sequence[AnyShape], *, to_apply: ProgramShape, dimensions: Dims) -> Shape:
    arrays = dims.alike(operands)
    first = arrays[0]
    if len(dimensions) != first.rank:
        refuse(
            "attribute_length_mismatch",
            f"dimensions must list every dimension of operand {first}: expected {list(range(first.rank))}, "
            f"got {list(dimensions)}",
        )
    dims.dimensions("dimensions", dimensions, "operand", first, ascending=True)
    check_call("to_apply", to_apply, [each.dtype[()] for each in arrays], "the shape of an element of operand {}")
    result = scalar("the result of to_apply", to_apply.result)
    dynamic = [any(flags) for flags in zip(*(each.dynamic for each in arrays if each.dynamic), strict=True)]
    return Shape(result.dtype, first.dims, dims.dynamic_of(first.rank, dynamic))


Aliases: TypeAlias = Sequence[tuple[Dims, int, Dims]]


def check_aliases(aliases: Aliases, operands: Sequence[AnyShape]) -> None:
    """Refuse an alias whose operand does not exist, or whose tuple index does not exist in the operand."""
    for output, number, index in aliases:
        where = f"output_to_operand_aliasing pairs output {list(output)} with operand {number}"
        if not 0 <= number < len(operands):
            refuse("index_out_of_range", f"{where}, but the number of operands is {len(operands)}")
        shape = operands[number]
        for step in index:
            if not isinstance(shape, TupleShape) or not 0 <= step < len(shape):
                refuse(
                    "index_out_of_range",
                    f"{where} at tuple index {list(index)}, which does not exist in {operands[number]}",
                )
            shape = shape.elements[step]


@infer
def fusion(
    operands: Sequence[AnyShape], *, kind: str, output_to_operand_aliasing: Aliases, calls: ProgramShape
) -> AnyShape:
    check_call("calls", calls, operands)
    check_aliases(output_to_operand_aliasing, operands)
    return calls.result


@infer
def scan(
    operands: Sequence[AnyShape],
    *,
    dimension: int,
    num_carries: int,
    is_reverse: bool,
    is_associative: bool,
    to_apply: ProgramShape,
    length: int | None,
) -> AnyShape:
    if not 0 <= num_carries <= len(operands):
        refuse(
            "arity_mismatch",
            f"num_carries={num_carries} is out of range; expected 0..{len(operands)}, where {len(operands)} is the "
            "number of operands",
        )
    inputs, carries = operands[: len(operands) - num_carries], operands[len(operands) - num_carries :]
    slices = scan_slices(inputs, dimension)
    extent, is_dynamic = _scanned(inputs, dimension, length)
    check_call("to_apply", to_apply, (*slices, *carries), "the slice or carry of operand {}")
    results = to_apply.result.elements if isinstance(to_apply.result, TupleShape) else (to_apply.result,)
    _carried(to_apply, results, carries)
    outputs = results[: len(results) - num_carries]
    stacked = [_stacked(number, each, dimension, extent, is_dynamic) for number, each in enumerate(outputs)]
    found = (*stacked, *carries)
    return TupleShape(found) if isinstance(to_apply.result, TupleShape) else found[0]


def _scanned(inputs: Sequence[AnyShape], dimension: int, length: int | None) -> tuple[int, bool]:
    """The number of slices of a scan, and whether the number is only a bound."""
    arrays = [each for each in inputs if isinstance(each, Shape)]
    if not arrays and (length is None or length < 0):
        refuse("invalid_attribute", f"a scan without array inputs requires a length of 0 or more, got length={length}")
    if not arrays:
        return length or 0, False
    extent = arrays[0].dims[dimension]
    for number, each in enumerate(arrays):
        if each.dims[dimension] != extent:
            refuse(
                "dimension_mismatch",
                f"operands[0] is {arrays[0]} and operands[{number}] is {each}: extents {extent} and "
                f"{each.dims[dimension]} of the scanned dimension {dimension} differ",
            )
    if length not in (None, extent):
        refuse(
            "dimension_mismatch",
            f"length={length}, but dimension {dimension} of operands[0] {arrays[0]} has extent {extent}",
        )
    return extent, any(each.dynamic and each.dynamic[dimension] for each in arrays)


def _carried(to_apply: ProgramShape, results: Sequence[AnyShape], carries: Sequence[AnyShape]) -> None:
    """Refuse a computation of a scan whose last results do not have the shapes of the carries."""
    if len(results) < len(carries):
        refuse(
            "signature_mismatch",
            f"to_apply must return a value for each carry: expected {len(carries)} or more, got {len(results)} from "
            f"{to_apply}",
        )
    for number, (given, carry) in enumerate(zip(results[len(results) - len(carries) :], carries, strict=True)):
        if not compatible(given, carry):
            refuse("signature_mismatch", f"carry {number} is {carry}, but to_apply returns {given} for it: {to_apply}")


def _stacked(number: int, each: AnyShape, dimension: int, extent: int, is_dynamic: bool) -> Shape:
    """The shape of a stacked output of a scan: the slice with a dimension inserted at `dimension`."""
    shape = dims.array(f"output {number} of to_apply", each)
    if not 0 <= dimension <= shape.rank:
        refuse(
            "dimension_out_of_range",
            f"dimension={dimension} is out of range for stacked outputs of shape {shape} (output {number} of "
            f"to_apply); expected 0..{shape.rank}",
        )
    flags = [*(shape.dynamic or (False,) * shape.rank)]
    flags.insert(dimension, is_dynamic)
    sizes = (*shape.dims[:dimension], extent, *shape.dims[dimension:])
    dims.sizes("the result", sizes)
    return Shape(shape.dtype, sizes, dims.dynamic_of(len(sizes), flags))
