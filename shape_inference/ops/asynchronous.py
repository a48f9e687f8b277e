"""Shapes of asynchronous ops: the context that a start op passes to its done op, and the result of the done op."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from ..dims import array, check_call
from ..groups import Groups, Pairs
from ..rules import infer, refuse
from ..trees import leaves
from ..types import AnyShape, Dims, ProgramShape, Shape, TupleShape, array_shape, compatible, u32
from . import collectives

Shapes = Sequence[AnyShape]
_CONTEXT = array_shape(u32, ())


@infer
def all_reduce_start(
    operands: Shapes,
    *,
    to_apply: ProgramShape,
    replica_groups: Groups,
    channel_id: int | None,
    use_global_device_ids: bool,
) -> AnyShape:
    return collectives.all_reduce(
        operands,
        to_apply=to_apply,
        replica_groups=replica_groups,
        channel_id=channel_id,
        use_global_device_ids=use_global_device_ids,
    )


@infer
def all_reduce_done(start: AnyShape) -> AnyShape:
    for leaf in leaves(start):
        array("start", leaf)
    return start


@infer
def all_gather_start(
    operands: Shapes,
    *,
    all_gather_dimension: int,
    shard_count: int,
    replica_groups: Groups,
    channel_id: int | None,
    use_global_device_ids: bool,
) -> TupleShape:
    result = collectives.all_gather(
        operands,
        all_gather_dimension=all_gather_dimension,
        shard_count=shard_count,
        replica_groups=replica_groups,
        channel_id=channel_id,
        use_global_device_ids=use_global_device_ids,
    )
    whole = tuple(each.plain() for each in operands)
    return TupleShape((whole[0] if len(whole) == 1 else TupleShape(whole), result))


@infer
def all_gather_done(start: AnyShape) -> AnyShape:
    given, result = _halves(start, "an all_gather_start", "(operand, result)", 2)
    if len([*leaves(given)]) != len([*leaves(result)]) or isinstance(given, TupleShape) != isinstance(
        result, TupleShape
    ):
        refuse("signature_mismatch", f"expected the (operand, result) tuple of an all_gather_start, got start {start}")
    return result


@infer
def collective_permute_start(
    operands: Shapes,
    *,
    source_target_pairs: Pairs,
    channel_id: int | None,
    slice_sizes: Sequence[Dims],
    context_shapes: Shapes,
) -> TupleShape:
    found = collectives.collective_permute(
        operands, source_target_pairs=source_target_pairs, channel_id=channel_id, slice_sizes=slice_sizes
    )
    return TupleShape((operands[0].plain() if slice_sizes else found, found, *context_shapes))


@infer
def collective_permute_done(start: AnyShape) -> AnyShape:
    what = "(operand, result, contexts...)"
    given, result, *contexts = _halves(start, "a collective_permute_start", what)
    if not contexts and isinstance(given, Shape):  # in place, where extents may differ, XLA's starts have two
        _same(start, given, result, "a collective_permute_start", what)
    pairs = zip_longest(leaves(given), leaves(result))
    if not all(_may_hold(*pair) for pair in pairs) or isinstance(given, TupleShape) != isinstance(result, TupleShape):
        refuse("signature_mismatch", f"expected the {what} of a collective_permute_start, got start {start}")
    return result


def _may_hold(given: AnyShape | None, result: AnyShape | None) -> bool:
    """Whether they are arrays of one kind; extents may differ, as slices of one may be written into the other."""
    is_array = isinstance(given, Shape) and isinstance(result, Shape)
    return is_array and (given.dtype, given.rank) == (result.dtype, result.rank)  # type: ignore[union-attr]


@infer
def copy_start(operand: AnyShape) -> TupleShape:
    found = array("operand", operand)
    return TupleShape((found, found, _CONTEXT))


@infer
def copy_done(start: AnyShape) -> AnyShape:
    what = "(destination, source, u32[])"
    destination, source, context = _halves(start, "a copy_start", what, 3)
    _same(start, destination, source, "a copy_start", what)
    if context != _CONTEXT:
        refuse("signature_mismatch", f"expected the {what} of a copy_start, got start {start}")
    return destination


@infer
def async_start(
    operands: Shapes, *, calls: ProgramShape, context_shapes: Shapes, async_execution_thread: str
) -> TupleShape:
    check_call("calls", calls, operands)
    given = TupleShape(each.plain() for each in operands)
    return TupleShape((given, calls.result, *context_shapes))


@infer
def async_update(start: AnyShape) -> AnyShape:
    return _of_async(start)


@infer
def async_done(start: AnyShape) -> AnyShape:
    return _of_async(start).elements[1]


def _of_async(start: AnyShape) -> TupleShape:
    what = "((operands...), result, contexts...)"
    given, *_ = _halves(start, "an async_start", what)
    assert isinstance(start, TupleShape)
    if not isinstance(given, TupleShape):
        refuse(
            "signature_mismatch",
            f"expected the {what} of an async_start, got {start}, whose first element, {given}, is not a tuple",
        )
    return start


def _halves(start: AnyShape, origin: str, what: str, count: int | None = None) -> tuple[AnyShape, ...]:
    """The elements of the context of a start op, of which there must be at least two, or exactly `count`."""
    if not isinstance(start, TupleShape):
        refuse("not_tuple", f"expected the {what} of {origin}, got start {start}")
    if len(start) < 2 or (count is not None and len(start) != count):
        refuse(
            "signature_mismatch", f"expected the {what} of {origin}, got start {start}, a tuple of length {len(start)}"
        )
    return start.elements


def _same(start: AnyShape, first: AnyShape, second: AnyShape, origin: str, what: str) -> None:
    if not isinstance(first, Shape) or not compatible(first, second):
        refuse(
            "signature_mismatch",
            f"expected the {what} of {origin}, got start {start}, whose elements {first} and {second} are not arrays "
            "of the same shape",
        )
