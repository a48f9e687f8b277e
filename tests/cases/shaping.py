"""Cases of broadcast, reshape, transpose, reverse, concatenate, pad, collapse and dimension sizes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import xbuild as xb
from shape_inference import PRIMITIVES, PrimitiveType, parse_shape
from tests.cases.case import Case, Inferred, Refusal, is_run_by_xla
from tests.cases.leaves import sample

V = np.array([[[a + b for b in range(3)] for a in (10 * n, 10 * n + 5)] for n in (1, 2, 3, 4)], np.float32)
BY_COLUMNS = [10, 20, 30, 40, 11, 21, 31, 41, 12, 22, 32, 42, 15, 25, 35, 45, 16, 26, 36, 46, 17, 27, 37, 47]
SIX = np.array([[0, 1, 2], [3, 4, 5]], np.int32)
RESHAPE, BROADCAST = "Operation Semantics, Reshape", "Operation Semantics, Broadcast"
PAD, CONCATENATE = "Operation Semantics, Pad", "Operation Semantics, Concatenate"
IN_DIM = "xla_builder.h, BroadcastInDim"
SHAPES = "shape_inference.cc, as XlaBuilder gives it"


def reshape(name: str, order: tuple[int, ...] | None, sizes: tuple[int, ...], expected: object) -> Case:
    return Case(name, lambda v: xb.reshape(v, sizes, order), (V,), expected, source=RESHAPE)


def pad(name: str, values: object, padding: object, expected: object, source: str = PAD) -> Case:
    arguments = (np.array(values, np.int32), np.int32(9))
    return Case(f"pad-{name}", xb.pad, arguments, expected, {"padding": padding}, source=source)


def each_type(dtype: PrimitiveType) -> Case:
    """Every op of the family on one element type: none of them may touch a bit."""
    x = sample(dtype).reshape(2, 3)

    def call(x: xb.Value, y: xb.Value) -> xb.Value:
        return xb.tuple_(
            xb.ops.broadcast(x, sizes=(3, 2, 2), dimensions=(2, 0)),
            xb.reshape(x, (3, 2)),
            xb.transpose(x, (1, 0)),
            xb.reverse(x, (0, 1)),
            xb.concatenate((x, x), 1),
            xb.pad(x, y, [(1, -1, 0), (0, 1, 1)]),
        )

    padded = np.full((2, 6), x[0, 0])
    padded[1, 0:5:2] = x[0]
    expected = (
        np.broadcast_to(x.T[:, None, :], (3, 2, 2)),
        x.reshape(3, 2),
        x.T,
        x[::-1, ::-1],
        np.concatenate((x, x), 1),
        padded,
    )
    sources = "Operation Semantics, Broadcast, Reshape, Transpose, Rev, Concatenate, Pad"
    return Case(f"type-{dtype}", call, (x, x[0, 0]), expected, source=sources, oracle=is_run_by_xla(dtype))


GET, SET = "StableHLO, get_dimension_size", "xla_builder.h, SetDimensionSize"
DYNAMIC_RESHAPE = "xla_builder.h, DynamicReshape"
BEYOND = "xbuild.ops.set_dimension_size: sizes are clamped, and what is lacking is zero"


def cut(name: str, size: int, expected: object, dimension: int = 1, source: str = SET) -> Case:
    """A dynamic result, of which real XLA on a CPU gives the elements up to the bound, or none at all."""
    arguments = (SIX, np.int32(size))
    return Case(
        f"set-size-{name}",
        xb.set_dimension_size,
        arguments,
        expected,
        {"dimension": dimension},
        source=source,
        oracle=False,
    )


def observed(name: str, size: int, call: Callable[[xb.Value], xb.Value], expected: object) -> Case:
    """What is static of an array that was cut, which real XLA can be asked for, too."""
    arguments = (SIX, np.int32(size))
    return Case(
        f"of-dynamic-{name}", lambda x, n: call(xb.set_dimension_size(x, n, 1)), arguments, expected, source=SET
    )


def sum_of(x: xb.Value) -> xb.Value:
    return xb.reduce(x, 0, xb.add, range(len(x.shape.dims)))  # type: ignore[union-attr]


def dynamic_reshape(
    name: str, sizes: tuple[int, ...], bounds: tuple[int, ...], flags: tuple[bool, ...], expected: object, source: str
) -> Case:
    def call(x: xb.Value, *sizes: xb.Value) -> xb.Value:
        return xb.ops.dynamic_reshape(x, sizes, new_size_bounds=bounds, dims_are_dynamic=flags)

    return Case(f"dynamic-reshape-{name}", call, (SIX, *map(np.int32, sizes)), expected, source=source, oracle=False)


DIMENSION_SIZES = [
    *(
        Case(f"get-size-{dim}", xb.get_dimension_size, (SIX,), np.int32(size), {"dimension": dim}, source=GET)
        for dim, size in enumerate(SIX.shape)
    ),
    Case("get-size-zero", lambda x: xb.get_dimension_size(x, 0), (np.zeros((0, 2)),), np.int32(0), source=GET),
    cut("two", 2, SIX[:, :2]),
    cut("rows", 1, SIX[:1], 0),
    cut("none", 0, SIX[:, :0]),
    cut("bound", 3, SIX),
    cut("beyond", 4, SIX, source=BEYOND),
    cut("negative", -1, SIX[:, :0], source=BEYOND),
    cut("least", -(2**31), SIX[:, :0], source=BEYOND),
    Case(
        "set-size-number",
        lambda x: xb.set_dimension_size(x, 1, 0),
        (SIX,),
        SIX[:1],
        source=SET,
        oracle=False,
    ),
    Case(
        "set-size-twice",
        lambda x: xb.set_dimension_size(xb.set_dimension_size(x, 1, 0), 2, 1),
        (SIX,),
        SIX[:1, :2],
        source=SET,
        oracle=False,
    ),
    *(
        Case(
            f"set-size-again-{size}",
            lambda x, n: xb.set_dimension_size(xb.set_dimension_size(x, 2, 1), n, 1),
            (SIX, np.int32(size)),
            expected,
            source=BEYOND,
            oracle=False,
        )
        for size, expected in (
            (1, SIX[:, :1]),
            (2, SIX[:, :2]),
            (3, [[0, 1, 0], [3, 4, 0]]),
            (9, [[0, 1, 0], [3, 4, 0]]),
        )
    ),
    observed("size", 2, lambda x: xb.get_dimension_size(x, 1), np.int32(2)),
    observed("other-size", 2, lambda x: xb.get_dimension_size(x, 0), np.int32(2)),
    observed("sum", 2, sum_of, 8),
    observed("sum-none", 0, sum_of, 0),
    observed("sum-doubled", 1, lambda x: sum_of(x + x), 6),
    observed("rows", 2, lambda x: xb.reduce(x, 0, xb.add, (1,)), np.int32([1, 7])),
    observed("transposed-size", 1, lambda x: xb.get_dimension_size(xb.transpose(x, (1, 0)), 0), np.int32(1)),
    observed("broadcast", 2, lambda x: sum_of(xb.ops.broadcast(x, sizes=(2, 4, 3), dimensions=(0, 2))), 32),
    observed("stretched", 2, lambda x: sum_of(x + xb.slice(x * 0 + 1, (0, 0), (2, 1))), 12),
    dynamic_reshape("whole", (2, 3), (3, 2), (False, True), [[0, 1], [2, 3], [4, 5]], DYNAMIC_RESHAPE),
    dynamic_reshape("flat", (6,), (6,), (True,), SIX.reshape(6), DYNAMIC_RESHAPE),
    dynamic_reshape("static-size-is-the-bound", (1, 1), (3, 2), (False, False), SIX.reshape(3, 2), DYNAMIC_RESHAPE),
    dynamic_reshape(
        "both", (1, 3), (2, 3), (True, True), [[0, 1, 2]], "xbuild.ops.dynamic_reshape: the rest is left out"
    ),
    dynamic_reshape("beyond", (9, -1), (2, 3), (True, True), np.zeros((2, 0), np.int32), BEYOND),
    *(
        Case(
            f"dynamic-reshape-of-dynamic-{columns}",
            lambda x, n, columns: xb.dynamic_reshape(
                xb.set_dimension_size(x, n, 1), (2, columns), (2, 3), (False, True)
            ),
            (SIX, np.int32(2), np.int32(columns)),
            expected,
            source=DYNAMIC_RESHAPE,
            oracle=False,
        )
        for columns, expected in ((1, [[0], [1]]), (2, [[0, 1], [3, 4]]), (3, [[0, 1, 3], [4, 0, 0]]))
    ),
    Case(
        "dynamic-reshape-size",
        lambda x, n: xb.get_dimension_size(xb.dynamic_reshape(x, (2, n), (2, 3), (False, True)), 1),
        (SIX, np.int32(2)),
        np.int32(2),
        source=DYNAMIC_RESHAPE,
    ),
]


def whole_again(x: xb.Value, rows: xb.Value, dimension: int) -> xb.Value:
    """Both dimensions cut, and one of them made whole."""
    return xb.remove_dynamic_dimension(cut_twice(x, rows), dimension)


def cut_twice(x: xb.Value, rows: xb.Value) -> xb.Value:
    return xb.set_dimension_size(xb.set_dimension_size(x, rows, 0), 2, 1)


CASES = [
    Case(
        "whole-rows",
        whole_again,
        (SIX, np.int32(1)),
        np.array([[0, 1], [0, 0]], np.int32),
        {"dimension": 0},
        source="xla_builder.h, RemoveDynamicDimension",
        oracle=False,
    ),
    Case(
        "whole-columns",
        whole_again,
        (SIX, np.int32(1)),
        np.array([[0, 1, 0]], np.int32),
        {"dimension": 1},
        source="xla_builder.h, RemoveDynamicDimension",
        oracle=False,
    ),
    Case(
        "whole-already",
        xb.remove_dynamic_dimension,
        (SIX,),
        SIX,
        {"dimension": 1},
        source="xla_builder.h, RemoveDynamicDimension",
    ),
    reshape("reshape-012-24", (0, 1, 2), (24,), V.reshape(24)),
    reshape("reshape-012-83", (0, 1, 2), (8, 3), V.reshape(8, 3)),
    reshape("reshape-120-24", (1, 2, 0), (24,), BY_COLUMNS),
    reshape("reshape-120-83", (1, 2, 0), (8, 3), np.array(BY_COLUMNS, np.float32).reshape(8, 3)),
    reshape("reshape-120-262", (1, 2, 0), (2, 6, 2), np.array(BY_COLUMNS, np.float32).reshape(2, 6, 2)),
    Case("reshape-to-scalar", lambda x: xb.reshape(x, (), (0, 1)), (np.array([[5]], np.float32),), 5.0, source=RESHAPE),
    Case("reshape-of-scalar", lambda x: xb.reshape(x, (1, 1), ()), (np.float32(5),), [[5.0]], source=RESHAPE),
    Case("reshape-empty", lambda x: xb.reshape(x, (7, 0)), (np.zeros((0, 3)),), np.zeros((7, 0)), source=RESHAPE),
    *(
        Case(
            f"collapse-{''.join(map(str, dims))}",
            xb.collapse,
            (V,),
            V.reshape(sizes),
            {"dimensions": dims},
            source="Operation Semantics, Collapse",
        )
        for dims, sizes in (((0, 1, 2), (24,)), ((0, 1), (8, 3)), ((1, 2), (4, 6)), ((1,), (4, 2, 3)), ((), (4, 2, 3)))
    ),
    Case(
        "broadcast-scalar",
        lambda x: xb.broadcast(x, (2, 3)),
        (np.float32(2),),
        np.full((2, 3), 2, np.float32),
        source=BROADCAST,
    ),
    Case("broadcast-leading", lambda x: xb.broadcast(x, (2,)), (SIX,), [SIX, SIX], source=BROADCAST),
    Case("broadcast-nothing-new", lambda x: xb.broadcast(x, ()), (SIX,), SIX, source=BROADCAST),
    Case(
        "broadcast-zero", lambda x: xb.broadcast(x, (0,)), (np.float32(2),), np.zeros(0, np.float32), source=BROADCAST
    ),
    Case(
        "broadcast-large",
        lambda x: xb.broadcast(x, (5000,)),
        (np.float32(2.5),),
        np.full(5000, 2.5, np.float32),
        source=BROADCAST,
    ),
    Case(
        "broadcast-transposes",
        xb.ops.broadcast,
        (SIX,),
        np.broadcast_to(SIX.T[:, None, :], (3, 4, 2)),
        {"sizes": (3, 4, 2), "dimensions": (2, 0)},
        source="HLO text, broadcast",
    ),
    *(
        Case(
            f"broadcast-in-dim-{name}",
            xb.broadcast_in_dim,
            (x,),
            expected,
            {"shape": shape, "broadcast_dimensions": dims},
            source=IN_DIM,
        )
        for name, x, shape, dims, expected in (
            ("row", np.int32([1, 2, 3]), (2, 3), (1,), [[1, 2, 3]] * 2),
            ("column", np.int32([1, 2]), (2, 3), (0,), [[1] * 3, [2] * 3]),
            ("stretch", SIX[:, :1], (2, 3), (0, 1), [[0] * 3, [3] * 3]),
            ("stretch-both", np.int32([[7]]), (2, 2, 2), (0, 2), np.full((2, 2, 2), 7, np.int32)),
            ("stretch-to-zero", np.int32([[7]]), (2, 0), (0, 1), np.zeros((2, 0), np.int32)),
            ("shape", np.int32([1]), xb.s32[2], (0,), [1, 1]),
            ("same", SIX, (2, 3), (0, 1), SIX),
        )
    ),
    Case(
        "transpose-201",
        xb.transpose,
        (V,),
        V.transpose(2, 0, 1),
        {"permutation": (2, 0, 1)},
        source="Operation Semantics, Transpose",
    ),
    Case(
        "transpose-scalar",
        xb.transpose,
        (np.float32(3),),
        3.0,
        {"permutation": ()},
        source="Operation Semantics, Transpose",
    ),
    *(
        Case(
            f"reverse-{''.join(map(str, dims))}",
            xb.reverse,
            (SIX,),
            np.flip(SIX, dims),
            {"dimensions": dims},
            source="Operation Semantics, Rev (reverse)",
        )
        for dims in ((), (0,), (1,), (1, 0))
    ),
    Case(
        "concatenate-1d",
        lambda a, b, c: xb.concatenate((a, b, c), 0),
        tuple(np.array(pair, np.float32) for pair in ((2, 3), (4, 5), (6, 7))),
        [2, 3, 4, 5, 6, 7],
        source=CONCATENATE,
    ),
    Case(
        "concatenate-2d",
        lambda a, b: xb.concatenate((a, b), 0),
        (np.int32([[1, 2], [3, 4], [5, 6]]), np.int32([[7, 8]])),
        [[1, 2], [3, 4], [5, 6], [7, 8]],
        source=CONCATENATE,
    ),
    Case("concatenate-one", lambda a: xb.concatenate([a], 1), (SIX,), SIX, source=CONCATENATE),
    Case(
        "concatenate-with-empty",
        lambda a, b: xb.concatenate((a, b, b), 0),
        (np.zeros((0, 3), np.int32), SIX),
        [*SIX.tolist()] * 2,
        source=CONCATENATE,
    ),
    pad("edges", [1, 2, 3], [(1, 2)], [9, 1, 2, 3, 9, 9]),
    pad("interior", [1, 2, 3], [(0, 0, 2)], [1, 9, 9, 2, 9, 9, 3]),
    pad("crops-after-interior", [1, 2, 3], [(-1, -1, 1)], [9, 2, 9], "numerics, Indexing"),
    pad("all-cropped", [1, 2, 3, 4, 5], [(-5, 9)], [9] * 9, "numerics, Indexing"),
    pad("to-nothing", [1, 2, 3, 4, 5], [(-2, -3)], []),
    pad("crops-into-interior", [1, 2, 3], [(-2, 1, 2)], [9, 2, 9, 9, 3, 9]),
    pad("crops-high", [1, 2, 3], [(1, -3, 2)], [9, 1, 9, 9, 2]),
    pad("empty-has-no-interior", [], [(1, 1, 4)], [9, 9], "numerics, Indexing"),
    pad("one-has-no-interior", [1], [(0, 0, 5)], [1]),
    pad("scalar", 5, [], 5),
    pad("two-dimensions", SIX, [(0, 1), (1, 0, 1)], [[9, 0, 9, 1, 9, 2], [9, 3, 9, 4, 9, 5], [9] * 6]),
    pad("nothing", SIX, [(0, 0), (0, 0)], SIX),
    Case(
        "pad-number",
        lambda x: xb.pad(x, -np.inf, [(1, 0)]),
        (np.float32([1]),),
        [-np.inf, 1.0],
        source=PAD,
    ),
    Case("broadcast-scalar-to-scalar", lambda x: xb.broadcast(x, ()), (np.float32(2),), 2.0, source=BROADCAST),
    *(each_type(dtype) for dtype in PRIMITIVES.values()),
    *DIMENSION_SIZES,
]


def inferred(
    name: str, call: Callable[..., xb.Value], operands: tuple[str, ...], result: str, source: str = SHAPES
) -> Inferred:
    return Inferred(name, call, operands, result, source)


def reshaped(operand: str, result: str, source: str = SHAPES) -> Inferred:
    """A reshape to the extents of the result, which says where the dynamic dimensions have gone."""
    sizes = parse_shape(result).dims
    name = f"reshape-{operand}-{result}"
    return inferred(name, lambda x: xb.ops.reshape(x, new_sizes=sizes), (operand,), result, source)


def joined(name: str, operands: tuple[str, ...], result: str, source: str = SHAPES) -> Inferred:
    return inferred(f"concatenate-{name}", lambda *xs: xb.ops.concatenate(xs, dimension=0), operands, result, source)


def padded(name: str, operands: tuple[str, ...], padding: object, result: str) -> Inferred:
    return inferred(f"pad-{name}", lambda x, value: xb.pad(x, value, padding), operands, result)


INFERRED = [
    inferred("broadcast", lambda x: xb.broadcast(x, (2,)), ("f32[<=4,3]",), "f32[2,<=4,3]"),
    inferred("broadcast-layout", lambda x: xb.broadcast(x, (2,)), ("f32[4,3]{0,1}",), "f32[2,4,3]"),
    inferred("broadcast-most", lambda x: xb.broadcast(x, (2**63 - 1,)), ("f32[]",), f"f32[{2**63 - 1}]"),
    inferred("broadcast-in-dim", lambda x: xb.broadcast_in_dim(x, (4, 3, 2), (0, 1)), ("f32[4,<=3]",), "f32[4,<=3,2]"),
    *(
        reshaped(operand, result)
        for operand, result in (
            ("f32[<=6]", "f32[<=6]"),
            ("f32[<=6]", "f32[1,<=6]"),
            ("f32[<=6]", "f32[<=6,1]"),
            ("f32[1,<=6]", "f32[<=6,1]"),
            ("f32[<=5,1]", "f32[<=5]"),
            ("f32[1,<=5]", "f32[<=5]"),
            ("f32[<=1,4]", "f32[<=4]"),
            ("f32[<=6,2]", "f32[<=12]"),
            ("f32[6,<=2]", "f32[<=12]"),
            ("f32[<=6,<=2]", "f32[<=12]"),
            ("f32[<=2,<=3]", "f32[<=2,<=3]"),
            ("f32[2,<=3,4]", "f32[2,<=3,2,2]"),
            ("f32[4,<=3]", "f32[2,2,<=3]"),
            ("f32[<=6,4,5]", "f32[<=6,20]"),
            ("f32[2,3,<=5]", "f32[6,<=5]"),
            ("f32[2,3,2,<=4]", "f32[12,<=4]"),
            ("f32[2,3,<=5,7,2]", "f32[6,<=5,14]"),
            ("f32[2,<=3,4,5]", "f32[2,<=12,5]"),
            ("f32[2,6,<=5]", "f32[3,4,<=5]"),
            ("f32[2,2,6,<=5]", "f32[4,3,2,<=5]"),
            ("f32[2,<=4]", "f32[2,1,<=4]"),
            ("f32[<=4,2]", "f32[<=4,1,2]"),
            ("f32[<=2,1,3]", "f32[<=2,1,1,3]"),
        )
    ),
    *(
        reshaped(operand, result, "shape_inference, reshape: the major one of those that it becomes")
        for operand, result in (
            ("f32[<=6]", "f32[<=2,3]"),
            ("f32[<=12]", "f32[<=2,3,2]"),
            ("f32[<=6]", "f32[1,<=3,1,2]"),
            ("f32[<=4,5,6]", "f32[<=2,2,5,2,3]"),
        )
    ),
    inferred("transpose", lambda x: xb.transpose(x, (2, 0, 1)), ("f32[<=4,3,2]",), "f32[2,<=4,3]"),
    inferred("reverse", lambda x: xb.reverse(x, (0,)), ("f32[<=4,3]{0,1}",), "f32[<=4,3]"),
    joined("dynamic-first", ("f32[<=4,3]", "f32[2,3]"), "f32[<=6,3]"),
    joined("dynamic-second", ("f32[4,3]", "f32[<=2,3]"), "f32[<=6,3]"),
    joined("dynamic-beside", ("f32[4,<=3]", "f32[2,3]"), "f32[6,<=3]"),
    joined("dynamic-both", ("f32[2,3]", "f32[2,<=3]", "f32[<=2,3]"), "f32[<=6,<=3]"),
    joined("most", (f"f32[{2**62}]", f"f32[{2**62 - 1}]"), f"f32[{2**63 - 1}]"),
    joined("wider-second", ("bf16[2]", "f32[2]"), "f32[4]"),
    joined("wider-first", ("f32[2]", "bf16[2]"), "f32[4]"),
    joined("greater-range", ("f16[2]", "bf16[2]"), "bf16[4]"),
    joined("widest-last", ("f16[2]", "bf16[2]", "f32[1]"), "f32[5]"),
    joined("widest-first", ("f32[1]", "f16[2]", "bf16[2]"), "f32[5]"),
    joined("alike", ("f8e4m3[1]", "f8e4m3fnuz[1]"), "f8e4m3[2]", "shape_inference, wider: the first of two alike"),
    padded("dynamic", ("f32[<=4,3]", "f32[]"), [(1, 2), (0, 0, 1)], "f32[<=7,5]"),
    padded("wider-value", ("bf16[2]", "f32[]"), [(1, 2)], "f32[5]"),
    padded("wider-operand", ("f32[2]", "bf16[]"), [(1, 2)], "f32[5]"),
    inferred("get-size", lambda x: xb.get_dimension_size(x, 0), (f"f32[<={2**31 - 1}]",), "s32[]"),
    inferred("set-size", lambda x, n: xb.set_dimension_size(x, n, 1), ("f32[2,3]{0,1}", "s32[]"), "f32[2,<=3]"),
    inferred("set-size-constant", lambda x: xb.set_dimension_size(x, 3, 1), ("f32[2,3]",), "f32[2,<=3]"),
    inferred("set-size-beside", lambda x, n: xb.set_dimension_size(x, n, 0), ("f32[2,<=3]", "s32[]"), "f32[<=2,<=3]"),
    inferred("set-size-again", lambda x, n: xb.set_dimension_size(x, n, 0), ("f32[<=2,3]", "s32[]"), "f32[<=2,3]"),
    *(
        inferred(
            f"dynamic-reshape-{operand}-{flags}",
            lambda x, *n, flags=flags: xb.dynamic_reshape(x, n, (2, 3), flags),
            (operand, "s32[]", "s32[]"),
            result,
        )
        for operand, flags, result in (
            ("f32[6]", (False, True), "f32[2,<=3]"),
            ("f32[<=6]", (True, False), "f32[<=2,3]"),
            ("f32[<=6]", (False, False), "f32[2,3]"),
            ("f32[3,2]", (True, True), "f32[<=2,<=3]"),
        )
    ),
]


def refused(
    name: str, call: object, operands: tuple[str, ...], kind: str, *names: str, **attributes: object
) -> Refusal:
    return Refusal(name, call, operands, kind, names, attributes)


REFUSALS = [
    Refusal(
        "in-dim-of-scalar",
        xb.broadcast_in_dim,
        ("f32[]",),
        "negative_size",
        ("shape [-1, 2]",),
        {"shape": (-1, 2), "broadcast_dimensions": ()},
    ),
    refused("broadcast-tuple", xb.broadcast, ("(f32[2])",), "not_array", "(f32[2])", sizes=(2,)),
    refused("broadcast-negative", xb.broadcast, ("f32[3]",), "negative_size", "-1", sizes=(2, -1)),
    refused("broadcast-overflow", xb.broadcast, ("f32[]",), "overflow", str(2**40), sizes=(2**40, 2**40)),
    refused(
        "broadcast-length",
        xb.ops.broadcast,
        ("f32[2,3]",),
        "attribute_length_mismatch",
        "1",
        "2",
        "f32[2,3]",
        sizes=(2, 3),
        dimensions=(0,),
    ),
    refused(
        "broadcast-range",
        xb.ops.broadcast,
        ("f32[3]",),
        "dimension_out_of_range",
        "2",
        "0..1",
        sizes=(2, 3),
        dimensions=(2,),
    ),
    refused(
        "broadcast-twice",
        xb.ops.broadcast,
        ("f32[3,3]",),
        "duplicate_dimension",
        "[1, 1]",
        sizes=(2, 3),
        dimensions=(1, 1),
    ),
    refused(
        "broadcast-extent",
        xb.ops.broadcast,
        ("f32[3]",),
        "dimension_mismatch",
        "3",
        "2",
        "[0]",
        sizes=(2, 3),
        dimensions=(0,),
    ),
    refused(
        "broadcast-below",
        xb.ops.broadcast,
        ("f32[3]",),
        "dimension_out_of_range",
        "-1",
        "0..1",
        sizes=(2, 3),
        dimensions=(-1,),
    ),
    refused(
        "broadcast-says-what-fits",
        xb.ops.broadcast,
        ("f32[3,4]",),
        "dimension_mismatch",
        "dimension 1 fits dimension 0 or 3 of the result",
        sizes=(4, 3, 5, 4),
        dimensions=(1, 2),
    ),
    refused("broadcast-no-list", xb.ops.broadcast, ("f32[]",), "invalid_attribute", "sizes", sizes=3, dimensions=()),
    refused(
        "in-dim-rank",
        xb.broadcast_in_dim,
        ("f32[2,3]",),
        "rank_mismatch",
        "2",
        "1",
        shape=(3,),
        broadcast_dimensions=(0, 0),
    ),
    refused(
        "in-dim-length",
        xb.broadcast_in_dim,
        ("f32[2,3]",),
        "attribute_length_mismatch",
        "2",
        "1",
        shape=(2, 3),
        broadcast_dimensions=(0,),
    ),
    refused(
        "in-dim-extent",
        xb.broadcast_in_dim,
        ("f32[3]",),
        "dimension_mismatch",
        "3",
        "2",
        shape=(2, 3),
        broadcast_dimensions=(0,),
    ),
    refused(
        "in-dim-range",
        xb.broadcast_in_dim,
        ("f32[3]",),
        "dimension_out_of_range",
        "2",
        shape=(2, 3),
        broadcast_dimensions=(2,),
    ),
    refused(
        "in-dim-twice",
        xb.broadcast_in_dim,
        ("f32[2,2]",),
        "duplicate_dimension",
        "[0, 0]",
        shape=(2, 3),
        broadcast_dimensions=(0, 0),
    ),
    refused(
        "in-dim-negative",
        xb.broadcast_in_dim,
        ("f32[3]",),
        "negative_size",
        "shape [3, -1] has the negative size -1",
        shape=(3, -1),
        broadcast_dimensions=(0,),
    ),
    refused(
        "reshape-huge",
        xb.reshape,
        ("f32[2,3]",),
        "element_count_mismatch",
        "6",
        str(2**80),
        new_sizes=(2**40, 2**40),
    ),
    *(
        refused(f"reshape-{operand}", xb.reshape, (operand,), "dimension_mismatch", str(list(sizes)), new_sizes=sizes)
        for operand, sizes in (
            ("f32[3,<=2]", (2, 3)),
            ("f32[6,<=4]", (3, 8)),
            ("f32[<=4,6]", (8, 3)),
            ("f32[0,3,<=2]", (0, 7, 2)),
            ("f32[<=1]", ()),
        )
    ),
    refused("reshape-count", xb.reshape, ("f32[2,3]",), "element_count_mismatch", "6", "5", "f32[2,3]", new_sizes=(5,)),
    refused("reshape-negative", xb.reshape, ("f32[2,3]",), "negative_size", "-2", "0", new_sizes=(-2, 3)),
    refused("reshape-tuple", xb.reshape, ("(f32[2])",), "not_array", "(f32[2])", new_sizes=(2,)),
    refused(
        "reshape-order",
        xb.reshape,
        ("f32[4,2,3]",),
        "not_permutation",
        "[0, 1, 1]",
        "f32[4,2,3]",
        new_sizes=(24,),
        dimensions=(0, 1, 1),
    ),
    refused(
        "reshape-dynamic",
        xb.reshape,
        ("f32[<=6,2]",),
        "dimension_mismatch",
        "[0, 1]",
        "[4, 3]",
        new_sizes=(4, 3),
    ),
    refused("collapse-order", xb.collapse, ("f32[4,2,3]",), "bad_order", "[1, 0]", dimensions=(1, 0)),
    refused("collapse-gap", xb.collapse, ("f32[4,2,3]",), "bad_order", "[0, 2]", dimensions=(0, 2)),
    refused("collapse-range", xb.collapse, ("f32[4,2,3]",), "dimension_out_of_range", "3", "0..2", dimensions=(2, 3)),
    refused("collapse-below", xb.collapse, ("f32[4,2,3]",), "dimension_out_of_range", "-4", dimensions=(-4, 0)),
    refused("transpose-twice", xb.transpose, ("f32[2,3]",), "not_permutation", "[0, 0]", permutation=(0, 0)),
    refused("transpose-length", xb.transpose, ("f32[2,3]",), "not_permutation", "[0]", permutation=(0,)),
    refused("reverse-range", xb.reverse, ("f32[2,3]",), "dimension_out_of_range", "2", dimensions=(2,)),
    refused(
        "reverse-twice",
        xb.reverse,
        ("f32[2,3]",),
        "duplicate_dimension",
        "dimension 1 appears twice in dimensions [0, 1, 1]",
        dimensions=(0, 1, 1),
    ),
    refused("reverse-token", xb.reverse, ("token[]",), "not_array", "token[]", dimensions=()),
    *(
        refused(name, lambda *xs, dimension: xb.concatenate(xs, dimension), operands, kind, *names, dimension=dimension)
        for name, operands, dimension, kind, names in (
            ("concatenate-extent", ("f32[2,3]", "f32[3,3]"), 1, "dimension_mismatch", ("0", "f32[2,3]", "f32[3,3]")),
            (
                "concatenate-extent-third",
                ("f32[2,3]", "f32[2,4]", "f32[3,3]"),
                1,
                "dimension_mismatch",
                ("operands[0] is f32[2,3]", "operands[2] is f32[3,3]", "extents 2 and 3 of dimension 0 differ"),
            ),
            ("concatenate-rank", ("f32[2]", "f32[2,1]"), 0, "rank_mismatch", ("f32[2]", "f32[2,1]")),
            (
                "concatenate-type",
                ("f32[2]", "s32[2]"),
                0,
                "element_type_mismatch",
                ("operands[0] is f32[2]", "operands[1] is s32[2]"),
            ),
            ("concatenate-overflow", (f"f32[{2**62}]", f"f32[{2**62}]"), 0, "overflow", (str(2**63),)),
            ("concatenate-range", ("f32[2]", "f32[2]"), -2, "dimension_out_of_range", ("-2",)),
            ("concatenate-scalars", ("f32[]", "f32[]"), 0, "dimension_out_of_range", ("rank 0 has no dimensions",)),
            ("concatenate-tuple", ("f32[2]", "(f32[2])"), 0, "not_array", ("(f32[2])",)),
        )
    ),
    refused(
        "concatenate-none",
        lambda x: xb.ops.concatenate((), dimension=0, builder=x.builder),
        ("f32[2]",),
        "arity_mismatch",
        "0",
        "1",
    ),
    *(
        refused(f"pad-{name}", xb.pad, operands, kind, *names, padding=padding)
        for name, operands, padding, kind, names in (
            ("negative", ("f32[5]", "f32[]"), [(-3, -3)], "negative_size", ("low=-3", "from 5 to -1")),
            ("interior", ("f32[5]", "f32[]"), [(0, 0, -1)], "negative_size", ("-1", "dimension 0")),
            ("type", ("f32[5]", "s32[]"), [(0, 0)], "element_type_mismatch", ("f32", "s32")),
            ("value", ("f32[5]", "f32[1]"), [(0, 0)], "non_scalar", ("f32[1]",)),
            ("length", ("f32[5,2]", "f32[]"), [(0, 0)], "attribute_length_mismatch", ("1", "2")),
            ("overflow", ("f32[5]", "f32[]"), [(2**62, 2**62)], "overflow", ()),
            ("pair", ("f32[5]", "f32[]"), [(1,)], "invalid_attribute", ("padding",)),
            ("tuple", ("(f32[5])", "f32[]"), [(0, 0)], "not_array", ("(f32[5])",)),
        )
    ),
    *(
        refused(f"get-size-{name}", xb.get_dimension_size, (operand,), kind, *names, dimension=dim)
        for name, operand, dim, kind, names in (
            ("below", "f32[2,3]", -3, "dimension_out_of_range", ("-3", "f32[2,3]", "0..1")),
            ("above", "f32[2,3]", 2, "dimension_out_of_range", ("2", "0..1")),
            ("scalar", "f32[]", 0, "dimension_out_of_range", ("rank 0 has no dimensions",)),
            ("huge", f"f32[{2**31}]", 0, "overflow", (str(2**31), str(2**31 - 1))),
            ("tuple", "(f32[2])", 0, "not_array", ("(f32[2])",)),
            ("float", "f32[2]", 0.5, "invalid_attribute", ("dimension", "0.5")),
        )
    ),
    *(
        refused(f"set-size-{name}", xb.ops.set_dimension_size, operands, kind, *names, dimension=dim)
        for name, operands, dim, kind, names in (
            ("type", ("f32[10]", "s64[]"), 0, "element_type_mismatch", ("s64", "s32")),
            ("range", ("f32[10]", "s32[]"), 1, "dimension_out_of_range", ("1", "0..0")),
            ("below", ("f32[10]", "s32[]"), -1, "dimension_out_of_range", ("-1",)),
            ("vector", ("f32[10]", "s32[1]"), 0, "non_scalar", ("expected a scalar for size, got s32[1]",)),
            ("huge", (f"f32[2,{2**31}]", "s32[]"), 1, "overflow", (str(2**31),)),
            ("tuple", ("(f32[10])", "s32[]"), 0, "not_array", ("(f32[10])",)),
            ("token", ("f32[10]", "token[]"), 0, "not_array", ("token[]",)),
        )
    ),
    refused(
        "set-size-float", xb.set_dimension_size, ("f32[4]",), "element_type_mismatch", "2.5", size=2.5, dimension=0
    ),
    *(
        refused(
            f"dynamic-reshape-{name}",
            lambda *xs, bounds, flags: xb.dynamic_reshape(xs[0], xs[1:], bounds, flags),
            operands,
            kind,
            *names,
            bounds=bounds,
            flags=flags,
        )
        for name, operands, bounds, flags, kind, names in (
            ("flags", ("f32[6]", *["s32[]"] * 2), (2, 3), (True,), "attribute_length_mismatch", ("1", "[2, 3]", "2")),
            ("sizes", ("f32[6]", "s32[]"), (2, 3), (True, True), "arity_mismatch", ("1", "2", "[2, 3]")),
            ("count", ("f32[6]", *["s32[]"] * 2), (2, 4), (True, True), "element_count_mismatch", ("6", "8", "[2, 4]")),
            ("type", ("f32[6]", "s32[]", "s64[]"), (2, 3), (True, True), "element_type_mismatch", ("s64", "s32")),
            (
                "vector",
                ("f32[6]", "s32[2]"),
                (6,),
                (True,),
                "non_scalar",
                ("expected a scalar for dim_sizes[0], got s32[2]",),
            ),
            ("negative", ("f32[6]", "s32[]"), (-6,), (True,), "negative_size", ("-6",)),
            ("overflow", ("f32[6]", *["s32[]"] * 2), (2**40, 2**40), (True, True), "overflow", (str(2**40),)),
            ("tuple", ("(f32[6])", "s32[]"), (6,), (True,), "not_array", ("(f32[6])",)),
            ("flag", ("f32[6]", "s32[]"), (6,), (1,), "invalid_attribute", ("dims_are_dynamic", "(1,)")),
            ("one-flag", ("f32[6]", "s32[]"), (6,), True, "invalid_attribute", ("dims_are_dynamic", "True")),
        )
    ),
]
