"""The editor of a module: functions of ops record instructions, and methods of the editor change them."""

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
from ..properties.rewriting import inlined
from .draft import ComputationDraft, ModuleDrafts
from .rebuild import Program, module_of
from .refusals import label_of, name_with_shape, refusal, with_attributes

# ----------------------------------------------------------------------------
# Inlining: a call or fusion is replaced by the instructions of its callee


def inline(draft: ComputationDraft, key: Instruction) -> None:
    """Replace a call or fusion by the instructions of its callee, which keep their names if these are free."""
    call = draft.current(key)
    if call.opcode not in ("call", "fusion"):
        opcode = call.opcode.replace("_", "-")
        raise refusal("not_a_call", f"inline: expected a call or a fusion, got {opcode} {name_with_shape(call)}")
    (called,) = call.called
    taken: set[str] = set()

    def rename(name: str) -> str:
        free = draft.builder.unique_name(name) if name in draft.names or name in taken else name
        taken.add(free)
        return free

    added, result = inlined(called, draft.operands(key), draft.control(key), rename)
    draft.add(added, key)
    _replace_uses(draft, key, result, added)
    draft.remove([key])


def _replace_uses(draft: ComputationDraft, key: Instruction, result: Instruction, added: list[Instruction]) -> None:
    """Users of the call get the callee's result; its control successors follow the callee's last instructions."""
    used = {before for each in added for before in (*each.operands, *each.control)}
    last = [each for each in added if each not in used] or [*draft.control(key)]
    changes = {}
    for user in draft.users(key):
        operands = tuple(result if each is key else each for each in draft.operands(user))
        control = draft.control(user)
        if key in control:
            control = tuple(dict.fromkeys((*(each for each in control if each is not key), *last)))
        changes[user] = evolve(draft.current(user), operands=operands, control=control)
    draft.revise(
        changes, f"{name_with_shape(draft.current(result))} would replace {name_with_shape(draft.current(key))}"
    )
    if draft.root is key:
        draft.root = result


# ----------------------------------------------------------------------------
# The editor

Target: TypeAlias = str | Instruction | Value


class Editor(Generic[Program]):
    """A program being edited; `edit` returns an editor.

    A place is an instruction, its name, or a value that `editor[...]` or an op returned. A name is looked up in the
    entry first, then in the other computations.
    """

    def __init__(self, program: Program) -> None:
        self._is_module = isinstance(program, Module)
        self._drafts = ModuleDrafts(module_of(program))
        self._result: Program | None = None

    def __enter__(self) -> Editor[Program]:
        if self._result is not None:
            raise refusal("builder_finished", "this editor is closed; open a new one with xb.edit")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            module = self._drafts.finish()
            self._result = module if self._is_module else module.entry  # type: ignore[assignment]

    @property
    def result(self) -> Program:
        """The edited program, which exists once the `with` block has ended without an error."""
        if self._result is None:
            raise refusal("builder_finished", "editor.result is not available until the `with` block ends")
        return self._result

    @property
    def builder(self) -> Builder:
        """The builder of the entry, for ops without operands."""
        return self._drafts.entry.builder

    def __getitem__(self, place: Target) -> Value:
        """The value of an instruction, which can be an operand of ops."""
        draft, key = self._drafts.find(place)
        return draft.value(key)

    def root(self, computation: str | None = None) -> Value:
        """Return the value of the root of the entry, or of another computation."""
        draft = self._drafts.find_draft(computation)
        return draft.value(draft.root)

    @contextmanager
    def before(self, place: Target) -> Iterator[None]:
        """Inside the `with` block, place new ops before this instruction."""
        draft, key = self._drafts.find(place)
        with self._inserting(draft, key, "before"):
            yield

    @contextmanager
    def after(self, place: Target) -> Iterator[None]:
        """Inside the `with` block, place new ops directly after this instruction."""
        draft, key = self._drafts.find(place)
        with self._inserting(draft, key, "after"):
            yield

    @contextmanager
    def _inserting(self, draft: ComputationDraft, key: Instruction, word: str) -> Iterator[None]:
        self._drafts.collect()
        begin = draft.seen
        yield
        draft.collect()
        self._drafts.find(key)
        draft.pin(begin, key, word)

    def replace_operand(self, place: Target, operand: int | str, by: Target) -> None:
        """Replace an operand of an instruction, identified by its number or its name, with another value.

        The shapes of the instruction and its users are inferred again, which can raise any error that their ops raise.
        Raises used_too_early if the value follows the instruction.
        """
        draft, key = self._drafts.find(place)
        index = _index(draft.current(key), operand)
        operands = list(draft.operands(key))
        new = self._find_in(draft, by, "replace_operand")
        edit = f"operand {label_of(draft.current(key), index)} would be {name_with_shape(draft.current(new))}"
        edit += f" in place of {name_with_shape(draft.current(operands[index]))}"
        operands[index] = new
        self._rewire(draft, {key: tuple(operands)}, new, edit)

    def replace_uses(self, place: Target, by: Target) -> None:
        """Replace a value with another value in all its users, and as the root.

        Instructions from which the new value is computed keep the old value.
        """
        draft, key = self._drafts.find(place)
        new = self._find_in(draft, by, "replace_uses")
        sources = draft.dependencies_since(new, key)
        changes: dict[Instruction, tuple[Instruction, ...]] = {}
        for user in draft.users(key):
            if key in draft.operands(user) and user not in sources:
                changes[user] = tuple([new if operand is key else operand for operand in draft.operands(user)])
        self._rewire(
            draft,
            changes,
            new,
            f"{name_with_shape(draft.current(new))} would replace {name_with_shape(draft.current(key))}",
        )
        if draft.root is key:
            draft.root, draft.changed = new, True

    def _rewire(
        self, draft: ComputationDraft, changes: dict[Instruction, tuple[Instruction, ...]], new: Instruction, edit: str
    ) -> None:
        if changes:
            draft.ensure_before(new, min(changes, key=draft.order.label), edit)
        draft.revise({user: evolve(draft.current(user), operands=now) for user, now in changes.items()}, edit)

    def set_attributes(self, place: Target, **attributes: Any) -> None:
        """Change the given attributes of an instruction; other attributes are kept."""
        draft, key = self._drafts.find(place)
        version = with_attributes(draft.current(key), attributes)
        draft.revise({key: version}, f"{', '.join(attributes)} would change")

    def set_root(self, place: Target) -> None:
        """Make this instruction the root of its computation."""
        draft, key = self._drafts.find(place)
        draft.root, draft.changed = key, True

    def rename(self, place: Target, name: str) -> None:
        """Rename an instruction; the name must be unique in its computation."""
        draft, key = self._drafts.find(place)
        check_name(name)
        if draft.names.get(name, key) is not key:
            raise refusal("duplicate_name", f"rename: {draft.computation.name} already has an instruction %{name}")
        draft.rename(key, name)

    def remove(self, *places: Target) -> None:
        """Remove instructions. Raises BuildError if any other instruction uses a removed instruction."""
        found = [self._drafts.find(place) for place in places]
        for draft in dict.fromkeys(draft for draft, _ in found):
            draft.remove(key for each, key in found if each is draft)

    def move(self, place: Target, *, before: Target | None = None, after: Target | None = None) -> None:
        """Move an instruction. Raises BuildError if it would precede an operand or follow a user."""
        if (before is None) == (after is None):
            raise TypeError("move: pass exactly one of before= and after=")
        draft, key = self._drafts.find(place)
        target = self._find_in(draft, before if before is not None else after, "move")  # type: ignore[arg-type]
        if target is key:
            return
        follows = target if before is not None else draft.order.after(target)
        relation = "before" if before is not None else "after"
        word = f"move(%{draft.current(key).name}, {relation}=%{draft.current(target).name})"
        _check_move(draft, key, follows, word)
        draft.loose.discard(key)
        if follows is not key:
            draft.place([key], follows)

    def inline(self, place: Target) -> None:
        """Replace a call with the instructions of the called computation."""
        draft, key = self._drafts.find(place)
        inline(draft, key)

    def _find_in(self, draft: ComputationDraft, place: Target, edit: str) -> Instruction:
        """The key of an instruction that must belong to this computation."""
        home, key = self._drafts.find(place, draft)
        if home is not draft:
            raise refusal(
                "foreign_value",
                f"{edit}: {name_with_shape(home.current(key))} belongs to computation {home.computation.name}, "
                f"not to {draft.computation.name}",
                "a computation can use only its own instructions; pass the value as an operand",
            )
        return key


def _check_move(draft: ComputationDraft, key: Instruction, follows: Instruction | None, word: str) -> None:
    for needed in (*draft.operands(key), *draft.control(key)):
        if follows is not None and (follows is needed or draft.order.precedes(follows, needed)):
            raise draft.too_early(key, needed, word)
    for user in draft.users(key):
        if follows is None or draft.order.precedes(user, follows):
            raise draft.too_early(user, key, word)


def _index(instruction: Instruction, operand: int | str) -> int:
    """The index of an operand, given by its index or its name."""
    count = len(instruction.operands)
    labels = operand_labels(OPS[instruction.opcode], count, instruction.segments)
    if isinstance(operand, str) and operand in labels:
        return labels.index(operand)
    if isinstance(operand, int) and -count <= operand < count:
        return operand % count
    raise refusal(
        "invalid_operand",
        f"replace_operand: {name_with_shape(instruction)} has no operand {operand!r}; "
        f"it has {', '.join(labels) or 'none'}",
    )


def edit(program: Program) -> Editor[Program]:
    """Open a module or a computation for editing; after the `with` block, `editor.result` is the new program.

    The given program is unchanged. Ops are recorded with their usual functions on `editor[name]`; they are placed
    before their first use, or where `editor.before` and `editor.after` place them. Other instructions keep their names,
    order, annotations and control edges; shapes that depend on an edit are inferred again. A computation that is no
    longer called is removed.

    Raises: ShapeError if an op refuses an edited operand or attribute, and BuildError if an edit is invalid; both
    errors name the instructions involved. The program then stays as it was before the edit.

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
