"""Made by `make stubs` from the declarations; the words stand in the source beside it."""

from numpy.typing import DTypeLike

from shape_inference import PrimitiveType, Shape

from ..core.builder import Value

def convert(operand: Value, /, *, new_element_type: PrimitiveType | DTypeLike, name: str | None = None) -> Value: ...
def bitcast_convert(
    operand: Value,
    /,
    *,
    new_element_type: PrimitiveType | DTypeLike,
    name: str | None = None,
) -> Value: ...
def bitcast(operand: Value, /, *, shape: Shape | PrimitiveType, name: str | None = None) -> Value: ...
def reduce_precision(
    operand: Value,
    /,
    *,
    exponent_bits: int,
    mantissa_bits: int,
    name: str | None = None,
) -> Value: ...
def stochastic_convert(
    operand: Value,
    random: Value,
    /,
    *,
    new_element_type: PrimitiveType | DTypeLike,
    name: str | None = None,
) -> Value: ...
