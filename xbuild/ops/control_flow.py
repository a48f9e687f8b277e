"""Ops that call computations: call, while, conditional, map, scan, fusion."""

from __future__ import annotations

from typing import Literal

from shape_inference import Dims

from ..core.attributes import Aliases, Region, Regions
from ..core.builder import Value, Values
from ..core.op import op
from ..core.properties import Properties

__all__ = ["call", "conditional", "fusion", "map", "scan", "while_"]


@op(Properties("whole", calls="once"))
def call(operands: Values, *, to_apply: Region) -> Value:
    """Apply `to_apply` to the operands and return the result.

    Shapes: the operands have exactly the shapes of the parameters of `to_apply`. A call without operands needs
    `builder=`.
    Raises: arity_mismatch or signature_mismatch.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[2])
    ... def twice(x):
    ...     return xb.call(x, to_apply=lambda y: y + y)
    >>> xb.evaluate(twice, [1.0, 2.5])
    array([2., 5.], dtype=float32)

    Source: Operation Semantics, Call.
    """
    ...


@op(Properties("whole", calls="loop"))
def while_(init: Value, *, condition: Region, body: Region) -> Value:
    """Apply `body` to the state while condition(state) is true; return the state after the last trip, or `init` if
    there is no trip.

    Shapes: the state is one value of shape T, which is a tuple if the state has several parts. `condition` maps T ->
    pred[], and `body` maps T -> T.
    Raises: arity_mismatch or signature_mismatch.

    >>> import xbuild as xb
    >>> @xb.computation(xb.s32[()])
    ... def below_a_hundred(n):
    ...     return xb.while_(n, condition=lambda n: n < 100, body=lambda n: n * 2)
    >>> xb.evaluate(below_a_hundred, 3)
    np.int32(192)

    Source: Operation Semantics, While.
    """
    ...


@op(Properties("whole", calls="branch"))
def conditional(branch_index: Value, branch_operands: Values, *, branch_computations: Regions) -> Value:
    """Run one branch on its own operand and return the result; the other branches do not run.

    Shapes: branch_index is pred[] with two branches (true selects the first), or s32[] with one or more (an index out
    of range selects the last). Branch i maps T_i -> S; operand i has shape T_i.
    Raises: non_scalar, element_type_unsupported, arity_mismatch or signature_mismatch.

    >>> import xbuild as xb
    >>> @xb.computation(xb.pred[()], xb.f32[()])
    ... def magnitude(positive, x):
    ...     return xb.conditional(positive, (x, x), branch_computations=(lambda x: x, lambda x: -x))
    >>> xb.evaluate(magnitude, False, -3.0)
    np.float32(3.0)

    Source: Operation Semantics, Conditional; StableHLO, case.
    """
    ...


@op(Properties("same_place", calls="elements", work="rule"))
def map(operands: Values, *, to_apply: Region, dimensions: Dims) -> Value:
    """Apply a scalar computation to the elements of all operands at each position.

    Formula: result[i] = to_apply(operands[0][i], ..., operands[N-1][i]).
    Shapes: takes N arrays with the same extents. `to_apply` maps scalars: (T_0, ..., T_N-1) -> S. `dimensions` lists
    all dimensions in order.
    Raises: arity_mismatch, not_array, rank_mismatch, dimension_mismatch, attribute_length_mismatch,
    dimension_out_of_range, duplicate_dimension, bad_order, signature_mismatch or non_scalar.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[3], xb.f32[3])
    ... def squared_distance(x, y):
    ...     return xb.ops.map((x, y), to_apply=lambda a, b: (a - b) * (a - b), dimensions=(0,))
    >>> xb.evaluate(squared_distance, [1.0, 2.0, 3.0], [4.0, 4.0, 4.0])
    array([9., 4., 1.], dtype=float32)

    Source: Operation Semantics, Map.
    """
    ...


@op(Properties("whole", calls="once", states_shape=True, work="rule"))
def fusion(
    operands: Values,
    *,
    kind: Literal["kLoop", "kInput", "kOutput", "kCustom"],
    output_to_operand_aliasing: Aliases = (),
    calls: Region,
) -> Value:
    """Apply `calls` to the operands, like `call`, and return the result; a compiler runs `calls` as one kernel.

    Shapes: the operands have exactly the shapes of the parameters of `calls`. `kind` and the aliasing are only for the
    compiler and do not change any value.
    Raises: arity_mismatch or signature_mismatch; index_out_of_range if an alias refers to an operand that does not
    exist.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[2])
    ... def fused(x):
    ...     return xb.fusion(x, lambda y: xb.exp(y) * 0.0 + y)
    >>> xb.evaluate(fused, [1.0, 2.5])
    array([1. , 2.5], dtype=float32)

    Source: HloOpcode, fusion; xla/hlo/ir/hlo_instructions.h, HloFusionInstruction.
    """
    ...


@op(Properties("whole", calls="loop"))
def scan(
    operands: Values,
    *,
    dimension: int,
    num_carries: int,
    is_reverse: bool = False,
    is_associative: bool = False,
    to_apply: Region,
    length: int | None = None,
) -> Value:
    """Apply `to_apply` to each slice along a dimension, in order, together with the carries from the previous slice.

    Formula: (outputs[i], carries) = to_apply(inputs[i], carries) for i = 0, 1, ..., or from the last i down if
    `is_reverse` is true.
    Shapes: takes the inputs, which have the same extent in `dimension`, then `num_carries` values: the carries of the
    first slice. `to_apply` maps (slices without that dimension, carries) -> (outputs, carries), which is a tuple, or
    the value itself if there is only one. The result contains the outputs, each with all of its slices along
    `dimension`, and then the final carries. `length` is the number of slices; only a scan without inputs needs it.
    `is_associative` lets a compiler regroup the steps; here the result is that of the sequential order. `to_apply` may
    communicate, like the body of a loop with that many trips.
    Raises: arity_mismatch, not_array, rank_too_small, dimension_out_of_range, dimension_mismatch, signature_mismatch or
    invalid_attribute.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[4])
    ... def running_sum(x):
    ...     return xb.scan(x, 0.0, lambda each, total: (total + each, total + each))[0]
    >>> xb.evaluate(running_sum, [1.0, 2.0, 3.0, 4.0])
    array([ 1.,  3.,  6., 10.], dtype=float32)

    Source: HloOpcode, scan; xla/hlo/ir/hlo_instructions.h, HloScanInstruction.
    """
    ...
