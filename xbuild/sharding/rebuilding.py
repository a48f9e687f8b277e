"""A module with some of its instructions changed, the rest shared."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any, TypeAlias

from attrs import evolve

from ..core.graph import Computation, Instruction, Module

Change: TypeAlias = "Callable[[Instruction], Instruction | None]"


def mapped(module: Module, change: Change) -> Module:
    """The module with each instruction changed; what calls or uses a changed one is rebuilt, the rest is shared.

    Where `change` gives None the first operand stands for the instruction.
    """
    done: dict[Computation, Computation] = {}
    every = {each: None for root in (*module.computations, module.entry) for each in root.reachable()}
    for computation in every:
        done[computation] = _mapped(computation, change, done)
    return evolve(module, entry=done[module.entry], computations=tuple(done[each] for each in module.computations))


def pruned(computation: Computation, needed: Callable[[Computation], Container[Instruction]]) -> Computation:
    """A computation, and all that it calls, with their parameters and the instructions that are needed."""
    done: dict[Computation, Computation] = {}
    for each in computation.reachable():
        found = needed(each)
        kept = [one for one in each.instructions if one.opcode == "parameter" or one in found]
        left = each if len(kept) == len(each.instructions) else Computation(each.name, kept, each.root)
        done[each] = _mapped(left, lambda instruction: instruction, done)
    return done[computation]


def _mapped(computation: Computation, change: Change, done: Mapping[Computation, Computation]) -> Computation:
    made: dict[Instruction, Instruction] = {}
    for instruction in computation.instructions:
        now = change(instruction)
        if now is None:
            made[instruction] = made[instruction.operands[0]]
            continue
        operands = tuple(made[each] for each in now.operands)
        control = tuple(made[each] for each in now.control)
        attributes = _with_callees(now, done) if now.called else now.attributes
        if operands != now.operands or control != now.control or attributes is not now.attributes:
            now = evolve(now, operands=operands, control=control, attributes=attributes)
        made[instruction] = now
    if all(key is now for key, now in made.items()):
        return computation
    return Computation(computation.name, tuple(dict.fromkeys(made.values())), made[computation.root])


def _with_callees(instruction: Instruction, done: Mapping[Computation, Computation]) -> Any:
    changes: dict[str, Any] = {}
    for key in instruction.attributes.calling:
        value = getattr(instruction.attributes, key)
        if isinstance(value, Computation):
            changes[key] = done[value]
        elif isinstance(value, tuple):
            changes[key] = tuple(done[each] for each in value)
    is_same = all(changes[key] == getattr(instruction.attributes, key) for key in changes)
    return instruction.attributes if is_same else evolve(instruction.attributes, **changes)
