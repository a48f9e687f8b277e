"""Drafts of the computations of a program being edited, with the order and the users of their instructions.

Sections:

    Order maintenance
    Draft: one computation being edited
    ModuleDrafts: all computations of a module
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from attrs import Factory, define, evolve, field

from shape_inference import compatible

from ..core.builder import Builder, Value
from ..core.graph import Computation, Instruction, Module
from ..properties.order import ordered
from .rebuild import rebuild_module
from .refusals import infer_edited_shape, list_names, name_with_shape, refusal

# ----------------------------------------------------------------------------
# Order maintenance: insertion at any position of a sequence, comparison of two positions in constant time

_GAP = 1 << 256


class Order:
    """A sequence of instructions with ascending labels; an inserted one gets a label between its neighbours'."""

    def __init__(self, instructions: Iterable[Instruction]) -> None:
        self._items = list(instructions)
        self._labels: dict[Instruction, int] = {}
        self._relabel()

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self._items)

    def __contains__(self, instruction: Instruction) -> bool:
        return instruction in self._labels

    def label(self, instruction: Instruction) -> int:
        """A number that ascends with the order; an insertion may change it."""
        return self._labels[instruction]

    def precedes(self, first: Instruction, second: Instruction) -> bool:
        return self._labels[first] < self._labels[second]

    def after(self, instruction: Instruction) -> Instruction | None:
        """The next instruction; None after the last instruction."""
        place = self._place(instruction) + 1
        return self._items[place] if place < len(self._items) else None

    def insert(self, instructions: Sequence[Instruction], before: Instruction | None = None) -> None:
        """Insert instructions, in their order, before the instruction `before`, or at the end."""
        place = len(self._items) if before is None else self._place(before)
        low = self._labels[self._items[place - 1]] if place else -_GAP
        high = low + _GAP * (len(instructions) + 1) if before is None else self._labels[before]
        if not place and before is not None:
            low = high - _GAP * (len(instructions) + 1)
        self._items[place:place] = instructions
        step = (high - low) // (len(instructions) + 1)
        if step:
            self._labels.update((each, low + step * n) for n, each in enumerate(instructions, 1))
        else:
            self._relabel()

    def remove(self, instructions: Iterable[Instruction]) -> None:
        gone = set(instructions)
        if len(gone) > 1:
            self._items = [each for each in self._items if each not in gone]
        else:
            for each in gone:
                del self._items[self._place(each)]
        for each in gone:
            del self._labels[each]

    def _place(self, instruction: Instruction) -> int:
        return bisect_left(self._items, self._labels[instruction], key=self._labels.__getitem__)

    def _relabel(self) -> None:
        self._labels = {each: n * _GAP for n, each in enumerate(self._items)}


# ----------------------------------------------------------------------------
# Draft: one computation being edited


@define(eq=False)
class ComputationDraft:
    """A computation being edited. The key of an instruction is its original object, its version the current one.

    `loose` holds recorded instructions without a fixed place: they are at the end until an earlier use moves them.
    """

    computation: Computation
    builder: Builder
    order: Order = field(init=False)
    root: Instruction = field(init=False)
    versions: dict[Instruction, Instruction] = Factory(dict)
    names: dict[str, Instruction] = field(init=False)
    loose: set[Instruction] = Factory(set)
    changed: bool = False
    _keys: dict[Instruction, Instruction] = Factory(dict)
    _values: dict[Instruction, Value] = Factory(dict)
    _users: dict[Instruction, dict[Instruction, None]] | None = None
    seen: int = 0

    def __attrs_post_init__(self) -> None:
        self.order = Order(ordered(self.computation))
        self.root = self.computation.root
        self.names = {each.name: each for each in self.computation.instructions}

    def key(self, instruction: Instruction) -> Instruction:
        return self._keys.get(instruction, instruction)

    def current(self, key: Instruction) -> Instruction:
        return self.versions.get(key, key)

    def operands(self, key: Instruction) -> tuple[Instruction, ...]:
        """The keys of the operands of an instruction."""
        return tuple([self._keys.get(each, each) for each in self.current(key).operands])

    def control(self, key: Instruction) -> tuple[Instruction, ...]:
        return tuple([self._keys.get(each, each) for each in self.current(key).control])

    def value(self, key: Instruction) -> Value:
        """The value of an instruction; the value is updated with each new version."""
        if key not in self._values:
            self._values[key] = Value(self.current(key), self.builder)
        return self._values[key]

    def users(self, key: Instruction) -> dict[Instruction, None]:
        """The instructions that have this one as an operand or as a control predecessor."""
        if self._users is None:
            self._users = {}
            for each in self.order:
                self._enter(each)
        return self._users.get(key, {})

    def _enter(self, key: Instruction) -> None:
        assert self._users is not None
        for before in (*self.operands(key), *self.control(key)):
            self._users.setdefault(before, {})[key] = None

    def _leave(self, key: Instruction) -> None:
        if self._users is not None:
            for before in (*self.operands(key), *self.control(key)):
                self._users.get(before, {}).pop(key, None)

    # insertion of recorded instructions

    def collect(self) -> None:
        """Add the instructions recorded since the last call, at the end and without a fixed place (loose)."""
        recorded = self.builder.recorded_since(self.seen)
        if recorded:
            self.seen += len(recorded)
            self.add(recorded, None)
            self.loose.update(recorded)

    def add(self, instructions: list[Instruction], before: Instruction | None) -> None:
        self.changed = True
        self.order.insert(instructions, before)
        for each in instructions:
            self.names[each.name] = each
            if self._users is not None:
                self._enter(each)

    def pin(self, begin: int, anchor: Instruction, word: str) -> None:
        """Place the loose instructions that were recorded since `begin` before or after an instruction."""
        recorded = [each for each in self.builder.recorded_since(begin) if each in self.loose]
        follows = self.order.after(anchor) if word == "after" else anchor
        own = set(recorded)
        while follows in own:
            follows = self.order.after(follows)
        self.place(recorded, follows)
        self.loose.difference_update(recorded, (anchor,))
        edit = f"editor.{word}({self.current(anchor).name!r})"
        for each in recorded:
            for needed in (*self.operands(each), *self.control(each)):
                self.ensure_before(needed, each, edit)
            for user in self.users(each):
                self.ensure_before(each, user, edit)

    def ensure_before(self, key: Instruction, before: Instruction, edit: str) -> None:
        """Make an instruction precede another: move it if it is loose, else raise an error."""
        late: dict[Instruction, None] = {}
        stack = [key]
        while stack:
            each = stack.pop()
            if each not in self.order:
                raise refusal("foreign_value", f"{edit}: %{each.name} is not an instruction of {self.computation.name}")
            if each in late or self.order.precedes(each, before):
                continue
            if each not in self.loose or each is before:
                raise self.too_early(before, each, edit)
            late[each] = None
            stack += (*self.operands(each), *self.control(each))
        self.place(late, before)

    def place(self, moved: Iterable[Instruction], before: Instruction | None) -> None:
        """Move instructions before another; their relative order is kept."""
        ordered = sorted(moved, key=self.order.label)
        if ordered:
            self.changed = True
            self.order.remove(ordered)
            self.order.insert(ordered, before)

    def too_early(self, user: Instruction, operand: Instruction, edit: str) -> Exception:
        """The refusal of a use that precedes the definition."""
        early, late = self.current(user), self.current(operand)
        if early is late:
            return refusal("cycle", f"{edit}: {name_with_shape(early)} would depend on itself")
        return refusal(
            "used_too_early",
            f"{edit}: {name_with_shape(early)} would precede {name_with_shape(late)}, which it uses",
            f"move %{late.name} before %{early.name}, or record the value again in `editor.before({early.name!r})`",
        )

    # changes of instructions

    def revise(self, changes: Mapping[Instruction, Instruction], edit: str) -> None:
        """Replace the versions of keys and infer the shapes of users again; a refusal leaves the draft unchanged."""
        pending = dict(changes)
        queue = [(self.order.label(key), key) for key in changes]
        heapify(queue)
        last = None
        while queue:
            _, key = heappop(queue)
            if key is last:
                continue
            last, before = key, self.current(key).shape
            pending[key] = version = self._inferred(key, pending, edit)
            if not compatible(version.shape, before):
                for user in self.users(key):
                    heappush(queue, (self.order.label(user), user))
        self._commit(pending)

    def _inferred(self, key: Instruction, pending: Mapping[Instruction, Instruction], edit: str) -> Instruction:
        """The new version with its inferred shape; an equal old shape is kept with its layout."""
        version = pending.get(key) or self.current(key)
        operands = (self._keys.get(each, each) for each in version.operands)
        shape = infer_edited_shape(version, [pending.get(each) or self.current(each) for each in operands], edit)
        return version if compatible(shape, version.shape) else evolve(version, shape=shape)

    def _commit(self, pending: Mapping[Instruction, Instruction]) -> None:
        for key, version in pending.items():
            if version is not self.current(key):
                self.changed = True
                self._leave(key)
                self.versions[key] = version
                self._keys[version] = key
                if self._users is not None:
                    self._enter(key)
                if key in self._values:
                    object.__setattr__(self._values[key], "instruction", version)  # a Value is immutable to its users

    def rename(self, key: Instruction, name: str) -> None:
        self.names.pop(self.current(key).name, None)
        self.names[name] = key
        self._commit({key: evolve(self.current(key), name=name)})

    def remove(self, keys: Iterable[Instruction]) -> None:
        """Remove instructions. Raises BuildError if another instruction uses one of them."""
        gone = dict.fromkeys(keys)
        for key in gone:
            name = name_with_shape(self.current(key))
            if key is self.root:
                raise refusal(
                    "in_use", f"remove: {name} is the root of {self.computation.name}", "set a different root first"
                )
            if users := [self.current(user) for user in self.users(key) if user not in gone]:
                raise refusal("in_use", f"remove: {name} is used by {list_names(users)}", "replace its uses first")
        for key in gone:
            self._leave(key)
            self.names.pop(self.current(key).name, None)
        self.changed = True
        self.order.remove(gone)

    def dependencies_since(self, value: Instruction, since: Instruction) -> set[Instruction]:
        """The value and the instructions that it depends on, of those that are loose or follow `since`."""
        found: set[Instruction] = set()
        stack = [value]
        while stack:
            each = stack.pop()
            if each not in found and each is not since and (each in self.loose or self.order.precedes(since, each)):
                found.add(each)
                stack += (*self.operands(each), *self.control(each))
        return found

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self.order)


# ----------------------------------------------------------------------------
# ModuleDrafts: lookup of the draft of an instruction, and the resulting module


class ModuleDrafts:
    """A draft for each computation that is accessed; the builders of the drafts share the names of the module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._drafts: dict[Computation, ComputationDraft] = {}
        self._homes: dict[Instruction, Computation] | None = None
        self.entry = self._draft(module.entry)

    def _draft(self, computation: Computation) -> ComputationDraft:
        if computation not in self._drafts:
            self._drafts[computation] = ComputationDraft(computation, self._builder(computation))
        return self._drafts[computation]

    def _builder(self, computation: Computation) -> Builder:
        """A builder in which the names and parameter numbers of the module are reserved."""
        builder = Builder(computation.name, self.entry.builder if self._drafts else None)
        if not self._drafts:
            computations = self.module.computations
            builder.reserve(
                (each.name for computation in computations for each in computation.instructions),
                (each.name for each in computations),
            )
        builder.reserve(parameters=(each.attributes.number for each in computation.parameters))
        return builder

    def collect(self) -> None:
        """Add the instructions that were recorded into any draft."""
        for draft in self._drafts.values():
            draft.collect()

    def find_draft(self, name: str | None) -> ComputationDraft:
        """The draft of the computation with this name, or of the entry for None."""
        self.collect()
        for computation in self.module.computations:
            if computation.name == name:
                return self._draft(computation)
        if name is None:
            return self.entry
        raise refusal("undefined_name", f"module {self.module.name} has no computation {name!r}", *self._close(name))

    def find(self, place: Any, home: ComputationDraft | None = None) -> tuple[ComputationDraft, Instruction]:
        """The draft of an instruction, and its key in the draft; a name is looked up in `home` first."""
        self.collect()
        if isinstance(place, str):
            found = self._by_name(place, home or self.entry)
        elif isinstance(place, Value):
            found = self._by_builder(place)
        elif isinstance(place, Instruction):
            found = self._by_instruction(place)
        else:
            raise TypeError(f"expected an instruction, its name or its value, got {place!r}")
        draft, key = found
        if key not in draft.order:
            raise refusal("undefined_name", f"%{key.name} is no longer an instruction of {draft.computation.name}")
        return found

    def _by_name(self, name: str, home: ComputationDraft) -> tuple[ComputationDraft, Instruction]:
        if name in home.names:
            return home, home.names[name]
        drafts = (self._draft(computation) for computation in self.module.computations)
        found = [(draft, draft.names[name]) for draft in drafts if name in draft.names]
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(draft.computation.name for draft, _ in found)
            message = f"{name!r} names instructions of {names}"
            raise refusal(
                "duplicate_name", message, "pass the instruction itself, not its name: take it from module.computations"
            )
        raise refusal("undefined_name", f"module {self.module.name} has no instruction {name!r}", *self._close(name))

    def _close(self, name: str) -> tuple[str, ...]:
        from ..text.scanner import did_you_mean

        names = [*self.entry.names, *(each.name for each in self.module.computations)]
        return did_you_mean(name, names[-2000:])

    def _by_builder(self, value: Value) -> tuple[ComputationDraft, Instruction]:
        for draft in self._drafts.values():
            if draft.builder is value.builder:
                return draft, draft.key(value.instruction)
        raise refusal(
            "foreign_value", f"{value} belongs to builder {value.builder.name!r}, not to a computation being edited"
        )

    def _by_instruction(self, instruction: Instruction) -> tuple[ComputationDraft, Instruction]:
        if instruction in self.entry.order:
            return self.entry, instruction
        if self._homes is None:
            computations = self.module.computations
            self._homes = dict(
                itertools.chain.from_iterable(zip(c.instructions, itertools.repeat(c)) for c in computations)
            )
        if instruction in self._homes:
            return self._draft(self._homes[instruction]), instruction
        for draft in self._drafts.values():
            if draft.key(instruction) in draft.order:
                return draft, draft.key(instruction)
        raise refusal("foreign_value", f"%{instruction.name} is not an instruction of module {self.module.name}")

    def finish(self) -> Module:
        """The edited module; after this, the builders of its drafts refuse instructions."""
        self.collect()
        for draft in self._drafts.values():
            place_loose(draft)
        changed = {computation: draft for computation, draft in self._drafts.items() if draft.changed}
        module = rebuild_module(self.module, changed) if changed else self.module
        for draft in self._drafts.values():
            draft.builder.computation = draft.computation
        return module


def place_loose(draft: ComputationDraft) -> None:
    """Place loose instructions; refuse gaps in the parameter numbers, and instructions that precede their operands."""
    numbers = sorted(draft.current(key).attributes.number for key in draft if key.opcode == "parameter")
    if numbers != list(range(len(numbers))):
        raise refusal(
            "missing_parameter",
            f"{draft.computation.name} has parameter numbers {numbers}; expected 0..{len(numbers) - 1}",
        )
    for key in sorted(draft.loose, key=draft.order.label):
        for needed in (*draft.operands(key), *draft.control(key)):
            draft.ensure_before(needed, key, f"recording %{key.name}")
