"""Sharded products and convolutions whose executable tests `kinds.py` writes."""

from __future__ import annotations

from .kinds import Kind
from .stated import X2, X4, XY, kind


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
