"""What a collective makes equal: by who meets, what each brings, and at which place in the group."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from attrs import define, field

from shape_inference import Shape, TupleShape

from ...core.graph import Instruction
from ...properties.device_groups import Group, grouping, pairs_of
from ...properties.effects import base_of, is_in_place
from ..model.program import Extent
from .agreement import Labels, Partitions

_COMMUTATIVE = frozenset({"add", "multiply", "minimum", "maximum", "and", "or", "xor"})
_EACH = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "collective_permute",
)  # the n-th result is made of the n-th operands


@define(eq=False)
class _Coming:
    """Some devices come to a collective, in parts of `context` that come equally often; each has its group."""

    collective: Instruction
    devices: Sequence[int]
    grid: Extent
    context: Labels
    named: Mapping[int, Group]
    places: Mapping[int, int] = field(init=False)
    groups: list[Group] = field(init=False)
    _whole: dict[int, bool] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self.places = {device: place for place, device in enumerate(self.devices)}
        self.groups = [self.named.get(device) or (device,) for device in self.devices]

    def is_whole(self, group: Group) -> bool:
        """Whether all members come to this place, and equally often, so that they bring what is known of them here."""
        if id(group) not in self._whole:
            parts = {self.context[self.places[member]] if member in self.places else -1 for member in group}
            self._whole[id(group)] = len(parts) == 1 and -1 not in parts
        return self._whole[id(group)]

    def by_group(self, labels: Labels, is_ordered: bool) -> list[Hashable]:
        """For each device what its group brings, as a number; where that is not known, the group and when it comes."""
        known: dict[int, Hashable] = {}
        numbers: dict[tuple[int, ...], int] = {}
        for group in self.groups:
            if id(group) not in known:
                brought = [labels[self.places[member]] for member in group] if self.is_whole(group) else []
                row = tuple(brought if is_ordered else sorted(brought))
                known[id(group)] = numbers.setdefault(row, 1 + len(numbers)) if row else None
        return [known[id(group)] or self.alone(place) for place, group in enumerate(self.groups)]

    def alone(self, place: int) -> Hashable:
        """What a device has in common with members of its group alone: those who come equally often."""
        return "group", id(self.groups[place]), self.context[place]

    def positions(self) -> list[int]:
        """At which place of its group each device stands."""
        known: dict[int, Mapping[int, int]] = {}
        for group in self.groups:
            if id(group) not in known:
                known[id(group)] = {member: n for n, member in enumerate(group)}
        return [known[id(group)][device] for device, group in zip(self.devices, self.groups, strict=True)]

    def of_device(self, labels: Labels, source: int, group: Group, else_: Hashable) -> Hashable:
        """What one member of a group brings."""
        is_known = source in self.places and self.is_whole(group)
        return labels[self.places[source]] if is_known else else_


def met(
    collective: Instruction,
    instruction: Instruction,
    brought: Sequence[Labels],
    devices: Sequence[int],
    grid: Extent,
    context: Labels,
    partitions: Partitions,
) -> list[Labels]:
    """Where devices agree on each result of a collective; one answer where it is that of all results."""
    coming = _Coming(collective, devices, grid, context, grouping(collective, *grid).of)
    marks = _MARKS.get(base_of(collective))
    if marks is None or is_in_place(collective):
        return [partitions.nowhere]
    together = [partitions.of_all(brought)]
    if _is_each(collective, instruction, len(brought)):
        together = [*brought]
    return [partitions.by(marks(coming, labels)) for labels in together]


def _is_each(collective: Instruction, instruction: Instruction, count: int) -> bool:
    """Whether its results stand beside its operands, each made of its own."""
    is_plain = instruction.opcode in (*_EACH, "all_reduce_start") and base_of(collective) in _EACH
    shape = instruction.shape
    return is_plain and count > 1 and isinstance(shape, TupleShape) and len(shape.elements) == count


def _reduced(coming: _Coming, labels: Labels) -> list[Any]:
    """Groups to which the same is brought get the same; in any order, where the reduction has none."""
    return coming.by_group(labels, is_ordered=not _has_no_order(coming.collective))


def _gathered(coming: _Coming, labels: Labels) -> list[Any]:
    return coming.by_group(labels, is_ordered=True)


def _parts(coming: _Coming, labels: Labels) -> list[Any]:
    """Each member gets its own part of what the group makes."""
    return [*zip(coming.by_group(labels, is_ordered=True), coming.positions(), strict=True)]


def _broadcast(coming: _Coming, labels: Labels) -> list[Any]:
    """What the first member has; zeros on a device that no group names."""
    return [
        coming.of_device(labels, group[0], group, coming.alone(place)) if device in coming.named else "zeros"
        for place, (device, group) in enumerate(zip(coming.devices, coming.groups, strict=True))
    ]


def _permuted(coming: _Coming, labels: Labels) -> list[Any]:
    """What the source has; zeros on a device without one."""
    sources = {target: source for source, target in pairs_of(coming.collective, *coming.grid)}
    return [
        coming.of_device(labels, sources[device], group, ("own", device)) if device in sources else "zeros"
        for device, group in zip(coming.devices, coming.groups, strict=True)
    ]


def _has_no_order(collective: Instruction) -> bool:
    """Whether it folds integers by one op that is commutative and associative."""
    root, parameters = collective.attributes.to_apply.root, collective.attributes.to_apply.parameters
    is_plain = root.opcode in _COMMUTATIVE and {*root.operands} == {*parameters}
    shapes = [each.shape for each in (*parameters, *collective.operands)]
    return is_plain and all(isinstance(s, Shape) and s.dtype.kind in ("signed", "unsigned", "pred") for s in shapes)


_MARKS: dict[str, Callable[[_Coming, Labels], list[Any]]] = {
    "all_reduce": _reduced,
    "all_gather": _gathered,
    "reduce_scatter": _parts,
    "all_to_all": _parts,
    "ragged_all_to_all": _parts,
    "collective_broadcast": _broadcast,
    "collective_permute": _permuted,
}
SHARED = ("all_reduce", "all_gather", "collective_broadcast")
