"""Made by `python -m xbuild.stubs` from the declarations; the words stand in the source beside it."""

from collections.abc import Callable, Sequence

from ..builder import Builder, Value
from ..graph import Computation

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
