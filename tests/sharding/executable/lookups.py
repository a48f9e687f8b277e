"""Sharded products, windows and lookups whose executable tests `kinds.py` writes."""

from __future__ import annotations

# ruff: noqa: E501 (rows of a table)
from .kinds import Kind
from .stated import ADDED, X2, X4, XY, kind


def _product(name: str, mesh: str, one: str, other: str, result: str, how: str, sharding: str) -> Kind:
    types = f"(T{one.split('xi32')[0]}, T{other.split('xi32')[0]}) -> T{result.split('xi32')[0]}"
    return kind(
        name,
        mesh,
        [one, other],
        result,
        f"""
  %0 = stablehlo.dot_general %arg0, %arg1, {how} ${sharding} : {types}
  return %0 : T{result.split("xi32")[0]}""",
    )


PRODUCTS = [
    _product(
        "contracted, cut",
        X2,
        '4x8xi32 [{}, {"x"}]',
        '8x6xi32 [{"x"}, {}]',
        "4x6xi32 [{}, {}]",
        "contracting_dims = [1] x [0]",
        "[{}, {}]",
    ),
    _product(
        "contracted, uneven",
        X4,
        "3x6xi32 [{}, {}]",
        "6x5xi32 [{}, {}]",
        "3x5xi32 [{}, {}]",
        "contracting_dims = [1] x [0]",
        '[{"x"}, {}]',
    ),
    _product(
        "batches",
        XY,
        '4x3x8xi32 [{"x"}, {}, {"y"}]',
        '4x8x2xi32 [{"x"}, {"y"}, {}]',
        '4x3x2xi32 [{"x"}, {}, {}]',
        "batching_dims = [0] x [0], contracting_dims = [2] x [1]",
        '[{"x"}, {}, {}]',
    ),
    _product(
        "uneven batches",
        XY,
        "5x3x6xi32 [{}, {}, {}]",
        "5x6x2xi32 [{}, {}, {}]",
        "5x3x2xi32 [{}, {}, {}]",
        "batching_dims = [0] x [0], contracting_dims = [2] x [1]",
        '[{"x"}, {"y"}, {}]',
    ),
]


def _convolved(name: str, mesh: str, image: str, kernel: str, result: str, sharding: str, *, window: str = "",
               features: int = 1, batches: int = 1) -> Kind:  # fmt: skip
    types = f"(T{image.split('xi32')[0]}, T{kernel.split('xi32')[0]}) -> T{result.split('xi32')[0]}"
    return kind(
        name,
        mesh,
        [image, kernel],
        result,
        f"""
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {{{window}}} {{batch_group_count = {batches} : i64, feature_group_count = {features} : i64,
    sdy.sharding = #sdy.sharding_per_value<[<@m, {sharding}>]>}} : {types}
  %1 = stablehlo.negate %0 : T{result.split("xi32")[0]}
  return %1 : T{result.split("xi32")[0]}""",
    )


CONVOLUTIONS = [
    _convolved(
        "batch",
        X2,
        '4x5x2xi32 [{"x"}, {}, {}]',
        "2x2x3xi32 [{}, {}, {}]",
        '4x4x3xi32 [{"x"}, {}, {}]',
        '[{"x"}, {}, {}]',
    ),
    _convolved(
        "features out",
        X2,
        "2x5x2xi32 [{}, {}, {}]",
        '2x2x4xi32 [{}, {}, {"x"}]',
        '2x4x4xi32 [{}, {}, {"x"}]',
        '[{}, {}, {"x"}]',
    ),
    _convolved(
        "features in",
        X4,
        '2x5x8xi32 [{}, {}, {"x"}]',
        '2x8x3xi32 [{}, {"x"}, {}]',
        "2x4x3xi32 [{}, {}, {}]",
        "[{}, {}, {}]",
    ),
    _convolved(
        "uneven features in",
        X4,
        "2x5x6xi32 [{}, {}, {}]",
        "2x6x3xi32 [{}, {}, {}]",
        "2x4x3xi32 [{}, {}, {}]",
        "[{}, {}, {}]",
    ),
    _convolved(
        "groups of features",
        X2,
        '2x5x4xi32 [{}, {}, {"x"}]',
        '2x2x4xi32 [{}, {}, {"x"}]',
        '2x4x4xi32 [{}, {}, {"x"}]',
        '[{}, {}, {"x"}]',
        features=2,
    ),
    _convolved(
        "uneven groups of features",
        X2,
        "2x5x6xi32 [{}, {}, {}]",
        "2x2x3xi32 [{}, {}, {}]",
        "2x4x3xi32 [{}, {}, {}]",
        '[{}, {}, {"x"}]',
        features=3,
    ),
    _convolved(
        "features within groups",
        XY,
        '2x5x8xi32 [{}, {}, {"x", "y"}]',
        '2x4x4xi32 [{}, {}, {"x"}]',
        "2x4x4xi32 [{}, {}, {}]",
        '[{}, {}, {"x"}]',
        features=2,
    ),
    _convolved(
        "groups of batches",
        X2,
        '4x5x2xi32 [{"x"}, {}, {}]',
        '2x2x4xi32 [{}, {}, {"x"}]',
        '2x4x4xi32 [{}, {}, {"x"}]',
        '[{}, {}, {"x"}]',
        batches=2,
    ),
    _convolved(
        "uneven groups of batches",
        X2,
        "6x5x2xi32 [{}, {}, {}]",
        "2x2x3xi32 [{}, {}, {}]",
        "2x4x3xi32 [{}, {}, {}]",
        '[{}, {}, {"x"}]',
        batches=3,
    ),
    _convolved(
        "places",
        X4,
        '1x16x2xi32 [{}, {"x"}, {}]',
        "3x2x2xi32 [{}, {}, {}]",
        '1x16x2xi32 [{}, {"x"}, {}]',
        '[{}, {"x"}, {}]',
        window="pad = [[1, 1]]",
    ),
    _convolved(
        "places, strided",
        X4,
        '1x16x2xi32 [{}, {"x"}, {}]',
        "3x2x2xi32 [{}, {}, {}]",
        "1x8x2xi32 [{}, {}, {}]",
        '[{}, {"x"}, {}]',
        window="stride = [2], pad = [[0, 1]]",
    ),
    _convolved(
        "places, dilated",
        X2,
        '1x6x2xi32 [{}, {"x"}, {}]',
        "3x2x2xi32 [{}, {}, {}]",
        "1x9x2xi32 [{}, {}, {}]",
        "[{}, {}, {}]",
        window="lhs_dilate = [2], rhs_dilate = [2], pad = [[1, 1]]",
    ),
    _convolved(
        "places of the kernel",
        X2,
        '1x8x2xi32 [{}, {"x"}, {}]',
        '4x2x2xi32 [{"x"}, {}, {}]',
        "1x5x2xi32 [{}, {}, {}]",
        "[{}, {}, {}]",
    ),
]


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
