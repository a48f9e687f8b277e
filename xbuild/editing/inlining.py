"""Inlining: a call or fusion is replaced by the instructions of the computation that it calls."""

from __future__ import annotations

from attrs import evolve

from ..core.graph import Instruction
from .draft import Draft
from .refusals import refusal, shown


def inline(draft: Draft, key: Instruction) -> None:
    """Replace a call or fusion by the callee's instructions, whose names are kept where they are unused."""
    call = draft.now(key)
    if call.opcode not in ("call", "fusion"):
        raise refusal("not_a_call", f"inline: {shown(call)} is a {call.opcode.replace('_', '-')}, and no call")
    (called,) = call.called
    stand_ins = dict(zip(called.parameters, draft.operands(key), strict=True))
    added: list[Instruction] = []
    for instruction in called.instructions:
        if instruction.opcode != "parameter":
            added.append(_copy(draft, key, instruction, stand_ins, set(added)))
            stand_ins[instruction] = added[-1]
    draft.add(added, key)
    _replace_uses(draft, key, stand_ins[called.root], added)
    draft.remove([key])


def _copy(
    draft: Draft,
    key: Instruction,
    instruction: Instruction,
    stand_ins: dict[Instruction, Instruction],
    added: set[Instruction],
) -> Instruction:
    """A callee instruction with caller operands; the first ones get the control predecessors of the call."""
    operands = tuple(stand_ins[each] for each in instruction.operands)
    control = tuple(stand_ins[each] for each in instruction.control)
    if added.isdisjoint((*operands, *control)):
        control = tuple(dict.fromkeys((*control, *draft.control(key))))
    name = instruction.name
    if name in draft.names or any(each.name == name for each in added):
        name = draft.builder.unique_name(name)
    return evolve(instruction, name=name, operands=operands, control=control)


def _replace_uses(draft: Draft, key: Instruction, result: Instruction, added: list[Instruction]) -> None:
    """Users of the call get the callee's result; its control successors follow the callee's last instructions."""
    used = {before for each in added for before in (*each.operands, *each.control)}
    last = [each for each in added if each not in used] or [*draft.control(key)]
    changes = {}
    for user in draft.users(key):
        operands = tuple(result if each is key else each for each in draft.operands(user))
        control = draft.control(user)
        if key in control:
            control = tuple(dict.fromkeys((*(each for each in control if each is not key), *last)))
        changes[user] = evolve(draft.now(user), operands=operands, control=control)
    draft.revise(changes, f"{shown(draft.now(result))} would stand for {shown(draft.now(key))}")
    if draft.root is key:
        draft.root = result
