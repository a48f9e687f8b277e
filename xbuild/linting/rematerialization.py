"""Arrays that all devices gather only to split them again, as XLA's partitioner does where it cannot reshard directly.

`find_rematerializations` follows each gathered array through the ops that only move or convert its elements, into
calls and fusions too. It is rematerialized if every use ends in a slice whose start depends on the device. An array
that one device sends to all, as the partitioner does with the result of a callback, counts as gathered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from attrs import define, frozen

from shape_inference import leaves
from shape_inference.escaping import in_line

from ..core.graph import Computation, Instruction, Module, ModuleGroup
from ..costs.report import short
from ..costs.work import leaf_bytes
from ..properties.effects import START_OF, base_of
from .flow import IDS, MOVES, ValueFlow


@frozen
class Rematerialization:
    """An array that `gather` makes whole on each device, and the slices that split it again; `bytes` are its own."""

    gather: Instruction
    slices: tuple[Instruction, ...]
    bytes: int

    @property
    def scope(self) -> str:
        """The author's name for the place of the gather."""
        return str(self.gather.annotations.get("metadata", {}).get("op_name", ""))

    def __str__(self) -> str:
        place = self.gather.source or self.scope
        names = ", ".join(in_line(each.name) for each in self.slices[:3])
        more = f" and {len(self.slices) - 3} more" if len(self.slices) > 3 else ""
        return f"{in_line(self.gather.name)}: {short(self.bytes, 'B')} on each device, then {names}{more}" + (
            f"  {in_line(str(place))}" if place else ""
        )


def find_rematerializations(program: Computation | Module | ModuleGroup) -> list[Rematerialization]:
    """The gathers of a program whose array is only split again, in the order of its computations."""
    if isinstance(program, ModuleGroup):
        return [each for module in dict.fromkeys(program.modules.values()) for each in find_rematerializations(module)]
    entry = program.entry if isinstance(program, Module) else program
    return [*Rematerializations(ValueFlow(entry.reachable())).all()]


@define(eq=False)
class Rematerializations:
    """The rematerialized arrays of a program."""

    flow: ValueFlow

    def all(self) -> Iterator[Rematerialization]:
        """The record of each gather that has one, in the order of the computations."""
        found = (self._of_gather(each) for each in self.flow.home if self._makes_whole(each))
        yield from (each for each in found if each is not None)

    def _makes_whole(self, collective: Instruction) -> bool:
        """Whether a collective gives all devices an array: of their parts, or of one device."""
        return base_of(collective) == "all_gather" or self.is_of_one_device(collective)

    def is_of_one_device(self, collective: Instruction) -> bool:
        """Whether a collective is a sum to which all devices but one add zeros."""
        return base_of(collective) == "all_reduce" and all(map(self._is_masked, collective.operands))

    def _is_masked(self, value: Instruction) -> bool:
        """Whether a value is zero on all devices but one."""
        masked = self._origin(value)
        if masked.opcode != "select":
            return False
        chosen, zeros = map(self._origin, (masked.operands[0], masked.operands[2]))
        if chosen.opcode != "compare" or chosen.attributes.direction != "EQ" or zeros.opcode != "constant":
            return False
        sides = {self._origin(each).opcode for each in chosen.operands}
        return not zeros.attributes.literal.any() and "constant" in sides and bool(sides & IDS)

    def _origin(self, value: Instruction) -> Instruction:
        """The value that others move, convert or broadcast."""
        return self.flow.origin(value, lambda each: each.opcode in MOVES or each.opcode == "broadcast")

    def _of_gather(self, gather: Instruction) -> Rematerialization | None:
        """The record of a gather whose every use ends in a slice for the device; None if another use needs it whole.

        Of gathers along several axes, one after the other, only the last has a record.
        """
        slices = self.slices_of(gather)
        if not slices:
            return None
        return Rematerialization(gather, slices, max(leaf_bytes(each) for each in leaves(gather.shape)))

    def slices_of(self, value: Instruction) -> tuple[Instruction, ...]:
        """The slices for the device in which every use of a value ends; empty if another use needs all of it."""
        slices: dict[Instruction, None] = {}
        queue, seen = deque([value]), {value}
        while queue:
            value = queue.popleft()
            for user, used in self.flow.uses(value):
                if user is None:
                    return ()
                if user.opcode == "dynamic_slice" and user.operands[0] is used and self._depends_on_device(user):
                    slices[user] = None
                elif user.opcode not in MOVES and user.opcode not in START_OF:
                    return ()
                elif user not in seen:
                    seen.add(user)
                    queue.append(user)
        return tuple(slices)

    def _depends_on_device(self, sliced: Instruction) -> bool:
        """Whether a start of a slice is computed from the id of the device."""
        return any(each in self.flow.of_ids for each in sliced.operands[1:])
