"""One computation under edit: the current version, the order and the users of its instructions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush

from attrs import Factory, define, evolve, field

from shape_inference import compatible

from ..core.builder import Builder, Value
from ..core.graph import Computation, Instruction
from ..properties.order import ordered
from .order import Order
from .refusals import inferred, listed, refusal, shown


@define(eq=False)
class Draft:
    """A computation under edit. The key of an instruction is its original object, its version the current one.

    `loose` has the recorded instructions without a fixed place: they are at the end until an earlier use moves them.
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

    def now(self, key: Instruction) -> Instruction:
        return self.versions.get(key, key)

    def operands(self, key: Instruction) -> tuple[Instruction, ...]:
        """The keys of the operands of an instruction."""
        return tuple([self._keys.get(each, each) for each in self.now(key).operands])

    def control(self, key: Instruction) -> tuple[Instruction, ...]:
        return tuple([self._keys.get(each, each) for each in self.now(key).control])

    def value(self, key: Instruction) -> Value:
        """The value of an instruction; the value is updated with each new version."""
        if key not in self._values:
            self._values[key] = Value(self.now(key), self.builder)
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
        """Add the instructions that were recorded since the last call, at the end and without a fixed place (loose)."""
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
        edit = f"editor.{word}({self.now(anchor).name!r})"
        for each in recorded:
            for needed in (*self.operands(each), *self.control(each)):
                self.ensure_before(needed, each, edit)
            for user in self.users(each):
                self.ensure_before(each, user, edit)

    def ensure_before(self, key: Instruction, before: Instruction, edit: str) -> None:
        """Make an instruction precede another: loose instructions are moved, those with a fixed place are refused."""
        late: dict[Instruction, None] = {}
        stack = [key]
        while stack:
            each = stack.pop()
            if each not in self.order:
                raise refusal("foreign_value", f"{edit}: %{each.name} is no instruction of {self.computation.name}")
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
        early, late = self.now(user), self.now(operand)
        if early is late:
            return refusal("cycle", f"{edit}: {shown(early)} would need itself")
        return refusal(
            "used_too_early",
            f"{edit}: {shown(early)} would stand before {shown(late)}, which it needs",
            f"move %{late.name} before %{early.name}, or record the value anew in `editor.before({early.name!r})`",
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
            last, before = key, self.now(key).shape
            pending[key] = version = self._inferred(key, pending, edit)
            if not compatible(version.shape, before):
                for user in self.users(key):
                    heappush(queue, (self.order.label(user), user))
        self._commit(pending)

    def _inferred(self, key: Instruction, pending: Mapping[Instruction, Instruction], edit: str) -> Instruction:
        """The new version with its inferred shape; an equal old shape is kept with its layout."""
        version = pending.get(key) or self.now(key)
        operands = (self._keys.get(each, each) for each in version.operands)
        shape = inferred(version, [pending.get(each) or self.now(each) for each in operands], edit)
        return version if compatible(shape, version.shape) else evolve(version, shape=shape)

    def _commit(self, pending: Mapping[Instruction, Instruction]) -> None:
        for key, version in pending.items():
            if version is not self.now(key):
                self.changed = True
                self._leave(key)
                self.versions[key] = version
                self._keys[version] = key
                if self._users is not None:
                    self._enter(key)
                if key in self._values:
                    object.__setattr__(self._values[key], "instruction", version)  # a Value is immutable to its users

    def rename(self, key: Instruction, name: str) -> None:
        self.names.pop(self.now(key).name, None)
        self.names[name] = key
        self._commit({key: evolve(self.now(key), name=name)})

    def remove(self, keys: Iterable[Instruction]) -> None:
        """Remove instructions; refused where another instruction uses one of them."""
        gone = dict.fromkeys(keys)
        for key in gone:
            name = shown(self.now(key))
            if key is self.root:
                raise refusal("in_use", f"remove: {name} is the root of {self.computation.name}", "set another root")
            if users := [self.now(user) for user in self.users(key) if user not in gone]:
                raise refusal("in_use", f"remove: {name} is used by {listed(users)}", "replace its uses first")
        for key in gone:
            self._leave(key)
            self.names.pop(self.now(key).name, None)
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
