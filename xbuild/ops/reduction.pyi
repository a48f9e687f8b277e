"""Made by `python -m xbuild.stubs` from the declarations; the words stand in the source beside it."""

from collections.abc import Callable, Sequence

from ..builder import Builder, Value
from ..graph import Computation

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
