"""The context of recording: the scope, the control predecessors and the annotations of recorded instructions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from .graph import NOTHING, Instruction

if TYPE_CHECKING:
    from .builder import Value

Assigned = TypeVar("Assigned")
_Context = tuple[tuple[Instruction, ...], Mapping[str, Any]]
_current: ContextVar[_Context] = ContextVar("xbuild_context", default=((), NOTHING))

context = _current.get


@contextmanager
def scope(name: str) -> Iterator[None]:
    """Add this name, as a prefix, to the names of the ops recorded in the block; scopes nest with `/`.

    In HLO metadata, the name is the `op_name`.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[()])
    >>> with xb.scope("layer"), xb.scope("act"):
    ...     y = xb.tanh(x)
    >>> y.instruction.annotations["metadata"]["op_name"]
    'layer/act'

    Source: xla_data.proto, OpMetadata.
    """
    control, annotations = _current.get()
    metadata = annotations.get("metadata", NOTHING)
    path = f"{metadata['op_name']}/{name}" if "op_name" in metadata else name
    inside = MappingProxyType({**annotations, "metadata": MappingProxyType({**metadata, "op_name": path})})
    with assigned(_current, (control, inside)):
        yield


@contextmanager
def control(*, after: Sequence[Value]) -> Iterator[None]:
    """Make the ops recorded in the block run after these values, even if the ops do not use the values.

    HLO lists the values as control-predecessors.

    >>> import xbuild as xb
    >>> x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[()])
    >>> with xb.control(after=[x]):
    ...     y = xb.constant(x.builder, literal=1.0)
    >>> y.instruction.control[0].name
    'parameter.1'

    Source: hlo_instruction.h, AddControlDependencyTo.
    """
    before, annotations = _current.get()
    with assigned(_current, ((*before, *(value.instruction for value in after)), annotations)):
        yield


@contextmanager
def annotated(**inner: Any) -> Iterator[None]:
    """Give ops recorded inside these annotations; frontend attributes add to those of the context."""
    control, annotations = _current.get()
    attributes = {**annotations.get("frontend_attributes", {}), **inner.get("frontend_attributes", {})}
    extra = {"frontend_attributes": MappingProxyType(attributes)} if attributes else {}
    with assigned(_current, (control, MappingProxyType({**annotations, **inner, **extra}))):
        yield


@contextmanager
def apart() -> Iterator[None]:
    """Record another computation inside: outer control predecessors and marks do not apply."""
    annotations = _current.get()[1]
    if "frontend_attributes" in annotations:
        annotations = MappingProxyType({key: annotations[key] for key in annotations if key != "frontend_attributes"})
    with assigned(_current, ((), annotations)):
        yield


@contextmanager
def marked(**attributes: str) -> Iterator[None]:
    """Give ops recorded inside these frontend attributes, which other readers of HLO ignore."""
    with annotated(frontend_attributes=attributes):
        yield


@contextmanager
def assigned(variable: ContextVar[Assigned], value: Assigned) -> Iterator[Assigned]:
    """Set a context variable inside the block."""
    reset = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(reset)
