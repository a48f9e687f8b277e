"""Cases of slice, dynamic_slice, dynamic_update_slice and of Python's indexing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import xbuild as xb
from shape_inference import PRIMITIVES, PrimitiveType
from tests.cases.case import Case, Inferred, Refusal
from tests.cases.leaves import NOT_RUN, sample

A = np.arange(5, dtype=np.float32)
B = np.arange(12, dtype=np.float32).reshape(4, 3)
SLICE, DYNAMIC = "Operation Semantics, Slice", "Operation Semantics, DynamicSlice"
UPDATE, INDEXING = "Operation Semantics, DynamicUpdateSlice", "numerics, Indexing"
SHAPES = "shape_inference.cc, as XlaBuilder gives it"


def slice(name: str, x: np.ndarray, start: tuple, limit: tuple, strides: tuple | None, expected: object) -> Case:
    attributes = {"start_indices": start, "limit_indices": limit, "strides": strides}
    return Case(f"slice-{name}", xb.slice, (x,), expected, attributes, source=SLICE)


def at(name: str, start: object, expected: object) -> Case:
    """A dynamic slice of two from [0, 1, 2, 3, 4]."""
    call: Callable[..., xb.Value] = lambda x, i: xb.dynamic_slice(x, [i], (2,))  # noqa: E731
    return Case(f"dynamic-slice-{name}", call, (A, start), expected, source=INDEXING)


def put(name: str, start: object, expected: object) -> Case:
    """An update of [0, 1, 2, 3, 4] with [5, 6]."""
    call: Callable[..., xb.Value] = lambda x, u, i: xb.dynamic_update_slice(x, u, [i])  # noqa: E731
    arguments = (A, np.array([5, 6], np.float32), start)
    return Case(f"dynamic-update-slice-{name}", call, arguments, expected, source=INDEXING)


def index(name: str, call: Callable[..., xb.Value], expected: object, *starts: object) -> Case:
    return Case(f"index-{name}", call, (B, *starts), expected, source="NumPy, Basic indexing")


def each_type(dtype: PrimitiveType) -> Case:
    """Every op of the family on one element type: none of them may touch a bit."""
    x = sample(dtype)

    def call(x: xb.Value, i: xb.Value) -> xb.Value:
        updated = xb.dynamic_update_slice(x, xb.slice(x, (0,), (2,)), [i])
        return xb.tuple_(xb.slice(x, (1,), (6,), (2,)), xb.dynamic_slice(x, [i], (3,)), updated)

    put_in = np.concatenate((x[:2], x[:2], x[4:]))
    sources = "Operation Semantics, Slice, DynamicSlice, DynamicUpdateSlice"
    return Case(
        f"type-{dtype}",
        call,
        (x, np.int32(2)),
        (x[1:6:2], x[2:5], put_in),
        source=sources,
        oracle=dtype.name not in NOT_RUN,
    )


STARTS = [
    ("negative", np.int32(-3), 0),
    ("too-large", np.int32(100), 3),
    ("smallest", np.int32(-(2**31)), 0),
    ("smallest-s64", np.int64(-(2**63)), 0),
    ("unsigned-is-large", np.uint8(250), 3),
    ("largest-u32", np.uint32(2**32 - 1), 3),
    ("largest-u64", np.uint64(2**64 - 1), 3),
    ("s8", np.int8(1), 1),
]

CASES = [
    slice("1d", A, (2,), (4,), None, [2, 3]),
    slice("2d", B, (2, 1), (4, 3), None, [[7, 8], [10, 11]]),
    slice("strides", np.arange(10, dtype=np.float32), (0,), (10,), (3,), [0, 3, 6, 9]),
    slice("strides-2d", B, (0, 0), (4, 3), (2, 2), [[0, 2], [6, 8]]),
    slice("large-stride", A, (1,), (4,), (7,), [1]),
    slice("empty", A, (3,), (3,), None, []),
    slice("of-empty", np.zeros((0, 2), np.float32), (0, 1), (0, 2), None, np.zeros((0, 1), np.float32)),
    slice("scalar", np.float32(7), (), (), None, 7.0),
    Case(
        "slice-in-dim",
        xb.slice_in_dim,
        (B,),
        B[1:4:2],
        {"start_index": 1, "limit_index": 4, "stride": 2, "dimno": 0},
        source="xla_builder.h, SliceInDim",
    ),
    Case(
        "dynamic-slice-1d",  # the old form, of one vector, which XLA:CPU takes no more
        lambda a, s: xb.dynamic_slice(a, s, (2,)),
        (A, np.int32([2])),
        [2, 3],
        source=DYNAMIC,
        oracle=False,
    ),
    Case(
        "dynamic-slice-2d",
        lambda b, s: xb.dynamic_slice(b, s, (2, 2)),
        (B, np.int32([2, 1])),
        [[7, 8], [10, 11]],
        source=DYNAMIC,
        oracle=False,
    ),
    Case(
        "dynamic-slice-scalars",
        lambda b, i, j: xb.dynamic_slice(b, (i, j), (2, 2)),
        (B, np.int64(2), np.int64(1)),
        [[7, 8], [10, 11]],
        source=DYNAMIC,
    ),
    Case(
        "dynamic-slice-mixed",
        lambda b, i: xb.dynamic_slice(b, (i, 1), (2, 2)),
        (B, np.uint8(2)),
        [[7, 8], [10, 11]],
        source=DYNAMIC,
    ),
    Case("dynamic-slice-ints", lambda b: xb.dynamic_slice(b, (2, 9), (2, 2)), (B,), [[7, 8], [10, 11]], source=DYNAMIC),
    Case(
        "dynamic-slice-1d-scalar", lambda a, i: xb.dynamic_slice(a, [i], (2,)), (A, np.int32(2)), [2, 3], source=DYNAMIC
    ),
    Case(
        "dynamic-update-slice-2d-scalars",
        lambda b, u, i, j: xb.dynamic_update_slice(b, u, (i, j)),
        (B, np.float32([[12, 13], [14, 15], [16, 17]]), np.int32(1), np.int32(1)),
        [[0, 1, 2], [3, 12, 13], [6, 14, 15], [9, 16, 17]],
        source=UPDATE,
    ),
    Case("dynamic-slice-nothing", lambda a, i: xb.dynamic_slice(a, i, (0,)), (A, np.int32(9)), [], source=DYNAMIC),
    Case("dynamic-slice-scalar", lambda x: xb.dynamic_slice(x, (), ()), (np.float32(3),), 3.0, source=DYNAMIC),
    *(at(name, start, A[first : first + 2]) for name, start, first in STARTS),
    Case(
        "dynamic-update-slice-1d",
        xb.dynamic_update_slice,
        (A, np.float32([5, 6]), np.int32([2])),
        [0, 1, 5, 6, 4],
        source=UPDATE,
        oracle=False,
    ),
    Case(
        "dynamic-update-slice-2d",
        xb.dynamic_update_slice,
        (B, np.float32([[12, 13], [14, 15], [16, 17]]), np.int32([1, 1])),
        [[0, 1, 2], [3, 12, 13], [6, 14, 15], [9, 16, 17]],
        source=UPDATE,
        oracle=False,
    ),
    Case(
        "dynamic-update-slice-nothing",
        lambda x, u: xb.dynamic_update_slice(x, u, [9]),
        (A, np.zeros(0, np.float32)),
        A,
        source=UPDATE,
    ),
    Case(
        "dynamic-update-slice-scalar",
        lambda x, u: xb.dynamic_update_slice(x, u, ()),
        (np.float32(3), np.float32(4)),
        4.0,
        source=UPDATE,
    ),
    *(put(name, start, [*range(first), 5, 6, *range(first + 2, 5)]) for name, start, first in STARTS),
    index("int", lambda b: b[1], B[1]),
    index("negative", lambda b: b[-1, -2], 10.0),
    index("first-from-the-end", lambda b: b[-4], B[0]),
    index("step-of-one", lambda b: b[1::1], B[1:]),
    index("slice", lambda b: b[1:-1, ::2], B[1:-1, ::2]),
    index("beyond", lambda b: b[2:99], B[2:]),
    index("crossed", lambda b: b[3:1], B[3:1]),
    index("ellipsis", lambda b: b[..., 0], B[:, 0]),
    index("all", lambda b: b[...], B),
    index("value", lambda b, i: b[i], B[2], np.int32(2)),
    index("value-is-moved-inside", lambda b, i: b[i], B[3], np.int32(7)),
    index("value-and-int", lambda b, i: b[1:, i][0], 4.0, np.uint16(1)),
    index("two-values", lambda b, i, j: b[i, j], 8.0, np.int32(2), np.int32(2)),
    *(each_type(dtype) for dtype in PRIMITIVES.values()),
]


def cut(
    operand: str, start: tuple[int, ...], limit: tuple[int, ...], strides: tuple[int, ...], result: str
) -> Inferred:
    name = f"slice-{operand}-{result}"
    return Inferred(name, lambda x: xb.slice(x, start, limit, strides), (operand,), result, SHAPES)


def window_of(operand: str, sizes: tuple[int, ...], result: str) -> Inferred:
    name = f"dynamic-slice-{operand}-{result}"
    return Inferred(name, lambda x, *i: xb.dynamic_slice(x, i, sizes), (operand, "s32[]", "s32[]"), result, SHAPES)


def updated(operand: str, update: str, result: str) -> Inferred:
    name = f"dynamic-update-slice-{operand}-{update}"
    return Inferred(
        name, lambda x, u, i: xb.dynamic_update_slice(x, u, [i]), (operand, update, "s32[]"), result, SHAPES
    )


INFERRED = [
    cut("f32[<=4,3]", (0, 0), (4, 3), (1, 1), "f32[<=4,3]"),
    cut("f32[<=4,3]", (1, 0), (3, 2), (1, 1), "f32[<=2,2]"),
    cut("f32[<=4,3]", (0, 0), (4, 3), (2, 1), "f32[<=2,3]"),
    cut("f32[<=4,3]", (0, 0), (0, 3), (1, 1), "f32[<=0,3]"),
    cut("f32[<=4,3]", (1, 0), (2, 3), (1, 1), "f32[1,3]"),
    cut("f32[<=1,<=3]", (0, 0), (1, 2), (1, 1), "f32[1,<=2]"),
    cut("f32[4,3]{0,1}", (0, 0), (2, 3), (1, 1), "f32[2,3]"),
    window_of("f32[<=4,<=3]", (4, 3), "f32[<=4,<=3]"),
    window_of("f32[<=4,<=3]", (2, 3), "f32[2,<=3]"),
    window_of("f32[<=4,<=3]", (1, 2), "f32[1,2]"),
    window_of("f32[<=2,<=3]", (2, 2), "f32[<=2,2]"),
    window_of("f32[<=1,<=3]", (1, 3), "f32[1,<=3]"),
    window_of("f32[4,<=3]", (4, 3), "f32[4,<=3]"),
    updated("bf16[4]", "f32[2]", "bf16[4]"),
    updated("f32[4]", "bf16[2]", "f32[4]"),
    updated("f32[<=4]", "f32[2]", "f32[<=4]"),
    updated("f32[4]", "f32[<=2]", "f32[4]"),
]


def refused(
    name: str, call: object, operands: tuple[str, ...], kind: str, *names: str, **attributes: object
) -> Refusal:
    return Refusal(name, call, operands, kind, names, attributes)


def from_to(name: str, start: tuple, limit: tuple, strides: tuple | None, kind: str, *names: str) -> Refusal:
    attributes = {"start_indices": start, "limit_indices": limit, "strides": strides}
    return Refusal(f"slice-{name}", xb.slice, ("f32[10,2]",), kind, names, attributes)


def window(name: str, operands: tuple[str, ...], sizes: tuple, kind: str, *names: str) -> Refusal:
    def call(x: xb.Value, *starts: xb.Value) -> xb.Value:
        return xb.ops.dynamic_slice(x, starts, dynamic_slice_sizes=sizes)

    return Refusal(f"dynamic-slice-{name}", call, operands, kind, names)


def update(name: str, operands: tuple[str, ...], kind: str, *names: str) -> Refusal:
    def call(x: xb.Value, new: xb.Value, *starts: xb.Value) -> xb.Value:
        return xb.dynamic_update_slice(x, new, starts)

    return Refusal(f"dynamic-update-slice-{name}", call, operands, kind, names)


REFUSALS = [
    from_to("negative-start", (-1, 0), (5, 2), None, "index_out_of_range", "-1", "dimension 0"),
    from_to("limit", (0, 0), (5, 3), None, "index_out_of_range", "3", "dimension 1", "2"),
    from_to("crossed", (6, 0), (5, 2), None, "index_out_of_range", "6", "5"),
    from_to("negative-limit", (0, 0), (-1, 2), None, "index_out_of_range", "limit_indices[0]=-1", "0..10"),
    from_to("start-above-no-limit", (3, 0), (0, 2), None, "index_out_of_range", "start_indices[0]=3", "0..0"),
    from_to("start-above-all", (11, 0), (10, 2), None, "index_out_of_range", "start_indices[0]=11", "0..10"),
    from_to("both-above", (12, 0), (11, 2), None, "index_out_of_range", "limit_indices[0]=11", "0..10"),
    from_to("stride", (0, 0), (5, 2), (1, 0), "non_positive", "0", "dimension 1"),
    from_to("starts", (0,), (5, 2), None, "attribute_length_mismatch", "1", "2"),
    from_to("limits", (0, 0), (5,), None, "attribute_length_mismatch", "1", "2"),
    from_to("strides", (0, 0), (5, 2), (1,), "attribute_length_mismatch", "1", "2"),
    refused(
        "slice-tuple",
        xb.slice,
        ("(f32[10])",),
        "not_array",
        "(f32[10])",
        start_indices=(0,),
        limit_indices=(5,),
    ),
    refused(
        "slice-in-dim",
        xb.slice_in_dim,
        ("f32[10,2]",),
        "dimension_out_of_range",
        "2",
        "0..1",
        start_index=0,
        limit_index=1,
        dimno=2,
    ),
    window("float", ("f32[10]", "f32[]"), (3,), "element_type_unsupported", "integer", "f32[]"),
    window("pred", ("f32[10]", "pred[]"), (3,), "element_type_unsupported", "integer", "pred[]"),
    window("too-few", ("f32[10,8]", "s32[]"), (3, 8), "arity_mismatch", "1", "2"),
    window("too-many", ("f32[10]", "s32[]", "s32[]"), (3,), "arity_mismatch", "1", "2"),
    window("rank", ("f32[10,8]", "s32[1,2]"), (3, 8), "rank_mismatch", "s32[1,2]", "2", "1"),
    window("vector", ("f32[10,8]", "s32[3]"), (3, 8), "dimension_mismatch", "s32[3]", "2"),
    window("vectors", ("f32[10,8]", "s32[2]", "s32[2]"), (3, 8), "non_scalar", "s32[2]"),
    window("types", ("f32[10,8]", "s32[]", "s64[]"), (3, 8), "element_type_mismatch", "s32", "s64"),
    window("negative", ("f32[10]", "s32[]"), (-1,), "negative_size", "-1"),
    window("too-large", ("f32[10]", "s32[]"), (11,), "index_out_of_range", "11", "10"),
    window("sizes", ("f32[10,8]", "s32[]", "s32[]"), (3,), "attribute_length_mismatch", "1", "2"),
    window("token", ("token[]", "s32[]"), (3,), "not_array", "token[]"),
    update("too-large", ("f32[10]", "f32[11]", "s32[]"), "index_out_of_range", "11", "10"),
    update("rank", ("f32[10,8]", "f32[3]", "s32[]", "s32[]"), "rank_mismatch", "1", "2"),
    update("type", ("f32[10]", "s32[3]", "s32[]"), "element_type_mismatch", "f32", "s32"),
    update("starts", ("f32[10]", "f32[3]", "f32[]"), "element_type_unsupported", "integer"),
    update("too-few", ("f32[10,8]", "f32[3,3]", "s32[]"), "arity_mismatch", "1", "2"),
    update("tuple", ("f32[10]", "(f32[3])", "s32[]"), "not_array", "(f32[3])"),
    refused("index-empty", lambda x: x[0], ("f32[0,8]",), "index_out_of_range", "its extent is 0"),
    *(
        refused(
            f"index-{name}",
            lambda x, i, chosen: x[i if chosen == "i" else chosen],
            ("f32[10,8]", "f32[]"),
            kind,
            *names,
            chosen=chosen,
        )
        for name, chosen, kind, names in (
            ("range", 10, "index_out_of_range", ("10", "dimension 0", "-10..9")),
            ("negative", (0, -9), "index_out_of_range", ("-9", "dimension 1", "-8..7")),
            ("below", -11, "index_out_of_range", ("-11", "dimension 0")),
            ("step", np.s_[::-1], "non_positive", ("got -1", "dimension 0")),
            ("step-of-zero", np.s_[::0], "non_positive", ("got 0", "dimension 0")),
            ("bound", np.s_[1.5:], "invalid_attribute", ("1.5",)),
            ("too-many", (0, 0, 0), "rank_mismatch", ("3", "2")),
            ("ellipses", (..., ...), "invalid_attribute", ("2",)),
            ("float", 1.5, "invalid_attribute", ("1.5",)),
            ("value", "i", "element_type_unsupported", ("f32[]", "integer")),
        )
    ),
]
