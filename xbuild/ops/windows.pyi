"""Made by `make stubs` from the declarations; the words stand in the source beside it."""

from collections.abc import Callable, Mapping, Sequence

from numpy.typing import DTypeLike

from shape_inference import PrimitiveType
from shape_inference.convolutions import ConvolutionDimensionNumbers
from shape_inference.windows import WindowDimension

from ..core.builder import Builder, Value
from ..core.graph import Computation

def reduce_window(
    operands: Sequence[Value] | Value,
    init_values: Sequence[Value] | Value,
    /,
    *,
    to_apply: Computation | Callable[..., object],
    window: str | Sequence[WindowDimension | Mapping[str, int]] = (),
    name: str | None = None,
    builder: Builder | None = None,
) -> Value: ...
def select_and_scatter(
    operand: Value,
    source: Value,
    init_value: Value,
    /,
    *,
    select: Computation | Callable[..., object],
    scatter: Computation | Callable[..., object],
    window: str | Sequence[WindowDimension | Mapping[str, int]] = (),
    name: str | None = None,
) -> Value: ...
def convolution(
    lhs: Value,
    rhs: Value,
    /,
    *,
    window: str | Sequence[WindowDimension | Mapping[str, int]] = (),
    dimension_numbers: str | ConvolutionDimensionNumbers | Mapping[str, object],
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    operand_precision: Sequence[str] = (),
    preferred_element_type: PrimitiveType | DTypeLike | None = None,
    name: str | None = None,
) -> Value: ...
