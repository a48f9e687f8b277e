"""Arrays that all devices gather only to split them again, as XLA's partitioner does where it cannot reshard directly.

`find_rematerializations` follows each gathered array through the ops that only move or convert its elements, into
calls and fusions too. It is rematerialized if every use ends in a slice whose start depends on the device.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from attrs import frozen

from shape_inference import leaves
from shape_inference.escaping import in_line

from ..core.graph import Computation, Instruction, Module, ModuleGroup
from ..costs.report import short
from ..costs.work import leaf_bytes
from ..properties.effects import START_OF, base_of

MOVES = frozenset(
    {"bitcast", "bitcast_convert", "convert", "copy", "get_tuple_element", "optimization_barrier", "reshape",
     "reverse", "transpose"}
)  # fmt: skip
"""Ops through which an array is followed: they move or convert its elements and keep all of them."""

_IDS = frozenset({"partition_id", "replica_id"})


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
    computations = entry.reachable()
    uses = _Uses(computations)
    found = (uses.rematerialized(each) for c in computations for each in c.instructions if _gathers(each))
    return [each for each in found if each is not None]


def _gathers(instruction: Instruction) -> bool:
    return base_of(instruction) == "all_gather"


class _Uses:
    """The users of values through calls and fusions, and whether a start depends on the device."""

    def __init__(self, computations: Sequence[Computation]) -> None:
        self._users: dict[Instruction, list[Instruction]] = {}
        self._callers: dict[Computation, list[Instruction]] = {}
        self._home: dict[Instruction, Computation] = {}
        for computation in computations:
            for instruction in computation.instructions:
                self._home[instruction] = computation
                for operand in dict.fromkeys(instruction.operands):
                    self._users.setdefault(operand, []).append(instruction)
                for called in instruction.called:
                    self._callers.setdefault(called, []).append(instruction)

    def rematerialized(self, gather: Instruction) -> Rematerialization | None:
        """The record of a gather whose every use ends in a slice for the device; None if another use needs it whole.

        Of gathers along several axes, one after the other, only the last has a record.
        """
        slices: dict[Instruction, None] = {}
        queue, seen = deque([gather]), {gather}
        while queue:
            value = queue.popleft()
            for user, reached in self._reached_from(value):
                if user is None or _gathers(user):
                    return None
                if reached is None:
                    slices[user] = None
                elif reached not in seen:
                    seen.add(reached)
                    queue.append(reached)
        if not slices:
            return None
        return Rematerialization(gather, tuple(slices), max(leaf_bytes(each) for each in leaves(gather.shape)))

    def _reached_from(self, value: Instruction) -> Iterator[tuple[Instruction | None, Instruction | None]]:
        """For each use: a slice and None, a use that keeps all elements and its value, or None for any other use."""
        home = self._home[value]
        users = self._users.get(value, [])
        for user in users:
            if user.opcode == "dynamic_slice" and user.operands[0] is value and self._depends_on_device(user):
                yield user, None
            elif user.opcode in MOVES or user.opcode in START_OF or _gathers(user):
                yield user, user
            elif user.opcode in ("fusion", "call"):
                for number, operand in enumerate(user.operands):
                    if operand is value:
                        yield user, user.called[0].parameters[number]
            else:
                yield None, None
        if value is home.root:
            callers = self._callers.get(home, [])
            if not callers or any(caller.opcode not in ("fusion", "call") for caller in callers):
                yield None, None
            else:
                yield from ((caller, caller) for caller in callers)

    def _depends_on_device(self, sliced: Instruction) -> bool:
        """Whether a start of a slice is computed from the id of the device."""
        queue, seen = deque(sliced.operands[1:]), set(sliced.operands[1:])
        while queue:
            value = queue.popleft()
            if value.opcode in _IDS:
                return True
            behind = list(value.operands)
            if value.opcode == "parameter":
                callers = self._callers.get(self._home[value], [])
                behind += [c.operands[value.attributes.number] for c in callers if c.opcode in ("fusion", "call")]
            elif value.opcode in ("fusion", "call"):
                behind.append(value.called[0].root)
            for each in behind:
                if each not in seen:
                    seen.add(each)
                    queue.append(each)
        return False
