"""Shapes of slices: those that a scan passes to its computation, and those that a permute writes into a buffer."""

from __future__ import annotations

from collections.abc import Sequence

from . import dims
from .dims import array, integer
from .rules import refuse
from .types import AnyShape, Dims, Shape, TupleShape, leaves

NAMES = ("input", "output", "input_start_indices", "output_start_indices")


def written_in_place(operands: Sequence[AnyShape], slice_sizes: Sequence[Dims]) -> AnyShape:
    """The shape of the output, for the operands `NAMES`: an array each, or a tuple of arrays each."""
    if len(operands) != len(NAMES):
        refuse(
            "arity_mismatch",
            f"{len(operands)} operands with slice_sizes {[list(each) for each in slice_sizes]}, and {len(NAMES)} are "
            f"wanted: {', '.join(NAMES)}",
        )
    source, target, *starts = operands
    inputs, outputs = _buffers("input", source), _buffers("output", target)
    if len(inputs) != len(outputs):
        refuse("dimension_mismatch", f"input is {source}, output is {target}: {len(inputs)} and {len(outputs)} arrays")
    for number, (given, written) in enumerate(zip(inputs, outputs, strict=True)):
        _check_pair(number, given, written)
    for name, shape in zip(NAMES[2:], starts, strict=True):
        _check_starts(name, shape)
    _check_sizes(slice_sizes, inputs)
    return target


def _buffers(name: str, shape: AnyShape) -> list[Shape]:
    if not isinstance(shape, TupleShape):
        return [array(name, shape)]
    return [array(f"{name}[{number}]", each) for number, each in enumerate(shape.elements)]


def _check_pair(number: int, given: Shape, written: Shape) -> None:
    if given.dtype is not written.dtype:
        refuse(
            "element_type_mismatch",
            f"array {number} of input is {given}, of output {written}: element types {given.dtype} and "
            f"{written.dtype} differ",
        )
    if given.rank != written.rank:
        refuse(
            "rank_mismatch",
            f"array {number} of input is {given}, of output {written}: ranks {given.rank} and {written.rank} differ",
        )


def _check_starts(name: str, shape: AnyShape) -> None:
    if not isinstance(shape, TupleShape):
        refuse("not_tuple", f"{name} is {shape}; a tuple of scalars is wanted, one for each dimension")
    for leaf in leaves(shape):
        scalar = array(name, leaf)
        integer(name, scalar)
        if scalar.dims:
            refuse("non_scalar", f"{name} is {shape}, and {leaf} in it is no scalar")


def _check_sizes(slice_sizes: Sequence[Dims], inputs: Sequence[Shape]) -> None:
    ranks = {each.rank for each in inputs}
    for sizes in slice_sizes:
        if len(sizes) not in ranks:
            refuse(
                "attribute_length_mismatch",
                f"slice_sizes {[list(each) for each in slice_sizes]}: {list(sizes)} has {len(sizes)} extents, and the "
                f"arrays of input are {', '.join(map(str, inputs))}",
            )


def sliced(inputs: Sequence[AnyShape], dimension: int) -> list[Shape]:
    """The shapes of the inputs without the scanned dimension."""
    found = []
    for number, each in enumerate(inputs):
        shape = dims.array(f"operands[{number}]", each)
        if not shape.dims:
            refuse("rank_too_small", f"operands[{number}] is {shape}, which has no dimension to be scanned along")
        dims.dimension("dimension", dimension, f"operands[{number}]", shape)
        kept = [dim for dim in range(shape.rank) if dim != dimension]
        flags = dims.dynamic_of(len(kept), (shape.dynamic[dim] for dim in kept if shape.dynamic))
        found.append(Shape(shape.dtype, tuple(shape.dims[dim] for dim in kept), flags))
    return found
