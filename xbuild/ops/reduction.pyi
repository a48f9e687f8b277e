"""Made by `make stubs` from the declarations; the words stand in the source beside it."""

from collections.abc import Callable, Sequence

from ..core.builder import Builder, Value
from ..core.graph import Computation

def reduce(
    operands: Sequence[Value] | Value,
    init_values: Sequence[Value] | Value,
    /,
    *,
    to_apply: Computation | Callable[..., object],
    dimensions: Sequence[int],
    name: str | None = None,
    builder: Builder | None = None,
) -> Value: ...
