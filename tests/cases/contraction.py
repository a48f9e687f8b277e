"""Cases of dot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

import xbuild as xb
from shape_inference import PRIMITIVES, PrimitiveType
from tests.cases.case import Case, Refusal, is_run_by_xla

DOT, GENERAL, NUMERICS = (
    "Operation Semantics, Dot",
    "Operation Semantics, DotGeneral",
    "numerics, Integers, pred, Floats",
)
A = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
ONES = np.array([[1, 1, 1], [2, 2, 2]], np.float32)
BATCH = np.arange(1, 9, dtype=np.float32).reshape(2, 2, 2)
EYES = np.array([np.eye(2)] * 2, np.float32)
BF16, F8 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
OVER_ROWS = {"lhs_contracting_dims": (1,), "rhs_contracting_dims": (0,)}


def general(name: str, lhs: Any, rhs: Any, expected: Any, source: str = GENERAL, ulps: int = 0, **dims: Any) -> Case:
    return Case(name, xb.dot_general, (lhs, rhs), expected, dims, tolerance=ulps, source=source)


def against_einsum(name: str, dims: Mapping[str, Any], lhs: str, rhs: str, result: str) -> Case:
    """Small integers in f32, so that every order of adding gives the same; the letters are the extents a=2, b=3, ..."""
    extents = {letter: 2 + n for n, letter in enumerate("abcde")}
    arrays = []
    for letters, first in ((lhs, 0), (rhs, 3)):
        sizes = [extents[letter] for letter in letters]
        arrays.append(((np.arange(np.prod(sizes, dtype=int)) + first) % 7 + 1).reshape(sizes).astype(np.float32))
    expected = np.einsum(f"{lhs},{rhs}->{result}", *arrays)
    return Case(f"dims-{name}", xb.ops.dot, tuple(arrays), expected, dims, source="StableHLO, dot_general")


def each_type(dtype: PrimitiveType) -> Case:
    """[1 0] and the identity, which every type holds (f8e8m0fnu has no zero: ones, and their sums)."""
    lhs, rhs = np.array([[1, 0], [1, 1]]), np.array([[1, 0], [0, 1]])
    if dtype.name == "f8e8m0fnu":
        lhs, rhs = np.ones((2, 2)), np.ones((2, 2))
    expected = (lhs @ rhs).astype(dtype.dtype)
    arguments = (lhs.astype(dtype.dtype), rhs.astype(dtype.dtype))
    oracle = is_run_by_xla(dtype)
    return Case(f"type-{dtype}", xb.dot, arguments, expected, source="xla_data.proto, PrimitiveType", oracle=oracle)


def mixed(
    name: str, lhs: Any, rhs: Any, expected: Any, preferred: PrimitiveType | None = None, source: str = NUMERICS
) -> Case:
    attributes = {**OVER_ROWS, "preferred_element_type": preferred}
    return Case(f"types-{name}", xb.ops.dot, (lhs, rhs), expected, attributes, source=source)


def zeros(name: str, lhs: tuple[int, ...], rhs: tuple[int, ...], dtype: str = "f32") -> Case:
    arrays = [np.zeros(dims, xb.PRIMITIVES[dtype].dtype) for dims in (lhs, rhs)]
    expected = np.zeros((*lhs[:-1], *rhs[1:]), arrays[0].dtype)
    return Case(f"zero-{name}", xb.dot, tuple(arrays), expected, source="conformance case dot.04")


HUNDREDS = np.int8([[100, 100, 100, 100]])
LARGE = np.int64([[2**62 + 3, -(2**61)], [5, 2**33 + 1]])
MANY = np.full((1, 1000), 0.01, BF16)

CASES = [
    Case("vectors", xb.dot, (A[0], A[1]), 32.0, source=DOT),
    Case("matrix-vector", xb.dot, (A, A[0]), [14, 32], source=DOT),
    Case("matrix-matrix", xb.dot, (A, A.T.copy()), [[14, 32], [32, 77]], source=DOT),
    Case("vector-matrix", xb.dot, (A[0, :2], A), [9, 12, 15], source=DOT),
    Case("operator", lambda x, y: x @ y, (A, A[0]), [14, 32], source=DOT),
    Case("array-beside-value", lambda x: xb.dot(x, A[0]), (A,), [14, 32], source=DOT),
    Case(
        "precision", lambda x, y: xb.dot(x, y, "HIGHEST"), (A, A[0]), [14, 32], source="xla_data.proto, PrecisionConfig"
    ),
    general("contracting", A, ONES, [[6, 12], [15, 30]], lhs_contracting_dims=(1,), rhs_contracting_dims=(1,)),
    general(
        "batch",
        BATCH,
        EYES,
        BATCH,
        lhs_contracting_dims=(2,),
        rhs_contracting_dims=(1,),
        lhs_batch_dims=(0,),
        rhs_batch_dims=(0,),
    ),
    general("dimension-numbers", BATCH, EYES, BATCH, dimension_numbers=(((2,), (1,)), ((0,), (0,)))),
    general("outer", A[0], A[1], np.outer(A[0], A[1])),
    general("scalars", np.float32(3), np.float32(4), 12.0, "StableHLO, dot_general"),
    against_einsum("two", {"lhs_contracting_dims": (1, 2), "rhs_contracting_dims": (1, 0)}, "abc", "cbd", "ad"),
    against_einsum(
        "two-batches",
        {
            "lhs_contracting_dims": (3,),
            "rhs_contracting_dims": (1,),
            "lhs_batch_dims": (1, 0),
            "rhs_batch_dims": (3, 0),
        },
        "abec",
        "acdb",
        "baed",
    ),
    against_einsum(
        "batch-last",
        {"lhs_contracting_dims": (1,), "rhs_contracting_dims": (2,), "lhs_batch_dims": (2,), "rhs_batch_dims": (1,)},
        "abc",
        "dcb",
        "cad",
    ),
    against_einsum("all-batch", {"lhs_batch_dims": (0, 1), "rhs_batch_dims": (1, 0)}, "ab", "ba", "ab"),
    against_einsum("all-contracted", {"lhs_contracting_dims": (0, 1), "rhs_contracting_dims": (1, 0)}, "ab", "ba", ""),
    against_einsum("no-pairs", {}, "ab", "cd", "abcd"),
    zeros("contracted", (2, 0), (0, 4)),
    zeros("free", (0, 3), (3, 4)),
    *(zeros(f"contracted-{dtype}", (2, 0), (0, 1), dtype) for dtype in ("pred", "s8", "s64", "bf16", "c64")),
    *(each_type(dtype) for dtype in PRIMITIVES.values()),
    mixed("s8-wraps", HUNDREDS, HUNDREDS.T.copy(), np.int8([[64]])),
    mixed("s8-to-s32", HUNDREDS, HUNDREDS.T.copy(), np.int32([[40000]]), xb.s32),
    mixed("s32-to-s8", HUNDREDS.astype(np.int32), HUNDREDS.T.astype(np.int32), np.int8([[64]]), xb.s8),
    mixed("s8-u8-to-s32", HUNDREDS, np.uint8([[200]] * 4), np.int32([[80000]]), xb.s32),
    mixed("s8-to-f32", HUNDREDS, HUNDREDS.T.copy(), np.float32([[40000]]), xb.f32),
    mixed("s32-wraps", np.int32([[2**30, 2**30, 1]]), np.int32([[2], [2], [5]]), np.int32([[5]])),
    mixed("s64-keeps-every-bit", LARGE, np.int64([[1, 0], [0, 1]]), LARGE),
    mixed("s64-wraps", LARGE, np.int64([[4, 0], [0, 8]]), np.int64([[12, 0], [20, 2**36 + 8]])),
    mixed("u64-wraps", np.uint64([[2**63, 3]]), np.uint64([[2], [2**63]]), np.uint64([[2**63]])),
    mixed("u16-large", np.uint16([[65535] * 3]), np.uint16([[65535]] * 3), np.uint16([[3]])),
    mixed("pred", np.array([[True, False], [False, False]]), np.array([[True], [True]]), [[True], [False]]),
    mixed("pred-to-s32", np.array([[True, True]]), np.array([[True], [True]]), np.int32([[2]]), xb.s32),
    mixed("bf16-f32", np.array([[1.5, 2]], BF16), np.float32([[1.001], [2]]), np.float32([[1.001]]) * 1.5 + 4),
    mixed("f32-bf16", np.float32([[1.5, 2]]), np.array([[1], [2]], BF16), np.float32([[5.5]])),
    mixed("bf16-to-f32", np.array([[256, 1]], BF16), np.array([[1], [1]], BF16), np.float32([[257]]), xb.f32),
    mixed("bf16-rounds-once", MANY, np.ones((1000, 1), BF16), np.array([[10]], BF16)),
    mixed("f16-rounds-once", np.ones((1, 4096), np.float16), np.ones((4096, 1), np.float16), np.float16([[4096]])),
    mixed("f32-to-bf16", np.float32([[256, 1]]), np.float32([[1], [2]]), np.array([[258]], BF16), xb.bf16),
    mixed("f32-to-f64", np.float32([[2**24, 1]]), np.float32([[1], [1]]), np.float64([[2**24 + 1]]), xb.f64),
    mixed("f8", np.array([[2, 8]], F8), np.array([[4], [16]], F8), np.array([[136]], F8)),
    mixed("c64", np.complex64([[1 + 1j, 2]]), np.complex64([[1 - 1j], [1j]]), np.complex64([[2 + 2j]])),
    mixed("c128", np.complex128([[1j]]), np.complex128([[1j]]), np.complex128([[-1]])),
    mixed(
        "nan-and-inf", np.float32([[np.inf, 1], [0, np.nan]]), np.float32([[1], [1]]), np.float32([[np.inf], [np.nan]])
    ),
    mixed("large", np.ones((64, 65), np.float32), np.ones((65, 33), np.float32), np.full((64, 33), 65, np.float32)),
]


def refused(name: str, operands: tuple[str, ...], kind: str, *names: str, **attributes: Any) -> Refusal:
    return Refusal(name, xb.ops.dot, operands, kind, names, attributes)


MATRICES = ("f32[2,3]", "f32[3,2]")
BATCHES = {"lhs_contracting_dims": (2,), "rhs_contracting_dims": (1,), "lhs_batch_dims": (0,), "rhs_batch_dims": (0,)}

REFUSALS = [
    refused(
        "extent",
        ("f32[2,3]", "f32[4,2]"),
        "dimension_mismatch",
        "3",
        "4",
        "contract",
        "f32[2,3]",
        "f32[4,2]",
        **OVER_ROWS,
    ),
    refused("batch-extent", ("f32[5,2,3]", "f32[6,3,4]"), "dimension_mismatch", "5", "6", "batch", **BATCHES),
    refused(
        "pairs",
        MATRICES,
        "attribute_length_mismatch",
        "contract",
        "2",
        "1",
        lhs_contracting_dims=(0, 1),
        rhs_contracting_dims=(1,),
    ),
    refused("batch-pairs", MATRICES, "attribute_length_mismatch", "batch", "1", "0", lhs_batch_dims=(0,)),
    refused(
        "range",
        MATRICES,
        "dimension_out_of_range",
        "2",
        "0..1",
        "lhs",
        lhs_contracting_dims=(2,),
        rhs_contracting_dims=(0,),
    ),
    refused(
        "negative",
        MATRICES,
        "dimension_out_of_range",
        "-1",
        "rhs",
        lhs_contracting_dims=(1,),
        rhs_contracting_dims=(-1,),
    ),
    refused(
        "batch-range",
        MATRICES,
        "dimension_out_of_range",
        "5",
        "rhs_batch_dims",
        lhs_batch_dims=(0,),
        rhs_batch_dims=(5,),
    ),
    refused(
        "twice",
        ("f32[2,2]", "f32[2,2]"),
        "duplicate_dimension",
        "1",
        "[1, 1]",
        lhs_contracting_dims=(1, 1),
        rhs_contracting_dims=(0, 1),
    ),
    refused(
        "batch-and-contracted",
        ("f32[2,2]", "f32[2,2]"),
        "duplicate_dimension",
        "0",
        "batch",
        lhs_contracting_dims=(0,),
        rhs_contracting_dims=(1,),
        lhs_batch_dims=(0,),
        rhs_batch_dims=(0,),
    ),
    refused("types", ("f32[2,3]", "s32[3,2]"), "element_type_mismatch", "f32", "s32", **OVER_ROWS),
    refused("integers", ("s8[2,3]", "s32[3,2]"), "element_type_mismatch", "s8", "s32", **OVER_ROWS),
    refused("preferred", MATRICES, "element_type_mismatch", "s32", "f32", preferred_element_type=xb.s32, **OVER_ROWS),
    refused("preferred-no-type", MATRICES, "invalid_attribute", "f12", preferred_element_type="f12", **OVER_ROWS),
    refused(
        "precision",
        MATRICES,
        "invalid_attribute",
        "operand_precision",
        "best",
        operand_precision=("best", "high"),
        **OVER_ROWS,
    ),
    refused("overflow", (f"f32[{2**40}]", f"f32[{2**40}]"), "overflow", str(2**40)),
    refused("tuple", ("(f32[2])", "f32[2]"), "not_array", "(f32[2])"),
    Refusal("scalar", xb.dot, ("f32[]", "f32[2]"), "rank_too_small", ("0", "f32[]", "1")),
    Refusal("unlike-matmul", xb.dot, ("f32[5,2,3]", "f32[3,4]"), "dimension_mismatch", ("2", "3", "f32[5,2,3]")),
    Refusal(
        "both-forms",
        xb.dot_general,
        MATRICES,
        "invalid_attribute",
        ("dimension_numbers",),
        {"lhs_contracting_dims": (1,), "dimension_numbers": (((1,), (0,)), ((), ()))},
    ),
    Refusal(
        "no-pair", xb.dot_general, MATRICES, "invalid_attribute", ("dimension_numbers",), {"dimension_numbers": (1, 0)}
    ),
]


RAGGED, SCALED = "xla_data.proto, RaggedDotDimensionNumbers", "xla/hlo/ir/hlo_instructions.h, HloScaledDotInstruction"
OF = np.random.default_rng(7)


def small(*sizes: int) -> np.ndarray[Any, Any]:
    """Small integers in f32, of which every order of adding gives the same."""
    return OF.integers(-4, 5, sizes).astype(np.float32)


FREE = {"lhs_contracting_dims": (1,), "rhs_contracting_dims": (1,), "lhs_ragged_dims": (0,), "rhs_group_dims": (0,)}
CONTRACTED = {"lhs_contracting_dims": (1,), "rhs_contracting_dims": (0,), "lhs_ragged_dims": (1,)}
PAIRED = {"lhs_contracting_dims": (1,), "rhs_contracting_dims": (1,)}
PAIRS = {"lhs_batch_dims": (0,), "rhs_batch_dims": (0,), "lhs_contracting_dims": (2,), "rhs_contracting_dims": (1,)}
LHS, EXPERTS, RIGHT = small(6, 3), small(2, 3, 4), small(6, 4)
LEFTS, RIGHTS = small(3, 6, 2), small(2, 3, 2, 4)


def rows(counts: list[int], lhs: Any = LHS, experts: Any = EXPERTS) -> Any:
    """Each row with the matrix of its group; 0 where it is in none."""
    expert = [n for n, count in enumerate(counts) for _ in range(count)][: len(lhs)]
    found = np.zeros((len(lhs), experts.shape[-1]), np.float32)
    for row, number in enumerate(expert):
        found[row] = lhs[row] @ experts[number]
    return found


def columns(counts: list[int], lhs: Any, rhs: Any) -> Any:
    """For each group the product of its columns of lhs and its rows of rhs."""
    ends = np.cumsum(counts)
    return np.stack([lhs[:, e - n : e] @ rhs[e - n : e] for n, e in zip(counts, ends, strict=True)])


def ragged(name: str, lhs: Any, rhs: Any, counts: Any, expected: Any, dims: Mapping[str, Any], **more: Any) -> Case:
    sizes = counts if isinstance(counts, np.ndarray) else np.array(counts, np.int32)
    return Case(
        f"ragged-{name}", xb.ops.ragged_dot, (lhs, rhs, sizes), expected, {**dims, **more}, source=RAGGED, oracle=False
    )


def ragged_type(dtype: PrimitiveType) -> Case:
    lhs, rhs = np.ones((3, 2), dtype.dtype), np.ones((2, 2, 1), dtype.dtype)
    expected = np.array([[2], [2], [0]]) if dtype.name != "pred" else np.array([[1], [1], [0]])
    return ragged(f"type-{dtype}", lhs, rhs, [1, 1], expected.astype(dtype.dtype), FREE)


CASES += [
    ragged("free", LHS, EXPERTS, [4, 2], rows([4, 2]), FREE),
    ragged("free-too-few", LHS, EXPERTS, [1, 2], rows([1, 2]), FREE),
    ragged("free-too-many", LHS, EXPERTS, [5, 4], rows([5, 4]), FREE),
    ragged("free-empty-group", LHS, EXPERTS, [0, 6], rows([0, 6]), FREE),
    ragged("free-u32", LHS, EXPERTS, np.uint32([4, 2]), rows([4, 2]), FREE),
    ragged("free-s64", LHS, EXPERTS, np.int64([3, 3]), rows([3, 3]), FREE),
    ragged("free-group-last", LHS, EXPERTS.transpose(2, 1, 0), [4, 2], rows([4, 2]), {**FREE, "rhs_group_dims": (2,)}),
    ragged("contracted", RIGHT.T, LHS, [4, 2], columns([4, 2], RIGHT.T, LHS), CONTRACTED),
    ragged("contracted-too-few", RIGHT.T, LHS, [4, 1], columns([4, 1], RIGHT.T, LHS), CONTRACTED),
    ragged(
        "batch",
        LEFTS,
        RIGHTS[0],
        [1, 2],
        LEFTS @ RIGHTS[0],
        {**PAIRS, "lhs_ragged_dims": (0,)},
    ),
    ragged(
        "batch-too-few",
        LEFTS,
        RIGHTS[0],
        [1, 1],
        LEFTS @ RIGHTS[0],
        {**PAIRS, "lhs_ragged_dims": (0,)},
    ),
    ragged(
        "free-in-batches",
        LEFTS,
        RIGHTS,
        [[4, 2], [1, 2], [3, 3]],
        np.stack([rows(c, LEFTS[b], RIGHTS[:, b]) for b, c in enumerate(([4, 2], [1, 2], [3, 3]))]),
        {
            "lhs_batch_dims": (0,),
            "rhs_batch_dims": (1,),
            "lhs_contracting_dims": (2,),
            "rhs_contracting_dims": (2,),
            "lhs_ragged_dims": (1,),
            "rhs_group_dims": (0,),
        },
    ),
    ragged(
        "free-in-batches-alike",
        LEFTS,
        RIGHTS,
        [4, 2],
        np.stack([rows([4, 2], LEFTS[b], RIGHTS[:, b]) for b in range(3)]),
        {
            "lhs_batch_dims": (0,),
            "rhs_batch_dims": (1,),
            "lhs_contracting_dims": (2,),
            "rhs_contracting_dims": (2,),
            "lhs_ragged_dims": (1,),
            "rhs_group_dims": (0,),
        },
    ),
    ragged(
        "free-after-free",
        LEFTS,
        RIGHTS[:, 0],
        [[4, 2], [1, 2], [3, 3]],
        np.stack([rows(c, LEFTS[m], RIGHTS[:, 0]) for m, c in enumerate(([4, 2], [1, 2], [3, 3]))]),
        {"lhs_contracting_dims": (2,), "rhs_contracting_dims": (1,), "lhs_ragged_dims": (1,), "rhs_group_dims": (0,)},
    ),
    ragged(
        "contracted-in-batches",
        LEFTS.transpose(0, 2, 1),
        LEFTS,
        [[4, 2], [1, 2], [3, 3]],
        np.stack([columns(c, LEFTS[b].T, LEFTS[b]) for b, c in enumerate(([4, 2], [1, 2], [3, 3]))], 1),
        {**PAIRS, "lhs_ragged_dims": (2,)},
    ),
    ragged(
        "outside-of-runs-nothing-is-read",
        np.float32([[1], [np.inf]]),
        np.float32([[[2]], [[np.nan]]]),
        [1, 0],
        np.float32([[2], [0]]),
        FREE,
    ),
    ragged(
        "to-f32",
        np.full((2, 300), 1, BF16),
        np.ones((1, 300, 1), BF16),
        [2],
        np.float32([[300]] * 2),
        FREE,
        preferred_element_type=xb.f32,
    ),
    ragged(
        "bf16-rounds-once",
        np.full((1, 1000), 0.01, BF16),
        np.ones((1, 1000, 1), BF16),
        [1],
        np.array([[10]], BF16),
        FREE,
    ),
    ragged(
        "s8-to-s32",
        np.int8([[100, 100]]),
        np.int8([[[100], [100]]]),
        [1],
        np.int32([[20000]]),
        FREE,
        preferred_element_type=xb.s32,
    ),
    *(ragged_type(dtype) for dtype in PRIMITIVES.values() if dtype.bits > 2 and dtype.name != "f8e8m0fnu"),
    Case("ragged-form", xb.ragged_dot, (LHS, EXPERTS, np.int32([4, 2])), rows([4, 2]), source=RAGGED, oracle=False),
]


def scaled(name: str, arrays: tuple[Any, ...], expected: Any, dims: Mapping[str, Any] = PAIRED, **more: Any) -> Case:
    return Case(f"scaled-{name}", xb.ops.scaled_dot, arrays, expected, {**dims, **more}, source=SCALED, oracle=False)


E8, F4 = ml_dtypes.float8_e8m0fnu, ml_dtypes.float4_e2m1fn
X8, Y8 = OF.integers(-4, 5, (2, 64)).astype(F8), OF.integers(-4, 5, (3, 64)).astype(F8)
SX, SY = (2.0 ** OF.integers(-2, 3, (2, 2))).astype(E8), (2.0 ** OF.integers(-2, 3, (3, 2))).astype(E8)
WIDE = (X8.astype(np.float32) * SX.astype(np.float32).repeat(32, 1)) @ (
    Y8.astype(np.float32) * SY.astype(np.float32).repeat(32, 1)
).T
FOURS = np.float32([[1, 2, 3, 4], [5, 6, 7, 8]])

CASES += [
    scaled("mx", (X8, Y8, SX, SY), WIDE, preferred_element_type=xb.f32),
    scaled("mx-bf16", (X8, Y8, SX, SY), WIDE.astype(BF16), preferred_element_type=xb.bf16),
    scaled("mx-f8", (X8, Y8, SX, SY), WIDE.astype(F8)),
    scaled(
        "f4",
        (np.array([[1, 2, 3, 4]], F4), np.array([[1, 1, 2, 2]], F4), np.array([[2, 0.5]], F8), np.array([[1, 4]], F8)),
        np.float32([[34]]),
        preferred_element_type=xb.f32,
    ),
    scaled(
        "rows",
        (FOURS, FOURS, np.float32([[1, 10]]), np.float32([[2], [3]])),
        (FOURS * np.float32([1, 1, 10, 10])) @ (FOURS * np.float32([[2], [3]])).T,
    ),
    scaled("without-a-scale", (FOURS.astype(BF16), FOURS, BF16(1), np.float32(2)), FOURS @ FOURS.T * 2),
    scaled(
        "blocks-of-rows",
        (FOURS, FOURS, np.float32([[1, 10]]), np.float32([[1, 1]])),
        (FOURS * np.float32([1, 1, 10, 10])) @ FOURS.T,
    ),
    scaled(
        "no-terms",
        (FOURS[:, :0], FOURS[:, :0], np.ones((2, 0), np.float32), np.ones((2, 0), np.float32)),
        np.zeros((2, 2), np.float32),
    ),
    Case(
        "scaled-form",
        lambda x, y, a, b: xb.scaled_dot(x, y, a, b, ((1,), (1,))),
        (FOURS, FOURS, np.float32(2), np.float32(3)),
        FOURS @ FOURS.T * 6,
        source=SCALED,
        oracle=False,
    ),
]


def unfit(name: str, operands: tuple[str, ...], kind: str, *names: str, **dims: Any) -> Refusal:
    return Refusal(f"ragged-{name}", xb.ops.ragged_dot, operands, kind, names, dims)


def unscaled(name: str, operands: tuple[str, ...], kind: str, *names: str, **dims: Any) -> Refusal:
    return Refusal(f"scaled-{name}", xb.ops.scaled_dot, operands, kind, names, {**PAIRED, **dims})


THREE = ("f32[6,3]", "f32[2,3,4]", "s32[2]")
REFUSALS += [
    unfit("none", THREE, "attribute_length_mismatch", "lhs_ragged_dims", "0", **{**FREE, "lhs_ragged_dims": ()}),
    unfit("two", THREE, "attribute_length_mismatch", "[0, 1]", "2", **{**FREE, "lhs_ragged_dims": (0, 1)}),
    unfit("outside", THREE, "dimension_out_of_range", "2", "0..1", **{**FREE, "lhs_ragged_dims": (2,)}),
    unfit("group-outside", THREE, "dimension_out_of_range", "5", "0..2", **{**FREE, "rhs_group_dims": (5,)}),
    unfit("group-paired", THREE, "duplicate_dimension", "rhs_group_dims", "1", **{**FREE, "rhs_group_dims": (1,)}),
    unfit(
        "no-group",
        ("f32[6,3]", "f32[3,4]", "s32[2]"),
        "attribute_length_mismatch",
        "rhs_group_dims",
        "0",
        "1",
        **{**FREE, "rhs_contracting_dims": (0,), "rhs_group_dims": ()},
    ),
    unfit(
        "group-of-contracted",
        ("f32[6,3]", "f32[2,3,4]", "s32[2]"),
        "attribute_length_mismatch",
        "rhs_group_dims",
        "1",
        "0",
        **{**FREE, "lhs_ragged_dims": (1,)},
    ),
    unfit("groups", ("f32[6,3]", "f32[2,3,4]", "s32[3]"), "dimension_mismatch", "3", "2", "group", **FREE),
    unfit("sizes-rank", ("f32[6,3]", "f32[2,3,4]", "s32[6,2]"), "rank_mismatch", "s32[6,2]", "1", **FREE),
    unfit("sizes-scalar", ("f32[6,3]", "f32[2,3,4]", "s32[]"), "rank_mismatch", "s32[]", "0", **FREE),
    unfit(
        "sizes-prefix",
        ("f32[4,6,3]", "f32[2,3,4]", "s32[5,2]"),
        "dimension_mismatch",
        "s32[5,2]",
        "[4]",
        **{**FREE, "lhs_contracting_dims": (2,), "lhs_ragged_dims": (1,)},
    ),
    unfit(
        "sizes-float", ("f32[6,3]", "f32[2,3,4]", "f32[2]"), "element_type_unsupported", "group_sizes", "f32", **FREE
    ),
    unfit("extent", ("f32[6,5]", "f32[2,3,4]", "s32[2]"), "dimension_mismatch", "5", "3", **FREE),
    unfit("types", ("f32[6,3]", "s32[2,3,4]", "s32[2]"), "element_type_mismatch", "f32", "s32", **FREE),
    unfit("precision", THREE, "invalid_attribute", "best", **FREE, operand_precision=("best",)),
    unscaled("divides", ("f32[2,9]", "f32[3,9]", "f32[2,2]", "f32[3,3]"), "divisibility", "2", "9", "lhs_scale"),
    unscaled(
        "rank", ("f32[2,8]", "f32[3,8]", "f32[2]", "f32[3,2]"), "rank_mismatch", "lhs_scale", "f32[2]", "f32[2,8]"
    ),
    unscaled("integer", ("s8[2,8]", "f32[3,8]", "f32[2,2]", "f32[3,2]"), "element_type_unsupported", "lhs", "s8"),
    unscaled(
        "integer-scale",
        ("f32[2,8]", "f32[3,8]", "f32[2,2]", "s32[3,2]"),
        "element_type_unsupported",
        "rhs_scale",
        "s32",
    ),
    unscaled("extent", ("f32[2,8]", "f32[3,4]", "f32[]", "f32[]"), "dimension_mismatch", "8", "4"),
    unscaled("none", ("f32[2,8]", "f32[3,8]", "f32[2,0]", "f32[3,1]"), "divisibility", "0", "8"),
    unscaled(
        "precisions",
        ("f32[2,8]", "f32[3,8]", "f32[]", "f32[]"),
        "invalid_attribute",
        "operand_precision",
        operand_precision=("high",),
    ),
]


def cut(x: xb.Value, size: int) -> xb.Value:
    return xb.set_dimension_size(x, xb.constant(x.builder, literal=np.int32(size)), 0)


COUNT, TENS = np.arange(1, 6, dtype=np.float32), 10 * np.arange(1, 6, dtype=np.float32)
CASES += [
    Case(
        "dynamic", lambda x, y: xb.dot(cut(x, 3), y), (COUNT, TENS), 140.0, source="real XLA cuts to the dynamic size"
    ),
    Case("dynamic-both", lambda x, y: xb.dot(cut(x, 3), cut(y, 1)), (COUNT, TENS), 10.0, source="real XLA, as before"),
]
