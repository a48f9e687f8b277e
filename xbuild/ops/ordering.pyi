"""Made by `python -m xbuild.stubs` from the declarations; the words stand in the source beside it."""

from collections.abc import Callable, Sequence

from ..builder import Builder, Value
from ..graph import Computation

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
