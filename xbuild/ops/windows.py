"""Ops that slide a window over an array: reductions of each window, scatters into it, convolutions."""

from __future__ import annotations

from shape_inference import PrimitiveType
from shape_inference.convolutions import ConvolutionDimensionNumbers
from shape_inference.windows import Window

from ..core.attributes import Region
from ..core.builder import Value, Values
from ..core.op import op
from ..core.properties import Properties


@op(Properties("mixed", calls="elements"))
def reduce_window(operands: Values, init_values: Values, *, to_apply: Region, window: Window = ()) -> Value:
    """Reduce with `to_apply`, starting from `init_values`, the elements that a sliding window covers at each position.

    Formula: the window at position p covers base elements p[d] * stride[d] + k[d] * window_dilation[d] for k[d] <
    size[d]. The base is the operand with base_dilation[d] - 1 holes between neighbours and with padding (negative
    padding crops). Holes and padding are ignored. A window that covers only holes and padding returns the init value.
    Elements may be combined in any order.
    Shapes: takes N arrays with the same extents and N scalars. `window` has an entry for each dimension, or is HLO text
    such as "size=3x3 stride=2x2 pad=1_1x1_1". Extent d of the result is the number of positions, (padded - window span)
    // stride + 1. The rules of reduce apply to to_apply and the result types.
    Raises: arity_mismatch, not_array, rank_mismatch, dimension_mismatch, attribute_length_mismatch, non_positive,
    signature_mismatch or overflow.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[5], xb.f32[()])
    ... def sums_of_three(x, zero):
    ...     return xb.ops.reduce_window(x, zero, to_apply=xb.add, window="size=3 stride=2")
    >>> xb.evaluate(sums_of_three, [1.0, 2.0, 3.0, 4.0, 5.0], 0.0)
    array([ 6., 12.], dtype=float32)

    Source: Operation Semantics, ReduceWindow; StableHLO, reduce_window (dilations, several operands).
    """


@op(Properties("mixed", calls="elements"))
def select_and_scatter(
    operand: Value, source: Value, init_value: Value, *, select: Region, scatter: Region, window: Window = ()
) -> Value:
    """Select one element in each window of the operand, and combine the window's value from `source` into the result at
    the position of that element.

    Formula: the window is read in order; a later element replaces the selected one only if select(selected, later) is
    false. result[e] = scatter(result[e], source[p]) for each window p that selected element e, starting from
    `init_value`, in the order of the windows (which XLA does not define). A window that covers only padding changes
    nothing.
    Shapes: takes an array, a source with one element for each position of the window, and a scalar, all of the same
    type T. `select` maps (T, T) -> pred, and `scatter` maps (T, T) -> T. `window` is as in reduce_window. The result
    has the operand's shape.
    Raises: not_array, arity_mismatch, signature_mismatch, attribute_length_mismatch, non_positive, rank_mismatch,
    dimension_mismatch or element_type_mismatch.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[4], xb.f32[2], xb.f32[()])
    ... def to_the_greater(x, source, zero):
    ...     at_least = lambda a, b: xb.compare(a, b, direction="GE")
    ...     return xb.ops.select_and_scatter(x, source, zero, select=at_least, scatter=xb.add, window="size=2 stride=2")
    >>> xb.evaluate(to_the_greater, [1.0, 5.0, 7.0, 7.0], [10.0, 20.0], 0.0)
    array([ 0., 10., 20.,  0.], dtype=float32)

    Source: Operation Semantics, SelectAndScatter.
    """


@op(Properties("mixed", denormals="flushed"))
def convolution(
    lhs: Value,
    rhs: Value,
    *,
    window: Window = (),
    dimension_numbers: ConvolutionDimensionNumbers,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    operand_precision: tuple[str, ...] = (),
    preferred_element_type: PrimitiveType | None = None,
) -> Value:
    """Slide the kernel rhs over the input lhs, and sum the products at each position. The kernel is not mirrored.

    Formula: result[b, o, p] = sum over i, k of lhs[b, i, p * stride + k * window_dilation] * rhs[o, i, k]. The holes
    that base_dilation inserts into the input contain zeros, and so does the padding. Negative padding crops.
    `window_reversal` mirrors k. With feature_group_count=G, input and output features are split into G parts, and part
    g of the input produces part g of the output. With batch_group_count=G, the batch is split into G parts, and part g
    produces part g of the output features.
    Shapes: takes two arrays of the same rank n + 2. `dimension_numbers` names the dimensions of input, kernel and
    output in letters such as "b01f_01io->b01f". `window` has an entry for each spatial dimension, with the size of the
    kernel in that dimension.
    Types: the rules of dot apply. Floats narrower than 32 bits are summed in f32 and rounded once. Integers wrap.
    Raises: not_array, element_type_mismatch, rank_mismatch, rank_too_small, dimension_out_of_range, overflow,
    duplicate_dimension, attribute_length_mismatch, non_positive, dimension_mismatch, divisibility or invalid_attribute.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[1, 1, 5], xb.f32[1, 1, 2])
    ... def slide(x, kernel):
    ...     return xb.ops.convolution(x, kernel, window="size=2", dimension_numbers="bf0_oi0->bf0")
    >>> xb.evaluate(slide, [[[1.0, 2.0, 3.0, 4.0, 5.0]]], [[[1.0, 10.0]]])
    array([[[21., 32., 43., 54.]]], dtype=float32)

    Source: Operation Semantics, ConvWithGeneralPadding; StableHLO, convolution (reversal, batch groups).
    """
