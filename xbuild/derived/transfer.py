"""Convenience forms of channels, infeed, outfeed and custom calls: fresh tokens, and transfers in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from shape_inference import AnyShape, PrimitiveType, TupleShape

from .. import ops
from ..core.builder import Builder, Value
from ..core.diagnostics import BuildError
from .support import as_list, as_values, dressed, require_value, shape_of

__all__ = [
    "custom_call",
    "infeed",
    "infeed_data",
    "outfeed",
    "recv",
    "recv_done",
    "recv_sync",
    "send",
    "send_done",
    "send_sync",
]

Pairs: TypeAlias = Sequence[tuple[int, int]] | Mapping[int, int]


@dressed
def send(
    operand: Value,
    token: Value | None = None,
    *,
    channel_id: int,
    source_target_pairs: Pairs = (),
    is_host_transfer: bool = False,
    name: str | None = None,
) -> Value:
    """Start sending `operand` on a channel, after `token` (default: a new token), and return the context.

    Raises: the same errors as xb.ops.send.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[4])
    >>> xb.send(x, channel_id=1, source_target_pairs=[(0, 1)]).shape
    (f32[4], u32[], token[])

    Source: Operation Semantics, Send.
    """
    return ops.send(
        require_value(operand),
        _token_or_new(token, operand.builder),
        channel_id=channel_id,
        source_target_pairs=source_target_pairs,
        is_host_transfer=is_host_transfer,
        name=name,
    )


@dressed
def send_done(context: Value, *, channel_id: int, is_host_transfer: bool = False, name: str | None = None) -> Value:
    """Wait until the transfer that `send` started is complete, and return a token.

    Raises: the same errors as xb.ops.send_done.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[4])
    >>> xb.send_done(xb.send(x, channel_id=1), channel_id=1).shape
    token[]

    Source: Operation Semantics, Send (SendDone).
    """
    return ops.send_done(context, channel_id=channel_id, is_host_transfer=is_host_transfer, name=name)


def send_sync(
    operand: Value,
    channel_id: int,
    source_target_pairs: Pairs = (),
    *,
    token: Value | None = None,
    is_host_transfer: bool = False,
    name: str | None = None,
) -> Value:
    """Send `operand` on a channel, wait until the transfer is complete, and return the token.

    Records send and send_done.
    Raises: the same errors as xb.ops.send.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[4])
    >>> xb.send_sync(x, 1, [(0, 1)]).shape
    token[]

    Source: Operation Semantics, Send.
    """
    context = send(
        operand,
        token,
        channel_id=channel_id,
        source_target_pairs=source_target_pairs,
        is_host_transfer=is_host_transfer,
    )
    return send_done(context, channel_id=channel_id, is_host_transfer=is_host_transfer, name=name)


@dressed
def recv(
    token: Value | Builder,
    shape: AnyShape,
    *,
    channel_id: int,
    source_target_pairs: Pairs = (),
    is_host_transfer: bool = False,
    name: str | None = None,
) -> Value:
    """Post a buffer for the value that a send transfers on this channel, after `token`.

    Pass a builder as `token` to start from a new token.
    Raises: the same errors as xb.ops.recv.

    >>> import xbuild as xb
    >>> xb.recv(xb.Builder("b"), xb.f32[4], channel_id=1, source_target_pairs=[(0, 1)]).shape
    (f32[4], u32[], token[])

    Source: Operation Semantics, Recv.
    """
    return ops.recv(
        _token_or_new(token),
        shape=shape,
        channel_id=channel_id,
        source_target_pairs=source_target_pairs,
        is_host_transfer=is_host_transfer,
        name=name,
    )


@dressed
def recv_done(context: Value, *, channel_id: int, is_host_transfer: bool = False, name: str | None = None) -> Value:
    """Wait for the value of the channel, and return it with a token.

    Raises: the same errors as xb.ops.recv_done.

    >>> import xbuild as xb
    >>> posted = xb.recv(xb.Builder("b"), xb.f32[4], channel_id=1)
    >>> xb.recv_done(posted, channel_id=1).shape
    (f32[4], token[])

    Source: Operation Semantics, Recv (RecvDone).
    """
    return ops.recv_done(context, channel_id=channel_id, is_host_transfer=is_host_transfer, name=name)


@dressed
def recv_sync(
    shape: AnyShape,
    channel_id: int,
    source_target_pairs: Pairs = (),
    *,
    builder: Builder | None = None,
    token: Value | None = None,
    is_host_transfer: bool = False,
    name: str | None = None,
) -> Value:
    """Wait for the value of a channel, and return it. Records recv and recv_done.

    Raises: no_builder (BuildError) if neither builder nor token is given; also the same errors as xb.ops.recv.

    >>> import xbuild as xb
    >>> xb.recv_sync(xb.f32[4], 1, [(0, 1)], builder=xb.Builder("b")).shape
    f32[4]

    Source: Operation Semantics, Recv.
    """
    posted = recv(
        _token_or_new(token, builder),
        shape,
        channel_id=channel_id,
        source_target_pairs=source_target_pairs,
        is_host_transfer=is_host_transfer,
    )
    received = recv_done(posted, channel_id=channel_id, is_host_transfer=is_host_transfer)
    return ops.get_tuple_element(received, index=0, name=name)


@dressed
def infeed(token: Value | Builder, shape: AnyShape, infeed_config: str = "", *, name: str | None = None) -> Value:
    """Wait for the next item of this device's infeed, and return the tuple of the item and a token.

    The infeed follows `token`. Pass a builder as `token` to start from a new token.
    Raises: the same errors as xb.ops.infeed.

    >>> import xbuild as xb
    >>> data, token = xb.infeed(xb.Builder("b"), xb.f32[4])
    >>> data.shape, token.shape
    (f32[4], token[])

    Source: Operation Semantics, Infeed; xla_builder.h, InfeedWithToken.
    """
    return ops.infeed(_token_or_new(token), shape=shape, infeed_config=infeed_config, name=name)


def infeed_data(token: Value | Builder, shape: AnyShape, infeed_config: str = "", *, name: str | None = None) -> Value:
    """Return the next item of this device's infeed, without the token.

    The infeeds of a builder keep their recorded order.
    Raises: the same errors as xb.ops.infeed.

    >>> import xbuild as xb
    >>> xb.infeed_data(xb.Builder("b"), xb.f32[4]).shape
    f32[4]

    Source: Operation Semantics, Infeed.
    """
    return ops.get_tuple_element(infeed(token, shape, infeed_config), index=0, name=name)


@dressed
def outfeed(
    operand: Value,
    token: Value | None = None,
    outfeed_shape: AnyShape | None = None,
    outfeed_config: str = "",
    *,
    name: str | None = None,
) -> Value:
    """Append the operand, as one item, to this device's outfeed, after `token` (default: a new token).

    `outfeed_shape` defaults to the shape of the operand.
    Raises: the same errors as xb.ops.outfeed.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[4])
    >>> xb.outfeed(x).shape
    token[]

    Source: StableHLO, outfeed; xla_builder.h, OutfeedWithToken.
    """
    return ops.outfeed(
        operand,
        _token_or_new(token, require_value(operand).builder),
        outfeed_shape=shape_of(operand) if outfeed_shape is None else outfeed_shape,
        outfeed_config=outfeed_config,
        name=name,
    )


def _token_or_new(token: Value | Builder | None, builder: Builder | None = None) -> Value:
    """The given token, or a new one of the given builder."""
    if isinstance(token, Value):
        return token
    found = token if isinstance(token, Builder) else builder
    if found is None:
        raise BuildError("no_builder", "no operand determines the builder; pass a token or builder=...")
    return ops.after_all((), builder=found)


@dressed
def custom_call(
    operands: Any,
    custom_call_target: str,
    shape: AnyShape | PrimitiveType | Sequence[AnyShape | PrimitiveType],
    *,
    has_side_effect: bool = False,
    backend_config: str = "",
    builder: Builder | None = None,
    name: str | None = None,
    **attributes: Any,
) -> Value:
    """Apply to the operands (one, or a list) the function registered for the target, and return its result.

    `shape` is the shape of the result, or a list of shapes for a tuple. `attributes` are additional attributes to pass
    to xb.ops.custom_call.
    Raises: the same errors as xb.ops.custom_call.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[4])
    >>> xb.custom_call(x, "halves", [xb.f32[2], xb.f32[2]]).shape
    (f32[2], f32[2])

    Source: Operation Semantics, CustomCall.
    """
    declared: Any = TupleShape(_shapes(shape)) if isinstance(shape, tuple | list) else shape
    attributes.setdefault("custom_call_has_side_effect", has_side_effect)
    return ops.custom_call(
        tuple(as_values(as_list(operands), (None,) * len(as_list(operands)), builder)) if as_list(operands) else (),
        custom_call_target=custom_call_target,
        shape=declared,
        backend_config=backend_config,
        builder=builder,
        name=name,
        **attributes,
    )


def _shapes(listed: Sequence[Any]) -> list[AnyShape]:
    return [each[()] if isinstance(each, PrimitiveType) else each for each in listed]
