"""Matching of the instructions of two computations: by name, then by structure, then by matched neighbours."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable

from attrs import Factory, define

from ..core.graph import Computation, Instruction
from ..properties.structure import Structure

_COUNTED = re.compile(r".*\.\d+")


@define(eq=False)
class Pairs:
    """Pairs of instructions of two computations; each instruction is in at most one pair."""

    before: Computation
    after: Computation
    new: dict[Instruction, Instruction] = Factory(dict)
    old: dict[Instruction, Instruction] = Factory(dict)

    def add(self, a: Instruction, b: Instruction) -> bool:
        if a in self.new or b in self.old:
            return False
        self.new[a], self.old[b] = b, a
        return True

    def rest(self) -> tuple[list[Instruction], list[Instruction]]:
        """The instructions of either computation that are in no pair."""
        return (
            [each for each in self.before.instructions if each not in self.new],
            [each for each in self.after.instructions if each not in self.old],
        )

    def alike(self, key: Callable[[Instruction], Hashable]) -> None:
        """Pair unpaired instructions of equal keys in order; a key of None excludes an instruction."""
        rest = self.rest()
        if not all(rest):
            return
        olds, news = (_by(key, each) for each in rest)
        for value, group in olds.items():
            for a, b in zip(group, news.get(value, ()), strict=False):
                self.add(a, b)

    def spread(self, *, to_users: bool) -> None:
        """Pair neighbours of pairs with equal opcodes: operands at the same index, and users that are unambiguous."""
        if not all(self.rest()):
            return
        users = [_users(side) for side in (self.before, self.after)] if to_users else [{}, {}]
        stack = list(self.new.items())
        while stack:
            a, b = stack.pop()
            found = [(x, y) for x, y in zip(a.operands, b.operands, strict=False) if x.opcode == y.opcode]
            olds = _by(_opcode, (each for each in users[0].get(a, ()) if each not in self.new))
            news = _by(_opcode, (each for each in users[1].get(b, ()) if each not in self.old))
            found += [(x[0], news[opcode][0]) for opcode, x in olds.items() if len(x) == len(news.get(opcode, ())) == 1]
            stack += [(x, y) for x, y in found if self.add(x, y)]


def _opcode(instruction: Instruction) -> str:
    return instruction.opcode


def _by(
    key: Callable[[Instruction], Hashable], instructions: Iterable[Instruction]
) -> dict[Hashable, list[Instruction]]:
    found: dict[Hashable, list[Instruction]] = {}
    for each in instructions:
        value = key(each)
        if value is not None:
            found.setdefault(value, []).append(each)
    return found


def _users(computation: Computation) -> dict[Instruction, dict[Instruction, None]]:
    users: dict[Instruction, dict[Instruction, None]] = {}
    for each in computation.instructions:
        for operand in each.operands:
            users.setdefault(operand, {})[each] = None
    return users


def match(before: Computation, after: Computation, structures: tuple[Structure, Structure]) -> Pairs:
    """The pairs of two computations, in canonical order where their structures are equal.

    Otherwise instructions are paired by name. Where the structure shows that names were renumbered (`add.2` is now
    `add.3`, and another instruction was `add.3`), they are paired by structure, then by names without a number.
    """
    pairs = Pairs(before, after)
    if structures[0].of(before) == structures[1].of(after):
        for a, b in zip(structures[0].order(before), structures[1].order(after), strict=True):
            pairs.add(a, b)
        return pairs
    numbers: dict[Hashable, int] = {}
    made = {**_value_numbers(before, structures[0], numbers), **_value_numbers(after, structures[1], numbers)}
    unique = _unique(before, made), _unique(after, made)
    if not _is_renumbered(before, after, unique):
        pairs.alike(lambda each: each.name)
    pairs.alike(lambda each: each.attributes.number if each.opcode == "parameter" else None)
    for value, a in unique[0].items():
        if value in unique[1]:
            pairs.add(a, unique[1][value])
    pairs.spread(to_users=False)
    pairs.alike(lambda each: (each.name, made[each]))
    pairs.alike(made.__getitem__)
    pairs.alike(lambda each: None if _COUNTED.fullmatch(each.name) else each.name)
    if before.root.opcode == after.root.opcode:
        pairs.add(before.root, after.root)
    pairs.spread(to_users=True)
    pairs.alike(lambda each: (each.name, each.opcode))
    pairs.spread(to_users=True)
    return pairs


def _value_numbers(
    computation: Computation, structure: Structure, numbers: dict[Hashable, int]
) -> dict[Instruction, int]:
    """A number for each instruction; instructions of equal ops on operands of equal numbers have the same number."""
    labels = structure.labels(computation)
    found: dict[Instruction, int] = {}
    for each in computation.instructions:
        operands = tuple([found.get(before, -1) for before in each.operands])
        control = tuple(sorted({found.get(before, -1) for before in each.control}))
        found[each] = numbers.setdefault((labels[each], operands, control), len(numbers))
    return found


def _unique(computation: Computation, made: dict[Instruction, int]) -> dict[int, Instruction]:
    """The instructions whose number no other instruction of the computation has."""
    groups: dict[int, list[Instruction]] = {}
    for each in computation.instructions:
        groups.setdefault(made[each], []).append(each)
    return {value: group[0] for value, group in groups.items() if len(group) == 1}


def _is_renumbered(
    before: Computation, after: Computation, unique: tuple[dict[int, Instruction], dict[int, Instruction]]
) -> bool:
    """Whether names were renumbered: a structurally unique instruction has a name that another one had before.

    Renumbering changes all later names too, so a later unique instruction with an unchanged name disproves it.
    """
    olds, news = ({each.name for each in side.instructions} for side in (before, after))
    found = False
    for value, b in unique[1].items():
        a = unique[0].get(value)
        if a is not None and _COUNTED.fullmatch(a.name) and b.opcode not in ("parameter", "constant"):
            if found and a.name == b.name:
                return False
            found = found or (a.name != b.name and (a.name in news or b.name in olds))
    return found
