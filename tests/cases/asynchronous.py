"""Cases of ops in two halves on one device; tests/checking/asynchronous/ has them on several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import xbuild as xb
from tests.cases.case import Case, Inferred, Refusal

OPCODES, VERIFIER, INFERENCE = "hlo_opcode.h", "hlo_verifier.cc", "shape_inference.cc"
X = np.array([[1.0, 2.5], [-3.0, 0.25]], np.float32)
N = np.array([3, -5], np.int32)
GROUP: dict[str, Any] = {"replica_groups": [[0]]}


def reduced(x: xb.Value, **attributes: Any) -> xb.Value:
    return xb.all_reduce_done(xb.all_reduce_start(x, xb.add, **attributes))


def gathered(x: xb.Value, **attributes: Any) -> xb.Value:
    return xb.all_gather_done(xb.all_gather_start(x, 1, 1, **attributes))


def permuted(x: xb.Value, *contexts: xb.Shape) -> xb.Value:
    return xb.collective_permute_done(xb.collective_permute_start(x, [(0, 0)], context_shapes=contexts))


def wrapped(calls: Callable[..., xb.Value], *updates: None, **attributes: Any) -> Callable[..., xb.Value]:
    """What `calls` computes, between the halves of an async op with so many updates."""

    def begin_and_end(*operands: xb.Value) -> xb.Value:
        started = xb.async_start(operands, calls, **attributes)
        for _ in updates:
            started = xb.async_update(started)
        return xb.async_done(started)

    return begin_and_end


def two_steps(x: xb.Value) -> xb.Value:
    return xb.negate(x * x)


def turned(x: xb.Value, y: xb.Value) -> xb.Value:
    return xb.ops.subtract(y, x)


CASES = [
    Case("all-reduce", reduced, (X,), X, source=OPCODES),
    Case("all-reduce-groups", reduced, (N,), N, {**GROUP, "channel_id": 1}, source=OPCODES),
    Case("all-reduce-several", lambda x, y: reduced((x, y)), (X, X), (X, X), source=OPCODES, oracle=False),
    Case("all-gather", gathered, (X,), X, GROUP, source=OPCODES),
    Case("all-gather-several", lambda x, y: gathered((x, y)), (X, X), (X, X), source=OPCODES, oracle=False),
    Case("permute", permuted, (N,), N, source=OPCODES),
    Case("permute-contexts", lambda x: permuted(x, xb.u32[()], xb.u32[()]), (N,), N, source=OPCODES),
    Case("copy", lambda x: xb.copy_done(xb.copy_start(x)), (X,), X, source=OPCODES, oracle=False),
    Case("negate", wrapped(xb.negate), (X,), -X, source=OPCODES, oracle=False),
    Case("updates", wrapped(xb.negate, None, None), (X,), -X, source=OPCODES, oracle=False),
    Case(
        "contexts", wrapped(xb.negate, context_shapes=[xb.u32[()], xb.s32[2]]), (N,), -N, source=OPCODES, oracle=False
    ),
    Case("thread", wrapped(xb.negate, async_execution_thread="copies"), (X,), -X, source=OPCODES, oracle=False),
    Case("two-ops", wrapped(two_steps), (X,), -(X * X), source=VERIFIER, oracle=False),
    Case(
        "two-ops-on-a-thread",
        wrapped(two_steps, None, async_execution_thread="copies"),
        (N,),
        -(N * N),
        source=VERIFIER,
        oracle=False,
    ),
    Case("operands-in-another-order", wrapped(turned), (N, 2 * N), N, source=VERIFIER, oracle=False),
    Case("slice", wrapped(lambda x: x[1:]), (N,), N[1:], source="StableHLO, async_start", oracle=False),
    Case("all-to-all", wrapped(lambda x: xb.all_to_all(x, 0, 0, 1, **GROUP)), (X,), X, source="StableHLO, async_start"),
    Case(
        "reduce-scatter",
        wrapped(lambda x: xb.reduce_scatter(x, xb.add, 0, 1, **GROUP), None),
        (X,),
        X,
        source="StableHLO, async_start",
        oracle=False,
    ),
    Case(
        "all-reduce-wrapped",
        wrapped(lambda x: xb.all_reduce(x, xb.add, **GROUP)),
        (X,),
        X,
        source=VERIFIER,
        oracle=False,
    ),
    Case("no-operands", lambda x: xb.tuple_(x, ones(x.builder)), (N,), (N, 1.0), source=VERIFIER, oracle=False),
]


def ones(builder: xb.Builder) -> xb.Value:
    inner = xb.Builder("one")
    one = inner.build(xb.constant(inner, 1.0))
    return xb.async_done(xb.async_start([], one, builder=builder))


INFERRED = [
    Inferred("all-reduce-start", lambda x: xb.all_reduce_start(x, xb.add), ("bf16[2,3]",), "bf16[2,3]", INFERENCE),
    Inferred("all-gather-start", lambda x: xb.all_gather_start(x, 0, 4), ("s8[2,3]",), "(s8[2,3], s8[8,3])", INFERENCE),
    Inferred(
        "all-gather-start-several",
        lambda x, y: xb.all_gather_start((x, y), 0, 2),
        ("f32[2]", "s32[3]"),
        "((f32[2], s32[3]), (f32[4], s32[6]))",
        INFERENCE,
    ),
    Inferred(
        "permute-start",
        lambda x: xb.collective_permute_start(x, {0: 1}, context_shapes=[xb.u32, xb.u32]),
        ("f32[2]",),
        "(f32[2], f32[2], u32[], u32[])",
        INFERENCE,
    ),
    Inferred("copy-start", xb.copy_start, ("f32[2]{0}",), "(f32[2], f32[2], u32[])", VERIFIER),
    Inferred("async-start", lambda x: xb.async_start(x, xb.abs), ("c64[2]",), "((c64[2]), f32[2])", VERIFIER),
    Inferred("async-done", xb.async_done, ("((f32[2], s32[]), pred[4], u32[], f32[])",), "pred[4]", VERIFIER),
    Inferred("async-update", xb.async_update, ("((), f32[2])",), "((), f32[2])", VERIFIER),
]

REFUSALS = [
    Refusal("reduce-start-token", lambda x: xb.all_reduce_start(x, xb.add), ("token[]",), "not_array", ("token[]",)),
    Refusal("reduce-done-token", xb.all_reduce_done, ("(f32[2], token[])",), "not_array", ("token[]",)),
    Refusal(
        "reduce-start-groups",
        lambda x: xb.all_reduce_start(x, xb.add, [(0, 1), (1, 2)]),
        ("f32[2]",),
        "invalid_group",
        ("replica 1",),
    ),
    Refusal(
        "gather-start-dimension", lambda x: xb.all_gather_start(x, 1, 2), ("f32[2]",), "dimension_out_of_range", ("1",)
    ),
    Refusal(
        "gather-start-count",
        lambda x: xb.all_gather_start(x, 0, channel_id=1, replica_groups=[(0, 1)]),
        ("f32[2]",),
        "invalid_attribute",
        ("shard_count",),
    ),
    Refusal("gather-done-array", xb.all_gather_done, ("f32[4]",), "not_tuple", ("f32[4]",)),
    Refusal("gather-done-three", xb.all_gather_done, ("(f32[2], f32[4], u32[])",), "signature_mismatch", ("3",)),
    Refusal("gather-done-halves", xb.all_gather_done, ("((f32[2]), f32[4])",), "signature_mismatch", ("(f32[2])",)),
    Refusal(
        "permute-start-twice",
        lambda x: xb.collective_permute_start(x, [(0, 1), (0, 2)]),
        ("f32[2]",),
        "invalid_group",
        ("source", "0"),
    ),
    Refusal(
        "permute-start-context",
        lambda x: xb.collective_permute_start(x, [(0, 1)], context_shapes=xb.u32[()]),
        ("f32[2]",),
        "invalid_attribute",
        ("context_shapes", "u32[]"),
    ),
    Refusal("permute-done-array", xb.collective_permute_done, ("f32[4]",), "not_tuple", ("f32[4]",)),
    Refusal("permute-done-one", xb.collective_permute_done, ("(f32[4])",), "signature_mismatch", ("1",)),
    Refusal(
        "permute-done-unequal",
        xb.collective_permute_done,
        ("(f32[4], f32[8])",),
        "signature_mismatch",
        ("f32[4]", "f32[8]"),
    ),
    Refusal("copy-start-token", xb.copy_start, ("token[]",), "not_array", ("token[]",)),
    Refusal("copy-done-two", xb.copy_done, ("(f32[4], f32[4])",), "signature_mismatch", ("2",)),
    Refusal("copy-done-unequal", xb.copy_done, ("(f32[4], s32[4], u32[])",), "signature_mismatch", ("s32[4]",)),
    Refusal("copy-done-context", xb.copy_done, ("(f32[4], f32[4], s32[])",), "signature_mismatch", ("s32[]",)),
    Refusal(
        "async-start-arity",
        lambda x: xb.async_start(x, xb.computation(xb.f32[2], xb.f32[2])(xb.add)),
        ("f32[2]",),
        "arity_mismatch",
        ("2", "1"),
    ),
    Refusal(
        "async-start-shape",
        lambda x: xb.async_start(x, xb.computation(xb.f32[3])(xb.negate)),
        ("f32[2]",),
        "signature_mismatch",
        ("f32[3]", "f32[2]"),
    ),
    Refusal("async-done-array", xb.async_done, ("f32[4]",), "not_tuple", ("f32[4]",)),
    Refusal("async-done-operands", xb.async_done, ("(f32[4], f32[4])",), "signature_mismatch", ("f32[4]",)),
    Refusal("async-update-one", xb.async_update, ("((f32[4]))",), "signature_mismatch", ("1",)),
]
