"""Sharded programs whose executable tests `kinds.py` writes, one for each way in which devices share a value."""

from __future__ import annotations

# ruff: noqa: E501 (rows of a table)
import re
from typing import Any

import numpy as np

from .kinds import Kind

XY = '<["x"=2, "y"=2]>'
X2, X4 = '<["x"=2]>', '<["x"=4]>'
ABC = '<["a"=2, "b"=2, "c"=2]>'


def kind(
    name: str, mesh: str, given: list[str], result: str, body: str, wanted: Any = None, *, own: bool = False,
    is_replicas: bool = False, more: str = "",
) -> Kind:  # fmt: skip
    """A kind in short: `4x8xi32 [{"x"}, {}]` is a typed value, `T4x8` a tensor of i32, `$[...]` a stated sharding."""
    arguments = ", ".join(f"%arg{n}: {_typed(each)}" for n, each in enumerate(given))
    text = re.sub(r"\bT([\dx]*)\b", lambda m: f"tensor<{m[1]}{'x' if m[1] else ''}i32>", body)
    text = re.sub(r"\$(\[(?:\{[^}]*\}(?:, )?)*\])", r"{sdy.sharding = #sdy.sharding_per_value<[<@m, \1>]>}", text)
    function = f"func.func @parallel_f({arguments}) -> ({_typed(result)}) {{{text}\n}}\n"
    return Kind(name, f"sdy.mesh @m = {mesh}\n{more}{function}", wanted, own, is_replicas)


def _typed(text: str) -> str:
    shape, _, sharding = text.partition(" ")
    return f"tensor<{shape}> {{sdy.sharding = #sdy.sharding<@m, {sharding}>}}"


ADDED = """({
    ^bb0(%p: tensor<i32>, %q: tensor<i32>):
      %s = stablehlo.add %p, %q : tensor<i32>
      stablehlo.return %s : tensor<i32>
  })"""
GROUPS = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"


def _pairs(arrays: Any) -> Any:
    """What devices 0 and 1, and 2 and 3, have together."""
    return [(arrays[d - d % 2], arrays[d - d % 2 + 1]) for d in range(4)]


def _summed(arrays: Any) -> list[Any]:
    return [sum(arrays)] * len(arrays)


def _greatest(arrays: Any) -> list[Any]:
    return [np.maximum.reduce(arrays)] * len(arrays)


COLLECTIVES = [
    kind(
        "all-gather of two dimensions",
        XY,
        ['4x8xi32 [{"x"}, {"y"}]'],
        "4x8xi32 [{}, {}]",
        """
  %0 = sdy.all_gather [{"x"}, {"y"}] %arg0 out_sharding=<@m, [{}, {}]> : T4x8
  return %0 : T4x8""",
    ),
    kind(
        "all-gather of a part of an axis",
        '<["x"=8]>',
        ['16xi32 [{"x"}]'],
        '16xi32 [{"x":(1)2}]',
        """
  %0 = sdy.all_gather [{"x":(2)4}] %arg0 out_sharding=<@m, [{"x":(1)2}]> : T16
  return %0 : T16""",
    ),
    kind(
        "all-slice",
        XY,
        ["8x4xi32 [{}, {}]"],
        '8x4xi32 [{"y", "x"}, {}]',
        """
  %0 = sdy.all_slice [{"y", "x"}, {}] %arg0 out_sharding=<@m, [{"y", "x"}, {}]> : T8x4
  return %0 : T8x4""",
    ),
    kind(
        "all-slice by parts of axes",
        '<["x"=4, "y"=2]>',
        ['8x4xi32 [{"y"}, {}]'],
        '8x4xi32 [{"y", "x":(2)2}, {"x":(1)2}]',
        """
  %0 = sdy.all_slice [{"x":(2)2}, {"x":(1)2}] %arg0 out_sharding=<@m, [{"y", "x":(2)2}, {"x":(1)2}]> : T8x4
  return %0 : T8x4""",
    ),
    kind(
        "all-reduce",
        XY,
        ["4xi32 [{}]"],
        "4xi32 [{}]",
        """
  %0 = sdy.all_reduce {"x", "y"} %arg0 out_sharding=<@m, [{}]> : T4
  return %0 : T4""",
        _summed,
        own=True,
    ),
    kind(
        "all-reduce along one axis",
        XY,
        ["4xi32 [{}]"],
        "4xi32 [{}]",
        """
  %0 = sdy.all_reduce {"y"} %arg0 out_sharding=<@m, [{}]> : T4
  return %0 : T4""",
        lambda arrays: [sum(each) for each in _pairs(arrays)],
        own=True,
    ),
    kind(
        "all-to-all",
        X4,
        ['8x4xi32 [{"x"}, {}]'],
        '8x4xi32 [{}, {"x"}]',
        """
  %0 = sdy.all_to_all [{"x"}: 0->1] %arg0 out_sharding=<@m, [{}, {"x"}]> : T8x4
  return %0 : T8x4""",
    ),
    kind(
        "all-to-all of two",
        ABC,
        ['8x4x4x2xi32 [{"a"}, {"b"}, {}, {}]'],
        '8x4x4x2xi32 [{}, {}, {"a"}, {"b"}]',
        """
  %0 = sdy.all_to_all [{"a"}: 0->2, {"b"}: 1->3] %arg0 out_sharding=<@m, [{}, {}, {"a"}, {"b"}]> : T8x4x4x2
  return %0 : T8x4x4x2""",
    ),
    kind(
        "all-to-all of replicas",
        X2,
        ['4x4xi32 [{"x"}, {}]'],
        '4x4xi32 [{}, {"x"}]',
        """
  %0 = sdy.all_to_all [{"x"}: 0->1] %arg0 out_sharding=<@m, [{}, {"x"}]> : T4x4
  return %0 : T4x4""",
        is_replicas=True,
    ),
    kind(
        "collective-permute of two dimensions",
        XY,
        ['4x8xi32 [{"x"}, {"y"}]'],
        '4x8xi32 [{"y"}, {"x"}]',
        """
  %0 = sdy.collective_permute %arg0 out_sharding=<@m, [{"y"}, {"x"}]> : T4x8
  return %0 : T4x8""",
    ),
    kind(
        "collective-permute of replicas",
        XY,
        ['8xi32 [{"x", "y"}]'],
        '8xi32 [{"y", "x"}]',
        """
  %0 = sdy.collective_permute %arg0 out_sharding=<@m, [{"y", "x"}]> : T8
  return %0 : T8""",
        is_replicas=True,
    ),
    kind(
        "reduce-scatter",
        X4,
        ["8x2xi32 [{}, {}]"],
        '8x2xi32 [{"x"}, {}]',
        """
  %0 = sdy.reduce_scatter [{"x"}, {}] %arg0 out_sharding=<@m, [{"x"}, {}]> : T8x2
  return %0 : T8x2""",
        lambda arrays: np.split(sum(arrays), 4),
        own=True,
    ),
    kind(
        "reshard of scrambled axes",
        ABC,
        ['8x8x8xi32 [{"c", "a"}, {}, {"b"}]'],
        '8x8x8xi32 [{"b"}, {"a"}, {"c"}]',
        """
  %0 = sdy.reshard %arg0 <@m, [{"a"}, {"b", "c"}, {}]> : T8x8x8
  %1 = sdy.reshard %0 <@m, [{"b"}, {"a"}, {"c"}]> : T8x8x8
  return %1 : T8x8x8""",
    ),
    kind(
        "a collective of StableHLO on parts: all-gather",
        XY,
        ['8x2xi32 [{"x", "y"}, {}]'],
        '16x2xi32 [{"x", "y"}, {}]',
        f"""
  %0 = "stablehlo.all_gather"(%arg0) {{all_gather_dim = 0 : i64, use_global_device_ids, {GROUPS},
    sdy.sharding = #sdy.sharding_per_value<[<@m, [{{"x", "y"}}, {{}}]>]>}} : (T8x2) -> T16x2
  return %0 : T16x2""",
        lambda x: np.concatenate([x[:4], x[:4], x[4:], x[4:]]),
    ),
    kind(
        "a collective of StableHLO on parts: all-reduce",
        XY,
        ["4xi32 [{}]"],
        "4xi32 [{}]",
        f"""
  %0 = "stablehlo.all_reduce"(%arg0) {ADDED} {{use_global_device_ids, {GROUPS},
    sdy.sharding = #sdy.sharding_per_value<[<@m, [{{}}]>]>}} : (T4) -> T4
  return %0 : T4""",
        lambda arrays: [sum(each) for each in _pairs(arrays)],
        own=True,
    ),
    kind(
        "a collective of StableHLO on parts: reduce-scatter",
        XY,
        ["4x2xi32 [{}, {}]"],
        "2x2xi32 [{}, {}]",
        f"""
  %0 = "stablehlo.reduce_scatter"(%arg0) {ADDED} {{scatter_dimension = 0 : i64, use_global_device_ids, {GROUPS},
    sdy.sharding = #sdy.sharding_per_value<[<@m, [{{}}, {{}}]>]>}} : (T4x2) -> T2x2
  return %0 : T2x2""",
        lambda arrays: [np.split(sum(each), 2)[d % 2] for d, each in enumerate(_pairs(arrays))],
        own=True,
    ),
    kind(
        "a collective of StableHLO on parts: all-to-all",
        XY,
        ['4x4xi32 [{"x"}, {}]'],
        '8x2xi32 [{"x"}, {}]',
        f"""
  %0 = "stablehlo.all_to_all"(%arg0) {{split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 : i64,
    {GROUPS}, sdy.sharding = #sdy.sharding_per_value<[<@m, [{{"x"}}, {{}}]>]>}} : (T4x4) -> T8x2
  return %0 : T8x2""",
        lambda arrays: [
            np.concatenate([each[:, 2 * (d % 2) :][:, :2] for each in pair]) for d, pair in enumerate(_pairs(arrays))
        ],
        own=True,
    ),
    kind(
        "a collective of StableHLO on parts: collective-permute",
        X4,
        ['8xi32 [{"x"}]'],
        '8xi32 [{"x"}]',
        """
  %0 = "stablehlo.collective_permute"(%arg0) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
    source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 0]]> : tensor<4x2xi64>,
    sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : (T8) -> T8
  return %0 : T8""",
        lambda x: np.roll(x, 2),
    ),
]
"""Collectives that a program states."""
