"""Cases of scatter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import xbuild as xb
from tests.cases.case import Case, Refusal
from tests.support.regions import counted

SCATTER, NUMERICS, STABLE = "Operation Semantics, Scatter", "numerics, Indexing", "StableHLO, scatter"
BF16 = ml_dtypes.bfloat16
POINTS: dict[str, Any] = {
    "update_window_dims": (),
    "inserted_window_dims": (0,),
    "scatter_dims_to_operand_dims": (0,),
    "index_vector_dim": 1,
}
ROWS: dict[str, Any] = {**POINTS, "update_window_dims": (1,)}
WINDOWS: dict[str, Any] = {**ROWS, "inserted_window_dims": ()}


def later(current: xb.Value, update: xb.Value) -> xb.Value:
    return update


def earlier(current: xb.Value, update: xb.Value) -> xb.Value:
    return current


def double_less(current: xb.Value, update: xb.Value) -> xb.Value:
    return current + current - update


def at(
    name: str,
    operand: Any,
    places: Any,
    updates: Any,
    expected: Any,
    to_apply: Callable[..., Any] = xb.ops.add,
    attributes: dict[str, Any] = POINTS,
    source: str = SCATTER,
    dtype: Any = np.float32,
    oracle: bool = True,
    **more: Any,
) -> Case:
    arrays = (
        np.asarray(operand, dtype),
        np.asarray(places, getattr(places, "dtype", np.int32)),
        np.asarray(updates, dtype),
    )
    return Case(
        name,
        _scatter,
        arrays,
        np.asarray(expected, dtype),
        {"to_apply": to_apply, **attributes, **more},
        source=source,
        oracle=oracle,
    )


def _scatter(operand: xb.Value, places: xb.Value, updates: xb.Value, **attributes: Any) -> xb.Value:
    return xb.ops.scatter(operand, places, updates, **attributes)


def pairs(a: xb.Value, b: xb.Value, c: xb.Value, d: xb.Value) -> tuple[xb.Value, xb.Value]:
    return a + c, xb.ops.maximum(b, d)


def both(x: xb.Value, y: xb.Value, places: xb.Value, u: xb.Value, v: xb.Value) -> xb.Value:
    return xb.ops.scatter((x, y), places, (u, v), to_apply=pairs, **POINTS)


def in_f32(x: xb.Value, places: xb.Value, updates: xb.Value) -> xb.Value:
    adder = xb.computation(xb.f32[()], xb.f32[()])(xb.ops.add)
    return xb.ops.scatter(x, places, updates, to_apply=adder, **POINTS)


MANY = np.arange(200, dtype=np.int32) % 3
GRID = np.zeros((4, 5), np.int32)
SMALL = (
    ("pred", np.bool_),
    ("u8", np.uint8),
    ("s4", ml_dtypes.int4),
    ("f8e5m2", ml_dtypes.float8_e5m2),
    ("c64", np.complex64),
)

CASES = [
    *(
        Case(
            f"scalar-{name}",
            _scatter,
            (np.int32(1), np.zeros((2, 0), np.int32), np.int32([10, 20])),
            np.int32(total),
            {
                "to_apply": region,
                "update_window_dims": (),
                "inserted_window_dims": (),
                "scatter_dims_to_operand_dims": (),
                "index_vector_dim": 1,
            },
            source=NUMERICS,
            oracle=False,  # XLA:CPU takes no index vectors of no entries
        )
        for name, region, total in (("add", xb.ops.add, 31), ("in-order", double_less, -36), ("later", later, 20))
    ),
    at("add", [1, 1, 1, 1], [0, 2, 0], [10, 20, 30], [41, 1, 21, 1]),
    at("multiply", [1, 2, 3], [2, 2, 0], [5, 7, 3], [3, 2, 105], xb.ops.multiply),
    at("maximum", [1, 9, 3], [0, 1, 0], [5, 2, 4], [5, 9, 3], xb.ops.maximum),
    at("minimum", [1, 9, 3], [0, 1, 0], [5, 2, -4], [-4, 2, 3], xb.ops.minimum),
    at("maximum-nan", [1, 9, 3], [0, 1], [np.nan, 2], [np.nan, 9, 3], xb.ops.maximum),
    at("and", [15, 15], [0, 0, 1], [6, 3, 8], [2, 8], xb.ops.and_, dtype=np.uint8),
    at("xor", [15, 15], [0, 0, 1], [6, 3, 8], [10, 7], xb.ops.xor, dtype=np.int64),
    at("overwrite-the-last-stays", [0, 0, 0], [1, 2, 1], [5, 6, 7], [0, 7, 6], later, source=NUMERICS),
    at("keep", [1, 2, 3], [1, 2, 1], [5, 6, 7], [1, 2, 3], earlier),
    at("current-is-first", [10, 20], [0, 1], [1, 2], [9, 18], xb.ops.subtract),
    at("in-order", [1, 1], [0, 1, 0, 0], [3, 4, 5, 6], [-20, -2], double_less, dtype=np.int32),
    at("many-of-one-row", [0, 0, 0, 7], MANY, np.ones(200), [67, 67, 66, 7], dtype=np.int32),
    at("no-array-can-follow", [1, 1], [1, 1, 0], [2, 3, 4], [5, 6], counted, dtype=np.int32, oracle=False),
    at(
        "outside-is-dropped",
        [1, 2, 3],
        [-1, 3, 1, -(2**31), 2**31 - 1],
        [10, 10, 10, 10, 10],
        [1, 12, 3],
        source=NUMERICS,
    ),
    at("unsigned-outside", [1, 2, 3], np.array([255, 1], np.uint8), [10, 10], [1, 12, 3], source=NUMERICS),
    at("u64-outside", [1, 2, 3], np.array([2**64 - 1, 2], np.uint64), [10, 10], [1, 2, 13], source=NUMERICS),
    at(
        "window-half-outside",
        [1, 2, 3, 4],
        [[3], [1], [-1]],
        [[9, 9], [10, 20], [9, 9]],
        [1, 12, 23, 4],
        attributes=WINDOWS,
        source=NUMERICS,
    ),
    at("windows-overlap", [0, 0, 0, 0], [[0], [1]], [[1, 2], [10, 20]], [1, 12, 20, 0], attributes=WINDOWS),
    at("windows-overwrite", [0, 0, 0, 0], [[1], [0]], [[1, 2], [10, 20]], [10, 20, 2, 0], later, WINDOWS),
    at(
        "rows",
        GRID,
        [3, 0, 3],
        np.arange(15).reshape(3, 5),
        [[5, 6, 7, 8, 9], [0] * 5, [0] * 5, [10, 12, 14, 16, 18]],
        attributes=ROWS,
        dtype=np.int32,
    ),
    at(
        "rows-many-times",
        GRID,
        [3, 0] * 20,
        np.ones((40, 5)),
        [[20] * 5, [0] * 5, [0] * 5, [20] * 5],
        attributes=ROWS,
        dtype=np.int32,
    ),
    at(
        "parts-of-rows",
        GRID,
        [2],
        [[7, 8]],
        [[0] * 5, [0] * 5, [7, 8, 0, 0, 0], [0] * 5],
        attributes=ROWS,
        dtype=np.int32,
    ),
    at(
        "columns",
        np.zeros((2, 3)),
        [2, 0],
        [[1, 2], [3, 4]],
        [[3, 0, 1], [4, 0, 2]],
        attributes={**ROWS, "inserted_window_dims": (1,), "scatter_dims_to_operand_dims": (1,)},
    ),
    at(
        "windows-of-both",
        np.zeros((3, 3)),
        [1, 1],
        [[1, 2], [3, 4]],
        [[0, 0, 0], [0, 1, 2], [0, 3, 4]],
        attributes={
            **WINDOWS,
            "update_window_dims": (0, 1),
            "scatter_dims_to_operand_dims": (0, 1),
            "index_vector_dim": 0,
        },
    ),
    at(
        "map-swapped",
        np.zeros((2, 3)),
        [[2, 0], [1, 1]],
        [5, 6],
        [[0, 0, 5], [0, 6, 0]],
        attributes={**POINTS, "inserted_window_dims": (0, 1), "scatter_dims_to_operand_dims": (1, 0)},
    ),
    at(
        "one-large-window",
        np.zeros(100),
        [10],
        np.arange(80),
        [*[0] * 10, *range(80), *[0] * 10],
        attributes={**WINDOWS, "update_window_dims": (0,), "index_vector_dim": 0},
    ),
    at("vectors-in-front", np.zeros(3), [[2, 0]], [5, 6], [6, 0, 5], attributes={**POINTS, "index_vector_dim": 0}),
    at(
        "batching",
        np.zeros((2, 3)),
        [[[2], [0]], [[1], [1]]],
        [[1, 2], [3, 4]],
        [[2, 0, 1], [0, 7, 0]],
        source=STABLE,
        attributes={
            **POINTS,
            "inserted_window_dims": (1,),
            "scatter_dims_to_operand_dims": (1,),
            "input_batching_dims": (0,),
            "scatter_indices_batching_dims": (0,),
            "index_vector_dim": 2,
        },
    ),
    at("nothing", [1, 2], np.zeros((0,), np.int32), [], [1, 2]),
    at("wraps", [127, -128], [0, 1], [1, -1], [-128, 127], dtype=np.int8),
    at(
        "bf16-rounds-each-time",
        [256],
        [0, 0],
        [1, 1],
        [256],
        dtype=BF16,
        source="numerics, Floats: conversion and rounding",
    ),
    at(
        "f16-rounds-each-time",
        [2048],
        [0, 0],
        [1, 1],
        [2048],
        dtype=np.float16,
        source="numerics, Floats: conversion and rounding",
    ),
    at("promises-change-nothing", [1, 1], [0, 1], [1, 2], [2, 3], indices_are_sorted=True, unique_indices=True),
    *(at(f"type-{name}", [0, 1], [0, 0, 1], [1, 0, 0], [1, 1], dtype=dtype) for name, dtype in SMALL),
    Case(
        "several",
        both,
        (np.float32([1, 2]), np.int32([3, 4]), np.int32([1, 1, 0]), np.float32([10, 20, 30]), np.int32([9, 5, 1])),
        (np.float32([31, 32]), np.int32([3, 9])),
        source=STABLE,
    ),
    Case(
        "wider-computation",
        in_f32,
        (np.array([256], BF16), np.int32([0, 0]), np.array([1, 1], BF16)),
        np.float32([258]),
        source=STABLE,
        oracle=False,
    ),
    Case(
        "comfort",
        lambda x: xb.scatter(
            x,
            [[2], [0]],
            [5, 6],
            xb.ops.add,
            update_window_dims=(),
            inserted_window_dims=(0,),
            scatter_dims_to_operand_dims=(0,),
        ),
        (np.float32([1, 2, 3]),),
        np.float32([7, 2, 8]),
        source=SCATTER,
    ),
]

THREE = ("f32[10,4]", "s32[5]", "f32[5,4]")


def refused(name: str, operands: tuple[str, ...], kind: str, *names: str, **changed: Any) -> Refusal:
    return Refusal(name, _scatter, operands, kind, names, {"to_apply": xb.ops.add, **ROWS, **changed})


def only_two(operand: xb.Value, places: xb.Value) -> xb.Value:
    return xb.ops.scatter(operand, places, (), to_apply=xb.ops.add, **ROWS)


def two_and_one(x: xb.Value, y: xb.Value, places: xb.Value, update: xb.Value) -> xb.Value:
    return xb.ops.scatter((x, y), places, (update, update), to_apply=pairs, **ROWS)


def of_other_type(a: xb.Value, b: xb.Value) -> xb.Value:
    return xb.ops.compare(a, b, direction="LT")


REFUSALS = [
    Refusal("no-updates", only_two, ("f32[10,4]", "s32[5]"), "arity_mismatch", ("scatter", "2", "1 operands", "0")),
    Refusal(
        "extents-of-operands",
        two_and_one,
        ("f32[10,4]", "f32[10,5]", "s32[5]", "f32[5,4]"),
        "dimension_mismatch",
        ("f32[10,4]", "f32[10,5]"),
    ),
    refused("count", ("f32[10,4]", "s32[5]", "f32[6,4]"), "dimension_mismatch", "6", "5", "updates"),
    refused("window-too-large", ("f32[10,4]", "s32[5]", "f32[5,9]"), "index_out_of_range", "9", "4", "f32[5,9]"),
    refused("rank-of-updates", ("f32[10,4]", "s32[5]", "f32[5,4,1]"), "rank_mismatch", "3", "2", "f32[5,4,1]"),
    refused("rank-of-operand", ("f32[10,4]", "s32[5]", "f32[5]"), "rank_mismatch", "1", "2", update_window_dims=()),
    refused("type", ("f32[10,4]", "s32[5]", "s32[5,4]"), "element_type_mismatch", "f32", "s32"),
    refused("float-indices", ("f32[10,4]", "f32[5]", "f32[5,4]"), "element_type_unsupported", "f32[5]", "integer"),
    refused(
        "window-order",
        ("f32[10,4]", "s32[5]", "f32[5,10,4]"),
        "bad_order",
        "update_window_dims",
        "[2, 1]",
        update_window_dims=(2, 1),
        inserted_window_dims=(),
    ),
    refused(
        "window-range", THREE, "dimension_out_of_range", "update_window_dims", "2", "0..1", update_window_dims=(2,)
    ),
    refused(
        "inserted-range",
        THREE,
        "dimension_out_of_range",
        "inserted_window_dims",
        "2",
        "0..1",
        inserted_window_dims=(2,),
    ),
    refused("inserted-order", THREE, "bad_order", "inserted_window_dims", "[1, 0]", inserted_window_dims=(1, 0)),
    refused(
        "map-length",
        ("f32[10,4]", "s32[5,2]", "f32[5,4]"),
        "attribute_length_mismatch",
        "scatter_dims_to_operand_dims",
        "1",
        "2",
    ),
    refused(
        "map-twice",
        ("f32[10,4]", "s32[5,2]", "f32[5,4]"),
        "duplicate_dimension",
        "scatter_dims_to_operand_dims",
        "0",
        scatter_dims_to_operand_dims=(0, 0),
    ),
    refused("vector-dimension", THREE, "dimension_out_of_range", "index_vector_dim", "-1", "0..1", index_vector_dim=-1),
    refused("result-type", THREE, "signature_mismatch", "pred[]", "f32[]", to_apply=of_other_type),
    refused(
        "parameters", THREE, "arity_mismatch", "1", "2", "to_apply", to_apply=xb.computation(xb.f32[()])(lambda a: a)
    ),
    refused(
        "batching-extents",
        ("f32[3,10]", "s32[4,5,1]", "f32[4,5]"),
        "dimension_mismatch",
        "3",
        "4",
        update_window_dims=(),
        inserted_window_dims=(1,),
        scatter_dims_to_operand_dims=(1,),
        input_batching_dims=(0,),
        scatter_indices_batching_dims=(0,),
        index_vector_dim=2,
    ),
]
