"""The editor: a module is opened, edited with the usual functions of ops and a few of its own, and comes out new."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Generic, TypeAlias

from attrs import evolve

from ..core.builder import Builder, Value
from ..core.diagnostics import operand_labels
from ..core.graph import Instruction, Module
from ..core.identifiers import check_name
from ..core.op import OPS
from .draft import Draft
from .inlining import inline
from .module_drafts import ModuleDrafts
from .programs import Program, module_of
from .refusals import label_of, refusal, shown, with_attributes

Target: TypeAlias = str | Instruction | Value


class Editor(Generic[Program]):
    """A program under edit; `edit` gives one.

    A place is named by an instruction's name, by the instruction, or by a value that `editor[...]` or an op gave. A
    name is looked up in the entry first, then in the other computations.
    """

    def __init__(self, program: Program) -> None:
        self._is_module = isinstance(program, Module)
        self._rooms = ModuleDrafts(module_of(program))
        self._result: Program | None = None

    def __enter__(self) -> Editor[Program]:
        if self._result is not None:
            raise refusal("builder_finished", "this editor has given its result; xb.edit opens another")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            module = self._rooms.finished()
            self._result = module if self._is_module else module.entry  # type: ignore[assignment]

    @property
    def result(self) -> Program:
        """The program as edited, once the `with` block has ended without an error."""
        if self._result is None:
            raise refusal("builder_finished", "editor.result: there is none before the `with` block has ended")
        return self._result

    @property
    def builder(self) -> Builder:
        """The builder of the entry, for ops that have no operand to tell it."""
        return self._rooms.entry.builder

    def __getitem__(self, place: Target) -> Value:
        """The value of an instruction, which ops take as an operand."""
        draft, key = self._rooms.find(place)
        return draft.value(key)

    def root(self, computation: str | None = None) -> Value:
        """The root of the entry, or of another computation."""
        draft = self._rooms.named(computation)
        return draft.value(draft.root)

    @contextmanager
    def before(self, place: Target) -> Iterator[None]:
        """What is recorded inside stands before this instruction."""
        draft, key = self._rooms.find(place)
        with self._inserting(draft, key, "before"):
            yield

    @contextmanager
    def after(self, place: Target) -> Iterator[None]:
        """What is recorded inside stands after this instruction, before the next."""
        draft, key = self._rooms.find(place)
        with self._inserting(draft, key, "after"):
            yield

    @contextmanager
    def _inserting(self, draft: Draft, key: Instruction, word: str) -> Iterator[None]:
        self._rooms.collect()
        begin = draft.seen
        yield
        draft.collect()
        self._rooms.find(key)
        draft.pin(begin, key, word)

    def replace_operand(self, place: Target, operand: int | str, by: Target) -> None:
        """Let an instruction take another value as the operand of this number or of this name.

        Raises what the op, or one that its new shape reaches, says of it; used_too_early where the value stands later.
        """
        draft, key = self._rooms.find(place)
        index = _index(draft.now(key), operand)
        operands = list(draft.operands(key))
        new = self._of(draft, by, "replace_operand")
        edit = f"operand {label_of(draft.now(key), index)} would be {shown(draft.now(new))}"
        edit += f" in place of {shown(draft.now(operands[index]))}"
        operands[index] = new
        self._rewire(draft, {key: tuple(operands)}, new, edit)

    def replace_uses(self, place: Target, by: Target) -> None:
        """Let all that takes a value as an operand take another, and the root be that other where it was this one.

        What the other value is itself made from keeps the old one.
        """
        draft, key = self._rooms.find(place)
        new = self._of(draft, by, "replace_uses")
        makes = draft.makes(new, key)
        changes: dict[Instruction, tuple[Instruction, ...]] = {}
        for user in draft.users(key):
            if key in draft.operands(user) and user not in makes:
                changes[user] = tuple([new if operand is key else operand for operand in draft.operands(user)])
        self._rewire(draft, changes, new, f"{shown(draft.now(new))} would stand for {shown(draft.now(key))}")
        if draft.root is key:
            draft.root, draft.changed = new, True

    def _rewire(
        self, draft: Draft, changes: dict[Instruction, tuple[Instruction, ...]], new: Instruction, edit: str
    ) -> None:
        if changes:
            draft.settle(new, min(changes, key=draft.order.label), edit)
        draft.revise({user: evolve(draft.now(user), operands=now) for user, now in changes.items()}, edit)

    def set_attributes(self, place: Target, **attributes: Any) -> None:
        """Give an instruction other attributes; those that are not named stay."""
        draft, key = self._rooms.find(place)
        version = with_attributes(draft.now(key), attributes)
        draft.revise({key: version}, f"{', '.join(attributes)} would be other than it was")

    def set_root(self, place: Target) -> None:
        """Let this instruction be the result of its computation."""
        draft, key = self._rooms.find(place)
        draft.root, draft.changed = key, True

    def rename(self, place: Target, name: str) -> None:
        """Give an instruction another name, which no other of its computation has."""
        draft, key = self._rooms.find(place)
        check_name(name)
        if draft.names.get(name, key) is not key:
            raise refusal("duplicate_name", f"rename: {draft.computation.name} has an instruction %{name} already")
        draft.rename(key, name)

    def remove(self, *places: Target) -> None:
        """Take instructions out; refused where others use them."""
        found = [self._rooms.find(place) for place in places]
        for draft in dict.fromkeys(draft for draft, _ in found):
            draft.remove(key for each, key in found if each is draft)

    def move(self, place: Target, *, before: Target | None = None, after: Target | None = None) -> None:
        """Move an instruction; refused where it would stand before what it needs, or after what needs it."""
        if (before is None) == (after is None):
            raise TypeError("move: one of before= and after= is wanted")
        draft, key = self._rooms.find(place)
        target = self._of(draft, before if before is not None else after, "move")  # type: ignore[arg-type]
        if target is key:
            return
        follows = target if before is not None else draft.order.after(target)
        word = f"move(%{draft.now(key).name}, {'before' if before is not None else 'after'}=%{draft.now(target).name})"
        _check_move(draft, key, follows, word)
        draft.loose.discard(key)
        if follows is not key:
            draft.place([key], follows)

    def inline(self, place: Target) -> None:
        """Put the instructions of a called computation in the place of the call."""
        draft, key = self._rooms.find(place)
        inline(draft, key)

    def _of(self, draft: Draft, place: Target, edit: str) -> Instruction:
        """An instruction of this computation."""
        home, key = self._rooms.find(place, draft)
        if home is not draft:
            raise refusal(
                "foreign_value",
                f"{edit}: {shown(home.now(key))} is of computation {home.computation.name}, "
                f"and {draft.computation.name} is edited",
                "a computation sees its own instructions only: pass the value as an operand",
            )
        return key


def _check_move(draft: Draft, key: Instruction, follows: Instruction | None, word: str) -> None:
    for needed in (*draft.operands(key), *draft.control(key)):
        if follows is not None and (follows is needed or draft.order.precedes(follows, needed)):
            raise draft.too_early(key, needed, word)
    for user in draft.users(key):
        if follows is None or draft.order.precedes(user, follows):
            raise draft.too_early(user, key, word)


def _index(instruction: Instruction, operand: int | str) -> int:
    """The place of an operand among all of an instruction."""
    count = len(instruction.operands)
    labels = operand_labels(OPS[instruction.opcode], count, instruction.segments)
    if isinstance(operand, str) and operand in labels:
        return labels.index(operand)
    if isinstance(operand, int) and -count <= operand < count:
        return operand % count
    raise refusal(
        "invalid_operand",
        f"replace_operand: {shown(instruction)} has no operand {operand!r}; it has {', '.join(labels) or 'none'}",
    )


def edit(program: Program) -> Editor[Program]:
    """Open a module, or a computation, for editing: at the end of the `with` block the new one is `editor.result`.

    The program itself stays as it is. Ops are recorded with their usual functions on `editor[name]`; they stand before
    their first use, or where `editor.before` and `editor.after` put them. Names, order, annotations and control edges
    of all else stay; what an edit reaches is inferred again. A computation that nothing calls any more is left out.

    Raises: ShapeError where an op refuses what an edit gives it, BuildError where the edit is none (each names both
    instructions); the program under edit then stays as it was before that edit.

    >>> import xbuild as xb
    >>> module = xb.parse_hlo("ENTRY main { x = f32[2] parameter(0) y = negate(x) ROOT z = add(y, x) }")
    >>> with xb.edit(module) as editor:
    ...     editor.replace_uses("y", xb.tanh(editor["y"], name="bounded"))
    >>> print(editor.result.entry)
    ENTRY main {
      x = f32[2] parameter(0)
      y = f32[2] negate(x)
      bounded = f32[2] tanh(y)
      ROOT z = f32[2] add(bounded, x)
    }
    """
    return Editor(program)
