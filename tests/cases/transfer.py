"""Cases of transfers that one device can run; tests/interpreter/test_grid.py has channels, feeds and the host."""

from __future__ import annotations

from typing import Any

import numpy as np

import xbuild as xb
from tests.cases.case import Case, Refusal

INFEED, OUTFEED = "Operation Semantics, Infeed", "StableHLO, outfeed"
X = np.arange(4, dtype=np.float32)


def reads_nothing(x: xb.Value) -> xb.Value:
    return xb.tuple_(x, xb.infeed(xb.after_all(builder=x.builder), shape=xb.TupleShape(()))[0])


def fed_out(x: xb.Value) -> xb.Value:
    xb.outfeed(x, xb.after_all(builder=x.builder))
    return x


CASES = [
    Case("infeed-of-nothing", reads_nothing, (X,), (X, ()), source=INFEED, oracle=False),
    Case("outfeed", fed_out, (X,), X, source=OUTFEED, oracle=False),
]


def done(context: xb.Value, **attributes: Any) -> xb.Value:
    return xb.send_done(context, channel_id=1, **attributes)


REFUSALS = [
    Refusal("send-token", xb.ops.send, ("f32[2]", "f32[]"), "token_expected", ("f32[]",), {"channel_id": 1}),
    Refusal("send-a-token", xb.ops.send, ("token[]", "token[]"), "not_array", ("token[]",), {"channel_id": 1}),
    Refusal("send-channel", xb.ops.send, ("f32[2]", "token[]"), "non_positive", ("-3",), {"channel_id": -3}),
    Refusal(
        "send-source-twice",
        xb.ops.send,
        ("f32[2]", "token[]"),
        "invalid_group",
        ("source", "0"),
        {"channel_id": 1, "source_target_pairs": [(0, 1), (0, 2)]},
    ),
    Refusal("send-done-of-array", done, ("f32[2]",), "not_tuple", ("f32[2]",)),
    Refusal("send-done-of-tuple", done, ("(f32[2], s32[], token[])",), "signature_mismatch", ("s32[]",)),
    Refusal("recv-done-of-two", xb.ops.recv_done, ("(f32[2], u32[])",), "signature_mismatch", (), {"channel_id": 1}),
    Refusal("recv-token", xb.ops.recv, ("f32[]",), "token_expected", ("f32[]",), {"shape": xb.f32[2], "channel_id": 1}),
    Refusal("recv-a-token", xb.ops.recv, ("token[]",), "not_array", ("token[]",), {"shape": xb.token, "channel_id": 1}),
    Refusal("infeed-token", xb.ops.infeed, ("f32[]",), "token_expected", ("f32[]",), {"shape": xb.f32[2]}),
    Refusal(
        "infeed-nested",
        xb.ops.infeed,
        ("token[]",),
        "not_array",
        ("nested",),
        {"shape": xb.TupleShape((xb.TupleShape((xb.f32[2],)),))},
    ),
    Refusal("outfeed-token", xb.ops.outfeed, ("f32[2]", "f32[2]"), "token_expected", (), {"outfeed_shape": xb.f32[2]}),
    Refusal(
        "outfeed-shape",
        xb.ops.outfeed,
        ("f32[2]", "token[]"),
        "signature_mismatch",
        ("f32[2]", "f32[3]"),
        {"outfeed_shape": xb.f32[3]},
    ),
]
