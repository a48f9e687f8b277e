"""Which devices agree on a value, whatever the data: what two devices must do if they agree on every predicate."""

from __future__ import annotations

import functools
from collections.abc import Hashable
from typing import Any

from attrs import define, field, frozen

from shape_inference import RuleTable

from ...core.graph import Computation, Instruction
from ...properties.device_groups import group_of
from ...properties.effects import (
    COLLECTIVES,
    STARTS,
    Path,
    base_of,
    collective_in,
    communicates,
    has_side_effect,
    remembered,
)
from ..model.scans import parted, slices_of
from .analysis import Analysis, Leaf, Reading, TooMuchError, flat, spread, way_of

varies = RuleTable("varies")


@frozen
class Agreement:
    """A number for each device: two that have the same hold the same value."""

    labels: tuple[int, ...]

    @property
    def is_everywhere(self) -> bool:
        return not any(self.labels)


@functools.lru_cache(maxsize=4096)
def both(a: Agreement, b: Agreement) -> Agreement:
    """Devices that agree on both of two values."""
    if a is b or b.is_everywhere:
        return a
    return b if a.is_everywhere else labelled(tuple(zip(a.labels, b.labels, strict=True)))


def labelled(marks: tuple[Any, ...]) -> Agreement:
    """Devices with equal marks agree."""
    numbers: dict[Any, int] = {}
    return Agreement(tuple(numbers.setdefault(mark, len(numbers)) for mark in marks))


@define(eq=False)
class Replication(Analysis):
    """The walk over the program of some devices, in the grid that their replicas and partitions count in."""

    devices: tuple[int, ...]
    num_replicas: int
    num_partitions: int
    is_own: bool = False
    everywhere: Agreement = field(init=False)
    nowhere: Agreement = field(init=False)
    gave_up: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self.everywhere = Agreement((0,) * len(self.devices))
        self.nowhere = Agreement(tuple(range(len(self.devices))))

    def form(self, computation: Computation, parameters: list[Reading], path: Path) -> Hashable | None:
        """What is called with the same, from the same place where what it decides is asked for by place."""
        return computation, way_of(path) if communicates(computation) else (), tuple(parameters)

    def join(self, a: Leaf, b: Leaf) -> Leaf:
        return a if a is b else both(a, b)

    def counted(self, scan: Instruction, operands: list[Reading]) -> Leaf:
        result = self.everywhere
        if slices_of(scan)[1]:
            for leaf in flat((*parted(scan, operands)[0],)):
                result = self.join(result, leaf)
        return result

    def default(self, instruction: Instruction, leaves: list[Leaf]) -> Leaf:
        """A function of its operands, but for regions that ask who the device is."""
        if any(map(asks, instruction.called)):
            return self.nowhere
        result = self.everywhere
        for leaf in leaves:
            result = self.join(result, leaf)
        return result


def uniformity(
    computation: Computation, devices: tuple[int, ...], num_replicas: int, num_partitions: int, is_own: bool = False
) -> Replication:
    """Where the devices that run this program agree; each is fed parameters of its own."""
    return _walked(Replication(varies, devices, num_replicas, num_partitions, is_own), computation)


def _walked(walk: Replication, computation: Computation) -> Replication:
    """Where that is too much, nobody is known to agree on anything."""
    try:
        walk.run(computation, [spread(walk.nowhere, p.shape) for p in computation.parameters])
    except TooMuchError:
        walk.gave_up = True
        walk.decides.clear()
    return walk


@remembered
def asks(computation: Computation) -> bool:
    """Whether a value in it depends on the device."""
    return any(i.opcode in varies or any(map(asks, i.called)) for i in computation.instructions)


@varies
def replica_id(of: Replication, instruction: Instruction) -> Reading:
    return labelled(tuple(device // of.num_partitions for device in of.devices))


@varies
def partition_id(of: Replication, instruction: Instruction) -> Reading:
    return labelled(tuple(device % of.num_partitions for device in of.devices))


def _own(of: Replication, instruction: Instruction, *operands: Reading) -> Reading:
    """Each device has its own."""
    return spread(of.nowhere, instruction.shape)


def _by_group(of: Replication, instruction: Instruction, *operands: Reading) -> Reading:
    """The members of a group have the same; what starts something else depends on its operands."""
    collective = collective_in(instruction)
    if collective is None:
        return spread(of.default(instruction, [leaf for o in operands for leaf in flat(o)]), instruction.shape)
    if base_of(collective) not in SHARED:
        return _own(of, instruction)
    brought = of.everywhere
    for leaf in (leaf for operand in operands for leaf in flat(operand)):
        brought = of.join(brought, leaf)
    return spread(_met(of, collective, brought), instruction.shape)


def _met(of: Replication, collective: Instruction, brought: Agreement) -> Agreement:
    """The members of a group agree, and so do groups to which the same is brought, member by member."""
    groups = [group_of(collective, device, of.num_replicas, of.num_partitions, of.is_own) for device in of.devices]
    distinct = {id(group): group for group in groups}
    marks: list[Any] = list(distinct.values())
    if base_of(collective) != "collective_broadcast":  # those in no group get zeros
        labels = dict(zip(of.devices, brought.labels, strict=True))
        marks = [tuple(labels.get(member, (member,)) for member in group) for group in marks]
    numbers = dict(zip(distinct, labelled(tuple(marks)).labels, strict=True))
    return labelled(tuple(numbers[id(group)] for group in groups))


@varies
def custom_call(of: Replication, instruction: Instruction, *operands: Reading) -> Reading:
    if has_side_effect(instruction):
        return _own(of, instruction)
    return spread(of.default(instruction, [leaf for o in operands for leaf in flat(o)]), instruction.shape)


SHARED = ("all_reduce", "all_gather", "collective_broadcast")
for _opcode in ("infeed", "recv", "recv_done", "rng", "rng_get_and_update_state"):
    varies.enter(_opcode, _own)
for _opcode in (*COLLECTIVES, *STARTS, "async_start"):
    varies.enter(_opcode, _by_group)
