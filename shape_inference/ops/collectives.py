"""Shapes of ops in which devices meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..dims import arity, array, dimension, sizes
from ..rules import infer, refuse
from ..types import COMPONENT, AnyShape, Dims, ProgramShape, Shape, TupleShape, array_shape

Groups = Sequence[Dims]
Pairs = Sequence[tuple[int, int]]


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
    _check_groups(replica_groups, channel_id, use_global_device_ids)
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
    _positive("shard_count", shard_count)
    for each in arrays:
        dimension("all_gather_dimension", all_gather_dimension, "operand", each)
    _check_groups(replica_groups, channel_id, use_global_device_ids, "shard_count", shard_count)
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
    _positive("shard_count", shard_count)
    for each in arrays:
        dimension("scatter_dimension", scatter_dimension, "operand", each)
        _divisible(each, "scatter_dimension", scatter_dimension, "shard_count", shard_count)
    _check_groups(replica_groups, channel_id, use_global_device_ids, "shard_count", shard_count)
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
            f"{len(arrays)} operands with split_dimension={split_dimension}; the form with dimensions takes 1",
        )
    (operand,) = arrays
    concat_dimension = split_dimension if concat_dimension is None else concat_dimension
    if split_count is None:
        refuse("invalid_attribute", "split_count is missing; it is the size of each group")
    _positive("split_count", split_count)
    dimension("split_dimension", split_dimension, "operand", operand)
    dimension("concat_dimension", concat_dimension, "operand", operand)
    _divisible(operand, "split_dimension", split_dimension, "split_count", split_count)
    _check_groups(replica_groups, None, False, "split_count", split_count)
    return _scaled(_scaled(operand, split_dimension, 1, split_count), concat_dimension, split_count, 1)


def _exchanged(
    arrays: Sequence[Shape], concat_dimension: int | None, split_count: int | None, groups: Groups
) -> AnyShape:
    """The tuple form: one operand for each member of the group, all of one shape."""
    if concat_dimension is not None or split_count is not None:
        refuse(
            "invalid_attribute",
            "split_dimension is missing; name it, or leave out concat_dimension and split_count, too",
        )
    for number, each in enumerate(arrays):
        if each != arrays[0]:
            refuse(
                "dimension_mismatch", f"operands[0] is {arrays[0]}, operands[{number}] is {each}; all must be the same"
            )
    _check_groups(groups, None, False, "the number of operands,", len(arrays))
    return TupleShape(arrays)


@infer
def collective_permute(operand: AnyShape, *, source_target_pairs: Pairs, channel_id: int | None) -> Shape:
    found = array("operand", operand)
    check_pairs(source_target_pairs)
    return found


def _arrays(operands: Sequence[AnyShape]) -> list[Shape]:
    if not operands:
        refuse("arity_mismatch", "0 operands, and at least 1 is wanted")
    return [
        array(f"operands[{number}]" if len(operands) > 1 else "operand", each) for number, each in enumerate(operands)
    ]


def _collated(arrays: Sequence[Shape], result: Callable[[Shape], Shape]) -> AnyShape:
    found = [result(each) for each in arrays]
    return found[0] if len(found) == 1 else TupleShape(found)


def _reducer(to_apply: ProgramShape, operand: Shape) -> Shape:
    """The scalar type that a reducer works in: the operand's, or a wider one of its kind."""
    arity("to_apply", to_apply, 2, f"({operand.dtype}[], {operand.dtype}[])")
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
                f"to_apply is {to_apply}, whose {role} is {shape}; operand {operand} wants "
                f"({operand.dtype}[], {operand.dtype}[]) -> {operand.dtype}[]",
            )
    assert isinstance(result, Shape)
    return result


def _accumulates(operand: Shape, scalar: AnyShape) -> bool:
    """Whether a reducer of this scalar type may take elements of the operand: its own type, or a wider one."""
    if not isinstance(scalar, Shape):
        return False
    narrow, wide = operand.dtype, scalar.dtype
    return narrow is wide or (narrow.kind == wide.kind and narrow.bits < wide.bits and narrow not in COMPONENT)


def _scaled(shape: Shape, dim: int, times: int, parts: int) -> Shape:
    dims = tuple(size * times // parts if d == dim else size for d, size in enumerate(shape.dims))
    sizes("the result", dims)
    return Shape(shape.dtype, dims, shape.dynamic) if shape.dynamic else array_shape(shape.dtype, dims)


def _positive(attribute: str, value: int) -> None:
    if value <= 0:
        refuse("non_positive", f"{attribute}={value}, and at least 1 is wanted")


def _divisible(operand: Shape, attribute: str, dim: int, count: str, parts: int) -> None:
    if operand.dims[dim] % parts:
        refuse(
            "divisibility",
            f"{attribute}={dim} of operand {operand} has extent {operand.dims[dim]}, "
            f"which {count}={parts} does not divide",
        )


def _check_groups(
    groups: Groups, channel_id: int | None, global_ids: bool, attribute: str | None = None, size: int | None = None
) -> None:
    """Groups that can be: none empty, no id twice or negative; all of the size that the op demands, where it does."""
    if global_ids and channel_id is None:
        refuse(
            "invalid_attribute",
            "use_global_device_ids=True without channel_id; the ids of the groups would be replicas",
        )
    shown = [list(group) for group in groups]
    seen: set[int] = set()
    for number, group in enumerate(groups):
        if not group:
            refuse("invalid_group", f"replica_groups {shown}: group {number} is empty")
        for replica in group:
            if replica < 0 or replica in seen:
                problem = "negative" if replica < 0 else "named twice"
                refuse("invalid_group", f"replica_groups {shown}: replica {replica} is {problem}")
            seen.add(replica)
        if attribute and channel_id is None and len(group) != size:
            refuse(
                "invalid_group", f"replica_groups {shown}: group {number} has {len(group)} members, {attribute}={size}"
            )
        if attribute and len(group) != len(groups[0]):
            refuse(
                "invalid_group",
                f"replica_groups {shown}: groups of {len(groups[0])} and {len(group)} members; all must be of one size",
            )


def check_pairs(pairs: Pairs, attribute: str = "source_target_pairs") -> None:
    """Pairs that can be: ids not negative, each source once, each target once."""
    shown = [tuple(pair) for pair in pairs]
    for place, role in ((0, "source"), (1, "target")):
        seen: set[int] = set()
        for pair in pairs:
            device = pair[place]
            if device < 0 or device in seen:
                problem = "negative" if device < 0 else "named twice"
                refuse("invalid_group", f"{attribute} {shown}: {role} {device} is {problem}")
            seen.add(device)


def check_replica_group_ids(ids: Dims, num_replicas: int | None) -> Groups:
    """The groups that the ids of CrossReplicaSum spell, one id for each replica."""
    if num_replicas is not None and len(ids) != num_replicas:
        refuse(
            "invalid_group",
            f"replica_group_ids {list(ids)} has {len(ids)} ids, and there are {num_replicas} replicas; each has one",
        )
    return tuple(tuple(replica for replica, each in enumerate(ids) if each == group) for group in sorted(set(ids)))


def check_equal_groups(groups: Groups) -> None:
    """What CrossReplicaSum demands of its groups beyond all_reduce: one size."""
    for group in groups[1:]:
        if len(group) != len(groups[0]):
            refuse(
                "invalid_group",
                f"replica_groups {[list(each) for each in groups]}: {list(groups[0])} has {len(groups[0])} members, "
                f"{list(group)} has {len(group)}; all must be of one size",
            )
