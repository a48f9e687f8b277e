"""Cases of gather."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

import xbuild as xb
from tests.cases.case import Case, Refusal

GATHER, NUMERICS = "Operation Semantics, Gather", "numerics, Indexing"
BATCHED = "StableHLO, gather"
GRID = np.arange(16 * 11, dtype=np.float32).reshape(16, 11)
ROW = np.array([10, 20, 30, 40], np.float32)
STARTS = np.array([[0, 0], [2, 3], [8, 5], [1, 1], [4, 2]], np.int64)
CUBE = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
ROWS = {"offset_dims": (1,), "collapsed_slice_dims": (0,), "start_index_map": (0,), "index_vector_dim": 1}
ONES = {**ROWS, "offset_dims": (), "slice_sizes": (1,)}


def gathered(
    name: str, operand: Any, starts: Any, expected: Any, attributes: dict[str, Any], source: str = GATHER, **more: Any
) -> Case:
    return Case(name, xb.ops.gather, (operand, starts), expected, {**attributes, **more}, source=source)


def of_type(name: str, dtype: Any) -> Case:
    table = np.array([[0, 1], [1, 0], [1, 1]]).astype(dtype)
    starts = np.array([2, 0], np.int32)
    return gathered(
        f"type-{name}", table, starts, np.array([[1, 1], [0, 1]]).astype(dtype), {**ROWS, "slice_sizes": (1, 2)}
    )


def clamped(name: str, starts: Sequence[int], dtype: Any, expected: Sequence[float]) -> Case:
    return gathered(f"clamp-{name}", ROW, np.array(starts, dtype), np.array(expected, np.float32), ONES, NUMERICS)


SLICES = {
    "offset_dims": (1, 2),
    "collapsed_slice_dims": (),
    "start_index_map": (0, 1),
    "index_vector_dim": 1,
    "slice_sizes": (8, 6),
}
BATCH = {
    "offset_dims": (),
    "collapsed_slice_dims": (1,),
    "start_index_map": (1,),
    "operand_batching_dims": (0,),
    "start_indices_batching_dims": (0,),
    "index_vector_dim": 2,
    "slice_sizes": (1, 1),
}

CASES = [
    gathered(
        "slices-of-bits",
        GRID.astype(ml_dtypes.float8_e4m3fn),
        STARTS,
        np.stack([GRID[a : a + 8, b : b + 6] for a, b in STARTS]).astype(ml_dtypes.float8_e4m3fn),
        SLICES,
    ),
    gathered("slices", GRID, STARTS, np.stack([GRID[a : a + 8, b : b + 6] for a, b in STARTS]), SLICES),
    gathered(
        "slices-by-two-dimensions",
        GRID,
        STARTS[[[0, 1], [2, 3]]],
        np.stack([np.stack([GRID[0:8, 0:6], GRID[2:10, 3:9]]), np.stack([GRID[8:16, 5:11], GRID[1:9, 1:7]])]),
        {**SLICES, "offset_dims": (2, 3), "index_vector_dim": 2},
    ),
    gathered(
        "gather-nd",
        GRID,
        np.array([[[3], [0]], [[15], [3]]], np.int32),
        GRID[[[3, 0], [15, 3]]],
        {**ROWS, "offset_dims": (2,), "index_vector_dim": 2, "slice_sizes": (1, 11)},
    ),
    gathered(
        "vectors-in-front",
        GRID,
        STARTS.T,
        np.stack([GRID[a : a + 8, b : b + 6] for a, b in STARTS]),
        SLICES,
        index_vector_dim=0,
    ),
    gathered(
        "offsets-in-front",
        GRID,
        STARTS,
        np.stack([GRID[a : a + 8, b : b + 6] for a, b in STARTS], axis=2),
        SLICES,
        offset_dims=(0, 1),
    ),
    gathered(
        "offsets-around",
        GRID,
        STARTS,
        np.stack([GRID[a : a + 8, b : b + 6] for a, b in STARTS], axis=1),
        SLICES,
        offset_dims=(0, 2),
    ),
    gathered(
        "index-map-swapped",
        CUBE,
        np.array([[3, 1], [0, 2]], np.int32),
        np.array([[7, 19], [8, 20]], np.int32),
        {
            "offset_dims": (1,),
            "collapsed_slice_dims": (1, 2),
            "start_index_map": (2, 1),
            "index_vector_dim": 1,
            "slice_sizes": (2, 1, 1),
        },
    ),
    gathered(
        "one-dimension-in-the-middle",
        CUBE,
        np.array([2, 0], np.int32),
        CUBE[:, [2, 0], :].transpose(1, 0, 2),
        {
            "offset_dims": (1, 2),
            "collapsed_slice_dims": (1,),
            "start_index_map": (1,),
            "index_vector_dim": 1,
            "slice_sizes": (2, 1, 4),
        },
    ),
    gathered(
        "elements",
        CUBE,
        np.array([[1, 2, 3], [0, 0, 1]], np.int32),
        np.array([23, 1], np.int32),
        {
            "offset_dims": (),
            "collapsed_slice_dims": (0, 1, 2),
            "start_index_map": (0, 1, 2),
            "index_vector_dim": 1,
            "slice_sizes": (1, 1, 1),
        },
    ),
    gathered(
        "one-slice",
        GRID,
        np.array([14, 1], np.int32),
        GRID[13:16, 1:3],
        {**SLICES, "offset_dims": (0, 1), "index_vector_dim": 0, "slice_sizes": (3, 2)},
    ),
    gathered("scalar-index", ROW, np.int32(2), np.float32(30), {**ONES, "index_vector_dim": 0}),
    gathered(
        "no-index",
        ROW,
        np.zeros((3, 0), np.int32),
        np.array([[10, 20]] * 3, np.float32),
        {
            "offset_dims": (1,),
            "collapsed_slice_dims": (),
            "start_index_map": (),
            "index_vector_dim": 1,
            "slice_sizes": (2,),
        },
    ),
    gathered(
        "batching",
        CUBE[:, :, 0],
        np.array([[[2], [0]], [[1], [9]]], np.int32),
        np.array([[8, 0], [16, 20]], np.int32),
        BATCH,
        BATCHED,
    ),
    gathered(
        "batching-second-dimension",
        CUBE[:, :, 0],
        np.array([[2, 1], [0, 9]], np.int32),
        np.array([[8, 16], [0, 20]], np.int32),
        BATCH,
        BATCHED,
        start_indices_batching_dims=(1,),
    ),
    clamped("below-and-above", [-1, 4, 3, 1], np.int32, [10, 40, 40, 20]),
    clamped("int-min-and-max", [-(2**31), 2**31 - 1], np.int32, [10, 40]),
    clamped("s64-ends", [-(2**63), 2**63 - 1], np.int64, [10, 40]),
    clamped("u32-is-large", [2**32 - 1, 1], np.uint32, [40, 20]),
    clamped("u64-is-large", [2**64 - 1, 2**63], np.uint64, [40, 40]),
    clamped("u8-is-large", [250, 0], np.uint8, [40, 10]),
    clamped("s8", [-128, 127, 2], np.int8, [10, 40, 30]),
    gathered(
        "clamp-window-of-two",
        np.array([1, 2, 3, 4, 5], np.float32),
        np.array([4, -3], np.int32),
        np.array([[4, 5], [1, 2]], np.float32),
        {**ROWS, "collapsed_slice_dims": (), "slice_sizes": (2,)},
        NUMERICS,
    ),
    gathered(
        "s8-index-of-many",
        np.arange(300, dtype=np.int32),
        np.array([127, -1], np.int8),
        np.array([127, 0], np.int32),
        ONES,
    ),
    gathered("no-vectors", ROW, np.zeros((0,), np.int32), np.zeros((0,), np.float32), ONES),
    gathered(
        "slice-of-none", GRID, np.array([3, 1], np.int32), np.zeros((2, 0), np.float32), {**ROWS, "slice_sizes": (1, 0)}
    ),
    gathered(
        "sorted-says-nothing",
        ROW,
        np.array([2, 0], np.int32),
        np.array([30, 10], np.float32),
        ONES,
        indices_are_sorted=False,
    ),
    *(
        of_type(name, dtype)
        for name, dtype in (
            ("pred", np.bool_),
            ("u64", np.uint64),
            ("f16", np.float16),
            ("bf16", ml_dtypes.bfloat16),
            ("c128", np.complex128),
            ("f8e4m3fn", ml_dtypes.float8_e4m3fn),
            ("s4", ml_dtypes.int4),
        )
    ),
    Case(
        "comfort",
        lambda x: xb.gather(
            x, [[2], [0]], offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,), slice_sizes=(1, 2)
        ),
        (np.array([[1, 2], [3, 4], [5, 6]], np.float32),),
        np.array([[5, 6], [1, 2]], np.float32),
        source=GATHER,
    ),
]

FULL: dict[str, Any] = {**ROWS, "slice_sizes": (1, 4)}


def refused(name: str, operands: tuple[str, str], kind: str, *names: str, **changed: Any) -> Refusal:
    return Refusal(name, xb.ops.gather, operands, kind, names, {**FULL, **changed})


PLAIN = ("f32[10,4]", "s32[5]")
REFUSALS = [
    refused("float-indices", ("f32[10,4]", "f32[5]"), "element_type_unsupported", "f32[5]", "integer"),
    refused("tuple", ("(f32[10,4])", "s32[5]"), "not_array", "(f32[10,4])"),
    refused("offset-order", PLAIN, "bad_order", "offset_dims", "[2, 1]", offset_dims=(2, 1), collapsed_slice_dims=()),
    refused("offset-range", PLAIN, "dimension_out_of_range", "offset_dims", "9", "0..1", offset_dims=(9,)),
    refused("offset-twice", PLAIN, "duplicate_dimension", "offset_dims", "[1, 1]", offset_dims=(1, 1)),
    refused("offset-count", PLAIN, "attribute_length_mismatch", "offset_dims", "[0, 1]", "1", offset_dims=(0, 1)),
    refused("vector-dimension", PLAIN, "dimension_out_of_range", "index_vector_dim", "2", "0..1", index_vector_dim=2),
    refused("map-length", PLAIN, "attribute_length_mismatch", "start_index_map", "2", "1", start_index_map=(0, 1)),
    refused("map-range", PLAIN, "dimension_out_of_range", "start_index_map", "2", "0..1", start_index_map=(2,)),
    refused(
        "map-twice",
        ("f32[10,4]", "s32[5,2]"),
        "duplicate_dimension",
        "start_index_map",
        "[0, 0]",
        start_index_map=(0, 0),
    ),
    refused("collapsed-range", PLAIN, "dimension_out_of_range", "collapsed_slice_dims", "2", collapsed_slice_dims=(2,)),
    refused("collapsed-order", PLAIN, "bad_order", "collapsed_slice_dims", "[1, 0]", collapsed_slice_dims=(1, 0)),
    refused("collapsed-size", PLAIN, "invalid_attribute", "collapsed_slice_dims", "2", slice_sizes=(2, 4)),
    refused("sizes-count", PLAIN, "attribute_length_mismatch", "slice_sizes", "1", "2", slice_sizes=(1,)),
    refused("size-too-large", PLAIN, "index_out_of_range", "slice_sizes", "5", "4", slice_sizes=(1, 5)),
    refused("size-negative", PLAIN, "negative_size", "slice_sizes", "-1", slice_sizes=(1, -1)),
    refused(
        "batching-extents",
        ("f32[3,10]", "s32[4,5,1]"),
        "dimension_mismatch",
        "3",
        "4",
        "start_indices",
        offset_dims=(),
        collapsed_slice_dims=(1,),
        start_index_map=(1,),
        operand_batching_dims=(0,),
        start_indices_batching_dims=(0,),
        index_vector_dim=2,
        slice_sizes=(1, 1),
    ),
    refused(
        "batching-count",
        ("f32[3,10]", "s32[3,5,1]"),
        "attribute_length_mismatch",
        "operand_batching_dims",
        "1",
        "0",
        operand_batching_dims=(0,),
        index_vector_dim=2,
        collapsed_slice_dims=(),
        start_index_map=(1,),
    ),
    refused(
        "batching-and-collapsed",
        ("f32[3,10]", "s32[3,5,1]"),
        "duplicate_dimension",
        "operand_batching_dims",
        "0",
        operand_batching_dims=(0,),
        start_indices_batching_dims=(0,),
        index_vector_dim=2,
        start_index_map=(1,),
    ),
    refused(
        "batching-is-indexed",
        ("f32[3,10]", "s32[3,5,1]"),
        "duplicate_dimension",
        "start_index_map",
        "0",
        operand_batching_dims=(0,),
        start_indices_batching_dims=(0,),
        index_vector_dim=2,
        collapsed_slice_dims=(),
    ),
    refused(
        "batching-of-vectors",
        ("f32[3,10]", "s32[3,5,1]"),
        "invalid_attribute",
        "index_vector_dim",
        "2",
        operand_batching_dims=(0,),
        start_indices_batching_dims=(2,),
        index_vector_dim=2,
        collapsed_slice_dims=(),
        start_index_map=(1,),
    ),
    refused("unknown-attribute", PLAIN, "invalid_attribute", "slice_size", "slice_sizes", slice_size=(1, 4)),
]
