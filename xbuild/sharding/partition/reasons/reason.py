"""`Reason`: what the partitioner knew when it inserted a collective; its sentence is made when it is asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

from attrs import frozen

from ....core.graph import Instruction
from ...sharding import Sharding
from .story import Story
from .words import called, line_of, listed, name_of, told


@frozen
class Move:
    """What a collective does: the op, the value, and the shardings before and after all that is done for the reason.

    The shardings are None where elements of neighbours, or numbers, are sent.
    """

    opcode: str
    value: Instruction
    had: Sharding | None
    needed: Sharding | None
    story: Story


class Reason(ABC):
    """Why a value is moved. `kind` is a word; `user` the instruction of the global program that asks for it."""

    __slots__ = ()
    kind: ClassVar[str]
    user: Instruction

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {self.user.name}"

    @abstractmethod
    def sentence(self, move: Move) -> str:
        """Why, in a sentence."""

    def taker(self) -> str:
        """Who takes the value, as the subject of a sentence; empty where the program gives it."""
        return called(self.user)

    def facts(self, move: Move) -> dict[str, Any]:
        """The same as plain data for JSON."""
        return {"kind": self.kind, "user": self.user.name, "line": line_of(self.user), **_shardings(move)}


Use: TypeAlias = "tuple[Reason, Sharding]"
"""Someone who takes an array, and the sharding in which it is taken."""


def _shardings(move: Move) -> dict[str, Any]:
    pairs = (("had", move.had), ("needed", move.needed))
    return {key: told(each) for key, each in pairs if each is not None}


def wanted_by(uses: Sequence[Use], needed: Sharding) -> list[Reason]:
    """The reasons for which an array is taken in a sharding, one for each user."""
    return list({reason.user: reason for reason, sharding in uses if sharding == needed}.values())


def because(uses: Sequence[Use], move: Move) -> str:
    """Why a value is wanted as it is after a move: who takes it so, or what the program says of it."""
    assert move.needed is not None
    takers, so = [reason.taker() for reason in wanted_by(uses, move.needed)], told(move.needed)
    users = [each for each in takers if each]
    if users:
        more = [f"{len(users) - 2} more"] if len(users) > 2 else []
        return f"{listed([*users[:2], *more])} {'takes' if len(users) == 1 else 'take'} {name_of(move.value)} {so}"
    cause = move.story.cause(move.value)
    verb = f"the program gives {name_of(move.value)}" if takers else f"{name_of(move.value)} is wanted"
    return f"{verb} {so}{f' ({cause})' if cause else ''}"
