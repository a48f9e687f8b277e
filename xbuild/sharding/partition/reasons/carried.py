"""Reasons that lie in the structure of a program: its results, loops, branches, calls, and ops that run whole."""

from __future__ import annotations

from typing import ClassVar, Literal

from attrs import frozen

from shape_inference import Shape, leaves

from ....core.graph import Instruction
from ....core.op import OPS
from ...rules import rule_of
from .reason import Move, Reason
from .words import called, name_of, told


def _is(move: Move) -> str:
    """The value of a move, and how it is cut before."""
    return f"{called(move.value)} is {told(move.had)}" if move.had is not None else called(move.value)


def _so(move: Move) -> str:
    return told(move.needed) if move.needed is not None else ""


@frozen(eq=False, repr=False)
class Output(Reason):
    """The program gives a value as a result; `user` is the root."""

    kind: ClassVar[str] = "output"
    user: Instruction

    def sentence(self, move: Move) -> str:
        cause = move.story.cause(self.user)
        return f"the program gives {name_of(move.value)} {_so(move)}, and {_is(move)}{f': {cause}' if cause else ''}"

    def taker(self) -> str:
        return ""


@frozen(eq=False, repr=False)
class LoopState(Reason):
    """A loop carries a value: into the first trip, or into the next one."""

    kind: ClassVar[str] = "loop state"
    user: Instruction
    when: Literal["first", "next"]

    def sentence(self, move: Move) -> str:
        return f"{self.taker()} takes {name_of(move.value)} {_so(move)}, and {_is(move)}"

    def taker(self) -> str:
        return f"{'the next trip' if self.when == 'next' else 'the state'} of {called(self.user)}"


@frozen(eq=False, repr=False)
class Lifted(Reason):
    """What no trip of a loop changes is gathered once before it, and not in part in each trip."""

    kind: ClassVar[str] = "before a loop"
    user: Instruction

    def sentence(self, move: Move) -> str:
        return (
            f"{called(self.user)} takes other elements of {name_of(move.value)} in each trip, at places that are known "
            f"at run time alone, and changes none: {name_of(move.value)} is taken {_so(move)} once before the first "
            f"trip, and {_is(move)}"
        )

    def taker(self) -> str:
        return f"the state of {called(self.user)}"


@frozen(eq=False, repr=False)
class BranchResult(Reason):
    """A branch gives a value, in the sharding of the results of all branches."""

    kind: ClassVar[str] = "branch result"
    user: Instruction

    def sentence(self, move: Move) -> str:
        cause = move.story.cause(self.user)
        start = f"all branches of {called(self.user)} give their result {_so(move)}, and {_is(move)}"
        return f"{start}: {cause}" if cause else start

    def taker(self) -> str:
        return f"the result of {called(self.user)}"


@frozen(eq=False, repr=False)
class Decides(Reason):
    """A number decides a loop or a branch, so that each device needs it."""

    kind: ClassVar[str] = "decides"
    user: Instruction

    def sentence(self, move: Move) -> str:
        return (
            f"{called(self.user)} is decided by {name_of(move.value)}, which each device needs whole, and {_is(move)}"
        )


@frozen(eq=False, repr=False)
class AllAgree(Reason):
    """The check cannot show that a number that decides is the same on all devices; the first device decides for all."""

    kind: ClassVar[str] = "agreement"
    user: Instruction

    def sentence(self, move: Move) -> str:
        return (
            f"{called(move.value)} decides {self._what()}, in which devices meet, and the check cannot show that all "
            "have the same number: all take that of the first device"
        )

    def _what(self) -> str:
        return "a loop or branch" if self.user.opcode == "parameter" else called(self.user)


@frozen(eq=False, repr=False)
class IntoShard(Reason):
    """A computation of a shard (shard_map) takes a part of an array, as its specs state."""

    kind: ClassVar[str] = "manual region"
    user: Instruction

    def sentence(self, move: Move) -> str:
        return f"{called(self.user)} takes {name_of(move.value)} {_so(move)} into a manual region, and {_is(move)}"


@frozen(eq=False, repr=False)
class OutOfShard(Reason):
    """Parts of a manual region become a global array again, as its specs state."""

    kind: ClassVar[str] = "manual region"
    user: Instruction

    def sentence(self, move: Move) -> str:
        return f"{called(self.user)} takes {name_of(move.value)} {_so(move)} out of a manual region, and {_is(move)}"


@frozen(eq=False, repr=False)
class WholeOperand(Reason):
    """An op runs on whole operands, on every device."""

    kind: ClassVar[str] = "whole operand"
    user: Instruction

    def sentence(self, move: Move) -> str:
        return f"{called(self.user)} runs on whole operands, {self._why()}, and {_is(move)}"

    def _why(self) -> str:
        op, properties = self.user, OPS[self.user.opcode].properties
        if op.opcode == "custom_call":
            return f"as nothing is known of what {op.attributes.custom_call_target} computes"
        shapes = [leaf for each in (*op.operands, op) for leaf in leaves(each.shape)]
        if any(isinstance(each, Shape) and each.is_dynamic for each in shapes):
            return "as its extents are known at run time alone"
        if properties.needs != "nobody" or properties.half != "none":
            return "as it communicates or is a half of an asynchronous op"
        return (
            f"as {op.opcode} has no sharding rule"
            if rule_of(op) is None
            else f"as every device does all of {op.opcode}"
        )


@frozen(eq=False, repr=False)
class OnDevice(Reason):
    """An instruction is placed on one device, which needs its operands whole, and hands on what it gives."""

    kind: ClassVar[str] = "one device"
    user: Instruction
    device: int

    def sentence(self, move: Move) -> str:
        start = f"{called(self.user)} is placed on device {self.device} alone"
        if move.had is None:
            return f"{start}: the other devices get {name_of(move.value)} from it"
        return f"{start}, which takes {name_of(move.value)} {_so(move)}, and {_is(move)}"


@frozen(eq=False, repr=False)
class DrawnOnce(Reason):
    """Random numbers of a state that each device has its own of."""

    kind: ClassVar[str] = "random numbers"
    user: Instruction

    def sentence(self, move: Move) -> str:
        return (
            f"{called(self.user)} draws random numbers, of which each device has its own: all take those of the first"
        )


@frozen(eq=False, repr=False)
class OtherDevices(Reason):
    """A constraint puts an array on the devices of a mesh in another order."""

    kind: ClassVar[str] = "other devices"
    user: Instruction

    def sentence(self, move: Move) -> str:
        return (
            f"{called(self.user)} wants {name_of(move.value)} on the devices of a mesh that has them in another order"
        )
