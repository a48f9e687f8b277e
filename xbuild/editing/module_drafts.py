"""All computations of a module under edit: whose an instruction is, and the module that comes out."""

from __future__ import annotations

import itertools
from typing import Any

from ..core.builder import Builder, Value
from ..core.graph import Computation, Instruction, Module
from .draft import Draft
from .rebuild import renewed
from .refusals import refusal


class ModuleDrafts:
    """A draft for each computation that is looked into; their builders share the names of the module."""

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
        """A builder that knows the names and the parameters that are taken."""
        if self._drafts:
            builder = Builder(computation.name, self.entry.builder)
        else:
            builder = Builder(computation.name)
            every = [each.name for one in self.module.computations for each in one.instructions]
            builder._names.taken.update(dict.fromkeys(every, 0))
            builder._names.count = len(every)
            builder._computation_names.taken.update({each.name: 0 for each in self.module.computations})
        builder._parameters.update(each.attributes.number for each in computation.parameters)
        return builder

    def collect(self) -> None:
        """Take in what was recorded into any of them."""
        for draft in self._drafts.values():
            draft.collect()

    def named(self, name: str | None) -> Draft:
        """The draft of the computation of this name, the entry's where there is none."""
        self.collect()
        for computation in self.module.computations:
            if computation.name == name:
                return self._draft(computation)
        if name is None:
            return self.entry
        raise refusal("undefined_name", f"module {self.module.name} has no computation {name!r}", *self._close(name))

    def find(self, place: Any, home: Draft | None = None) -> tuple[Draft, Instruction]:
        """The draft that an instruction is in, and its key there; a name is looked up at home first."""
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
        """The module as edited; nothing can be recorded into it any more."""
        self.collect()
        for draft in self._drafts.values():
            settle_all(draft)
        changed = {computation: draft for computation, draft in self._drafts.items() if draft.changed}
        module = renewed(self.module, changed) if changed else self.module
        for draft in self._drafts.values():
            draft.builder.computation = draft.computation
        return module


def settle_all(draft: Draft) -> None:
    """The parameters count on, as a builder wants them; what stands before its operands is refused."""
    numbers = sorted(draft.now(key).attributes.number for key in draft if key.opcode == "parameter")
    if numbers != list(range(len(numbers))):
        raise refusal(
            "missing_parameter",
            f"{draft.computation.name} has the parameter numbers {numbers}; 0..{len(numbers) - 1} are wanted",
        )
    for key in sorted(draft.loose, key=draft.order.label):
        for needed in (*draft.operands(key), *draft.control(key)):
            draft.settle(needed, key, f"recording %{key.name}")
