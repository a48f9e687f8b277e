"""Made by `make stubs` from the declarations; the words stand in the source beside it."""

from collections.abc import Mapping, Sequence
from typing import Literal

from numpy.typing import ArrayLike

from shape_inference import AnyShape, PrimitiveType
from shape_inference.convolutions import ConvolutionDimensionNumbers
from shape_inference.windows import WindowDimension

from ..core.builder import Builder, Value
from ..core.graph import Computation

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
def custom_call(
    operands: Sequence[Value] | Value,
    /,
    *,
    custom_call_target: str,
    shape: AnyShape | PrimitiveType,
    custom_call_has_side_effect: bool = False,
    backend_config: str = "",
    api_version: Literal[
        "API_VERSION_UNSPECIFIED",
        "API_VERSION_ORIGINAL",
        "API_VERSION_STATUS_RETURNING",
        "API_VERSION_STATUS_RETURNING_UNIFIED",
        "API_VERSION_TYPED_FFI",
    ] = "API_VERSION_ORIGINAL",
    called_computations: Sequence[Computation] = (),
    operand_layout_constraints: Sequence[AnyShape | PrimitiveType] | None = None,
    output_to_operand_aliasing: Sequence[tuple[Sequence[int], int, Sequence[int]]] = (),
    schedule: Literal["SCHEDULE_NONE", "SCHEDULE_EARLIEST", "SCHEDULE_LATEST"] = "SCHEDULE_NONE",
    literal: ArrayLike | None = None,
    window: str | Sequence[WindowDimension | Mapping[str, int]] | None = None,
    dim_labels: str | ConvolutionDimensionNumbers | Mapping[str, object] | None = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    operand_precision: Sequence[str] = (),
    padding_type: Literal["PADDING_INVALID", "PADDING_VALID", "PADDING_SAME"] = "PADDING_INVALID",
    name: str | None = None,
    builder: Builder | None = None,
) -> Value: ...
