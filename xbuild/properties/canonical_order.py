"""The canonical order of a computation's instructions, which follows from structure, not from recorded order."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ..core.graph import Computation, Instruction
from .effects import has_effect

Digest: TypeAlias = bytes


def digest(*parts: Any) -> Digest:
    """A digest of parts that have a stable text."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).digest()


def canonical_order(computation: Computation, labels: Mapping[Instruction, Digest]) -> tuple[Instruction, ...]:
    """Parameters, then each effect, the root and unused code, each instruction after its operands."""
    found: dict[Instruction, None] = dict.fromkeys(computation.parameters)
    if any(len(each.control) > 1 for each in computation.instructions):  # control predecessors have no order
        labels = made_of(computation.instructions, labels, {})
    for effect in filter(has_effect, computation.instructions):
        _visit(effect, found, labels)
    _visit(computation.root, found, labels)
    rest = [each for each in computation.instructions if each not in found]
    if rest:
        rank = _colours(rest, labels, {each: n for n, each in enumerate(found)})
        used = {before for each in rest for before in (*each.operands, *each.control)}
        for each in sorted((each for each in rest if each not in used), key=rank.__getitem__):
            _visit(each, found, rank)
    return tuple(found)


def _visit(instruction: Instruction, found: dict[Instruction, None], rank: Mapping[Instruction, Digest]) -> None:
    """Append an instruction after its operands in their order and its control predecessors by their rank."""
    stack = [(instruction, False)]
    while stack:
        each, is_done = stack.pop()
        if each in found:
            continue
        if is_done:
            found[each] = None
            continue
        stack.append((each, True))
        control = sorted(each.control, key=lambda c: rank.get(c, b"")) if len(each.control) > 1 else each.control
        stack += [(before, False) for before in (*control, *reversed(each.operands)) if before not in found]


def _colours(
    rest: Sequence[Instruction], labels: Mapping[Instruction, Digest], number: Mapping[Instruction, int]
) -> dict[Instruction, Digest]:
    """Digests of unused instructions by their operands and by their users, so that equal digests mean equal places."""
    members = set(rest)
    made = made_of(rest, labels, number)
    users: dict[Instruction, list[Digest]] = {}
    used: dict[Instruction, Digest] = {}
    for each in reversed(rest):
        used[each] = digest(made[each], *sorted(users.get(each, ())))
        for place, before in enumerate(each.operands):
            if before in members:
                users.setdefault(before, []).append(digest(place, used[each]))
    return made_of(rest, used, number)


def made_of(
    rest: Sequence[Instruction], labels: Mapping[Instruction, Digest], number: Mapping[Instruction, int]
) -> dict[Instruction, Digest]:
    found: dict[Instruction, Digest] = {}
    for each in rest:
        operands: list[Any] = [found.get(before, number.get(before)) for before in each.operands]
        control: list[str] = sorted(str(found.get(before, number.get(before))) for before in each.control)
        found[each] = digest(labels[each], operands, control)
    return found
