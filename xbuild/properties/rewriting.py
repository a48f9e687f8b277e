"""Rewriting: computations with some of their instructions changed, and calls inlined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import evolve

from ..core.graph import Computation, Instruction, Module
from .order import ordered

Change: TypeAlias = Callable[[Instruction], Instruction | None]


def with_called(instruction: Instruction, called: Iterable[Computation]) -> Any:
    """The attributes of an instruction with these computations, in order, in place of those that it calls."""
    attributes, given = instruction.attributes, iter(called)
    changes: dict[str, Any] = {}
    for key in attributes.calling if attributes is not None else ():
        value = getattr(attributes, key)
        now = next(given) if isinstance(value, Computation) else tuple([next(given) for _ in value])
        if now != value:
            changes[key] = now
    return evolve(attributes, **changes) if changes else attributes


def rewired(
    instruction: Instruction,
    now: Mapping[Instruction, Instruction],
    called: Iterable[Computation] | None = None,
    **changes: Any,
) -> Instruction:
    """The instruction on the current values of its operands and control predecessors, calling these computations.

    The instruction itself if nothing changes; `changes` are other fields, such as the name.
    """
    operands = tuple([now.get(operand, operand) for operand in instruction.operands])
    control = tuple(dict.fromkeys([now.get(each, each) for each in instruction.control])) if instruction.control else ()
    if operands != instruction.operands:
        changes["operands"] = operands
    if control != instruction.control:
        changes["control"] = control
    if called is not None and (attributes := with_called(instruction, called)) is not instruction.attributes:
        changes["attributes"] = attributes
    return evolve(instruction, **changes) if changes else instruction


class Rewriter:
    """A pass over computations, callees first: `instruction` returns the replacement of each instruction.

    By default that is the instruction itself on the new operands, control predecessors and called computations. An
    instruction that is added becomes part of the new computation; unchanged parts are shared.
    """

    def __init__(self) -> None:
        self.done: dict[Computation, Computation] = {}
        self.now: dict[Instruction, Instruction] = {}
        self.kept: dict[Instruction, None] = {}

    def program(self, computation: Computation) -> Computation:
        """The computation with all that it calls, rewritten."""
        for each in computation.reachable(self.done):
            self.done[each] = self.computation(each)
        return self.done[computation]

    def module(self, module: Module) -> Module:
        """The module with all of its computations, rewritten."""
        computations = tuple([self.program(computation) for computation in module.computations])
        return evolve(module, entry=self.program(module.entry), computations=computations)

    def computation(self, computation: Computation) -> Computation:
        self.now, self.kept = {}, {}
        for instruction in ordered(computation):
            self.now[instruction] = self.instruction(instruction)
        if len(self.kept) == len(self.now) and all(old is new for old, new in self.now.items()):
            return computation
        return Computation(computation.name, tuple(self.kept), self.now[computation.root])

    def instruction(self, instruction: Instruction) -> Instruction:
        """The replacement of an instruction: one that is added here, or the replacement of an earlier instruction."""
        return self.add(self.rewired(instruction))

    def rewired(self, instruction: Instruction) -> Instruction:
        called = [self.done.get(called, called) for called in instruction.called]
        return rewired(instruction, self.now, called if called else None)

    def add(self, instruction: Instruction) -> Instruction:
        self.kept[instruction] = None
        return instruction


class _Mapped(Rewriter):
    """A pass that changes each instruction by a function."""

    def __init__(self, change: Change) -> None:
        super().__init__()
        self.change = change

    def instruction(self, instruction: Instruction) -> Instruction:
        changed = self.change(instruction)
        return self.now[instruction.operands[0]] if changed is None else self.add(self.rewired(changed))


def mapped(module: Module, change: Change) -> Module:
    """The module with each instruction changed; callers and users of changed ones are rebuilt, the rest is shared.

    If `change` returns None, the first operand replaces the instruction.

    >>> import xbuild as xb
    >>> module = xb.Module("twice", xb.computation(xb.f32[2])(lambda x: -abs(x)))
    >>> [each.name for each in mapped(module, lambda each: None if each.opcode == "abs" else each).entry.instructions]
    ['parameter.1', 'negate.3']
    """
    return _Mapped(change).module(module)


def inlined(
    called: Computation,
    operands: Sequence[Instruction],
    control: Sequence[Instruction],
    rename: Callable[[str], str],
) -> tuple[list[Instruction], Instruction]:
    """Copies of the instructions of a computation on the operands of a call, and the one that is its result.

    Copies that depend on no other copy follow the control predecessors of the call. `rename` names a copy.
    """
    now = dict(zip(called.parameters, operands, strict=True))
    added: dict[Instruction, None] = {}
    for instruction in ordered(called):
        if instruction.opcode != "parameter":
            made = rewired(instruction, now, name=rename(instruction.name))
            if control and added.keys().isdisjoint((*made.operands, *made.control)):
                made = evolve(made, control=tuple(dict.fromkeys((*made.control, *control))))
            now[instruction] = made
            added[made] = None
    return [*added], now[called.root]
