"""`Operand` and `Result`: an op takes an array otherwise than it is cut, or gives it otherwise than it is wanted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from attrs import frozen

from shape_inference import TupleShape

from ....core.graph import Instruction
from .obstacles import Alternative, Chosen
from .reason import Move, Reason
from .words import called, name_of, told


@frozen(eq=False, repr=False)
class Operand(Reason):
    """An op takes an operand in a sharding in which it is not at hand."""

    kind: ClassVar[str] = "operand"
    user: Instruction
    number: int
    chosen: Chosen

    @property
    def operand(self) -> Instruction:
        return self.user.operands[self.number]

    def other(self, move: Move) -> Alternative | None:
        """The cheapest way to do the op that takes the operand as it is, among those that were looked at."""
        assert move.had is not None
        return self.chosen.other(self.chosen.rule.operands[self.number], move.had)

    def sentence(self, move: Move) -> str:
        assert move.needed is not None
        assert move.had is not None
        given, other = name_of(self.operand), self.other(move)
        start = f"{called(self.user)} takes {self._operand(move)} {told(move.needed)}, and {given} is {told(move.had)}"
        ends = [*self.obstacles(move), *([other.told()] if other is not None else [])]
        return f"{start}: {'; '.join(ends)}" if ends else start

    def _operand(self, move: Move) -> str:
        """The operand, and the value that it is where a call or a tuple hands that on."""
        if move.value.name == self.operand.name:
            return called(self.operand)
        return f"{name_of(self.operand)}, which is {called(move.value)},"

    def obstacles(self, move: Move) -> list[str]:
        """Why the operand is not taken as it is, for each dimension from which axes go."""
        assert move.needed is not None
        assert move.had is not None
        chosen, dims = self.chosen, self.chosen.rule.operands[self.number]
        lost = chosen.lost(move.had, move.needed, dims)
        found = _unlike(chosen.why_not(f, dim, self.operand, axes) for dim, f, axes in lost)
        return found or _unlike([chosen.asked()])

    def facts(self, move: Move) -> dict[str, Any]:
        other = self.other(move)
        found = {"operand": self.number, "obstacles": self.obstacles(move), "rule": str(self.chosen.rule)}
        if other is not None:
            found["alternative"] = {"what": other.what, "bytes": other.bytes, "chosen_bytes": other.chosen}
        return {**super().facts(move), **found}


@frozen(eq=False, repr=False)
class Result(Reason):
    """An op gives its result in a sharding that is not the one it is annotated with; `chosen` is None for tuples and
    constraints, which cut nothing themselves.
    """

    kind: ClassVar[str] = "result"
    user: Instruction
    number: int = 0
    chosen: Chosen | None = None

    def other(self, move: Move) -> Alternative | None:
        """The cheapest way to do the op that makes the result as it is wanted."""
        if self.chosen is None or move.needed is None:
            return None
        return self.chosen.other(self.chosen.rule.results[self.number], move.needed, is_made=True)

    def sentence(self, move: Move) -> str:
        assert move.needed is not None
        assert move.had is not None
        cause = move.story.cause(self.user)
        other = self.other(move)
        start = f"{self._made(move)} {told(move.had)} as it is made, and wanted {told(move.needed)}"
        ends = [f"({cause})" if cause else "", *self.obstacles(move), other.told() if other is not None else ""]
        return "; ".join([f"{start} {ends[0]}".rstrip(), *filter(None, ends[1:])])

    def _made(self, move: Move) -> str:
        """The value that is made: the instruction, or an element of its tuple."""
        if isinstance(self.user.shape, TupleShape) and move.value is not self.user:
            return f"{called(move.value)}, an element of {called(self.user)}, is"
        return f"{called(self.user)} is"

    def obstacles(self, move: Move) -> list[str]:
        """Why the op does not make its result as it is wanted, for each dimension to which axes are to come."""
        if self.chosen is None or move.needed is None or move.had is None:
            return []
        lost = self.chosen.lost(move.needed, move.had, self.chosen.rule.results[self.number])
        return _unlike(self.chosen.why_not(f, dim, self.user, axes) for dim, f, axes in lost)

    def facts(self, move: Move) -> dict[str, Any]:
        return {**super().facts(move), "obstacles": self.obstacles(move), "cause": move.story.cause(self.user)}


def _unlike(words: Iterable[str]) -> list[str]:
    """Words without those that are there before, and without empty ones."""
    return [each for each in dict.fromkeys(words) if each]
