"""Cases of collectives on one device, in groups of one; tests/interpreter/test_grid.py has them on several."""

from __future__ import annotations

from typing import Any

import numpy as np

import xbuild as xb
from tests.cases.case import Case, Refusal

REDUCE, GATHER, SCATTER = "StableHLO, all_reduce", "StableHLO, all_gather", "StableHLO, reduce_scatter"
BROADCAST, RAGGED = "StableHLO, collective_broadcast", "jax.lax.ragged_all_to_all"
ALL_TO_ALL, PERMUTE = "Operation Semantics, AllToAll", "StableHLO, collective_permute"
SUM = "Operation Semantics, CrossReplicaSum"
X = np.array([[1.0, 2.5], [-3.0, 0.25]], np.float32)
N = np.array([3, -5], np.int32)
ROWS = np.arange(4, dtype=np.float32)
GROUP = {"replica_groups": [[0]]}


def shared(x: xb.Value, **attributes: Any) -> xb.Value:
    return xb.all_reduce(x, to_apply=xb.add, **attributes)


CASES = [
    Case("sum", xb.cross_replica_sum, (X,), X, source=SUM),
    Case("sum-ids", lambda x: xb.cross_replica_sum(x, replica_group_ids=[0]), (N,), N, source=SUM),
    Case("sum-tuple", lambda x, n: xb.cross_replica_sum(xb.tuple_(x, n, x)), (X, N), (X, N, X), source=SUM),
    Case("all-reduce-max", lambda x: xb.all_reduce(x, to_apply=xb.maximum), (N,), N, source=REDUCE),
    Case("all-reduce-groups", shared, (X,), X, GROUP, source=REDUCE),
    Case("all-reduce-several", lambda x, n: xb.all_reduce((x, n), to_apply=xb.add), (X, X), (X, X), source=REDUCE),
    Case(
        "all-reduce-flattened-ids",
        shared,
        (X,),
        X,
        {**GROUP, "channel_id": 1, "use_global_device_ids": True},
        source=REDUCE,
    ),
    Case("all-gather", lambda x: xb.all_gather(x, 1, 1, **GROUP), (X,), X, source=GATHER),
    Case("reduce-scatter", lambda x: xb.reduce_scatter(x, xb.add, 0, 1, **GROUP), (X,), X, source=SCATTER),
    Case("all-to-all", lambda x: xb.all_to_all(x, 0, 0, 1, **GROUP), (X,), X, source=ALL_TO_ALL),
    Case("all-to-all-other-dimension", lambda x: xb.all_to_all(x, 0, 1, 1, **GROUP), (X,), X, source=ALL_TO_ALL),
    Case("all-to-all-tuple", lambda x: xb.ops.all_to_all((x,), **GROUP), (X,), (X,), source=ALL_TO_ALL, oracle=False),
    Case("broadcast", xb.collective_broadcast, (N,), N, source=BROADCAST, oracle=False),
    Case("broadcast-channel", xb.collective_broadcast, (N,), N, {"channel_id": 1}, source=BROADCAST, oracle=False),
    Case(
        "ragged-updates",
        xb.ragged_all_to_all,
        (ROWS, -ROWS, *(np.array([row], np.int64) for row in ([3, 0], [1, 2], [0, 2], [1, 2]))),
        [3.0, -1.0, 0.0, 1.0],
        source=RAGGED,
        oracle=False,
    ),
    Case(
        "ragged-beyond-the-ends",
        xb.ragged_all_to_all,
        (ROWS, -ROWS, *(np.array([row], np.int32) for row in ([2, -1], [9, 3], [3, 0], [1, 2]))),
        [-0.0, 0.0, 1.0, 2.0],
        source=RAGGED,
        oracle=False,
    ),
    Case("permute-many", lambda x: xb.multi_collective_permute([x, x + x], {0: 0}), (X,), (X, X + X), source=PERMUTE),
    Case("permute-to-itself", lambda x: xb.collective_permute(x, [(0, 0)]), (X,), X, source=PERMUTE),
    Case(
        "permute-nobody", lambda x: xb.collective_permute(x, []), (N,), np.zeros_like(N), source=PERMUTE, oracle=False
    ),
]

for dtype in (xb.bf16, xb.f8e5m2, xb.s4, xb.pred, xb.c64, xb.u64):
    row = np.array([[1, 0], [0, 1]]).astype(dtype.dtype)
    CASES.append(
        Case(f"broadcast-{dtype}", xb.collective_broadcast, (row,), row, GROUP, source=BROADCAST, oracle=False)
    )
    given = (row, np.zeros((3, 2), dtype.dtype), *(np.array([n], np.int32) for n in (1, 1, 2, 1)))
    passed = np.concatenate([np.zeros((2, 2), dtype.dtype), row[1:]])
    CASES.append(Case(f"ragged-{dtype}", xb.ragged_all_to_all, given, passed, source=RAGGED, oracle=False))


def reduce_scatter(x: xb.Value, dimension: int, count: int, **attributes: Any) -> xb.Value:
    return xb.reduce_scatter(x, xb.add, dimension, count, **attributes)


REFUSALS = [
    Refusal("sum-empty-tuple", xb.cross_replica_sum, ("()",), "arity_mismatch", ("()", "one element")),
    Refusal("sum-nested", xb.cross_replica_sum, ("(f32[2], (f32[2]))",), "not_array", ("element 1", "(f32[2])")),
    Refusal("sum-token", xb.cross_replica_sum, ("token[]",), "not_array", ("token[]",)),
    Refusal("sum-unequal", xb.cross_replica_sum, ("f32[2]",), "invalid_group", (), {"replica_group_ids": [0, 1, 2, 0]}),
    Refusal(
        "sum-ids-too-few",
        xb.cross_replica_sum,
        ("f32[2]",),
        "invalid_group",
        ("3", "4"),
        {"replica_group_ids": [0, 1, 0], "num_replicas": 4},
    ),
    Refusal("empty-group", shared, ("f32[2]",), "invalid_group", ("group 1",), {"replica_groups": [[0], []]}),
    Refusal("replica-twice", shared, ("f32[2]",), "invalid_group", ("replica 1",), {"replica_groups": [[0, 1], [1]]}),
    Refusal("replica-negative", shared, ("f32[2]",), "invalid_group", ("-1",), {"replica_groups": [[-1]]}),
    Refusal("ids-without-channel", shared, ("f32[2]",), "invalid_attribute", (), {"use_global_device_ids": True}),
    Refusal(
        "ids-with-channel-0",
        shared,
        ("f32[2]",),
        "invalid_attribute",
        ("channel_id=0", "a positive channel_id"),
        {"use_global_device_ids": True, "channel_id": 0},
    ),
    Refusal(
        "reducer-of-another-type",
        lambda x: xb.all_reduce(x, to_apply=xb.computation(xb.f32, xb.f32)(xb.add)),
        ("s32[2]",),
        "signature_mismatch",
        ("s32[2]", "f32[]"),
    ),
    Refusal(
        "reducer-arity",
        lambda x: xb.all_reduce(x, to_apply=xb.computation(xb.f32)(xb.negate)),
        ("f32[2]",),
        "arity_mismatch",
        ("1", "2"),
    ),
    Refusal("gather-scalar", lambda x: xb.all_gather(x, 0, 4), ("f32[]",), "dimension_out_of_range", ("0", "f32[]")),
    Refusal("gather-count", lambda x: xb.all_gather(x, 0, 0), ("f32[2]",), "non_positive", ("shard_count", "0")),
    Refusal(
        "gather-unequal",
        lambda x: xb.all_gather(x, 0, 3, replica_groups=[[0, 1, 2], [3, 4]]),
        ("f32[2]",),
        "invalid_group",
        ("3", "2"),
    ),
    Refusal("scatter-dimension", lambda x: reduce_scatter(x, 2, 4), ("f32[8,3]",), "dimension_out_of_range", ("2",)),
    Refusal("scatter-divides", lambda x: reduce_scatter(x, 1, 4), ("f32[8,3]",), "divisibility", ("3", "4")),
    Refusal(
        "split-dimension", lambda x: xb.all_to_all(x, 2, 0, 4), ("f32[8,3]",), "dimension_out_of_range", ("split",)
    ),
    Refusal("concat-dimension", lambda x: xb.all_to_all(x, 0, -3, 4), ("f32[8,3]",), "dimension_out_of_range", ("-3",)),
    Refusal("split-count", lambda x: xb.all_to_all(x, 0, 0, 0), ("f32[8]",), "non_positive", ("split_count", "0")),
    Refusal("split-divides", lambda x: xb.all_to_all(x, 0, 0, 3), ("f32[8]",), "divisibility", ("8", "3")),
    Refusal(
        "exchange-shapes",
        lambda x, y: xb.ops.all_to_all((x, y), replica_groups=[[0, 1]]),
        ("f32[2]", "f32[3]"),
        "dimension_mismatch",
        ("f32[2]", "f32[3]"),
    ),
    Refusal(
        "permute-source-twice",
        lambda x: xb.collective_permute(x, [(0, 1), (0, 2)]),
        ("f32[2]",),
        "invalid_group",
        ("source", "0"),
    ),
    Refusal(
        "permute-target-twice",
        lambda x: xb.collective_permute(x, [(0, 2), (1, 2)]),
        ("f32[2]",),
        "invalid_group",
        ("target", "2"),
    ),
    Refusal("broadcast-token", xb.collective_broadcast, ("token[]",), "not_array", ("token[]",)),
    Refusal("broadcast-tuple", xb.collective_broadcast, ("(f32[2], f32[2])",), "not_array", ("f32[2]",)),
    Refusal(
        "broadcast-twice",
        xb.collective_broadcast,
        ("f32[2]",),
        "invalid_group",
        ("replica 1",),
        {"replica_groups": [[0, 1], [1]]},
    ),
    Refusal(
        "ragged-scalar", xb.ragged_all_to_all, ("f32[]", "f32[]", *["s32[2]"] * 4), "rank_too_small", ("operand", "0")
    ),
    Refusal(
        "ragged-types",
        xb.ragged_all_to_all,
        ("f32[4]", "s32[4]", *["s32[2]"] * 4),
        "element_type_mismatch",
        ("f32[4]", "s32[4]"),
    ),
    Refusal(
        "ragged-rows",
        xb.ragged_all_to_all,
        ("f32[4,3]", "f32[8,2]", *["s32[2]"] * 4),
        "dimension_mismatch",
        ("f32[4,3]", "f32[8,2]"),
    ),
    Refusal(
        "ragged-ranks",
        xb.ragged_all_to_all,
        ("f32[4,3]", "f32[8]", *["s32[2]"] * 4),
        "rank_mismatch",
        ("f32[4,3]", "f32[8]"),
    ),
    Refusal(
        "ragged-floats",
        xb.ragged_all_to_all,
        ("f32[4]", "f32[4]", "f32[2]", *["s32[2]"] * 3),
        "element_type_unsupported",
        ("input_offsets", "f32[2]"),
    ),
    Refusal(
        "ragged-rank-3",
        xb.ragged_all_to_all,
        ("f32[4]", "f32[4]", *["s32[2,1,1]"] * 4),
        "rank_mismatch",
        ("input_offsets", "3"),
    ),
    Refusal(
        "ragged-sizes",
        xb.ragged_all_to_all,
        ("f32[4]", "f32[4]", "s32[2]", "s32[3]", "s32[2]", "s32[2]"),
        "dimension_mismatch",
        ("send_sizes", "s32[3]"),
    ),
    Refusal(
        "ragged-integers",
        xb.ragged_all_to_all,
        ("f32[4]", "f32[4]", "s32[2]", "s32[2]", "s64[2]", "s32[2]"),
        "element_type_mismatch",
        ("output_offsets", "s64[2]"),
    ),
    Refusal(
        "ragged-members",
        xb.ragged_all_to_all,
        ("f32[4]", "f32[4]", *["s32[3]"] * 4),
        "invalid_group",
        ("2", "3"),
        {"replica_groups": [[0, 1]]},
    ),
    Refusal("permute-token", lambda x: xb.collective_permute(x, [(0, 1)]), ("token[]",), "not_array", ("token[]",)),
]
