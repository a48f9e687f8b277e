"""The programs of all devices: which device runs which module, the grid of replicas and partitions, given orders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from attrs import field, frozen

from ...core.graph import Computation, Instruction, Module, ModuleGroup
from ...properties.device_groups import Group, Grouping, grouping
from ...properties.order import linear
from .verdict import Order, Orders

Extent: TypeAlias = tuple[int, int, bool]
Given: TypeAlias = Iterable[Instruction | str]
Schedule: TypeAlias = Mapping[int, Given | Mapping[Computation, Given]]


@frozen(eq=False)
class DeviceClass:
    """Devices that run one module in one order; where `given`, `orders` bind, else the recorded order holds."""

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
class Program:
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
        found = {device: each for each in self.classes for device in each.devices}
        object.__setattr__(self, "class_of", dict(sorted(found.items())))
        object.__setattr__(self, "devices", tuple(self.class_of))

    @property
    def grid(self) -> Extent:
        """The grid in which ids of collectives are counted."""
        return self.num_replicas, self.num_partitions, self.is_own

    @property
    def given(self) -> bool:
        """Whether the order of every device binds."""
        return all(each.given for each in self.classes)

    def grouping(self, collective: Instruction) -> Grouping:
        """The groups of a collective; kept, since large groups are slow to compare."""
        known = self._groupings.get(collective)
        if known is None:
            known = self._groupings[collective] = grouping(collective, *self.grid)
        return known

    def groups(self, collective: Instruction) -> tuple[Group, ...]:
        return self.grouping(collective).groups

    def group(self, collective: Instruction, device: int) -> Group:
        """The group in which a device meets others; the device alone where no group names it."""
        return self.grouping(collective).of.get(device, (device,))

    def freed(self) -> Program:
        """The same programs with no order given."""
        classes: dict[Module, list[int]] = {}
        for device, each in self.class_of.items():
            classes.setdefault(each.module, []).append(device)
        free = tuple(DeviceClass(module, tuple(devices), (), False) for module, devices in classes.items())
        return Program(free, self.num_replicas, self.num_partitions, self.spmd, self.is_own)

    def ordered(self, orders: Mapping[int, Orders]) -> Program:
        """The same programs with these orders given; a computation without one keeps its recorded order."""
        modules = {device: each.module for device, each in self.class_of.items()}
        every = {device: orders.get(device, ()) for device in modules}
        return Program(_classes(modules, every), self.num_replicas, self.num_partitions, self.spmd, self.is_own)


def program_of(program: Module | ModuleGroup, schedule: Schedule | None = None) -> Program:
    """The programs of all devices; names in a schedule are looked up in the entry of the device."""
    if isinstance(program, Module):
        modules: dict[int, Module] = dict.fromkeys(range(program.num_devices), program)
    elif isinstance(program, ModuleGroup):
        modules = dict(sorted(program.modules.items()))
    else:
        way = "builder.build() gives a Computation, and xb.Module(name, computation) a module of it"
        raise TypeError(f"check: {program!r} is neither a Module nor a ModuleGroup; {way}")
    orders: dict[int, Orders] = {} if schedule is None else dict.fromkeys(modules, ())
    for device, given in (schedule or {}).items():
        if device not in modules:
            raise KeyError(f"schedule: there is no device {device}; there are {devices_text(modules)}")
        orders[device] = _orders(modules[device], given)
    num_replicas, num_partitions, is_own = grid_of(program)
    return Program(_classes(modules, orders), num_replicas, num_partitions, len(set(modules.values())) <= 1, is_own)


def grid_of(program: Module | ModuleGroup) -> Extent:
    """Replicas and partitions: those that the modules declare, or as many replicas as there are devices.

    The last says whether the devices have programs of their own: a group of modules of one partition.
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


def _orders(module: Module, given: Any) -> Orders:
    by_computation = given if isinstance(given, Mapping) else {module.entry: given}
    return tuple((computation, _order(computation, order)) for computation, order in by_computation.items())


def _order(computation: Computation, given: Given) -> Order:
    names = {i.name: i for i in computation.instructions}
    found = []
    for each in given:
        if isinstance(each, str) and each not in names:
            raise KeyError(f"schedule: {each!r} is no instruction of {computation.name}")
        found.append(names[each] if isinstance(each, str) else each)
    return tuple(found)


def _classes(modules: Mapping[int, Module], orders: Mapping[int, Orders]) -> tuple[DeviceClass, ...]:
    found: dict[tuple[Module, Orders | None], list[int]] = {}
    for device, module in modules.items():
        found.setdefault((module, orders.get(device)), []).append(device)
    return tuple(
        DeviceClass(module, tuple(devices), order or (), module.is_scheduled or order is not None)
        for (module, order), devices in found.items()
    )


def devices_text(devices: Iterable[int]) -> str:
    """`device 3`, `devices 0 and 1`, `devices 0-3 and 7`"""
    parts = device_ranges(devices)
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else "none"
    return f"device{'s' * (len(parts) > 1 or '-' in listed)} {listed}"


def device_ranges(devices: Iterable[int]) -> list[str]:
    """`0-3`, `7`: three successive devices and more are a range."""
    runs: list[list[int]] = []
    for device in sorted(devices):
        if runs and runs[-1][-1] + 1 == device:
            runs[-1].append(device)
        else:
            runs.append([device])
    return [part for run in runs for part in ([f"{run[0]}-{run[-1]}"] if len(run) > 2 else map(str, run))]
