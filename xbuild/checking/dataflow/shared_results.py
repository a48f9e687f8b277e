"""Labels of the results of a collective, by its groups and the labels of its operands."""

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
_OPERANDWISE = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "collective_permute",
)  # the n-th result is computed from the n-th operand


@define(eq=False)
class _Arrivals:
    """The devices that arrive at a collective, with their groups.

    Devices of one class of `context` arrive equally often.
    """

    collective: Instruction
    devices: Sequence[int]
    grid: Extent
    context: Labels
    named: Mapping[int, Group]
    places: Mapping[int, int] = field(init=False)
    groups: list[Group] = field(init=False)
    _complete: dict[int, bool] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self.places = {device: place for place, device in enumerate(self.devices)}
        self.groups = [self.named.get(device) or (device,) for device in self.devices]

    def is_complete(self, group: Group) -> bool:
        """Whether all members of a group arrive here, equally often, so that the labels of their operands hold."""
        if id(group) not in self._complete:
            parts = {self.context[self.places[member]] if member in self.places else -1 for member in group}
            self._complete[id(group)] = len(parts) == 1 and -1 not in parts
        return self._complete[id(group)]

    def by_group(self, labels: Labels, is_ordered: bool) -> list[Hashable]:
        """For each device the number of what its group brings; where that is unknown, the mark of the group."""
        known: dict[int, Hashable] = {}
        numbers: dict[tuple[int, ...], int] = {}
        for group in self.groups:
            if id(group) not in known:
                brought = [labels[self.places[member]] for member in group] if self.is_complete(group) else []
                row = tuple(brought if is_ordered else sorted(brought))
                known[id(group)] = numbers.setdefault(row, 1 + len(numbers)) if row else None
        return [known[id(group)] or self.group_mark(place) for place, group in enumerate(self.groups)]

    def group_mark(self, place: int) -> Hashable:
        """A mark that a device shares with those members of its group that arrive equally often."""
        return "group", id(self.groups[place]), self.context[place]

    def positions(self) -> list[int]:
        """The position of each device in its group."""
        known: dict[int, Mapping[int, int]] = {}
        for group in self.groups:
            if id(group) not in known:
                known[id(group)] = {member: n for n, member in enumerate(group)}
        return [known[id(group)][device] for device, group in zip(self.devices, self.groups, strict=True)]

    def of_device(self, labels: Labels, source: int, group: Group, else_: Hashable) -> Hashable:
        """The label of the operand of one member of a group; `else_` where that is unknown."""
        is_known = source in self.places and self.is_complete(group)
        return labels[self.places[source]] if is_known else else_


def result_labels(
    collective: Instruction,
    instruction: Instruction,
    brought: Sequence[Labels],
    devices: Sequence[int],
    grid: Extent,
    context: Labels,
    partitions: Partitions,
) -> list[Labels]:
    """The labels of each result of a collective; one entry where all results have the same."""
    arrivals = _Arrivals(collective, devices, grid, context, grouping(collective, *grid).of)
    marks = _MARKS.get(base_of(collective))
    if marks is None or is_in_place(collective):
        return [partitions.nowhere]
    together = [partitions.of_all(brought)]
    if _is_operandwise(collective, instruction, len(brought)):
        together = [*brought]
    return [partitions.by(marks(arrivals, labels)) for labels in together]


def _is_operandwise(collective: Instruction, instruction: Instruction, count: int) -> bool:
    """Whether the n-th result is computed from the n-th operand alone."""
    is_plain = instruction.opcode in (*_OPERANDWISE, "all_reduce_start") and base_of(collective) in _OPERANDWISE
    shape = instruction.shape
    return is_plain and count > 1 and isinstance(shape, TupleShape) and len(shape.elements) == count


def _reduced(arrivals: _Arrivals, labels: Labels) -> list[Any]:
    """The same for groups that bring the same operands, in any order if the reduction does not depend on it."""
    return arrivals.by_group(labels, is_ordered=not _is_order_free(arrivals.collective))


def _gathered(arrivals: _Arrivals, labels: Labels) -> list[Any]:
    return arrivals.by_group(labels, is_ordered=True)


def _parts(arrivals: _Arrivals, labels: Labels) -> list[Any]:
    """A result of which each member of a group gets another part."""
    return [*zip(arrivals.by_group(labels, is_ordered=True), arrivals.positions(), strict=True)]


def _broadcast(arrivals: _Arrivals, labels: Labels) -> list[Any]:
    """The operand of the first member of the group; zeros on a device that no group names."""
    return [
        arrivals.of_device(labels, group[0], group, arrivals.group_mark(place)) if device in arrivals.named else "zeros"
        for place, (device, group) in enumerate(zip(arrivals.devices, arrivals.groups, strict=True))
    ]


def _permuted(arrivals: _Arrivals, labels: Labels) -> list[Any]:
    """The operand of the source; zeros on a device without one."""
    sources = {target: source for source, target in pairs_of(arrivals.collective, *arrivals.grid)}
    return [
        arrivals.of_device(labels, sources[device], group, ("own", device)) if device in sources else "zeros"
        for device, group in zip(arrivals.devices, arrivals.groups, strict=True)
    ]


def _is_order_free(collective: Instruction) -> bool:
    """Whether a collective folds integers by one op that is commutative and associative."""
    root, parameters = collective.attributes.to_apply.root, collective.attributes.to_apply.parameters
    is_plain = root.opcode in _COMMUTATIVE and {*root.operands} == {*parameters}
    shapes = [each.shape for each in (*parameters, *collective.operands)]
    return is_plain and all(isinstance(s, Shape) and s.dtype.kind in ("signed", "unsigned", "pred") for s in shapes)


_MARKS: dict[str, Callable[[_Arrivals, Labels], list[Any]]] = {
    "all_reduce": _reduced,
    "all_gather": _gathered,
    "reduce_scatter": _parts,
    "all_to_all": _parts,
    "ragged_all_to_all": _parts,
    "collective_broadcast": _broadcast,
    "collective_permute": _permuted,
}
SHARED = ("all_reduce", "all_gather", "collective_broadcast")
