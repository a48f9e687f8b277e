"""The state of a computation being traced: its builder, its number of replicas, the variables it uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen

from ..core.builder import Builder, Value
from ..core.context import annotated, assigned
from .arguments import refuse

if TYPE_CHECKING:
    from .variables import Variable


@frozen(eq=False)
class Operation:
    """An operation in TensorFlow's sense: an effect without a value. It has run once the call returns."""

    name: str

    def __repr__(self) -> str:
        return f"<tpu.Operation {self.name!r}>"


@define(eq=False)
class Tracing:
    """A computation being traced for `num_replicas` replicas."""

    builder: Builder
    num_replicas: int
    num_partitions: int = 1
    parameters: int = 0
    channels: int = 0
    clusters: int = 0
    reads: dict[Variable, Value] = field(factory=dict)
    numbers: dict[Variable, int] = field(factory=dict)
    assigned: dict[Variable, None] = field(factory=dict)
    tokens: list[Value] = field(factory=list)

    def next_parameter(self) -> int:
        """The number of a new parameter."""
        self.parameters += 1
        return self.parameters - 1

    def next_channel(self) -> int:
        """A channel that no other transfer of this program uses."""
        self.channels += 1
        return self.channels


_current: ContextVar[Tracing | None] = ContextVar("xbuild_tpu_tracing", default=None)

current = _current.get
"""The computation being traced; None outside of every replicate."""


def tracing(found: Tracing) -> AbstractContextManager[Tracing | None]:
    """Inside, this computation is being traced."""
    return assigned(_current, found)


_on_host: ContextVar[bool] = ContextVar("xbuild_tpu_on_host", default=False)

is_on_host = _on_host.get
"""Whether a host function of outside_compilation is running."""


def on_host() -> AbstractContextManager[bool]:
    """Inside, a host function is running; it must not use a replicated computation."""
    return assigned(_on_host, True)


def require_tracing(what: str) -> Tracing:
    """The computation being traced; raises no_builder if there is none."""
    current_tracing = _current.get()
    if current_tracing is None:
        refuse(
            "no_builder",
            f"{what} must be called inside a computation that xb.tpu traces, but no computation is being traced",
            "call it inside the function that you pass to xb.tpu.replicate, shard or rewrite",
        )
    return current_tracing


def builder() -> Builder:
    """The builder of the computation being traced, for ops without operands.

    Raises no_builder outside of a computation.

    >>> import xbuild as xb
    >>> xb.tpu.rewrite(lambda: xb.iota(xb.tpu.builder(), xb.s32, 3))
    [array([0, 1, 2], dtype=int32)]
    """
    return require_tracing("builder()").builder


def core(num: int) -> str:
    """The name of logical core `num` of every replica, as `xb.tpu.device` takes it.

    >>> import xbuild as xb
    >>> xb.tpu.core(1)
    'device:TPU_REPLICATED_CORE:1'

    Source: tf.compat.v1.tpu.core.
    """
    return f"device:TPU_REPLICATED_CORE:{num}"


_CORE = "device:TPU_REPLICATED_CORE:"
_device: ContextVar[str] = ContextVar("xbuild_tpu_device", default="")


def device(name: str) -> AbstractContextManager[None]:
    """Place ops recorded inside on a core of each replica: `with xb.tpu.device(xb.tpu.core(1))`.

    The placement is a sharding of the instructions; every core of a replica runs the entire program.
    Raises invalid_attribute for a name that is not `core(num)`, or a core that the replicas do not have.

    >>> import xbuild as xb
    >>> def doubled(x):
    ...     with xb.tpu.device(xb.tpu.core(0)):
    ...         return x * 2.0
    >>> xb.tpu.rewrite(doubled, [1.5])
    [array(3., dtype=float32)]

    Source: tf.compat.v1.device.
    """
    number = name.lstrip("/").removeprefix(_CORE) if isinstance(name, str) else ""
    if not number.isdecimal():
        refuse(
            "invalid_attribute", f"device {name!r} is not a core of this replica", "xb.tpu.core(0) is the first core"
        )
    cores = current_tracing.num_partitions if (current_tracing := _current.get()) else 1
    if int(number) >= cores:
        refuse(
            "invalid_attribute",
            f"device {name!r} does not exist: each replica has {cores} core{'s' * (cores != 1)}, numbered from 0",
            "for more cores per replica, pass device_assignment=xb.tpu.device_assignment(topology, "
            "computation_shape=...)",
        )
    return _place_on(name, number)


@contextmanager
def _place_on(name: str, number: str) -> Iterator[None]:
    with assigned(_device, name), annotated(sharding=f"{{maximal device={number}}}"):
        yield


def current_core() -> str:
    """The `cluster:i` of the open device scope, for the annotations of outside_compilation; empty without a scope."""
    name = _device.get()
    return f"cluster:{name.rpartition(':')[2]}" if name else ""


def no_op(name: str = "NoOp") -> Operation:
    """An operation that does nothing.

    >>> import xbuild as xb
    >>> xb.tpu.no_op()
    <tpu.Operation 'NoOp'>
    """
    return Operation(name)


def group(*operations: Any, name: str = "group_deps") -> Operation:
    """Group operations into one; everything recorded in a traced computation runs anyway.

    >>> import xbuild as xb
    >>> xb.tpu.group(xb.tpu.no_op(), xb.tpu.no_op())
    <tpu.Operation 'group_deps'>
    """
    return Operation(name)
