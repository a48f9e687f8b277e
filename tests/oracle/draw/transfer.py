"""Draws of calls to the outside, and of what XLA:CPU does not run: transfers between devices, feeds of the host."""

from __future__ import annotations

from typing import Any

import xbuild as xb
from shape_inference import PrimitiveType

from ..chance import Chance
from ..instance import Instance
from .draw import Draw


def sent(opcode: str) -> Draw:
    """A value that goes to the next device."""

    def draw(chance: Chance, dtype: PrimitiveType) -> Instance:
        value = chance.values(dtype, (2, *chance.dims()))
        return Instance(opcode, dtype, (value,), record=_send_and_receive, num_replicas=2)

    return draw


def _send_and_receive(builder: xb.Builder, value: xb.Value) -> xb.Value:
    token, pairs = xb.ops.after_all((), builder=builder), {"channel_id": 1, "source_target_pairs": [(0, 1)]}
    received = xb.ops.recv(token, shape=value.shape, **pairs)
    sent = xb.ops.send(value, token, **pairs)
    done = xb.ops.recv_done(received, channel_id=1)
    xb.ops.send_done(sent, channel_id=1)
    return xb.ops.get_tuple_element(done, index=0)


def infeed(chance: Chance, dtype: PrimitiveType) -> Instance:
    dims = chance.dims()

    def record(builder: xb.Builder) -> Any:
        token = xb.ops.after_all((), builder=builder)
        return xb.ops.get_tuple_element(xb.ops.infeed(token, shape=dtype[dims]), index=0)

    return Instance("infeed", dtype, record=record)


def outfeed(chance: Chance, dtype: PrimitiveType) -> Instance:
    def record(builder: xb.Builder, value: xb.Value) -> Any:
        xb.ops.outfeed(value, xb.ops.after_all((), builder=builder), outfeed_shape=value.shape)
        return value

    return Instance("outfeed", dtype, (chance.values(dtype, chance.dims()),), record=record)


def custom_call(chance: Chance, dtype: PrimitiveType) -> Instance:
    """A target that both sides know without registration, and that changes nothing."""
    dims = chance.dims()
    attributes = {"custom_call_target": "Sharding", "shape": dtype[dims]}
    return Instance("custom_call", dtype, ((chance.values(dtype, dims),),), attributes)


DRAWS: dict[str, Draw] = {
    "custom_call": custom_call,
    "infeed": infeed,
    "outfeed": outfeed,
    **{opcode: sent(opcode) for opcode in ("recv", "recv_done", "send", "send_done")},
}
