"""Made by `make stubs` from the declarations; the words stand in the source beside it."""

from collections.abc import Sequence

from numpy.typing import DTypeLike

from shape_inference import PrimitiveType

from ..core.builder import Value

def dot(
    lhs: Value,
    rhs: Value,
    /,
    *,
    lhs_contracting_dims: Sequence[int] = (),
    rhs_contracting_dims: Sequence[int] = (),
    lhs_batch_dims: Sequence[int] = (),
    rhs_batch_dims: Sequence[int] = (),
    operand_precision: Sequence[str] = (),
    preferred_element_type: PrimitiveType | DTypeLike | None = None,
    name: str | None = None,
) -> Value: ...
def ragged_dot(
    lhs: Value,
    rhs: Value,
    group_sizes: Value,
    /,
    *,
    lhs_batch_dims: Sequence[int] = (),
    lhs_contracting_dims: Sequence[int] = (),
    rhs_batch_dims: Sequence[int] = (),
    rhs_contracting_dims: Sequence[int] = (),
    lhs_ragged_dims: Sequence[int],
    rhs_group_dims: Sequence[int] = (),
    operand_precision: Sequence[str] = (),
    preferred_element_type: PrimitiveType | DTypeLike | None = None,
    name: str | None = None,
) -> Value: ...
def scaled_dot(
    lhs: Value,
    rhs: Value,
    lhs_scale: Value,
    rhs_scale: Value,
    /,
    *,
    lhs_batch_dims: Sequence[int] = (),
    lhs_contracting_dims: Sequence[int] = (),
    rhs_batch_dims: Sequence[int] = (),
    rhs_contracting_dims: Sequence[int] = (),
    operand_precision: Sequence[str] = (),
    preferred_element_type: PrimitiveType | DTypeLike | None = None,
    name: str | None = None,
) -> Value: ...
