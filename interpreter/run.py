"""The two ways in: `evaluate` a computation on one device, `execute` a program on all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from xbuild import scheduling
from xbuild.graph import Computation, Module, ModuleGroup
from xbuild.scheduling import Verdict

from .driver import drive
from .emit import Options
from .grid import Grid
from .limits import Limits
from .observers import Observer, Watch
from .plan import plan_of
from .replica import Device
from .sizes import check_bytes
from .values import ArgumentError, Given, by_device, read


class Refused(Exception):  # noqa: N818 - a verdict, not a fault of the run
    """The scheduler refuses the program; `verdict` says why."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(str(verdict))
        self.verdict = verdict


def evaluate(
    computation: Computation,
    *arguments: Any,
    sequential: bool = False,
    observer: Observer | None = None,
    limits: Limits | None = None,
) -> Any:
    """The result of a computation on one device: an array, a NumPy scalar for rank 0, or a tuple of these.

    Arguments: arrays of the parameters' shapes; Python numbers and lists take the declared element type.
    `sequential` asks for every fold one element after the other, in order. `observer` is called with the step, the
    device, the instruction and its value.
    Raises ArgumentError where an argument does not fit, Refused, and Stopped where the run comes to a limit.

    >>> import xbuild as xb
    >>> evaluate(xb.computation(xb.f32[3])(lambda x: x * 2.0), [1.0, 2.0, 3.0])
    array([2., 4., 6.], dtype=float32)
    """
    module = Module(computation.name, computation)
    return execute(module, [arguments], sequential=sequential, observer=observer, limits=limits)[0]


def execute(
    program: Module | ModuleGroup,
    inputs: Iterable[Iterable[Any]] | Mapping[int, Iterable[Any]],
    *,
    infeed: Mapping[int, Iterable[Any]] | Iterable[Iterable[Any]] | None = None,
    outfeed: Callable[[int, Any], None] | None = None,
    send_buffers: float = 0,
    sequential: bool = False,
    observer: Observer | None = None,
    limits: Limits | None = None,
    check: bool = True,
) -> list[Any]:
    """Check a program, then run it on all its devices; the results by device.

    Inputs: for each device its arguments. Infeed: for each device an iterable of items; `outfeed` is called with the
    device and the item. Device = replica * num_partitions + partition. Deterministic on any number of cores.
    Raises Refused where the scheduler refuses, Stopped where nobody can go on or a limit is reached, ArgumentError.

    >>> import xbuild as xb
    >>> total = xb.computation(xb.f32[2])(xb.cross_replica_sum)
    >>> execute(xb.Module("total", total, num_replicas=2), [[[1.0, 2.5]], [[3.0, 5.25]]])
    [array([4.  , 7.75], dtype=float32), array([4.  , 7.75], dtype=float32)]
    """
    limits = limits or Limits()
    verdict = _checked(program, send_buffers) if check else None
    modules = modules_of(program)
    arguments = [_read_arguments(m, given, d) for d, (m, given) in enumerate(zip(modules, by_device(inputs, len(modules)), strict=True))]
    check_bytes(modules, limits)
    watch = None if observer is None else Watch(observer)
    devices = [
        Device(number, module, plan_of(module.entry, _options(verdict, number, watch, sequential)), watch)
        for number, module in enumerate(modules)
    ]
    drive(Grid(devices, _feeds(infeed, len(devices)), outfeed, send_buffers), arguments, limits)
    given = Given(arguments)
    return [given.out(device.result) for device in devices]


def modules_of(program: Module | ModuleGroup) -> list[Module]:
    """The program of each device, in the order of the devices."""
    if isinstance(program, Module):
        return [program] * program.num_devices
    return [program.modules[device] for device in sorted(program.modules)]


def _checked(program: Module | ModuleGroup, send_buffers: float) -> Verdict:
    verdict = scheduling.check(program, send_buffers=send_buffers)
    if verdict.refused:
        raise Refused(verdict)
    return verdict


def _options(verdict: Verdict | None, device: int, watch: Watch | None, sequential: bool) -> Options:
    orders = () if verdict is None else verdict.orders(device)
    return Options(observed=watch is not None, sequential=sequential, orders=orders)


def _read_arguments(module: Module, given: tuple[Any, ...], device: int) -> tuple[Any, ...]:
    parameters = module.entry.parameters
    if len(given) != len(parameters):
        raise ArgumentError(
            "argument_mismatch",
            f"{len(given)} arguments for device {device}, and %{module.entry.name} has {len(parameters)} parameters: "
            f"{module.entry.program_shape} [argument_mismatch]",
        )
    return tuple(
        read(value, p.shape, f"argument {n} (%{p.name}) of device {device}")
        for n, (value, p) in enumerate(zip(given, parameters, strict=True))
    )


def _feeds(infeed: Mapping[int, Iterable[Any]] | Iterable[Iterable[Any]] | None, devices: int) -> dict[int, Iterator[Any]]:
    items = dict(infeed) if isinstance(infeed, Mapping) else dict(enumerate(infeed or ()))
    if unknown := set(items) - set(range(devices)):
        raise ArgumentError("argument_mismatch", f"infeed for device {min(unknown)}, and the program has {devices} devices")
    return {device: iter(items.get(device, ())) for device in range(devices)}
