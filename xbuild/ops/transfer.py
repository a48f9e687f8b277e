"""Ops that pass values between devices or to the host: channels, infeed, outfeed, custom calls."""

from __future__ import annotations

from typing import Literal

from shape_inference import AnyShape
from shape_inference.convolutions import ConvolutionDimensionNumbers
from shape_inference.windows import Window

from ..core.attributes import Aliases, Array, Called, Shapes, SourceTargetPairs
from ..core.builder import Value, Values
from ..core.op import op
from ..core.properties import Properties

__all__ = ["custom_call", "infeed", "outfeed", "recv", "recv_done", "send", "send_done"]


@op(Properties("whole", needs="peer", half="start", done="send_done", states_shape=True))
def send(
    operand: Value,
    token: Value,
    *,
    channel_id: int,
    source_target_pairs: SourceTargetPairs = (),
    is_host_transfer: bool = False,
) -> Value:
    """Start sending `operand` on a channel; the send completes once the receiver has posted its recv.

    Shapes: takes one value of shape T (an array or a tuple of arrays) and a token. Returns the context (T, u32[],
    token[]), which only send_done can use.
    Pairs: each pair is (source device, target device). A device that is not a source sends nothing. In a module group,
    omit the pairs: the peer is the device whose program has the recv.
    Raises: token_expected or not_array; non_positive if the channel is not positive; invalid_group if the pairs are
    invalid.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[4])
    >>> xb.send(x, xb.after_all(builder=x.builder), channel_id=1, source_target_pairs=[(0, 1)]).shape
    (f32[4], u32[], token[])

    Source: Operation Semantics, Send; StableHLO, send.
    """
    ...


@op(Properties("whole", needs="peer", half="done", states_shape=True))
def send_done(context: Value, *, channel_id: int, is_host_transfer: bool = False) -> Value:
    """Wait until the transfer that `send` started is complete.

    Shapes: takes the context from a send and returns token[].
    Raises: not_tuple; signature_mismatch if the operand is not a context.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[4])
    >>> sent = xb.send(x, xb.after_all(builder=x.builder), channel_id=1, source_target_pairs=[(0, 1)])
    >>> xb.send_done(sent, channel_id=1).shape
    token[]

    Source: Operation Semantics, Send (SendDone).
    """
    ...


@op(Properties("whole", depends_on="outside", needs="peer", half="start", done="recv_done", states_shape=True))
def recv(
    token: Value,
    *,
    shape: AnyShape,
    channel_id: int,
    source_target_pairs: SourceTargetPairs = (),
    is_host_transfer: bool = False,
) -> Value:
    """Post a buffer for the value that a send transfers on this channel, without waiting.

    Shapes: takes a token and returns the context (shape, u32[], token[]), which only recv_done can use.
    Pairs: each pair is (source device, target device). A device that is not a target gets zeros.
    Raises: token_expected or not_array; non_positive if the channel is not positive; invalid_group if the pairs are
    invalid.

    >>> import xbuild as xb
    >>> token = xb.after_all(builder=xb.Builder("b"))
    >>> xb.recv(token, shape=xb.f32[4], channel_id=1, source_target_pairs=[(0, 1)]).shape
    (f32[4], u32[], token[])

    Source: Operation Semantics, Recv; StableHLO, recv.
    """
    ...


@op(Properties("whole", depends_on="outside", needs="peer", half="done", states_shape=True))
def recv_done(context: Value, *, channel_id: int, is_host_transfer: bool = False) -> Value:
    """Wait for the value of the channel.

    Shapes: takes the context from a recv of shape T and returns (T, token[]).
    Raises: not_tuple; signature_mismatch if the operand is not a context.

    >>> import xbuild as xb
    >>> token = xb.after_all(builder=xb.Builder("b"))
    >>> posted = xb.recv(token, shape=xb.f32[4], channel_id=1, source_target_pairs=[(0, 1)])
    >>> xb.recv_done(posted, channel_id=1).shape
    (f32[4], token[])

    Source: Operation Semantics, Recv (RecvDone).
    """
    ...


@op(Properties("whole", depends_on="outside", needs="host", states_shape=True))
def infeed(token: Value, *, shape: AnyShape, infeed_config: str = "") -> Value:
    """Wait for the next item of this device's infeed, and return it.

    Shapes: takes a token and returns (shape, token[]). With an empty tuple shape, nothing is read. Infeeds run in their
    recorded order.
    Raises: token_expected; not_array if a tuple contains a tuple.

    >>> import xbuild as xb
    >>> xb.infeed(xb.after_all(builder=xb.Builder("b")), shape=xb.f32[4]).shape
    (f32[4], token[])

    Source: Operation Semantics, Infeed; StableHLO, infeed.
    """
    ...


@op(Properties("whole", needs="host", states_shape=True))
def outfeed(operand: Value, token: Value, *, outfeed_shape: AnyShape, outfeed_config: str = "") -> Value:
    """Append the operand, as one item, to this device's outfeed.

    Shapes: takes an array or a tuple of arrays, and a token. Returns token[].
    Raises: token_expected; signature_mismatch if outfeed_shape differs from the operand's shape.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[4])
    >>> xb.outfeed(x, xb.after_all(builder=x.builder)).shape
    token[]

    Source: StableHLO, outfeed; xla_builder.h, OutfeedWithToken.
    """
    ...


@op(Properties("whole", depends_on="target", calls="target", states_shape=True))
def custom_call(
    operands: Values,
    *,
    custom_call_target: str,
    shape: AnyShape,
    custom_call_has_side_effect: bool = False,
    backend_config: str = "",
    api_version: Literal[
        "API_VERSION_UNSPECIFIED",
        "API_VERSION_ORIGINAL",
        "API_VERSION_STATUS_RETURNING",
        "API_VERSION_STATUS_RETURNING_UNIFIED",
        "API_VERSION_TYPED_FFI",
    ] = "API_VERSION_ORIGINAL",
    called_computations: Called = (),
    operand_layout_constraints: Shapes | None = None,
    output_to_operand_aliasing: Aliases = (),
    schedule: Literal["SCHEDULE_NONE", "SCHEDULE_EARLIEST", "SCHEDULE_LATEST"] = "SCHEDULE_NONE",
    literal: Array | None = None,
    window: Window | None = None,
    dim_labels: ConvolutionDimensionNumbers | None = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    operand_precision: tuple[str, ...] = (),
    padding_type: Literal["PADDING_INVALID", "PADDING_VALID", "PADDING_SAME"] = "PADDING_INVALID",
) -> Value:
    """Apply to the operands the function that xb.custom_call_target registered for the target, and return its result.

    Shapes: takes operands of any shape and returns the declared shape. A run stops if the function returns a different
    shape. A call with a side effect runs, in its recorded order, even if nothing uses its result. The function gets
    `backend_config`. Layouts, aliasing, schedule and the remaining attributes are for the compiler: xbuild keeps and
    prints them.
    Raises: attribute_length_mismatch; signature_mismatch if the layout constraints differ from the operands' shapes;
    index_out_of_range if an alias refers to an operand that does not exist; invalid_attribute if a precision does not
    exist.

    >>> import xbuild as xb
    >>> @xb.custom_call_target("reversed")
    ... def _(x):
    ...     return x[::-1]
    >>> @xb.computation(xb.f32[3])
    ... def turned(x):
    ...     return xb.custom_call(x, "reversed", xb.f32[3])
    >>> xb.evaluate(turned, [1.0, 2.0, 3.0])
    array([3., 2., 1.], dtype=float32)

    Source: Operation Semantics, CustomCall; StableHLO, custom_call.
    """
    ...
