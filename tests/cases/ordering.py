"""Cases of sort and topk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import xbuild as xb
from tests.cases.case import Case, Refusal

SORT, NUMERICS, TOPK = "Operation Semantics, Sort", "numerics, Floats: comparison", "xla_builder.h, TopK"
BF16 = ml_dtypes.bfloat16
NAN, INF = np.nan, np.inf
ODD = np.array([3, NAN, -0.0, 1, 0.0, INF, -NAN, -5], np.float32)
MATRIX = np.array([[3, 1, 2], [6, 5, 4], [0, 9, 7]], np.int32)
KEYS, PLACES = np.array([2, 1, 2, 1, 0, 2], np.int32), np.arange(6, dtype=np.int32)
Comparator = Callable[..., xb.Value]


def by(direction: str, kind: str | None = None) -> Comparator:
    """The comparator of the first operand's elements."""
    return lambda a, b, *rest: xb.ops.compare(a, b, direction=direction, type=kind)


def sort(*operands: xb.Value, comparator: Comparator, dimension: int = 0, is_stable: bool = True) -> xb.Value:
    return xb.ops.sort(operands, to_apply=comparator, dimension=dimension, is_stable=is_stable)


def ordered(name: str, comparator: Comparator, operands: Any, expected: object, **more: Any) -> Case:
    attributes = {"comparator": comparator, **{k: more.pop(k) for k in ("dimension", "is_stable") if k in more}}
    return Case(f"sort-{name}", sort, operands, expected, attributes, source=more.pop("source", SORT), **more)


def number(like: xb.Value, value: float) -> xb.Value:
    return xb.constant(like.builder, literal=np.array(value, like.shape.dtype.dtype))


def canonical(x: xb.Value) -> xb.Value:
    """Every zero as 0 and every NaN as one, as front ends compare floats."""
    zero = xb.ops.select(xb.ops.compare(x, number(x, 0), direction="EQ"), number(x, 0), x)
    return xb.ops.select(xb.ops.compare(x, x, direction="NE"), number(x, NAN), zero)


def by_canonical(a: xb.Value, b: xb.Value, *rest: xb.Value) -> xb.Value:
    return xb.ops.compare(canonical(a), canonical(b), direction="LT", type="TOTALORDER")


def by_two(a: xb.Value, b: xb.Value, c: xb.Value, d: xb.Value, *rest: xb.Value) -> xb.Value:
    """The first operand up, and where that is the same the second down."""
    tie = xb.ops.and_(xb.ops.compare(a, b, direction="EQ"), xb.ops.compare(c, d, direction="GT"))
    return xb.ops.or_(xb.ops.compare(a, b, direction="LT"), tie)


def by_two_chosen(a: xb.Value, b: xb.Value, c: xb.Value, d: xb.Value, *rest: xb.Value) -> xb.Value:
    chosen = xb.ops.compare(a, b, direction="EQ")
    return xb.ops.select(chosen, by("GT")(c, d), by("LT")(a, b))


def by_difference(a: xb.Value, b: xb.Value, *rest: xb.Value) -> xb.Value:
    """No two keys: a function of both elements at once."""
    return xb.ops.compare(xb.ops.subtract(a, b), number(a, 0), direction="LT")


def by_branches(a: xb.Value, b: xb.Value, *rest: xb.Value) -> xb.Value:
    """No function of whole arrays either: it calls."""
    same = xb.ops.compare(a, b, direction="EQ")
    branches = (lambda pair: xb.lt(pair[1], pair[0]), lambda pair: xb.lt(pair[0], pair[1]))
    return xb.conditional(same, ((a, b), (a, b)), branches)


def always(a: xb.Value, b: xb.Value, *rest: xb.Value) -> xb.Value:
    return xb.ops.compare(a, a, direction="EQ")


def by_sum(a: xb.Value, b: xb.Value, c: xb.Value, d: xb.Value) -> xb.Value:
    return xb.ops.compare(xb.ops.add(a, c), xb.ops.add(b, d), direction="LT")


LONG = (np.arange(200, dtype=np.int32) * 37) % 101
WIDE = (np.arange(200, dtype=np.int64) * 37) % 101 - 2**40
WORDS = np.arange(200, dtype=np.uint32) * np.uint32(2654435761)
MANY = np.arange(200, dtype=np.int32)
STABLE = np.argsort(LONG, kind="stable").astype(np.int32)
FALLING = np.argsort(-LONG, kind="stable").astype(np.int32)

INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
SMALL = (ml_dtypes.int2, ml_dtypes.int4, ml_dtypes.uint2, ml_dtypes.uint4)
FLOATS = (
    np.float16, np.float32, np.float64, BF16, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3,
    ml_dtypes.float8_e3m4, ml_dtypes.float8_e4m3b11fnuz, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz,
)  # fmt: skip


def of_type(dtype: Any) -> list[Case]:
    low, high = (-2, 1) if np.dtype(dtype).name.startswith(("int", "float", "bfloat")) else (0, 3)
    values = np.array([1, high, low, 0, 1, low]).astype(dtype)
    up, down = [low, low, 0, 1, 1, high], [high, 1, 1, 0, low, low]
    up, down = sorted(up), sorted(down, reverse=True)
    name = np.dtype(dtype).name
    runs = dtype not in SMALL  # real XLA sorts some of them into nonsense
    return [
        ordered(f"{name}-up", by("LT"), (values,), up, oracle=runs),
        ordered(f"{name}-down", by("GT"), (values,), down, oracle=runs),
    ]


TWO_ROWS = np.array([[5, 1, 4, 2, 3], [0, 9, -1, 9, 7]], np.float32)
COLUMNS = np.tile(np.arange(5, dtype=np.int32), (2, 1))
APPROX = "XlaBuilder's library, ApproxTopK"


def approx(x: xb.Value, *rest: xb.Value, **attributes: Any) -> xb.Value:
    """The largest first, of which ties go to the first; without a value -1 and 99."""
    inits = (-1.0, 99)[: 1 + len(rest)]
    return xb.approx_top_k((x, *rest), inits, comparator=by("GT"), **attributes)


CUT = "dynamic_padder.cc, RewriteDynamicSort: what is past the dynamic size comes last, in its order"

CASES = [
    ordered("keys", by("LT"), (np.array([3, 1, 2], np.float32),), [1, 2, 3]),
    ordered(
        "keys-and-values",
        by("LT"),
        (np.array([3, 1], np.int32), np.array([42, 50], np.int32)),
        ([1, 3], [50, 42]),
    ),
    ordered("columns", by("LT"), (MATRIX,), [[0, 1, 2], [3, 5, 4], [6, 9, 7]]),
    ordered("rows", by("LT"), (MATRIX,), [[1, 2, 3], [4, 5, 6], [0, 7, 9]], dimension=1),
    ordered("rows-down", by("GT"), (MATRIX,), [[3, 2, 1], [6, 5, 4], [9, 7, 0]], dimension=1),
    ordered("swapped", lambda a, b: xb.ops.compare(b, a, direction="GT"), (MATRIX[0],), [1, 2, 3]),
    ordered(
        "middle",
        by("LT"),
        (np.arange(12, dtype=np.int16).reshape(2, 3, 2)[:, ::-1],),
        np.arange(12, dtype=np.int16).reshape(2, 3, 2),
        dimension=1,
    ),
    ordered("one", by("LT"), (np.array([7], np.int32),), [7]),
    ordered("empty", by("LT"), (np.zeros(0, np.float32),), np.zeros(0, np.float32)),
    ordered("empty-rows", by("LT"), (np.zeros((0, 3), np.int8),), np.zeros((0, 3), np.int8), dimension=1),
    ordered("ties", by("LT"), (KEYS, PLACES), ([0, 1, 1, 2, 2, 2], [4, 1, 3, 0, 2, 5])),
    ordered("ties-down", by("GT"), (KEYS, PLACES), ([2, 2, 2, 1, 1, 0], [0, 2, 5, 1, 3, 4])),
    ordered("ties-without-asking", by("LT"), (KEYS, PLACES), ([0, 1, 1, 2, 2, 2], [4, 1, 3, 0, 2, 5]), is_stable=False),
    ordered("ties-le", by("LE"), (KEYS, PLACES), ([0, 1, 1, 2, 2, 2], [4, 1, 3, 0, 2, 5]), oracle=False),
    ordered("long", by("LT"), (LONG, MANY), (LONG[STABLE], STABLE)),
    ordered("long-down", by("GT"), (LONG, MANY), (LONG[FALLING], FALLING)),
    ordered("long-64", by("LT"), (WIDE, MANY), (WIDE[STABLE], STABLE)),
    ordered("long-64-distinct", by("GT"), (MANY.astype(np.int64), MANY), (MANY[::-1].astype(np.int64), MANY[::-1])),
    ordered("long-u32", by("LT"), (WORDS, MANY), (np.sort(WORDS), np.argsort(WORDS).astype(np.int32))),
    ordered("three", by("LT"), (KEYS, PLACES, KEYS), ([0, 1, 1, 2, 2, 2], [4, 1, 3, 0, 2, 5], [0, 1, 1, 2, 2, 2])),
    ordered("nan-last", by("LT"), (ODD,), [-5, -0.0, 0.0, 1, 3, INF, NAN, NAN], source=NUMERICS, oracle=False),
    ordered("nan-last-down", by("GT"), (ODD,), [INF, 3, 1, -0.0, 0.0, -5, NAN, NAN], source=NUMERICS, oracle=False),
    ordered(
        "nan-alone", by("LT"), (np.array([2, NAN, 1], np.float32), PLACES[:3]), ([1, 2, NAN], [2, 0, 1]), oracle=False
    ),
    ordered("zeros-stay", by("LT"), (np.array([0.0, -0.0, 0.0, -1.0], np.float32),), [-1, 0.0, -0.0, 0.0]),
    ordered("zeros-stay-f64", by("GT"), (np.array([0.0, -0.0, 0.0, -1.0]),), [0.0, -0.0, 0.0, -1]),
    ordered(
        "total", by("LT", "TOTALORDER"), (ODD, np.arange(8)), (ODD[[6, 7, 2, 4, 3, 0, 5, 1]], [6, 7, 2, 4, 3, 0, 5, 1])
    ),
    ordered(
        "total-down", by("GT", "TOTALORDER"), (ODD, np.arange(8)),
        (ODD[[1, 5, 0, 3, 4, 2, 7, 6]], [1, 5, 0, 3, 4, 2, 7, 6]),
    ),
    ordered("total-alone", by("LT", "TOTALORDER"), (ODD.astype(BF16),), ODD.astype(BF16)[[6, 7, 2, 4, 3, 0, 5, 1]]),
    ordered(
        "canonical", by_canonical, (ODD, np.arange(8)), (ODD[[7, 2, 4, 3, 0, 5, 1, 6]], [7, 2, 4, 3, 0, 5, 1, 6]),
        source="JAX, sort",
    ),
    ordered("canonical-alone", by_canonical, (np.array([2, 0, -1], np.float32),), [-1, 0, 2], source="JAX, sort"),
    ordered("two-keys", by_two, (KEYS, PLACES, PLACES), ([0, 1, 1, 2, 2, 2], *[[4, 3, 1, 5, 2, 0]] * 2)),
    ordered("two-keys-chosen", by_two_chosen, (KEYS, PLACES), ([0, 1, 1, 2, 2, 2], [4, 3, 1, 5, 2, 0])),
    ordered("key-of-two", by_sum, (KEYS, PLACES[::-1]), ([0, 2, 1, 1, 2, 2], [1, 0, 2, 4, 3, 5])),
    ordered("difference", by_difference, (LONG, MANY), (LONG[STABLE], STABLE)),
    ordered(
        "difference-rows", by_difference, (MATRIX, -MATRIX),
        ([[1, 2, 3], [4, 5, 6], [0, 7, 9]], [[-1, -2, -3], [-4, -5, -6], [0, -7, -9]]), dimension=1,
    ),
    ordered("branches", by_branches, (KEYS, PLACES), ([0, 1, 1, 2, 2, 2], [4, 1, 3, 0, 2, 5])),
    ordered("contradictory", always, (KEYS, PLACES), (KEYS, PLACES), oracle=False),
    ordered(
        "pred", by("LT"), (np.array([True, False, True, False]), PLACES[:4]),
        ([False, False, True, True], [1, 3, 0, 2]),
    ),
    ordered("complex", by("LT"), (np.array([1 + 2j, 1 + 1j, 0 + 5j, -1]),), [-1, 5j, 1 + 1j, 1 + 2j], oracle=False),
    *(case for dtype in (*INTEGERS, *SMALL, *FLOATS) for case in of_type(dtype)),
    Case("sort-comfortable", xb.sort, (MATRIX,), [[1, 2, 3], [4, 5, 6], [0, 7, 9]], source=SORT),
    Case("sort-comfortable-pair", xb.sort, (KEYS, PLACES), ([0, 1, 1, 2, 2, 2], [4, 1, 3, 0, 2, 5]),
         {"is_stable": True}, source=SORT),
    Case("sort-comfortable-floats", xb.sort, (ODD,), ODD[[6, 7, 2, 4, 3, 0, 5, 1]], source="xla_builder.h, Sort"),
    Case("sort-comfortable-comparator", lambda x: xb.sort([x], lambda a, b: a > b, 0), (KEYS,), [2, 2, 2, 1, 1, 0],
         source=SORT),
    Case("topk", xb.ops.topk, (ODD,), (ODD[[1, 5, 0]], np.array([1, 5, 0], np.int32)), {"k": 3}, source=NUMERICS),
    Case("approx", approx, (TWO_ROWS, COLUMNS), ([[5, 4], [9, 9]], [[0, 2], [1, 3]]), {"top_k": 2, "reduction_dim": 1},
         source=APPROX),
    Case("approx-columns", approx, (TWO_ROWS,), ([[5, 9, 4, 9, 7]],), {"top_k": 1, "reduction_dim": 0}, source=APPROX),
    Case("approx-all", approx, (TWO_ROWS[0],), ([5, 4, 3, 2, 1],),
         {"top_k": 2, "reduction_dim": 0, "aggregate_to_topk": False}, source=APPROX),
    Case("approx-more-than-there-are", approx, (np.arange(129, dtype=np.float32)[None],),
         ([[*range(128, -1, -1), *[-1] * 127]],),
         {"top_k": 82, "reduction_dim": 1, "aggregate_to_topk": False, "reduction_input_size_override": 4096 * 4},
         source=APPROX),
    Case("topk-all", xb.ops.topk, (ODD,), (ODD[[1, 5, 0, 3, 4, 2, 7, 6]], np.array([1, 5, 0, 3, 4, 2, 7, 6], np.int32)),
         {"k": 8}, source=NUMERICS),
    Case("topk-smallest", xb.ops.topk, (ODD,), (ODD[[6, 7, 2]], np.array([6, 7, 2], np.int32)),
         {"k": 3, "largest": False}, source=NUMERICS),
    Case("topk-ties", xb.ops.topk, (KEYS,), ([2, 2, 2, 1], [0, 2, 5, 1]), {"k": 4}, source=TOPK),
    Case("topk-ties-smallest", xb.ops.topk, (KEYS,), ([0, 1, 1], [4, 1, 3]), {"k": 3, "largest": False}, source=TOPK),
    Case("topk-rows", xb.top_k, (MATRIX,), ([[3, 2], [6, 5], [9, 7]], [[0, 2], [0, 1], [1, 2]]), {"k": 2}, source=TOPK),
    Case("topk-none", xb.top_k, (MATRIX,), (np.zeros((3, 0), np.int32), np.zeros((3, 0), np.int32)), {"k": 0},
         source=TOPK),
    Case("topk-empty", xb.top_k, (np.zeros((2, 0), np.int8),), (np.zeros((2, 0), np.int8), np.zeros((2, 0), np.int32)),
         {"k": 0}, source=TOPK),
    Case("topk-long", xb.top_k, (LONG,), (LONG[FALLING[:5]], FALLING[:5]), {"k": 5}, source=TOPK),
    Case("topk-u64", xb.top_k, (np.array([2**63, 1, 2**64 - 1], np.uint64),), (np.array([2**64 - 1], np.uint64), [2]),
         {"k": 1}, source=TOPK),
    *(
        Case(
            f"topk-{np.dtype(dtype).name}", xb.top_k, (np.array([1, 0, 1, 1, 0]).astype(dtype),), ([1, 1], [0, 2]),
            {"k": 2}, source=TOPK, oracle=dtype not in SMALL,
        )
        for dtype in (np.bool_, *INTEGERS, *SMALL, *FLOATS)
    ),
]  # fmt: skip


def refused(name: str, operands: tuple[str, ...], kind: str, *names: str, **attributes: Any) -> Refusal:
    attributes.setdefault("comparator", by("LT"))
    return Refusal(f"sort-{name}", sort, operands, kind, names, attributes)


def signed(text: str) -> xb.Computation:
    """A comparator of these parameters."""
    builder = xb.Builder("comparator")
    shape = xb.parse_program_shape(text)
    values = [xb.parameter(builder, number=n, shape=each) for n, each in enumerate(shape.parameters)]
    if shape.result != xb.pred[()]:
        return builder.build(values[0])
    return builder.build(xb.constant(builder, literal=np.bool_(True)))


def beside(cut: int, whole: int) -> Callable[..., xb.Value]:
    """Two vectors in the descending order of the first; of one the first three elements are there."""

    def call(*operands: xb.Value) -> xb.Value:
        three = xb.constant(operands[0].builder, literal=np.int32(3))
        given = [xb.set_dimension_size(each, three, 0) if n == cut else each for n, each in enumerate(operands)]
        ordered = xb.ops.sort(
            given, to_apply=lambda a, b, i, j: xb.ops.compare(a, b, direction="GT"), dimension=0, is_stable=True
        )
        return xb.tuple_(ordered[whole], xb.get_dimension_size(ordered[cut], 0))

    return call


MIXED = np.array([1, 7, 2, 9, 4], np.float32), np.arange(5, dtype=np.int32)
CASES += [
    Case("sort-key-cut", beside(0, 1), MIXED, (np.array([1, 2, 0, 3, 4], np.int32), np.int32(3)), source=CUT),
    Case("sort-key-whole", beside(1, 0), MIXED, (np.array([7, 2, 1, 9, 4], np.float32), np.int32(3)), source=CUT),
]
REFUSALS = [
    refused("rank", ("f32[3,4]", "s32[3]"), "rank_mismatch", "f32[3,4]", "s32[3]"),
    refused("extents", ("f32[3,4]", "s32[3,5]"), "dimension_mismatch", "f32[3,4]", "s32[3,5]"),
    refused("dimension", ("f32[3,4]",), "dimension_out_of_range", "2", "f32[3,4]", "0..1", dimension=2),
    refused("dimension-negative", ("f32[3,4]",), "dimension_out_of_range", "-1", "0..1", dimension=-1),
    refused("scalar", ("f32[]",), "dimension_out_of_range", "f32[]"),
    refused("tuple", ("(f32[3])",), "not_array", "(f32[3])", comparator=signed("(f32[], f32[]) -> pred[]")),
    refused(
        "arity", ("f32[3]", "s32[3]"), "arity_mismatch", "2", "4", "comparator",
        comparator=signed("(f32[], f32[]) -> pred[]"),
    ),
    refused(
        "types", ("f32[3]",), "signature_mismatch", "s32[]", "f32[]", "parameter 0",
        comparator=signed("(s32[], s32[]) -> pred[]"),
    ),
    refused(
        "side-by-side", ("f32[3]", "s32[3]"), "signature_mismatch", "parameter 1",
        comparator=signed("(f32[], s32[], f32[], s32[]) -> pred[]"),
    ),
    refused(
        "result", ("f32[3]",), "signature_mismatch", "f32[]", "pred[]", comparator=signed("(f32[], f32[]) -> f32[]")
    ),
    refused("stable", ("f32[3]",), "invalid_attribute", "is_stable", is_stable="yes"),
    Refusal(
        "sort-none", lambda x: xb.ops.sort((), to_apply=signed("() -> pred[]"), dimension=0, builder=x.builder),
        ("f32[]",), "arity_mismatch", ("0", "1"),
    ),
    Refusal("sort-comfortable-dimension", xb.sort, ("f32[3,4]",), "dimension_out_of_range", ("-3",), {"dimension": -3}),
    Refusal("approx-large", approx, ("f32[4]",), "index_out_of_range", ("5", "4"), {"top_k": 5, "reduction_dim": 0}),
    Refusal("approx-dimension", approx, ("f32[4]",), "dimension_out_of_range", ("1",),
            {"top_k": 1, "reduction_dim": 1}),
    Refusal("approx-recall", approx, ("f32[4]",), "invalid_attribute", ("recall_target", "1.5"),
            {"top_k": 1, "reduction_dim": 0, "recall_target": 1.5}),
    Refusal("topk-large", xb.top_k, ("f32[4,10]",), "index_out_of_range", ("11", "10"), {"k": 11}),
    Refusal("topk-negative", xb.top_k, ("f32[4]",), "negative_size", ("-1",), {"k": -1}),
    Refusal("topk-scalar", xb.top_k, ("f32[]",), "rank_too_small", ("f32[]", "0", "1"), {"k": 0}),
    Refusal("topk-complex", xb.top_k, ("c64[4]",), "element_type_unsupported", ("c64",), {"k": 1}),
    Refusal("topk-token", xb.top_k, ("token[]",), "not_array", ("token[]",), {"k": 1}),
    Refusal("topk-number", xb.top_k, ("f32[4]",), "invalid_attribute", ("k", "1.5"), {"k": 1.5}),
]  # fmt: skip
