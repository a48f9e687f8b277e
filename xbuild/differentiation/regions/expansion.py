"""Calls of small computations, and of those that are called once, written out where they stand."""

from __future__ import annotations

from collections import Counter
from typing import Any

from attrs import evolve

from ...core.graph import Computation, Instruction
from ...properties.order import ordered

_SMALL = 12
"""Instructions up to which a computation is written out at each of its calls."""


def expanded(computation: Computation, calls: Counter[Computation], known: dict[Any, Any]) -> Computation:
    """The computation with its calls of small computations written out, and those of one that nothing else calls."""
    key = "expanded", computation
    if key not in known:
        chosen = [each for each in computation.instructions if _is_written_out(each, calls)]
        known[key] = _expanded(computation, set(chosen), calls, known) if chosen else computation
    return known[key]  # type: ignore[no-any-return]


def call_counts(entry: Computation) -> Counter[Computation]:
    """At how many places of a program each computation is called."""
    return Counter(called for each in entry.reachable() for i in each.instructions for called in i.called)


def _is_written_out(each: Instruction, calls: Counter[Computation]) -> bool:
    if each.opcode not in ("call", "fusion"):
        return False
    (called,) = each.called
    return calls[called] <= 1 or len(called.instructions) - len(called.parameters) <= _SMALL


def _expanded(
    computation: Computation, chosen: set[Instruction], calls: Counter[Computation], known: dict[Any, Any]
) -> Computation:
    now: dict[Instruction, Instruction] = {}
    names = {each.name for each in computation.instructions}
    found: list[Instruction] = []
    for each in ordered(computation):
        operands = tuple([now.get(o, o) for o in each.operands])
        control = tuple([now.get(o, o) for o in each.control])
        if each in chosen:
            called = expanded(each.called[0], calls, known)
            now[each] = _written_out(called, operands, control, names, found)
        elif each.opcode == "get_tuple_element" and operands[0].opcode == "tuple" and not control:
            now[each] = operands[0].operands[each.attributes.index]
        else:
            if operands != each.operands or control != each.control:
                now[each] = evolve(each, operands=operands, control=control)
            found.append(now.get(each, each))
    return Computation(computation.name, found, now.get(computation.root, computation.root))


def _written_out(
    called: Computation,
    operands: tuple[Instruction, ...],
    control: tuple[Instruction, ...],
    names: set[str],
    found: list[Instruction],
) -> Instruction:
    """Put what a call computes into the list, and give its result."""
    inside = dict(zip(called.parameters, operands, strict=True))
    for each in ordered(called):
        if each.opcode == "parameter":
            continue
        before = tuple([inside[c] for c in each.control]) or (control if not each.operands else ())
        name = _free(each.name, names)
        inside[each] = evolve(each, operands=tuple([inside[o] for o in each.operands]), control=before, name=name)
        found.append(inside[each])
    return inside[called.root]


def _free(name: str, names: set[str]) -> str:
    """The name, or the first like it that none of these is."""
    found, number = name, 0
    while found in names:
        number += 1
        found = f"{name}.{number}"
    names.add(found)
    return found
