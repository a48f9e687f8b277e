"""Made by `make stubs` from the declarations; the words stand in the source beside it."""

from collections.abc import Sequence

from ..core.builder import Builder, Value

def tuple_(
    operands: Sequence[Value] | Value,
    /,
    *,
    name: str | None = None,
    builder: Builder | None = None,
) -> Value: ...
def get_tuple_element(operand: Value, /, *, index: int, name: str | None = None) -> Value: ...
def after_all(
    tokens: Sequence[Value] | Value,
    /,
    *,
    name: str | None = None,
    builder: Builder | None = None,
) -> Value: ...
def opt_barrier(operand: Value, /, *, name: str | None = None) -> Value: ...
def domain(operand: Value, /, *, kind: str = "sharding", entry: str, exit: str, name: str | None = None) -> Value: ...
def add_dependency(operand: Value, token: Value, /, *, name: str | None = None) -> Value: ...
