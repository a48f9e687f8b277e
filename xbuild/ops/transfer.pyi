"""Made by `python -m xbuild.stubs` from the declarations; the words stand in the source beside it."""

from collections.abc import Mapping, Sequence

from shape_inference import AnyShape, PrimitiveType

from ..builder import Value

def send(
    operand: Value,
    token: Value,
    /,
    *,
    channel_id: int,
    source_target_pairs: Sequence[Sequence[int]] | Mapping[int, int] = (),
    is_host_transfer: bool = False,
    name: str | None = None,
) -> Value: ...
def send_done(
    context: Value,
    /,
    *,
    channel_id: int,
    is_host_transfer: bool = False,
    name: str | None = None,
) -> Value: ...
def recv(
    token: Value,
    /,
    *,
    shape: AnyShape | PrimitiveType,
    channel_id: int,
    source_target_pairs: Sequence[Sequence[int]] | Mapping[int, int] = (),
    is_host_transfer: bool = False,
    name: str | None = None,
) -> Value: ...
def recv_done(
    context: Value,
    /,
    *,
    channel_id: int,
    is_host_transfer: bool = False,
    name: str | None = None,
) -> Value: ...
def infeed(
    token: Value,
    /,
    *,
    shape: AnyShape | PrimitiveType,
    infeed_config: str = "",
    name: str | None = None,
) -> Value: ...
def outfeed(
    operand: Value,
    token: Value,
    /,
    *,
    outfeed_shape: AnyShape | PrimitiveType,
    outfeed_config: str = "",
    name: str | None = None,
) -> Value: ...
