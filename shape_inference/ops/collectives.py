"""Shapes of collectives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..dims import array, check_arity, dimension, integer, sizes
from ..groups import Groups, Pairs, check_groups, check_pairs, divisible, positive
from ..rules import infer, refuse
from ..trees import leaves
from ..types import COMPONENT, AnyShape, Dims, ProgramShape, Shape, TupleShape, array_shape


@infer
def all_reduce(
    operands: Sequence[AnyShape],
    *,
    to_apply: ProgramShape,
    replica_groups: Groups,
    channel_id: int | None,
    use_global_device_ids: bool,
) -> AnyShape:
    arrays = _arrays(operands)
    check_groups(replica_groups, channel_id, use_global_device_ids)
    return _collated(arrays, lambda each: each.with_dtype(_reducer(to_apply, each).dtype))


@infer
def all_gather(
    operands: Sequence[AnyShape],
    *,
    all_gather_dimension: int,
    shard_count: int,
    replica_groups: Groups,
    channel_id: int | None,
    use_global_device_ids: bool,
) -> AnyShape:
    arrays = _arrays(operands)
    positive("shard_count", shard_count)
    for each in arrays:
        dimension("all_gather_dimension", all_gather_dimension, "operand", each)
    check_groups(replica_groups, channel_id, use_global_device_ids, "shard_count", shard_count)
    return _collated(arrays, lambda each: _scaled(each, all_gather_dimension, shard_count, 1))


@infer
def reduce_scatter(
    operands: Sequence[AnyShape],
    *,
    to_apply: ProgramShape,
    scatter_dimension: int,
    shard_count: int,
    replica_groups: Groups,
    channel_id: int | None,
    use_global_device_ids: bool,
) -> AnyShape:
    arrays = _arrays(operands)
    positive("shard_count", shard_count)
    for each in arrays:
        dimension("scatter_dimension", scatter_dimension, "operand", each)
        divisible(each, "scatter_dimension", scatter_dimension, "shard_count", shard_count)
    check_groups(replica_groups, channel_id, use_global_device_ids, "shard_count", shard_count)
    return _collated(
        arrays, lambda each: _scaled(each, scatter_dimension, 1, shard_count).with_dtype(_reducer(to_apply, each).dtype)
    )


@infer
def all_to_all(
    operands: Sequence[AnyShape],
    *,
    split_dimension: int | None,
    concat_dimension: int | None,
    split_count: int | None,
    replica_groups: Groups,
    channel_id: int | None,
) -> AnyShape:
    arrays = _arrays(operands)
    if split_dimension is None:
        return _exchanged(arrays, concat_dimension, split_count, replica_groups)
    if len(arrays) != 1:
        refuse(
            "arity_mismatch",
            f"expected exactly 1 operand with split_dimension={split_dimension}, got {len(arrays)}",
        )
    (operand,) = arrays
    concat_dimension = split_dimension if concat_dimension is None else concat_dimension
    if split_count is None:
        refuse("invalid_attribute", "split_count is missing; set it to the size of each group")
    positive("split_count", split_count)
    dimension("split_dimension", split_dimension, "operand", operand)
    dimension("concat_dimension", concat_dimension, "operand", operand)
    divisible(operand, "split_dimension", split_dimension, "split_count", split_count)
    check_groups(replica_groups, None, False, "split_count", split_count)
    return _scaled(_scaled(operand, split_dimension, 1, split_count), concat_dimension, split_count, 1)


def _exchanged(
    arrays: Sequence[Shape], concat_dimension: int | None, split_count: int | None, groups: Groups
) -> AnyShape:
    """The shape of the tuple form of all-to-all, which has an operand of one shape for each member of the group."""
    if concat_dimension is not None or split_count is not None:
        refuse(
            "invalid_attribute",
            "split_dimension is missing; pass it, or omit concat_dimension and split_count as well",
        )
    for number, each in enumerate(arrays):
        if each != arrays[0]:
            refuse(
                "dimension_mismatch",
                f"operands[0] is {arrays[0]} and operands[{number}] is {each}; all operands must have the same shape",
            )
    check_groups(groups, None, False, "the number of operands", len(arrays))
    return TupleShape(arrays)


@infer
def collective_permute(
    operands: Sequence[AnyShape],
    *,
    source_target_pairs: Pairs,
    channel_id: int | None,
    slice_sizes: Sequence[Dims],
) -> AnyShape:
    if slice_sizes:  # the pairs of several slices stand one after another, so that a device may be named again
        return _permuted_in_place(operands, slice_sizes)
    check_pairs(source_target_pairs)
    return _collated(_arrays(operands), lambda each: each)


@infer
def collective_broadcast(operand: AnyShape, *, replica_groups: Groups, channel_id: int | None) -> Shape:
    found = array("operand", operand)
    check_groups(replica_groups, channel_id, False)
    return found


@infer
def ragged_all_to_all(
    operand: AnyShape,
    output: AnyShape,
    input_offsets: AnyShape,
    send_sizes: AnyShape,
    output_offsets: AnyShape,
    recv_sizes: AnyShape,
    *,
    replica_groups: Groups,
    channel_id: int | None,
) -> Shape:
    source, target = array("operand", operand), array("output", output)
    _same_rows(source, target)
    numbers = {
        "input_offsets": input_offsets,
        "send_sizes": send_sizes,
        "output_offsets": output_offsets,
        "recv_sizes": recv_sizes,
    }
    updates = _updates({name: array(name, shape) for name, shape in numbers.items()})
    check_groups(replica_groups, channel_id, False)
    for number, group in enumerate(replica_groups):
        if updates.dims[0] % max(len(group), 1):
            refuse(
                "invalid_group",
                f"each member of a group must have the same number of updates, but group {number} of replica_groups "
                f"{[list(each) for each in replica_groups]} has {len(group)} members, and {len(group)} does not divide "
                f"{updates.dims[0]}, the extent of dimension 0 of input_offsets",
            )
    return target


def _same_rows(operand: Shape, output: Shape) -> None:
    """Refuse an operand and an output of ragged-all-to-all whose rows differ in element type or extents."""
    if operand.dtype is not output.dtype:
        refuse(
            "element_type_mismatch",
            f"operand is {operand} and output is {output}: element types {operand.dtype} and {output.dtype} differ",
        )
    for name, each in (("operand", operand), ("output", output)):
        if not each.rank:
            refuse(
                "rank_too_small",
                f"{name} is {each}, but it must have rank 1 or more; dimension 0 contains the rows to send",
            )
    if operand.dims[1:] != output.dims[1:]:
        kind = "dimension_mismatch" if operand.rank == output.rank else "rank_mismatch"
        refuse(
            kind, f"operand is {operand} and output is {output}; all extents except that of dimension 0 must be equal"
        )


def _updates(numbers: dict[str, Shape]) -> Shape:
    """The common shape of offsets and sizes: integers of shape [members] or [members, updates of each member]."""
    first = numbers["input_offsets"]
    for name, each in numbers.items():
        integer(name, each)
        if each.rank not in (1, 2):
            refuse("rank_mismatch", f"expected rank 1 or 2 for {name}, got {each} of rank {each.rank}")
        if each.dtype is not first.dtype:
            refuse("element_type_mismatch", f"input_offsets is {first} and {name} is {each}; their types must be equal")
        if each != first:
            refuse("dimension_mismatch", f"input_offsets is {first} and {name} is {each}; their shapes must be equal")
    return first


def _arrays(operands: Sequence[AnyShape]) -> list[Shape]:
    if not operands:
        refuse("arity_mismatch", "expected at least 1 operand, got 0")
    return [
        array(f"operands[{number}]" if len(operands) > 1 else "operand", each) for number, each in enumerate(operands)
    ]


def _collated(arrays: Sequence[Shape], result: Callable[[Shape], Shape]) -> AnyShape:
    found = [result(each) for each in arrays]
    return found[0] if len(found) == 1 else TupleShape(found)


def _reducer(to_apply: ProgramShape, operand: Shape) -> Shape:
    """The scalar shape of a reducer's result: its type is the operand's, or a wider type of the same kind."""
    check_arity("to_apply", to_apply, 2, f"({operand.dtype}[], {operand.dtype}[])")
    result = to_apply.result
    for role, shape in (
        ("parameter 0", to_apply.parameters[0]),
        ("parameter 1", to_apply.parameters[1]),
        ("result", result),
    ):
        fits = isinstance(shape, Shape) and not shape.dims and shape.dtype is getattr(result, "dtype", None)
        if not fits or not _accumulates(operand, shape):
            refuse(
                "signature_mismatch",
                f"operand {operand} requires to_apply to be ({operand.dtype}[], {operand.dtype}[]) -> "
                f"{operand.dtype}[], but the {role} of to_apply is {shape}: to_apply is {to_apply}",
            )
    assert isinstance(result, Shape)
    return result


def _accumulates(operand: Shape, scalar: AnyShape) -> bool:
    """Whether the type of the scalar is the operand's element type, or a wider type of the same kind."""
    if not isinstance(scalar, Shape):
        return False
    narrow, wide = operand.dtype, scalar.dtype
    return narrow is wide or (narrow.kind == wide.kind and narrow.bits < wide.bits and narrow not in COMPONENT)


def _scaled(shape: Shape, dim: int, times: int, parts: int) -> Shape:
    dims = tuple(size * times // parts if d == dim else size for d, size in enumerate(shape.dims))
    sizes("the result", dims)
    return Shape(shape.dtype, dims, shape.dynamic) if shape.dynamic else array_shape(shape.dtype, dims)


# ----------------------------------------------------------------------------
# Collective permutes in place, which write slices of an input buffer into an output buffer.

_IN_PLACE_OPERANDS = ("input", "output", "input_start_indices", "output_start_indices")


def _permuted_in_place(operands: Sequence[AnyShape], slice_sizes: Sequence[Dims]) -> AnyShape:
    """The shape of the output, given an array or a tuple of arrays as input and as output, and their start indices."""
    if len(operands) != len(_IN_PLACE_OPERANDS):
        refuse(
            "arity_mismatch",
            f"slice_sizes {[list(extents) for extents in slice_sizes]} requires {len(_IN_PLACE_OPERANDS)} operands "
            f"({', '.join(_IN_PLACE_OPERANDS)}), got {len(operands)}",
        )
    source, target, *starts = operands
    inputs, outputs = _buffers("input", source), _buffers("output", target)
    if len(inputs) != len(outputs):
        refuse(
            "dimension_mismatch",
            f"input {source} and output {target} must have the same number of arrays, "
            f"got {len(inputs)} and {len(outputs)}",
        )
    for number, (buffer, written) in enumerate(zip(inputs, outputs, strict=True)):
        _check_buffers(number, buffer, written)
    for name, shape in zip(_IN_PLACE_OPERANDS[2:], starts, strict=True):
        _check_starts(name, shape)
    _check_sizes(slice_sizes, inputs)
    return target


def _buffers(name: str, shape: AnyShape) -> list[Shape]:
    if not isinstance(shape, TupleShape):
        return [array(name, shape)]
    return [array(f"{name}[{number}]", each) for number, each in enumerate(shape.elements)]


def _check_buffers(number: int, source: Shape, target: Shape) -> None:
    if source.dtype is not target.dtype:
        refuse(
            "element_type_mismatch",
            f"array {number} is {source} in input and {target} in output: element types {source.dtype} and "
            f"{target.dtype} differ",
        )
    if source.rank != target.rank:
        refuse(
            "rank_mismatch",
            f"array {number} is {source} in input and {target} in output: ranks {source.rank} and {target.rank} differ",
        )


def _check_starts(name: str, shape: AnyShape) -> None:
    if not isinstance(shape, TupleShape):
        refuse("not_tuple", f"expected a tuple of scalars for {name}, one for each dimension, got {shape}")
    for leaf in leaves(shape):
        scalar = array(name, leaf)
        integer(name, scalar)
        if scalar.dims:
            refuse("non_scalar", f"expected only scalars in {name} {shape}, got {leaf}")


def _check_sizes(slice_sizes: Sequence[Dims], inputs: Sequence[Shape]) -> None:
    ranks = {shape.rank for shape in inputs}
    for extents in slice_sizes:
        if len(extents) not in ranks:
            refuse(
                "attribute_length_mismatch",
                f"{list(extents)} in slice_sizes {[list(size) for size in slice_sizes]} has length {len(extents)}, but "
                f"no array in input has rank {len(extents)}: {', '.join(map(str, inputs))}",
            )
