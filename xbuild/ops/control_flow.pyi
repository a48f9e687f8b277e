"""Made by `make stubs` from the declarations; the words stand in the source beside it."""

from collections.abc import Callable, Sequence
from typing import Literal

from ..core.builder import Builder, Value
from ..core.graph import Computation

def call(
    operands: Sequence[Value] | Value,
    /,
    *,
    to_apply: Computation | Callable[..., object],
    name: str | None = None,
    builder: Builder | None = None,
) -> Value: ...
def while_(
    init: Value,
    /,
    *,
    condition: Computation | Callable[..., object],
    body: Computation | Callable[..., object],
    name: str | None = None,
) -> Value: ...
def conditional(
    branch_index: Value,
    branch_operands: Sequence[Value] | Value,
    /,
    *,
    branch_computations: Sequence[Computation | Callable[..., object]],
    name: str | None = None,
) -> Value: ...
def map(
    operands: Sequence[Value] | Value,
    /,
    *,
    to_apply: Computation | Callable[..., object],
    dimensions: Sequence[int],
    name: str | None = None,
    builder: Builder | None = None,
) -> Value: ...
def fusion(
    operands: Sequence[Value] | Value,
    /,
    *,
    kind: Literal["kLoop", "kInput", "kOutput", "kCustom"],
    output_to_operand_aliasing: Sequence[tuple[Sequence[int], int, Sequence[int]]] = (),
    calls: Computation | Callable[..., object],
    name: str | None = None,
    builder: Builder | None = None,
) -> Value: ...
def scan(
    operands: Sequence[Value] | Value,
    /,
    *,
    dimension: int,
    num_carries: int,
    is_reverse: bool = False,
    is_associative: bool = False,
    to_apply: Computation | Callable[..., object],
    length: int | None = None,
    name: str | None = None,
    builder: Builder | None = None,
) -> Value: ...
