"""What an instruction depends on: parameters of the entry, communication and draws on the way from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import field, frozen

from ..core.graph import Computation, Instruction, Module
from ..core.op import opcodes

_MEETING = opcodes(lambda op: op.needs in ("group", "peer", "host"))
_FOLLOWED = opcodes(lambda op: op.calls in ("once", "branch", "loop", "wrapped"))  # others apply theirs to elements
_FREE = opcodes(lambda op: op.depends_on in ("device", "random_state", "target", "implementation"))


@frozen(eq=False)
class Cone:
    """The instructions from which a value may be computed, in the computations of a module, calls included."""

    module: Module
    members: frozenset[Instruction]

    def parameters(self) -> list[Instruction]:
        """The parameters of the entry among them, by number."""
        return [each for each in self.module.entry.parameters if each in self.members]

    def meetings(self) -> list[Instruction]:
        """Instructions among them that need other devices or the host, in program order."""
        return [each for each in self._in_order() if each.opcode in _MEETING]

    def free(self) -> list[Instruction]:
        """Instructions among them whose value depends on the device, on a random state or on a function outside."""
        return [each for each in self._in_order() if each.opcode in _FREE]

    def _in_order(self) -> Iterator[Instruction]:
        for computation in self.module.computations:
            yield from (each for each in computation.instructions if each in self.members)


@frozen(eq=False)
class Callers:
    """For each computation of a module the instructions that call it, and for each instruction its computation."""

    of: Mapping[Computation, Sequence[Instruction]] = field(factory=dict)
    home: Mapping[Instruction, Computation] = field(factory=dict)

    @staticmethod
    def in_module(module: Module) -> Callers:
        of: dict[Computation, list[Instruction]] = {}
        home: dict[Instruction, Computation] = {}
        for computation in module.computations:
            for each in computation.instructions:
                home[each] = computation
                for region in each.called:
                    of.setdefault(region, []).append(each)
        return Callers(of, home)

    def given(self, parameter: Instruction) -> Iterator[Instruction]:
        """What callers may pass for a parameter of a called computation."""
        computation = self.home[parameter]
        for caller in self.of.get(computation, ()):
            yield from self._passed(caller, computation, parameter.attributes.number)

    def _passed(self, caller: Instruction, region: Computation, number: int) -> Iterator[Instruction]:
        if caller.opcode in ("call", "fusion", "async_start") and number < len(caller.operands):
            yield caller.operands[number]
        elif caller.opcode == "conditional":
            places = [place for place, each in enumerate(caller.called) if each is region]
            yield from (caller.operands[1 + place] for place in places)
        else:
            yield from caller.operands
            if caller.opcode in ("while", "scan"):
                yield from (each.root for each in caller.called)


def cone_of(module: Module, instruction: Instruction, callers: Callers) -> Cone:
    """The cone of an instruction of a module."""
    members: set[Instruction] = set()
    stack = [instruction]
    while stack:
        each = stack.pop()
        if each in members:
            continue
        members.add(each)
        stack += each.operands
        stack += (region.root for region in each.called if each.opcode in _FOLLOWED)
        if each.opcode == "parameter":
            stack += callers.given(each)
    return Cone(module, frozenset(members))
