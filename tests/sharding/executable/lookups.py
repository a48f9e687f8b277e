"""Sharded gathers and scatters whose executable tests `kinds.py` writes."""

from __future__ import annotations

# ruff: noqa: E501 (rows of a table)
from .kinds import Kind
from .stated import ADDED, X2, X4, XY, kind


def _gathered(name: str, mesh: str, table: str, places: str, result: str, numbers: str, sizes: str, sharding: str,
              after: str = "", modulo: str = "") -> Kind:  # fmt: skip
    indices, out = places.split("xi32")[0], result.split("xi32")[0]
    last = (
        f"\n  %9 = {after} %0 out_sharding=<@m, {sharding}> : T{out}\n  return %9 : T{out}"
        if after
        else f"\n  return %0 : T{out}"
    )
    return kind(
        name,
        mesh,
        [table, places],
        result,
        f"""
  %0 = "stablehlo.gather"(%arg0, %arg1) {{dimension_numbers = #stablehlo.gather<{numbers}>,
    slice_sizes = array<i64: {sizes}>, sdy.sharding = #sdy.sharding_per_value<[<@m, {sharding}>]>}}
    : (T{table.split("xi32")[0]}, T{indices}) -> T{out}{last}""",
    )


ROWS = "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"
GATHERS = [
    _gathered(
        "rows of a cut table",
        X4,
        '16x3xi32 [{"x"}, {}]',
        "6x1xi32 [{}, {}]",
        "6x3xi32 [{}, {}]",
        ROWS,
        "1, 3",
        "[{}, {}]",
    ),
    _gathered(
        "rows of a cut table, summed",
        X4,
        '16x3xi32 [{"x"}, {}]',
        "6x1xi32 [{}, {}]",
        "6x3xi32 [{}, {}]",
        ROWS,
        "1, 3",
        "[{}, {}]",
        'sdy.all_reduce {"x"}',
    ),
    _gathered(
        "rows of a cut table, the greatest",
        X4,
        '16x3xi32 [{"x"}, {}]',
        "6x1xi32 [{}, {}]",
        "6x3xi32 [{}, {}]",
        ROWS,
        "1, 3",
        "[{}, {}]",
        'sdy.all_reduce max {"x"}',
    ),
    _gathered(
        "rows of a cut table, the least",
        X4,
        '16x3xi32 [{"x"}, {}]',
        "6x1xi32 [{}, {}]",
        "6x3xi32 [{}, {}]",
        ROWS,
        "1, 3",
        "[{}, {}]",
        'sdy.all_reduce min {"x"}',
    ),
    _gathered(
        "rows by a cut list",
        X2,
        "9x3xi32 [{}, {}]",
        '6x1xi32 [{"x"}, {}]',
        '6x3xi32 [{"x"}, {}]',
        ROWS,
        "1, 3",
        '[{"x"}, {}]',
    ),
    _gathered(
        "elements of a table that is cut twice",
        XY,
        '6x8xi32 [{"x"}, {"y"}]',
        "5x2xi32 [{}, {}]",
        "5xi32 [{}]",
        "collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1",
        "1, 1",
        "[{}]",
    ),
    _gathered(
        "collapsed, but no index",
        XY,
        '4x8x3xi32 [{"x"}, {"y"}, {}]',
        "5x1xi32 [{}, {}]",
        "5x3xi32 [{}, {}]",
        "offset_dims = [1], collapsed_slice_dims = [0, 1], start_index_map = [1], index_vector_dim = 1",
        "1, 1, 3",
        "[{}, {}]",
    ),
    _gathered(
        "batches",
        XY,
        '4x8xi32 [{"x"}, {}]',
        '4x3xi32 [{"x"}, {}]',
        '4x3xi32 [{"x"}, {}]',
        "collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2",
        "1, 1",
        '[{"x"}, {}]',
    ),
    _gathered(
        "windows",
        X2,
        '8x6xi32 [{"x"}, {}]',
        "4x2xi32 [{}, {}]",
        "4x3x2xi32 [{}, {}, {}]",
        "offset_dims = [1, 2], start_index_map = [0, 1], index_vector_dim = 1",
        "3, 2",
        "[{}, {}, {}]",
    ),
    _gathered(
        "whole slices",
        X2,
        '8x6xi32 [{}, {"x"}]',
        "4x1xi32 [{}, {}]",
        '4x6xi32 [{}, {"x"}]',
        ROWS,
        "1, 6",
        '[{}, {"x"}]',
    ),
]


def _scattered(name: str, mesh: str, table: str, places: str, updates: str, numbers: str, sharding: str) -> Kind:
    shapes = [each.split("xi32")[0] for each in (table, places, updates)]
    return kind(
        name,
        mesh,
        [table, places, updates],
        f"{shapes[0]}xi32 {sharding}",
        f"""
  %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) {ADDED} {{scatter_dimension_numbers = #stablehlo.scatter<{numbers}>,
    sdy.sharding = #sdy.sharding_per_value<[<@m, {sharding}>]>}} : (T{shapes[0]}, T{shapes[1]}, T{shapes[2]}) -> T{shapes[0]}
  return %0 : T{shapes[0]}""",
    )


INTO = "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
SCATTERS = [
    _scattered(
        "rows into a cut table", X4, '8x3xi32 [{"x"}, {}]', "5x1xi32 [{}, {}]", "5x3xi32 [{}, {}]", INTO, '[{"x"}, {}]'
    ),
    _scattered(
        "rows, cut, into a table",
        X2,
        "8x3xi32 [{}, {}]",
        '6x1xi32 [{"x"}, {}]',
        '6x3xi32 [{"x"}, {}]',
        INTO,
        "[{}, {}]",
    ),
    _scattered("features", X2, '8x4xi32 [{}, {"x"}]', "5x1xi32 [{}, {}]", '5x4xi32 [{}, {"x"}]', INTO, '[{}, {"x"}]'),
    _scattered(
        "elements into a table that is cut twice",
        XY,
        '4x6xi32 [{"x"}, {"y"}]',
        "7x2xi32 [{}, {}]",
        "7xi32 [{}]",
        "inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1",
        '[{"x"}, {"y"}]',
    ),
    _scattered(
        "inserted, but no index",
        XY,
        '4x6xi32 [{"x"}, {"y"}]',
        "7x1xi32 [{}, {}]",
        "7xi32 [{}]",
        "inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [1], index_vector_dim = 1",
        '[{"x"}, {"y"}]',
    ),
    _scattered(
        "windows",
        X2,
        '8x6xi32 [{"x"}, {}]',
        "3x2xi32 [{}, {}]",
        "3x2x3xi32 [{}, {}, {}]",
        "update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1",
        '[{"x"}, {}]',
    ),
    _scattered(
        "batches",
        X2,
        '4x8xi32 [{"x"}, {}]',
        '4x3xi32 [{"x"}, {}]',
        '4x3xi32 [{"x"}, {}]',
        "input_batching_dims = [0], scatter_indices_batching_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = 2",
        '[{"x"}, {}]',
    ),
]
