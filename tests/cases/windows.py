"""Cases of reduce_window, select_and_scatter and convolution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import xbuild as xb
from tests.cases.case import Case, Inferred, Refusal
from tests.support.regions import counted

POOL, SELECT, CONV = (
    f"Operation Semantics, {name}" for name in ("ReduceWindow", "SelectAndScatter", "ConvWithGeneralPadding")
)
NUMERICS, WINDOWS, STABLE = "numerics, Indexing", "numerics, Reductions and windows", "StableHLO, convolution"
BF16, INF = ml_dtypes.bfloat16, np.float32(np.inf)
SIX = np.float32([3, 1, 4, 1, 5, 9])
TABLE = np.float32([[7, 2, 5, 3, 8, 1], [3, 8, 9, 3, 4, 2], [1, 5, 7, 5, 6, 1], [0, 6, 2, 7, 2, 8]])


def ge(a: xb.Value, b: xb.Value) -> xb.Value:
    return xb.ops.compare(a, b, direction="GE")


def gt(a: xb.Value, b: xb.Value) -> xb.Value:
    return xb.ops.compare(a, b, direction="GT")


def pooled(
    name: str,
    x: Any,
    init: Any,
    reducer: Callable[..., Any],
    window: str,
    expected: Any,
    source: str = POOL,
    **more: Any,
) -> Case:
    x = np.asarray(x)
    arguments, result = (x, np.asarray(init).astype(x.dtype)), np.asarray(expected).astype(x.dtype)
    attributes = {"to_apply": reducer, "window": window}
    return Case(name, xb.ops.reduce_window, arguments, result, attributes, source=source, **more)


def length(a: xb.Value, b: xb.Value) -> xb.Value:
    """Associative, and no known op: the root of the sum of squares."""
    return xb.ops.sqrt(a * a + b * b)


def first_largest(best: xb.Value, place: xb.Value, value: xb.Value, index: xb.Value) -> tuple[xb.Value, xb.Value]:
    stays = ge(best, value)
    return xb.ops.select(stays, best, value), xb.ops.select(stays, place, index)


def places_of_largest(x: xb.Value, numbers: xb.Value) -> xb.Value:
    return xb.reduce_window((x, numbers), (-np.inf, -1), first_largest, (3,), (1,), "SAME")


def in_f32(x: xb.Value, init: xb.Value) -> xb.Value:
    adder = xb.computation(xb.f32[()], xb.f32[()])(xb.ops.add)
    return xb.ops.reduce_window(x, init, to_apply=adder, window="size=2")


def sums_of(name: str, dtype: Any) -> Case:
    return pooled(
        f"type-{name}",
        np.array([1, 0, 1, 1]).astype(dtype),
        0,
        xb.ops.add,
        "size=2 stride=2",
        [1, 0 if name == "s1" else 1 if name == "pred" else 2],
    )


REDUCED = [
    pooled("pool-max-2x3", TABLE, -INF, xb.ops.maximum, "size=2x3 stride=2x3", [[9, 8], [7, 8]]),
    pooled("sum", SIX, 0, xb.ops.add, "size=3", [8, 6, 10, 15]),
    pooled("sum-strided", SIX, 0, xb.ops.add, "size=2 stride=3", [4, 6]),
    pooled(
        "padding-counts-as-nothing", np.float32([3, 1, 2]), 100, xb.ops.add, "size=2 pad=1_0", [103, 104, 103], WINDOWS
    ),
    pooled(
        "holes-count-as-nothing",
        np.float32([3, 1, 2]),
        100,
        xb.ops.add,
        "size=2 lhs_dilate=2",
        [103, 101, 101, 102],
        WINDOWS,
    ),
    pooled("padding-crops", SIX, 0, xb.ops.add, "size=2 pad=-1_-2", [5, 5]),
    pooled("padding-crops-all", SIX, 0, xb.ops.add, "size=2 pad=-4_-4", np.zeros(0)),
    pooled("padding-alone", np.float32([3, 1]), 7, xb.ops.maximum, "size=1 pad=2_1", [7, 7, 7, 7, 7]),
    pooled("window-dilation", SIX, 0, xb.ops.add, "size=3 rhs_dilate=2", [12, 11]),
    pooled("base-dilation", np.float32([1, 2, 3]), 0, xb.ops.add, "size=2 stride=2 lhs_dilate=3", [1, 2, 0]),
    pooled("both-dilations", np.float32([1, 2, 3]), 0, xb.ops.add, "size=2 lhs_dilate=2 rhs_dilate=2", [3, 0, 5]),
    pooled("empty-operand", np.zeros(0, np.float32), 5, xb.ops.add, "size=2 pad=1_1", [5]),
    pooled("window-too-large", SIX, 0, xb.ops.add, "size=7", np.zeros(0)),
    pooled("running-sum", np.arange(40, dtype=np.int32), 0, xb.ops.add, "size=40 pad=39_0", np.cumsum(np.arange(40))),
    pooled(
        "long-window-dilated",
        np.arange(60, dtype=np.int32),
        0,
        xb.ops.add,
        "size=20 stride=5 rhs_dilate=2",
        [380, 480, 580, 680, 780],
    ),
    pooled(
        "nan-goes-through-max",
        np.float32([1, np.nan, 0, 2]),
        -INF,
        xb.ops.maximum,
        "size=2",
        [np.nan, np.nan, 2],
        WINDOWS,
    ),
    pooled("minimum", SIX, INF, xb.ops.minimum, "size=2 stride=2", [1, 1, 5]),
    pooled("product", np.float32([1, 2, 3, 4]), 1, xb.ops.multiply, "size=2", [2, 6, 12]),
    pooled("or", np.array([0, 0, 1, 0], np.bool_), False, xb.ops.or_, "size=2", [0, 1, 1]),
    pooled("xor", np.uint8([1, 2, 4, 8]), 0, xb.ops.xor, "size=3", [7, 14]),
    pooled("wraps", np.int8([100, 100, 100]), 0, xb.ops.add, "size=2", [-56, -56]),
    pooled("own-computation", np.float32([3, 4, 0, 12]), 0, length, "size=2 pad=0_1", [5, 4, 12, 12]),
    pooled("no-array-can-follow", np.int32([1, 2, 3]), 0, counted, "size=2 pad=1_0", [1, 3, 5], oracle=False),
    pooled("rank-3", np.arange(8, dtype=np.int32).reshape(2, 2, 2), 0, xb.ops.add, "size=2x1x2", [[[10], [18]]]),
    pooled(
        "bf16-rounds-once",
        np.array([256, 1, 1], BF16),
        0,
        xb.ops.add,
        "size=3",
        [258],
        "numerics, Floats: conversion and rounding",
        oracle=False,
    ),
    *(
        sums_of(name, dtype)
        for name, dtype in (
            ("pred", np.bool_),
            ("u64", np.uint64),
            ("f16", np.float16),
            ("c64", np.complex64),
            ("s4", ml_dtypes.int4),
            ("f8e4m3fn", ml_dtypes.float8_e4m3fn),
        )
    ),
    Case(
        "scalar",
        lambda x, i: xb.ops.reduce_window(x, i, to_apply=xb.ops.add),
        (np.float32(3), np.float32(0)),
        np.float32(3),
        source=POOL,
    ),
    Case(
        "places-of-largest",
        places_of_largest,
        (SIX, np.arange(6, dtype=np.int32)),
        (np.float32([3, 4, 4, 5, 9, 9]), np.int32([0, 2, 2, 4, 5, 5])),
        source=WINDOWS,
    ),
    Case(
        "wider-computation",
        in_f32,
        (np.array([256, 1], BF16), np.float32(0)),
        np.float32([257]),
        source="StableHLO, reduce_window",
        oracle=False,
    ),
    Case(
        "same",
        lambda x: xb.reduce_window(x, 0.0, xb.ops.add, (3,), (2,), "SAME"),
        (SIX,),
        np.float32([8, 10, 14]),
        source=POOL,
    ),
    Case(
        "valid", lambda x: xb.reduce_window(x, 0.0, xb.ops.add, (2,)), (SIX,), np.float32([4, 5, 5, 6, 14]), source=POOL
    ),
]


def scattered(
    name: str,
    x: Any,
    source: Any,
    init: Any,
    window: str,
    expected: Any,
    select: Any = ge,
    scatter: Any = xb.ops.add,
    **more: Any,
) -> Case:
    x = np.asarray(x)
    arguments = x, np.asarray(source).astype(x.dtype), np.asarray(init).astype(x.dtype)
    attributes = {"select": select, "scatter": scatter, "window": window}
    result = np.asarray(expected).astype(x.dtype)
    return Case(name, xb.ops.select_and_scatter, arguments, result, attributes, source=SELECT, **more)


PICTURE = np.float32([[7, 2, 5, 3, 10, 2], [3, 8, 9, 3, 4, 2], [1, 5, 7, 5, 6, 1], [0, 6, 2, 7, 2, 8]])

SCATTERED = [
    scattered(
        "windows-apart",
        PICTURE,
        [[2, 6], [3, 1]],
        0,
        "size=2x3 stride=2x3",
        [[0, 0, 0, 0, 6, 0], [0, 0, 2, 0, 0, 0], [0, 0, 3, 0, 0, 0], [0, 0, 0, 0, 0, 1]],
    ),
    scattered(
        "windows-overlap",
        PICTURE[:, :5],
        [[2, 6], [3, 1]],
        0,
        "size=2x3 stride=2x2",
        [[0, 0, 0, 0, 6], [0, 0, 2, 0, 0], [0, 0, 4, 0, 0], [0, 0, 0, 0, 0]],
    ),
    scattered("overlaps-add-up", [1, 5, 2, 0], np.float32([10, 20, 30]), 0.5, "size=2", [0.5, 30.5, 30.5, 0.5]),
    scattered("of-a-scalar", np.float32(4), np.float32(2), 0.5, (), 2.5, oracle=False),  # real XLA dies of it
    scattered("tie-ge-keeps-the-first", np.float32([4, 4, 4]), [1, 2], 0, "size=2", [1, 2, 0]),
    scattered("tie-gt-takes-the-last", np.float32([4, 4, 4]), [1, 2], 0, "size=2", [0, 1, 2], gt),
    scattered(
        "padding-is-never-selected",
        np.float32([-3, -1, -2]),
        [1, 2, 3, 4, 5, 6],
        0.5,
        "size=2 pad=2_2",
        [2.5, 7.5, 5.5],
    ),
    scattered("select-padding-crops", np.float32([9, 3, 1, 2, 9]), [1, 2], 0, "size=2 pad=-1_-1", [0, 1, 0, 2, 0]),
    scattered("other-scatter", np.int32([1, 5, 2]), [10, 20], 1, "size=2", [1, 200, 1], scatter=xb.ops.multiply),
    scattered("gaps", np.float32([1, 2, 3, 4, 5]), [1, 2], 0, "size=2 stride=3", [0, 1, 0, 0, 2]),
    scattered(
        "dilated-window",
        np.float32([9, 3, 1, 2, 8]),
        [1, 2, 3],
        0,
        "size=2 rhs_dilate=2",
        [1, 2, 0, 0, 3],
        oracle=False,
    ),
    scattered("dilated-base", np.float32([9, 3, 5]), [1, 2, 3, 4], 0, "size=2 lhs_dilate=2", [1, 5, 4], oracle=False),
    scattered("u8", np.uint8([1, 5, 2]), [200, 100], 0, "size=2", [0, 44, 0]),
    scattered("bf16", np.array([1, 5, 2], BF16), [1, 2], 0, "size=2", [0, 3, 0]),
    scattered("nothing", np.zeros(0, np.float32), np.zeros(0), 0, "size=2", np.zeros(0)),
    Case(
        "select-comfort",
        lambda x, s: xb.select_and_scatter(x, ge, (2,), (2,), "SAME", s, 0.0, xb.ops.add),
        (np.float32([1, 5, 2]), np.float32([10, 20])),
        np.float32([0, 10, 20]),
        source=SELECT,
    ),
]

FIVE, PAIR = np.float32([[[1, 2, 3, 4, 5]]]), np.float32([[[1, 10]]])


def convolved(
    name: str,
    x: Any,
    kernel: Any,
    window: str,
    expected: Any,
    numbers: str = "bf0_oi0->bf0",
    source: str = CONV,
    **more: Any,
) -> Case:
    x, kernel = np.asarray(x), np.asarray(kernel)
    dtype = more["preferred_element_type"].dtype if "preferred_element_type" in more else x.dtype
    attributes = {"window": window, "dimension_numbers": numbers, **more}
    return Case(name, xb.ops.convolution, (x, kernel), np.asarray(expected).astype(dtype), attributes, source=source)


def along(name: str, window: str, expected: list[float], source: str = CONV) -> Case:
    return convolved(name, FIVE, PAIR, f"size=2 {window}", [[expected]], source=source)


IMAGE = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
CROSS = np.float32([[[[1, 2], [3, 4]]]])
GROUPS = np.float32([[[1, 2], [3, 4], [5, 6], [7, 8]]])
TWO_KERNELS = np.float32([[[1], [10]], [[2], [20]]])

CONVOLVED = [
    along("conv-no-flip", "", [21, 32, 43, 54], NUMERICS),
    along("conv-crop", "pad=-1_-1", [32, 43], NUMERICS),
    along("conv-crop-and-pad", "pad=-2_1", [43, 54, 5], NUMERICS),
    along("conv-base-dilation", "pad=1_0 lhs_dilate=2", [10, 1, 20, 2, 30, 3, 40, 4, 50], NUMERICS),
    along("conv-stride", "stride=2", [21, 43]),
    along("conv-window-dilation", "rhs_dilate=3", [41, 52]),
    along("conv-reversal", "rhs_reversal=1", [12, 23, 34, 45], STABLE),
    along("conv-stride-and-dilation", "stride=3 lhs_dilate=2 pad=1_1", [10, 2, 40, 5]),
    convolved(
        "conv-kernel-too-wide", FIVE, np.ones((1, 1, 7), np.float32), "size=7", np.zeros((1, 1, 0)), source=NUMERICS
    ),
    convolved("conv-kernel-of-padding", FIVE, np.ones((1, 1, 7), np.float32), "size=7 pad=1_1", [[[15]]]),
    convolved("conv-2d", IMAGE, CROSS, "size=2x2", [[[[27, 37], [57, 67]]]], "bf01_oi01->bf01"),
    convolved(
        "conv-2d-padded", IMAGE, CROSS, "size=2x2 stride=2x2 pad=1_0x1_0", [[[[0, 11], [30, 67]]]], "bf01_oi01->bf01"
    ),
    convolved("conv-dimensions-swapped", IMAGE, CROSS, "size=2x2", [[[[27, 57], [37, 67]]]], "bf01_oi01->bf10"),
    convolved(
        "conv-features-last",
        IMAGE.reshape(1, 3, 3, 1),
        CROSS.reshape(2, 2, 1, 1),
        "size=2x2",
        np.reshape([27, 37, 57, 67], (1, 2, 2, 1)),
        "b01f_01io->b01f",
    ),
    convolved(
        "conv-any-order",
        IMAGE.reshape(3, 1, 1, 3),
        CROSS.reshape(1, 2, 2, 1),
        "size=2x2",
        np.reshape([27, 57, 37, 67], (2, 1, 1, 2)),
        "0fb1_i01o->1fb0",
    ),
    convolved(
        "conv-features-add-up", GROUPS[:, :2], np.float32([[[1], [10]], [[2], [20]]]), "size=1", [[[31, 42], [62, 84]]]
    ),
    convolved(
        "conv-no-spatial",
        np.float32([[1, 2], [3, 4]]),
        np.float32([[1, 10], [2, 20], [0, 1]]),
        "",
        [[21, 42, 2], [43, 86, 4]],
        "bf_oi->bf",
    ),
    convolved("conv-feature-groups", GROUPS, TWO_KERNELS, "size=1", [[[31, 42], [150, 172]]], feature_group_count=2),
    convolved(
        "conv-depthwise",
        GROUPS,
        np.float32([[[1]], [[2]], [[3]], [[4]], [[5]], [[6]], [[7]], [[8]]]),
        "size=1",
        [[[1, 2], [2, 4], [9, 12], [12, 16], [25, 30], [30, 36], [49, 56], [56, 64]]],
        feature_group_count=4,
    ),
    convolved(
        "conv-batch-groups",
        GROUPS.reshape(2, 2, 2),
        TWO_KERNELS,
        "size=1",
        [[[31, 42], [150, 172]]],
        source=STABLE,
        batch_group_count=2,
    ),
    convolved(
        "conv-no-features",
        np.zeros((1, 0, 3), np.float32),
        np.zeros((2, 0, 2), np.float32),
        "size=2",
        np.zeros((1, 2, 2)),
    ),
    convolved(
        "conv-no-batch", np.zeros((0, 1, 3), np.float32), np.zeros((2, 1, 2), np.float32), "size=2", np.zeros((0, 2, 2))
    ),
    convolved("conv-s32", FIVE.astype(np.int32), PAIR.astype(np.int32), "size=2", [[[21, 32, 43, 54]]]),
    convolved(
        "conv-s8-wraps",
        np.int8([[[100], [100]]]),
        np.int8([[[100], [100]]]),
        "size=1",
        [[[20000 % 256]]],
        source="numerics, Integers",
    ),
    convolved(
        "conv-s8-to-s32",
        np.int8([[[100], [100]]]),
        np.int8([[[100], [100]]]),
        "size=1",
        [[[20000]]],
        source="numerics, Integers",
        preferred_element_type=xb.s32,
    ),
    convolved("conv-u64-wraps", np.uint64([[[2**63], [3]]]), np.uint64([[[2], [5]]]), "size=1", [[[15]]]),
    convolved(
        "conv-pred",
        np.array([[[0, 1, 0]]], np.bool_),
        np.array([[[1, 1]]], np.bool_),
        "size=2",
        [[[1, 1]]],
        source="numerics, pred",
    ),
    convolved("conv-c64", np.complex64([[[1j, 2]]]), np.complex64([[[1j, 1]]]), "size=2", [[[1]]]),
    convolved(
        "conv-bf16-rounds-once",
        np.array([[[256], [1], [1]]], BF16),
        np.ones((1, 3, 1), BF16),
        "size=1",
        [[[258]]],
        source="numerics, Floats: conversion and rounding",
    ),
    convolved("conv-f16", FIVE.astype(np.float16), PAIR.astype(np.float16), "size=2", [[[21, 32, 43, 54]]]),
    convolved("conv-f64", FIVE.astype(np.float64), PAIR.astype(np.float64), "size=2", [[[21, 32, 43, 54]]]),
    convolved("conv-precision", FIVE, PAIR, "size=2", [[[21, 32, 43, 54]]], operand_precision=("highest", "highest")),
    Case(
        "conv-same",
        lambda x, k: xb.conv(x, k, (1,), "SAME"),
        (FIVE, PAIR),
        np.float32([[[21, 32, 43, 54, 5]]]),
        source="Operation Semantics, Conv",
    ),
    Case(
        "conv-valid",
        lambda x, k: xb.conv(x, k, (2,), "VALID"),
        (FIVE, PAIR),
        np.float32([[[21, 43]]]),
        source="Operation Semantics, Conv",
    ),
    Case(
        "conv-general",
        lambda x, k: xb.conv_general_dilated(x, k, (1,), [(1, 1)], rhs_dilation=(2,), dimension_numbers="b0f_0io->b0f"),
        (FIVE.reshape(1, 5, 1), PAIR.reshape(2, 1, 1)),
        np.float32([20, 31, 42, 53, 4]).reshape(1, 5, 1),
        source=CONV,
    ),
]


def cut_first(dimension: int, of_lhs: bool) -> Callable[..., xb.Value]:
    """A convolution in which one dimension of an operand has two elements, without its bounds."""

    def call(lhs: xb.Value, rhs: xb.Value) -> xb.Value:
        two = xb.constant(lhs.builder, literal=np.int32(2))
        cut = xb.set_dimension_size(lhs if of_lhs else rhs, two, dimension)
        given = (cut, rhs) if of_lhs else (lhs, cut)
        found = xb.ops.convolution(*given, window="size=3", dimension_numbers="bf0_oi0->bf0")
        return xb.tuple_(xb.reduce(found, 0.0, xb.add, (0, 1)), xb.get_dimension_size(found, 2))

    return call


CUT = "dynamic_padder.cc: what is past the dynamic size is zero where it is summed"
ROWS = np.arange(1, 13, dtype=np.float32).reshape(1, 3, 4), np.float32([[[1, 10, 100], [2, 20, 200], [5, 5, 5]]])
CUT_SHORT = [
    Case("conv-kernel-cut", cut_first(2, False), ROWS, (np.float32([246, 289]), np.int32(2)), source=CUT, oracle=False),
    Case("conv-features-cut", cut_first(1, True), ROWS, (np.float32([1851, 2184]), np.int32(2)), source=CUT),
]

CASES = [*REDUCED, *SCATTERED, *CONVOLVED, *CUT_SHORT]

INFERRED = [
    Inferred(
        f"conv-dynamic-{name}",
        lambda x, k: xb.ops.convolution(x, k, window="size=3", dimension_numbers="bf0_oi0->bf0"),
        operands,
        result,
        "shape_inference.cc, InferConvolveShape",
    )
    for name, operands, result in (
        ("kernel", ("f32[2,3,8]", "f32[4,3,<=3]"), "f32[2,4,<=6]"),
        ("spatial", ("f32[2,3,<=8]", "f32[4,3,3]"), "f32[2,4,<=6]"),
        ("features", ("f32[<=2,<=3,8]", "f32[4,<=3,3]"), "f32[<=2,4,6]"),
    )
]


def pool_refused(
    name: str, operands: tuple[str, ...], kind: str, *names: str, window: Any = "size=2x2", to_apply: Any = xb.ops.add
) -> Refusal:
    return Refusal(name, xb.ops.reduce_window, operands, kind, names, {"window": window, "to_apply": to_apply})


def conv_refused(name: str, operands: tuple[str, str], kind: str, *names: str, **changed: Any) -> Refusal:
    plain = {"window": "size=5", "dimension_numbers": "bf0_oi0->bf0"}
    return Refusal(name, xb.ops.convolution, operands, kind, names, {**plain, **changed})


POOLS = ("f32[6,8]", "f32[]")
CONVS = ("f32[2,3,10]", "f32[4,3,5]")
SOURCES = ("f32[4,6]", "f32[2,3]", "f32[]")
ONE_PARAMETER = xb.computation(xb.f32[()])(lambda a: xb.ops.is_finite(a))


def select_refused(
    name: str,
    operands: tuple[str, ...],
    kind: str,
    *names: str,
    select: Any = ge,
    scatter: Any = xb.ops.add,
    window: str = "size=2x2 stride=2x2",
) -> Refusal:
    return Refusal(
        name, xb.ops.select_and_scatter, operands, kind, names, {"select": select, "scatter": scatter, "window": window}
    )


REFUSALS = [
    pool_refused("window-rank", POOLS, "attribute_length_mismatch", "1", "f32[6,8]", window="size=2"),
    pool_refused("stride-0", POOLS, "non_positive", "stride", "0", "dimension 1", window="size=2x2 stride=1x0"),
    pool_refused("size-0", POOLS, "non_positive", "size", "0", window="size=2x0"),
    pool_refused("dilation-0", POOLS, "non_positive", "window dilation", "0", window="size=2x2 rhs_dilate=0x1"),
    pool_refused(
        "base-dilation-negative", POOLS, "non_positive", "base dilation", "-1", window="size=2x2 lhs_dilate=-1x1"
    ),
    pool_refused("text", POOLS, "invalid_attribute", "window", "sizes", window="sizes=2x2"),
    pool_refused("text-ranks", POOLS, "invalid_attribute", "window", "stride=2", window="size=2x2 stride=2"),
    pool_refused("text-pad", POOLS, "invalid_attribute", "window", "low_high", window="size=2x2 pad=1x1"),
    pool_refused("no-window", POOLS, "invalid_attribute", "window", "3", window=3),
    pool_refused("pool-type", ("f32[6,8]", "s32[]"), "signature_mismatch", "s32[]", "f32[]"),
    pool_refused("pool-tuple", ("(f32[6,8])", "f32[]"), "not_array", "(f32[6,8])"),
    pool_refused("pool-parameters", POOLS, "arity_mismatch", "1", "2", to_apply=ONE_PARAMETER),
    Refusal(
        "strides-length",
        xb.reduce_window,
        ("f32[6]",),
        "attribute_length_mismatch",
        ("window_strides", "2", "1"),
        {"init_values": 0.0, "to_apply": xb.ops.add, "window_dimensions": (2,), "window_strides": (1, 1)},
    ),
    Refusal(
        "padding-word",
        xb.reduce_window,
        ("f32[6]",),
        "invalid_attribute",
        ("padding", "'FULL'", "'SAME'"),
        {"init_values": 0.0, "to_apply": xb.ops.add, "window_dimensions": (2,), "padding": "FULL"},
    ),
    Refusal(
        "same-stride-0",
        xb.reduce_window,
        ("f32[6]",),
        "non_positive",
        ("stride", "0"),
        {
            "init_values": 0.0,
            "to_apply": xb.ops.add,
            "window_dimensions": (2,),
            "window_strides": (0,),
            "padding": "SAME",
        },
    ),
    select_refused("source-extents", ("f32[4,6]", "f32[2,2]", "f32[]"), "dimension_mismatch", "f32[2,2]", "f32[2,3]"),
    select_refused("source-rank", ("f32[4,6]", "f32[6]", "f32[]"), "rank_mismatch", "f32[6]", "f32[2,3]"),
    select_refused("source-type", ("f32[4,6]", "bf16[2,3]", "bf16[]"), "element_type_mismatch", "bf16", "f32"),
    select_refused("select-init", ("f32[4,6]", "f32[2,3]", "s32[]"), "signature_mismatch", "s32[]", "f32[]"),
    select_refused("select-parameters", SOURCES, "arity_mismatch", "select", "1", "2", select=ONE_PARAMETER),
    select_refused("select-result", SOURCES, "signature_mismatch", "select", "pred[]", "f32[]", select=xb.ops.add),
    select_refused("scatter-result", SOURCES, "signature_mismatch", "scatter", "pred[]", "f32[]", scatter=ge),
    select_refused("select-window", SOURCES, "attribute_length_mismatch", "1", "f32[4,6]", window="size=2"),
    conv_refused("features", ("f32[2,3,10]", "f32[4,2,5]"), "dimension_mismatch", "3", "2", "feature"),
    conv_refused(
        "feature-groups",
        ("f32[2,5,10]", "f32[6,2,5]"),
        "divisibility",
        "5",
        "3",
        "feature_group_count",
        feature_group_count=3,
    ),
    conv_refused(
        "output-features",
        ("f32[2,6,10]", "f32[4,2,5]"),
        "divisibility",
        "4",
        "3",
        "output feature",
        feature_group_count=3,
    ),
    conv_refused(
        "batch-groups",
        ("f32[6,3,10]", "f32[5,3,5]"),
        "divisibility",
        "5",
        "2",
        "batch_group_count",
        batch_group_count=2,
    ),
    conv_refused(
        "batch", ("f32[5,3,10]", "f32[4,3,5]"), "divisibility", "5", "2", "batch_group_count", batch_group_count=2
    ),
    conv_refused(
        "both-groups",
        ("f32[2,6,10]", "f32[4,3,5]"),
        "invalid_attribute",
        "feature_group_count=2",
        "batch_group_count=2",
        feature_group_count=2,
        batch_group_count=2,
    ),
    conv_refused("groups-0", CONVS, "non_positive", "feature_group_count", "0", feature_group_count=0),
    conv_refused("batch-groups-negative", CONVS, "non_positive", "batch_group_count", "-1", batch_group_count=-1),
    conv_refused("conv-type", ("f32[2,3,10]", "s32[4,3,5]"), "element_type_mismatch", "f32", "s32"),
    conv_refused("conv-ranks", ("f32[2,3,10]", "f32[4,3]"), "rank_mismatch", "3", "2"),
    conv_refused("conv-rank-1", ("f32[2]", "f32[4]"), "rank_too_small", "1"),
    conv_refused("conv-stride", CONVS, "non_positive", "stride", "0", window="size=5 stride=0"),
    conv_refused("conv-size", CONVS, "dimension_mismatch", "4", "5", "f32[4,3,5]", window="size=4"),
    conv_refused("conv-window", CONVS, "attribute_length_mismatch", "2", "f32[4,3,5]", window="size=5x5"),
    conv_refused("kernel-of-none", ("f32[2,3,10]", "f32[4,3,0]"), "non_positive", "f32[4,3,0]", "0", window="size=0"),
    conv_refused("labels", CONVS, "invalid_attribute", "dimension_numbers", "bf0_oi0", dimension_numbers="bf0_oi0"),
    conv_refused(
        "label-twice", CONVS, "invalid_attribute", "dimension_numbers", "bb0", dimension_numbers="bb0_oi0->bf0"
    ),
    conv_refused(
        "labels-rank", CONVS, "rank_mismatch", "bf01_oi01->bf01", "4", "3", dimension_numbers="bf01_oi01->bf01"
    ),
    conv_refused(
        "precision", CONVS, "invalid_attribute", "operand_precision", "best", operand_precision=("best", "best")
    ),
    conv_refused(
        "preferred", CONVS, "element_type_mismatch", "preferred_element_type", "s32", preferred_element_type=xb.s32
    ),
]
