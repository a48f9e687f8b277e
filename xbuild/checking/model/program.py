"""The programs of all devices: which device runs which module, in which grid and in which given order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from attrs import field, frozen

from ...core.graph import Computation, Instruction, Module, ModuleGroup, module_in
from ...core.memos import remembered
from ...properties.device_groups import Group, Grouping, grouping
from ...properties.order import linear

Order: TypeAlias = tuple[Instruction, ...]
Orders: TypeAlias = tuple[tuple[Computation, Order], ...]  # the order of each computation that has one
Extent: TypeAlias = tuple[int, int, bool]
GivenOrder: TypeAlias = Iterable[Instruction | str]
Schedule: TypeAlias = Mapping[int, GivenOrder | Mapping[Computation, GivenOrder]]


@frozen(eq=False)
class DeviceClass:
    """Devices that run one module in one order: that of `orders` if `given`, else the recorded order."""

    module: Module
    devices: tuple[int, ...]
    orders: Orders
    given: bool

    def order(self, computation: Computation) -> Order:
        """The order that binds, or the recorded one."""
        if self.given:
            return dict(self.orders).get(computation, computation.instructions)
        return linear(computation) or computation.instructions


@frozen(eq=False)
class GridProgram:
    """All devices by class, and the grid in which ids of replicas and partitions are counted."""

    classes: tuple[DeviceClass, ...]
    num_replicas: int
    num_partitions: int
    spmd: bool
    is_own: bool = False
    class_of: Mapping[int, DeviceClass] = field(init=False)
    devices: tuple[int, ...] = field(init=False)
    _groupings: dict[Instruction, Grouping] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        if len(self.classes) == 1:  # there may be a million devices
            class_of = dict.fromkeys(self.classes[0].devices, self.classes[0])
        else:
            class_of = dict(
                sorted(
                    ((device, device_class) for device_class in self.classes for device in device_class.devices),
                    key=lambda item: item[0],
                )
            )
        object.__setattr__(self, "class_of", class_of)
        object.__setattr__(self, "devices", tuple(self.class_of))

    @property
    def grid(self) -> Extent:
        """The grid in which ids of collectives are counted."""
        return self.num_replicas, self.num_partitions, self.is_own

    @property
    def given(self) -> bool:
        """Whether the order of every device binds."""
        return all(device_class.given for device_class in self.classes)

    def grouping(self, collective: Instruction) -> Grouping:
        """The groups of a collective; cached, since large groups are slow to compare."""
        known = self._groupings.get(collective)
        if known is None:
            known = self._groupings[collective] = grouping(collective, *self.grid)
        return known

    def groups(self, collective: Instruction) -> tuple[Group, ...]:
        return self.grouping(collective).groups

    def group(self, collective: Instruction, device: int) -> Group:
        """The group in which a device meets others; only the device itself if no group names it."""
        return self.grouping(collective).of.get(device, (device,))

    def without_orders(self) -> GridProgram:
        """The same programs with no order given."""
        classes: dict[Module, list[int]] = {}
        for device, device_class in self.class_of.items():
            classes.setdefault(device_class.module, []).append(device)
        free = tuple(DeviceClass(module, tuple(devices), (), False) for module, devices in classes.items())
        return GridProgram(free, self.num_replicas, self.num_partitions, self.spmd, self.is_own)

    def with_orders(self, orders: Mapping[int, Orders]) -> GridProgram:
        """The same programs with these orders given; a computation without one keeps its recorded order."""
        modules = {device: device_class.module for device, device_class in self.class_of.items()}
        every = {device: orders.get(device, ()) for device in modules}
        return GridProgram(
            _group_devices(modules, every), self.num_replicas, self.num_partitions, self.spmd, self.is_own
        )


@remembered
def as_module(computation: Computation) -> Module:
    """A computation as the program of one device."""
    return Module(computation.name, computation)


def as_program(program: Any) -> Any:
    """The program that an object is or has; for a computation the program of one device; other objects unchanged."""
    return as_module(program) if isinstance(program, Computation) else module_in(program)


def program_of(program: Module | ModuleGroup, schedule: Schedule | None = None) -> GridProgram:
    """The programs of all devices; names in a schedule are looked up in the entry of the device."""
    if isinstance(program, Module):
        modules: dict[int, Module] = dict.fromkeys(range(program.num_devices), program)
    elif isinstance(program, ModuleGroup):
        modules = dict(sorted(program.modules.items()))
    else:
        hint = (
            "xb.from_jax(function, *arguments) makes a module from a JAX function"
            if callable(program)
            else "xb.Module(name, computation) makes a module from the Computation that builder.build() returns"
        )
        raise TypeError(f"check: {program!r} is neither a Module nor a ModuleGroup; {hint}")
    orders: dict[int, Orders] = {} if schedule is None else dict.fromkeys(modules, ())
    for device, given in (schedule or {}).items():
        if device not in modules:
            raise KeyError(f"schedule: the program has no device {device}; it has {devices_text(modules)}")
        orders[device] = _read_orders(modules[device], given)
    num_replicas, num_partitions, is_own = grid_of(program)
    if isinstance(program, Module) and schedule is None:
        every = DeviceClass(program, tuple(modules), (), program.is_scheduled)
        return GridProgram((every,), num_replicas, num_partitions, True, is_own)
    return GridProgram(
        _group_devices(modules, orders), num_replicas, num_partitions, len(set(modules.values())) <= 1, is_own
    )


def grid_of(program: Module | ModuleGroup) -> Extent:
    """Replicas and partitions: those that the modules declare, or as many replicas as there are devices.

    The third says whether each device has its own program: a group of modules of one partition.
    """
    if isinstance(program, Module):
        return program.num_replicas, program.num_partitions, False
    declared = max(
        ((m.num_replicas, m.num_partitions) for m in program.modules.values()),
        key=lambda rp: rp[0] * rp[1],
        default=(1, 1),
    )
    replicas, partitions = declared if declared != (1, 1) else (program.num_devices, 1)
    return replicas, partitions, partitions == 1


def _read_orders(module: Module, orders: Any) -> Orders:
    by_computation = orders if isinstance(orders, Mapping) else {module.entry: orders}
    return tuple((computation, _read_order(computation, order)) for computation, order in by_computation.items())


def _read_order(computation: Computation, given: GivenOrder) -> Order:
    names = {i.name: i for i in computation.instructions}
    order = []
    for instruction in given:
        if isinstance(instruction, str) and instruction not in names:
            raise KeyError(f"schedule: {instruction!r} is not an instruction of {computation.name}")
        order.append(names[instruction] if isinstance(instruction, str) else instruction)
    return tuple(order)


def _group_devices(modules: Mapping[int, Module], orders: Mapping[int, Orders]) -> tuple[DeviceClass, ...]:
    members: dict[tuple[Module, Orders | None], list[int]] = {}
    for device, module in modules.items():
        members.setdefault((module, orders.get(device)), []).append(device)
    return tuple(
        DeviceClass(module, tuple(devices), order or (), module.is_scheduled or order is not None)
        for (module, order), devices in members.items()
    )


def devices_text(devices: Iterable[int]) -> str:
    """`device 3`, `devices 0 and 1`, `devices 0-3 and 7`"""
    parts = device_ranges(devices)
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else "none"
    return f"device{'s' * (len(parts) > 1 or '-' in listed)} {listed}"


def device_ranges(devices: Iterable[int]) -> list[str]:
    """`0-3`, `7`: three or more successive devices are a range."""
    runs: list[list[int]] = []
    for device in sorted(devices):
        if runs and runs[-1][-1] + 1 == device:
            runs[-1].append(device)
        else:
            runs.append([device])
    return [part for run in runs for part in ([f"{run[0]}-{run[-1]}"] if len(run) > 2 else map(str, run))]
