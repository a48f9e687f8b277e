"""Sharded ops whose executable tests `kinds.py` writes: windows, products, lookups and rearrangements."""

from __future__ import annotations

from .stated import X2, X4, XY, kind


def _reshape(name: str, mesh: str, given: str, result: str, before: str, after: str) -> object:
    """An array in a stated sharding, reshaped into another that is stated."""
    one, other = given.split("xi32")[0], result.split("xi32")[0]
    return kind(
        name,
        mesh,
        [given],
        result,
        f"""
  %0 = stablehlo.negate %arg0 ${before} : T{one}
  %1 = stablehlo.reshape %0 ${after} : (T{one}) -> T{other}
  %2 = stablehlo.add %1, %1 : T{other}
  return %2 : T{other}""",
    )


RESHAPES = [
    _reshape("split", XY, '8xi32 [{"x", "y"}]', '2x4xi32 [{"x"}, {"y"}]', '[{"x", "y"}]', '[{"x"}, {"y"}]'),
    _reshape("split by other axes", XY, '8xi32 [{"x"}]', '4x2xi32 [{}, {"x"}]', '[{"y"}]', '[{"x"}, {"y"}]'),
    _reshape(
        "split of two groups",
        '<["x"=2, "y"=2, "z"=2]>',
        '8x6xi32 [{"x", "y"}, {"z"}]',
        '2x4x2x3xi32 [{"x"}, {"y"}, {"z"}, {}]',
        '[{"x", "y"}, {"z"}]',
        '[{"x"}, {"y"}, {"z"}, {}]',
    ),
    _reshape(
        "split with an order of devices",
        '<["x"=2, "y"=2], device_ids=[2, 0, 3, 1]>',
        '8xi32 [{"x", "y"}]',
        '2x4xi32 [{"y"}, {"x"}]',
        '[{"y", "x"}]',
        '[{"y"}, {"x"}]',
    ),
    _reshape(
        "split that leaves a gap", '<["x"=4, "y"=2]>', '12xi32 [{"x"}]', "6x2xi32 [{}, {}]", '[{"x"}]', '[{"y"}, {}]'
    ),
    _reshape("split where an axis does not fit", X4, '24xi32 [{"x"}]', '6x4xi32 [{}, {"x"}]', '[{"x"}]', '[{"x"}, {}]'),
    _reshape("split that does not divide", X4, "12xi32 [{}]", "3x4xi32 [{}, {}]", '[{"x"}]', '[{"x"}, {}]'),
    _reshape(
        "split beside an uneven dimension",
        XY,
        "3x6xi32 [{}, {}]",
        "3x2x3xi32 [{}, {}, {}]",
        '[{"x"}, {"y"}]',
        '[{"x"}, {"y"}, {}]',
    ),
    _reshape("merge", XY, '4x6xi32 [{"x"}, {"y"}]', '24xi32 [{"x"}]', '[{"x"}, {"y"}]', '[{"x", "y"}]'),
    _reshape(
        "axes that shift", XY, '4x6xi32 [{"x"}, {"y"}]', '6x4xi32 [{"x"}, {"y"}]', '[{"x"}, {"y"}]', '[{"x"}, {"y"}]'
    ),
    _reshape(
        "a boundary that shifts",
        '<["x"=4, "y"=2]>',
        '8x6xi32 [{"x"}, {"y"}]',
        '4x12xi32 [{"x"}, {"y"}]',
        '[{"x"}, {"y"}]',
        '[{"x"}, {"y"}]',
    ),
    _reshape(
        "parts of an axis that shift",
        '<["x"=8]>',
        '8x4xi32 [{"x"}, {}]',
        '2x16xi32 [{"x":(1)2}, {"x":(2)4}]',
        '[{"x":(1)4}, {"x":(4)2}]',
        '[{"x":(1)2}, {"x":(2)4}]',
    ),
    _reshape(
        "an axis that is unrelated",
        XY,
        '4x6xi32 [{}, {"y"}]',
        '2x2x6xi32 [{}, {}, {"y"}]',
        '[{"x"}, {"y"}]',
        '[{"x"}, {}, {"y"}]',
    ),
    kind(
        "reshape and transpose",
        XY,
        ['4x6xi32 [{"x"}, {"y"}]'],
        '2x6x2xi32 [{"y"}, {"x"}, {}]',
        """
  %0 = stablehlo.reshape %arg0 $[{"x"}, {}, {"y"}] : (T4x6) -> T2x2x6
  %1 = stablehlo.transpose %0, dims = [1, 2, 0] $[{"y"}, {"x"}, {}] : (T2x2x6) -> T2x6x2
  return %1 : T2x6x2""",
    ),
]


def _windowed(name: str, mesh: str, op: str, types: str, given: str, result: str, sharding: str) -> object:
    """An op on one array (and a scalar `%c`) whose result has a stated sharding."""
    dims = result.split("xi32")[0]
    return kind(
        name,
        mesh,
        [given],
        result,
        f"""
  %c = stablehlo.constant dense<3> : tensor<i32>
  %0 = {op} ${sharding} : {types} -> T{dims}
  %1 = stablehlo.add %0, %0 : T{dims}
  return %1 : T{dims}""",
    )


def _padded(
    name: str, low: str, high: str, interior: str, given: str, result: str, sharding: str, mesh: str = X4
) -> object:
    op = f"stablehlo.pad %arg0, %c, low = [{low}], high = [{high}], interior = [{interior}]"
    return _windowed(name, mesh, op, f"(T{given.split('xi32')[0]}, tensor<i32>)", given, result, sharding)


def _sliced(name: str, ranges: str, given: str, result: str, sharding: str, mesh: str = X4) -> object:
    return _windowed(
        name, mesh, f"stablehlo.slice %arg0 [{ranges}]", f"(T{given.split('xi32')[0]})", given, result, sharding
    )


MOVED = [
    _padded("pad to the right", "3", "1", "0", '8xi32 [{"x"}]', "12xi32 [{}]", '[{"x"}]'),
    _padded("pad by several hops", "9", "7", "0", '8xi32 [{"x"}]', '24xi32 [{"x"}]', '[{"x"}]'),
    _padded("pad below zero", "-3", "5", "0", '8xi32 [{"x"}]', "10xi32 [{}]", '[{"x"}]'),
    _padded("pad below zero on both sides", "-2", "-3", "0", '12xi32 [{"x"}]', "7xi32 [{}]", '[{"x"}]'),
    _padded("pad inside", "1", "0", "2", '8xi32 [{"x"}]', "23xi32 [{}]", '[{"x"}]'),
    _padded(
        "pad inside and below zero",
        "-1, 0",
        "2, 0",
        "1, 0",
        '4x4xi32 [{"x"}, {}]',
        '8x4xi32 [{"x"}, {}]',
        '[{"x"}, {}]',
        X2,
    ),
    _padded(
        "pad of two dimensions",
        "1, -1",
        "2, 3",
        "0, 0",
        "5x6xi32 [{}, {}]",
        '8x8xi32 [{"x"}, {"y"}]',
        '[{"x"}, {"y"}]',
        XY,
    ),
    _padded("pad of an array that is whole", "2", "4", "0", "6xi32 [{}]", '12xi32 [{"x"}]', '[{"x"}]'),
    _sliced("slice inside of the parts", "0:8, 1:3", '8x4xi32 [{"x"}, {}]', '8x2xi32 [{"x"}, {}]', '[{"x"}, {}]'),
    _sliced("slice across", "3:11", '16xi32 [{"x"}]', '8xi32 [{"x"}]', '[{"x"}]'),
    _sliced("slice that does not divide", "2:9", '12xi32 [{"x"}]', "7xi32 [{}]", '[{"x"}]'),
    _sliced("slice with strides", "1:16:3", '16xi32 [{"x"}]', "5xi32 [{}]", '[{"x"}]'),
    _sliced(
        "slice with strides of two dimensions",
        "0:6:2, 1:8:2",
        '6x8xi32 [{}, {"y"}]',
        "3x4xi32 [{}, {}]",
        '[{"x"}, {"y"}]',
        XY,
    ),
    _sliced("slice of what is whole", "1:5", "8xi32 [{}]", '4xi32 [{"x"}]', '[{"x"}]'),
    kind(
        "reverse that does not divide",
        X4,
        ["10x2xi32 [{}, {}]"],
        "10x2xi32 [{}, {}]",
        """
  %0 = stablehlo.reverse %arg0, dims = [0] $[{"x"}, {}] : T10x2
  %1 = stablehlo.negate %0 $[{}, {}] : T10x2
  return %1 : T10x2""",
    ),
    kind(
        "reverse of two dimensions",
        XY,
        ['8x4xi32 [{"x"}, {"y"}]'],
        '8x4xi32 [{"x"}, {"y"}]',
        """
  %0 = stablehlo.reverse %arg0, dims = [0, 1] $[{"x"}, {"y"}] : T8x4
  return %0 : T8x4""",
    ),
]
