"""What is under way while a computation is traced: its builder, how many replicas there are, what it has touched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen

from ...core.builder import Builder, Value
from ...core.context import annotated, assigned
from .refusals import refuse

if TYPE_CHECKING:
    from ..variables import Variable


@frozen(eq=False)
class Operation:
    """What TensorFlow calls an operation: something that is done, and has no value. Done once the call has returned."""

    name: str

    def __repr__(self) -> str:
        return f"<tpu.Operation {self.name!r}>"


@define(eq=False)
class Tracing:
    """A computation that is being traced for `num_replicas` replicas."""

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
        """A channel that no other transfer of this program has."""
        self.channels += 1
        return self.channels


_current: ContextVar[Tracing | None] = ContextVar("xbuild_tpu_tracing", default=None)

current = _current.get
"""The tracing that is under way; None outside of every replicate."""


def tracing(found: Tracing) -> AbstractContextManager[Tracing | None]:
    """Inside, the computation is being traced."""
    return assigned(_current, found)


_on_host: ContextVar[bool] = ContextVar("xbuild_tpu_on_host", default=False)

is_on_host = _on_host.get
"""Whether a host function of outside_compilation is at work."""


def on_host() -> AbstractContextManager[bool]:
    """Inside, a host function is at work, which may use no replicated computation."""
    return assigned(_on_host, True)


def needed(what: str) -> Tracing:
    """The tracing that is under way; refused where there is none."""
    found = _current.get()
    if found is None:
        refuse(
            "no_builder",
            f"{what} is part of a computation that xb.tpu traces, and none is being traced",
            "call it inside of the function that is given to xb.tpu.replicate, shard or rewrite",
        )
    return found


def builder() -> Builder:
    """The builder of the computation that is being traced, for ops without operands.

    Raises no_builder outside of a computation.

    >>> import xbuild as xb
    >>> xb.tpu.rewrite(lambda: xb.iota(xb.tpu.builder(), xb.s32, 3))
    [array([0, 1, 2], dtype=int32)]
    """
    return needed("builder()").builder


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
    """Ops recorded inside are placed on a core of each replica: `with xb.tpu.device(xb.tpu.core(1))`.

    The place is a sharding of the instructions; every core of a replica runs the whole program.
    Raises invalid_attribute for a name that is not `core(num)`, or of a core that the replicas have not.

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
        refuse("invalid_attribute", f"device {name!r} is no core of a replica", "xb.tpu.core(0) names one")
    cores = found.num_partitions if (found := _current.get()) else 1
    if int(number) >= cores:
        refuse(
            "invalid_attribute",
            f"device {name!r}: each replica has {cores} core{'s' * (cores != 1)}, numbered from 0",
            "device_assignment=xb.tpu.device_assignment(topology, computation_shape=...) gives replicas more cores",
        )
    return _placed(name, number)


@contextmanager
def _placed(name: str, number: str) -> Iterator[None]:
    with assigned(_device, name), annotated(sharding=f"{{maximal device={number}}}"):
        yield


def current_core() -> str:
    """The `cluster:i` of the device scope that is open, as outside_compilation notes it; empty without one."""
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
    """One operation for several: everything that is recorded while a computation is traced runs anyway.

    >>> import xbuild as xb
    >>> xb.tpu.group(xb.tpu.no_op(), xb.tpu.no_op())
    <tpu.Operation 'group_deps'>
    """
    return Operation(name)
