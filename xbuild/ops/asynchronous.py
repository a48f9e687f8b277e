"""Asynchronous ops: a start begins an operation without waiting, its done waits for the result."""

from __future__ import annotations

from ..core.attributes import Region, ReplicaGroups, Shapes, SliceSizes, SourceTargetPairs
from ..core.builder import Value, Values
from ..core.op import op
from ..core.properties import Properties

__all__ = [
    "all_gather_done", "all_gather_start", "all_reduce_done", "all_reduce_start", "async_done", "async_start",
    "async_update", "collective_permute_done", "collective_permute_start", "copy_done", "copy_start",
]  # fmt: skip


@op(
    Properties(
        "whole", needs="group", half="start", done="all_reduce_done", calls="reducer", states_shape=True, work="rule"
    )
)
def all_reduce_start(
    operands: Values,
    *,
    to_apply: Region,
    replica_groups: ReplicaGroups = (),
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
) -> Value:
    """Start an all_reduce without waiting; its all_reduce_done waits for the other members.

    Shapes: takes the operands of an all_reduce. The value already has the shape of the result, but only all_reduce_done
    can use it.
    Raises: not_array, arity_mismatch, signature_mismatch or invalid_group.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[4])
    >>> xb.all_reduce_start(x, to_apply=xb.add, replica_groups=[[0, 1]]).shape
    f32[4]

    Source: hlo_opcode.h, all-reduce-start; shape_inference.cc, InferAllReduceStartShape.
    """
    ...


@op(Properties("whole", half="done", states_shape=True))
def all_reduce_done(start: Value) -> Value:
    """Wait until every member has started, and return the result.

    Shapes: takes the value of an all_reduce_start and returns a result of the same shape.
    Raises: not_array.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[2])
    ... def total(x):
    ...     started = xb.all_reduce_start(x, to_apply=xb.add)
    ...     return xb.all_reduce_done(started)
    >>> xb.execute(xb.Module("m", total, num_replicas=2), [[[1.0, 5.0]], [[3.0, 2.0]]])[0]
    array([4., 7.], dtype=float32)

    Source: hlo_opcode.h, all-reduce-done; hlo_verifier.cc.
    """
    ...


@op(Properties("whole", needs="group", half="start", done="all_gather_done", states_shape=True))
def all_gather_start(
    operands: Values,
    *,
    all_gather_dimension: int,
    shard_count: int,
    replica_groups: ReplicaGroups = (),
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
) -> Value:
    """Start an all_gather without waiting; its all_gather_done waits for the other members.

    Shapes: takes the operands of an all_gather and returns (operand, result), which only all_gather_done can use. With
    several operands, both elements are tuples.
    Raises: not_array, dimension_out_of_range, non_positive or invalid_group.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2])
    >>> xb.all_gather_start(x, all_gather_dimension=0, shard_count=2).shape
    (f32[2], f32[4])

    Source: hlo_opcode.h, all-gather-start; shape_inference.cc, InferAllGatherStartShape.
    """
    ...


@op(Properties("whole", half="done", states_shape=True))
def all_gather_done(start: Value) -> Value:
    """Wait until every member has started, and return the result.

    Shapes: takes the tuple (operand, result) from an all_gather_start and returns the result.
    Raises: not_tuple or signature_mismatch.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2])
    >>> started = xb.all_gather_start(x, all_gather_dimension=0, shard_count=2)
    >>> xb.all_gather_done(started).shape
    f32[4]

    Source: hlo_opcode.h, all-gather-done; shape_inference.cc, InferAllGatherDoneShape.
    """
    ...


@op(Properties("whole", needs="group", half="start", done="collective_permute_done", states_shape=True))
def collective_permute_start(
    operands: Values,
    *,
    source_target_pairs: SourceTargetPairs,
    channel_id: int | None = None,
    slice_sizes: SliceSizes = (),
    context_shapes: Shapes = (),
) -> Value:
    """Start a collective_permute without waiting; its collective_permute_done waits for the other devices.

    Shapes: takes the operands of a collective_permute and returns (operand, result, contexts...), or (input, output,
    contexts...) for an in-place update. Only collective_permute_done can use this tuple. The contexts have no effect
    here; XLA often adds two contexts of shape u32[].
    Raises: not_array or invalid_group.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[4])
    >>> xb.ops.collective_permute_start(x, source_target_pairs=[(0, 1)], context_shapes=[xb.u32[()]] * 2).shape
    (f32[4], f32[4], u32[], u32[])

    Source: hlo_opcode.h, collective-permute-start; shape_inference.cc, InferCollectivePermuteStartShape.
    """
    ...


@op(Properties("whole", half="done", states_shape=True))
def collective_permute_done(start: Value) -> Value:
    """Wait until every member has started, and return the result.

    Shapes: takes the tuple (operand, result, contexts...) from a collective_permute_start and returns the result.
    Raises: not_tuple or signature_mismatch.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[4])
    >>> xb.collective_permute_done(xb.collective_permute_start(x, [(0, 1)])).shape
    f32[4]

    Source: hlo_opcode.h, collective-permute-done; shape_inference.cc, InferCollectivePermuteDoneShape.
    """
    ...


@op(Properties("whole", half="start", done="copy_done", is_view=True, states_shape=True))
def copy_start(operand: Value) -> Value:
    """Start a copy, for example to a different memory.

    Shapes: takes any array and returns (destination, source, u32[]), which only copy_done can use.
    Raises: not_array.

    >>> import xbuild as xb
    >>> xb.copy_start(xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[4])).shape
    (f32[4], f32[4], u32[])

    Source: hlo_opcode.h, copy-start; hlo_verifier.cc, HandleCopyStart.
    """
    ...


@op(Properties("whole", half="done", is_view=True, states_shape=True))
def copy_done(start: Value) -> Value:
    """Wait for a copy that copy_start started, and return the copy.

    Shapes: takes the tuple (destination, source, u32[]) from a copy_start and returns the destination.
    Raises: not_tuple or signature_mismatch.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.s32[2])(lambda x: xb.copy_done(xb.copy_start(x))), [1, 2])
    array([1, 2], dtype=int32)

    Source: hlo_opcode.h, copy-done; hlo_verifier.cc, HandleCopyDone.
    """
    ...


@op(Properties("whole", half="start", done="async_done", calls="wrapped", states_shape=True))
def async_start(
    operands: Values, *, calls: Region, context_shapes: Shapes = (), async_execution_thread: str = "main"
) -> Value:
    """Start the computation `calls` without waiting; if it is a collective, its async_done waits for the other members.

    If `calls` communicates, it contains one collective, a group of collectives and transfers, or a fusion.
    Shapes: the operands have exactly the shapes of the parameters of `calls`. Returns ((operands...), result,
    contexts...), which only async_update and async_done can use. The contexts and the thread have no effect here.
    Raises: arity_mismatch or signature_mismatch.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[4])
    >>> xb.async_start(x, lambda y: -y, context_shapes=[xb.u32[()]]).shape
    ((f32[4]), f32[4], u32[])

    Source: hlo_opcode.h, async-start; hlo_verifier.cc, HandleAsyncStart; StableHLO, async_start.
    """
    ...


@op(Properties("whole", half="update", is_view=True, states_shape=True))
def async_update(start: Value) -> Value:
    """Continue an async_start, and return its value for the next async_update or the async_done.

    Shapes: takes the tuple ((operands...), result, contexts...) from an async_start and returns the same tuple.
    Raises: not_tuple or signature_mismatch.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[4])
    >>> xb.async_update(xb.async_start(x, xb.negate)).shape
    ((f32[4]), f32[4])

    Source: hlo_opcode.h, async-update; hlo_verifier.cc, HandleAsyncUpdate.
    """
    ...


@op(Properties("whole", half="done", states_shape=True))
def async_done(start: Value) -> Value:
    """Wait for the result of an async_start.

    Shapes: takes the tuple ((operands...), result, contexts...) from an async_start and returns the result.
    Raises: not_tuple or signature_mismatch.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[2])
    ... def share(x):
    ...     started = xb.async_start(x, lambda y: xb.reduce_scatter(y, xb.add, 0, 2))
    ...     return xb.async_done(started)
    >>> xb.execute(xb.Module("m", share, num_replicas=2), [[[1.0, 2.0]], [[10.0, 20.0]]])
    [array([11.], dtype=float32), array([22.], dtype=float32)]

    Source: hlo_opcode.h, async-done; hlo_verifier.cc, HandleAsyncDone; StableHLO, async_done.
    """
    ...
