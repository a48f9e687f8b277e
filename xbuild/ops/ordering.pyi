"""Made by `make stubs` from the declarations; the words stand in the source beside it."""

from collections.abc import Callable, Sequence

from ..core.builder import Builder, Value
from ..core.graph import Computation

def sort(
    operands: Sequence[Value] | Value,
    /,
    *,
    to_apply: Computation | Callable[..., object],
    dimension: int,
    is_stable: bool = False,
    name: str | None = None,
    builder: Builder | None = None,
) -> Value: ...
def topk(operand: Value, /, *, k: int, largest: bool = True, name: str | None = None) -> Value: ...
