"""Which operands of a fusion its results may overwrite."""

from __future__ import annotations

from typing import TypeAlias

from ...core.graph import Computation, Instruction
from ...core.memos import remembered
from ...core.op import opcodes
from ...properties.order import ordered
from .parts import is_alike

ELEMENTWISE = opcodes(lambda op: op.elements == "same_place" and op.calls in ("nothing", "elements"))
"""Ops that may write each element of the result where they have read that element of an operand."""

_RENAMES = frozenset({"bitcast", "reshape", "copy", "convert"})
_UPDATES = frozenset({"dynamic_update_slice", "scatter"})
_Masks: TypeAlias = dict[Instruction, tuple[int, int]]


@remembered
def overwritable(body: Computation) -> tuple[tuple[int, ...], ...]:
    """For each result of a fusion's computation the numbers of the parameters in whose memory it may be written.

    Such a parameter is read element by element on every way to the results, or is the array that a slice or scatter
    at the root updates.
    """
    roots = body.root.operands if body.root.opcode == "tuple" else (body.root,)
    masks = _masks(body)
    moved = 0
    for root in roots:
        moved |= masks[root][1]
    users = _users(body)
    return tuple((*_updated(root, users), *_in_place(root, masks[root][0] & ~moved, body)) for root in roots)


def _in_place(root: Instruction, mask: int, body: Computation) -> list[int]:
    return [n for n, each in enumerate(body.parameters) if mask >> n & 1 and is_alike(each.shape, root.shape)]


def _masks(body: Computation) -> _Masks:
    """For each instruction the parameters that it reads at the same place, and those that it reads elsewhere."""
    found: _Masks = {}
    for each in ordered(body):
        if each.opcode == "parameter":
            found[each] = (1 << each.attributes.number, 0)
            continue
        same = moved = 0
        is_elementwise = each.opcode in ELEMENTWISE or each.opcode == "tuple"
        for operand in each.operands:
            s, m = found[operand]
            is_same = is_elementwise and (each.opcode == "tuple" or _at_same_place(operand, each))
            same, moved = (same | s, moved | m) if is_same else (same, moved | m | s)
        found[each] = (same, moved)
    return found


def _at_same_place(operand: Instruction, user: Instruction) -> bool:
    return getattr(operand.shape, "dims", None) == getattr(user.shape, "dims", ())


def _users(body: Computation) -> dict[Instruction, list[Instruction]]:
    found: dict[Instruction, list[Instruction]] = {}
    for user in ordered(body):
        for operand in dict.fromkeys(user.operands):
            found.setdefault(operand, []).append(user)
    return found


def _updated(root: Instruction, users: dict[Instruction, list[Instruction]]) -> list[int]:
    """The parameter that a slice or scatter at the root updates, where nothing is read of it besides but slices as
    large as the update, which XLA fuses where they are of the same place."""
    update = _behind(root)
    if update.opcode not in _UPDATES:
        return []
    array = _behind(update.operands[0])
    if array.opcode != "parameter" or not is_alike(array.shape, root.shape):
        return []
    others = (user for user in users[array] if user.opcode not in _RENAMES and user is not update)
    return [array.attributes.number] if all(_is_slice_like(user, update.operands[1]) for user in others) else []


def _is_slice_like(user: Instruction, update: Instruction) -> bool:
    return user.opcode in ("dynamic_slice", "slice") and _at_same_place(user, update)


def _behind(instruction: Instruction) -> Instruction:
    while instruction.opcode in _RENAMES:
        (instruction,) = instruction.operands
    return instruction
