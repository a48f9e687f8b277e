"""A module in which each computation that runs as a whole is called at one place."""

from __future__ import annotations

from collections import Counter
from typing import Any

from attrs import evolve

from shape_inference import refuse

from ...core.graph import Computation, Instruction, Module
from ...core.op import OPS

MOST_INSTRUCTIONS = 1_000_000
"""The largest program that calls may be flattened to."""

_RUN = ("once", "loop", "branch")


def flows_into(instruction: Instruction) -> tuple[Computation, ...]:
    """The computations that an instruction runs on whole values: of calls, loops, branches and fusions."""
    return instruction.called if OPS[instruction.opcode].properties.calls in _RUN else ()


def running_in(entry: Computation) -> set[Computation]:
    """The computations that run on whole values, the entry among them; reducers and comparators do not."""
    found, waiting = {entry}, [entry]
    while waiting:
        for instruction in waiting.pop().instructions:
            waiting += (new := [each for each in flows_into(instruction) if each not in found])
            found.update(new)
    return found


def flattened(module: Module) -> Module:
    """The module with a copy of a computation for each further call of it; the module itself where there is none.

    Raises overflow where this makes more than MOST_INSTRUCTIONS instructions.
    """
    calls: Counter[Computation] = Counter()
    for computation in module.entry.reachable():
        for instruction in computation.instructions:
            calls.update(flows_into(instruction))
    if all(count == 1 for count in calls.values()):
        return module
    _check_size(module)
    copier = _Copier()
    entry = copier.of(module.entry)
    return evolve(module, entry=entry, computations=())


def _check_size(module: Module) -> None:
    """Refuse calls that would make a program too large, before it is made."""
    sizes: dict[Computation, int] = {}
    for computation in module.entry.reachable():
        inner = (sizes[each] for i in computation.instructions for each in flows_into(i))
        sizes[computation] = len(computation.instructions) + sum(inner)
    if sizes[module.entry] > MOST_INSTRUCTIONS:
        refuse(
            "overflow",
            f"module {module.name} has {sizes[module.entry]} instructions where each call has a copy of what it calls; "
            f"at most {MOST_INSTRUCTIONS} are taken",
        )


class _Copier:
    """Copies of computations; the first keeps its name, others are numbered."""

    def __init__(self) -> None:
        self._names: Counter[str] = Counter()

    def of(self, computation: Computation) -> Computation:
        number = self._names[computation.name]
        self._names[computation.name] += 1
        made: dict[Instruction, Instruction] = {}
        for each in computation.instructions:
            made[each] = self._copied(each, made, is_new=number > 0)
        if not number and all(one is other for one, other in made.items()):
            return computation
        name = f"{computation.name}.call_{number}" if number else computation.name
        return Computation(name, tuple(made.values()), made[computation.root])

    def _copied(self, instruction: Instruction, made: dict[Instruction, Instruction], *, is_new: bool) -> Instruction:
        changes: dict[str, Any] = {}
        operands = tuple(made[each] for each in instruction.operands)
        control = tuple(made[each] for each in instruction.control)
        if flows_into(instruction):
            changes["attributes"] = self._with_copies(instruction)
        if operands != instruction.operands or control != instruction.control:
            changes |= {"operands": operands, "control": control}
        return evolve(instruction, **changes) if changes or is_new else instruction

    def _with_copies(self, instruction: Instruction) -> Any:
        attributes = instruction.attributes
        changes = {}
        for key in attributes.calling:
            value = getattr(attributes, key)
            changes[key] = self.of(value) if isinstance(value, Computation) else tuple(map(self.of, value))
        return evolve(attributes, **changes)
