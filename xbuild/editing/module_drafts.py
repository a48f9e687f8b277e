"""Drafts of a module's computations under edit: lookup of the draft of an instruction, and the resulting module."""

from __future__ import annotations

import itertools
from typing import Any

from ..core.builder import Builder, Value
from ..core.graph import Computation, Instruction, Module
from .draft import Draft
from .rebuild import rebuilt
from .refusals import refusal


class ModuleDrafts:
    """A draft for each computation that is accessed; the builders of the drafts share the names of the module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._drafts: dict[Computation, Draft] = {}
        self._homes: dict[Instruction, Computation] | None = None
        self.entry = self._draft(module.entry)

    def _draft(self, computation: Computation) -> Draft:
        if computation not in self._drafts:
            self._drafts[computation] = Draft(computation, self._builder(computation))
        return self._drafts[computation]

    def _builder(self, computation: Computation) -> Builder:
        """A builder in which the names and parameter numbers of the module are reserved."""
        builder = Builder(computation.name, self.entry.builder if self._drafts else None)
        if not self._drafts:
            every = self.module.computations
            builder.reserve((each.name for one in every for each in one.instructions), (each.name for each in every))
        builder.reserve(parameters=(each.attributes.number for each in computation.parameters))
        return builder

    def collect(self) -> None:
        """Add the instructions that were recorded into any draft."""
        for draft in self._drafts.values():
            draft.collect()

    def named(self, name: str | None) -> Draft:
        """The draft of the computation of this name; None stands for the entry."""
        self.collect()
        for computation in self.module.computations:
            if computation.name == name:
                return self._draft(computation)
        if name is None:
            return self.entry
        raise refusal("undefined_name", f"module {self.module.name} has no computation {name!r}", *self._close(name))

    def find(self, place: Any, home: Draft | None = None) -> tuple[Draft, Instruction]:
        """The draft of an instruction, and its key in the draft; a name is looked up in `home` first."""
        self.collect()
        if isinstance(place, str):
            found = self._by_name(place, home or self.entry)
        elif isinstance(place, Value):
            found = self._by_builder(place)
        elif isinstance(place, Instruction):
            found = self._by_instruction(place)
        else:
            raise TypeError(f"{place!r} names no instruction; its name, the instruction, or its value is wanted")
        draft, key = found
        if key not in draft.order:
            raise refusal("undefined_name", f"%{key.name} is no instruction of {draft.computation.name} any more")
        return found

    def _by_name(self, name: str, home: Draft) -> tuple[Draft, Instruction]:
        if name in home.names:
            return home, home.names[name]
        drafts = (self._draft(computation) for computation in self.module.computations)
        found = [(draft, draft.names[name]) for draft in drafts if name in draft.names]
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(draft.computation.name for draft, _ in found)
            message = f"{name!r} names instructions of {names}"
            raise refusal("duplicate_name", message, "give the instruction itself: module.computations has it")
        raise refusal("undefined_name", f"module {self.module.name} has no instruction {name!r}", *self._close(name))

    def _close(self, name: str) -> tuple[str, ...]:
        from ..text.spelling.scanner import did_you_mean

        names = [*self.entry.names, *(each.name for each in self.module.computations)]
        return did_you_mean(name, names[-2000:])

    def _by_builder(self, value: Value) -> tuple[Draft, Instruction]:
        for draft in self._drafts.values():
            if draft.builder is value.builder:
                return draft, draft.key(value.instruction)
        raise refusal(
            "foreign_value", f"{value} belongs to builder {value.builder.name!r}, and to nothing that is edited here"
        )

    def _by_instruction(self, instruction: Instruction) -> tuple[Draft, Instruction]:
        if instruction in self.entry.order:
            return self.entry, instruction
        if self._homes is None:
            every = self.module.computations
            self._homes = dict(itertools.chain.from_iterable(zip(c.instructions, itertools.repeat(c)) for c in every))
        if instruction in self._homes:
            return self._draft(self._homes[instruction]), instruction
        for draft in self._drafts.values():
            if draft.key(instruction) in draft.order:
                return draft, draft.key(instruction)
        raise refusal("foreign_value", f"%{instruction.name} is no instruction of module {self.module.name}")

    def finished(self) -> Module:
        """The edited module; the builders of its drafts record no more instructions."""
        self.collect()
        for draft in self._drafts.values():
            place_loose(draft)
        changed = {computation: draft for computation, draft in self._drafts.items() if draft.changed}
        module = rebuilt(self.module, changed) if changed else self.module
        for draft in self._drafts.values():
            draft.builder.computation = draft.computation
        return module


def place_loose(draft: Draft) -> None:
    """Refuse gaps in the parameter numbers and instructions that precede their operands; place loose instructions."""
    numbers = sorted(draft.now(key).attributes.number for key in draft if key.opcode == "parameter")
    if numbers != list(range(len(numbers))):
        raise refusal(
            "missing_parameter",
            f"{draft.computation.name} has the parameter numbers {numbers}; 0..{len(numbers) - 1} are wanted",
        )
    for key in sorted(draft.loose, key=draft.order.label):
        for needed in (*draft.operands(key), *draft.control(key)):
            draft.ensure_before(needed, key, f"recording %{key.name}")
