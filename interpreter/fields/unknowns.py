"""Constants whose elements the text omits: unknown numbers, which are parameters of both programs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from shape_inference import Shape, refuse
from shape_inference.elided import ElidedArray
from xbuild.core.graph import Instruction, Module, ModuleGroup
from xbuild.core.op import OPS
from xbuild.properties.rewriting import Rewriter
from xbuild.text.header import LAYOUT

Constants = Mapping[str, Any]
"""For the name of a constant of the first program, the name of the same one in the other, alone or with its layout."""


@frozen(eq=False)
class UnknownPair:
    """A constant of each program that are the same unknown numbers, and the layout of the first on the devices."""

    one: Instruction
    other: Instruction
    layout: Any = None

    def __str__(self) -> str:
        return f"%{self.one.name} of one program and %{self.other.name} of the other, {self.one.shape}"


def is_elided(instruction: Instruction) -> bool:
    """Whether an instruction is a constant whose elements are omitted from the text."""
    return instruction.opcode == "constant" and isinstance(instruction.attributes.literal, ElidedArray)


def pair_unknowns(one: Module | ModuleGroup, other: Module | ModuleGroup, given: Constants) -> list[UnknownPair]:
    """The pairs that are given, and the only constants of a type and shape in both programs.

    Raises invalid_attribute if a given name is not that of such a constant in the entry computation.
    """
    lefts, rights = _elided(one), _elided(other)
    pairs = []
    for name, stated in given.items():
        there, layout = (stated, None) if isinstance(stated, str) else stated
        pairs.append(UnknownPair(_named(name, lefts, "first"), _named(there, rights, "second"), layout))
    by_shape: dict[Shape, tuple[list[Instruction], list[Instruction]]] = defaultdict(lambda: ([], []))
    for side, constants in enumerate((lefts, rights)):
        for constant in constants.values():
            if constant not in {each for pair in pairs for each in (pair.one, pair.other)}:
                by_shape[constant.shape.plain()][side].append(constant)  # type: ignore[index]
    pairs += [UnknownPair(*a, *b) for a, b in by_shape.values() if len(a) == len(b) == 1]
    return pairs


def _elided(program: Module | ModuleGroup) -> dict[str, Instruction]:
    if isinstance(program, ModuleGroup):
        return {}
    return {each.name: each for each in program.entry.instructions if is_elided(each)}


def _named(name: str, constants: Mapping[str, Instruction], which: str) -> Instruction:
    if name not in constants:
        known = ", ".join(f"%{each}" for each in constants) or "none"
        refuse(
            "invalid_attribute",
            f"equivalent: the {which} program has no constant %{name} with omitted elements; the constants with "
            f"omitted elements are: {known}",
        )
    return constants[name]


def with_parameters(program: Module | ModuleGroup, constants: Sequence[Instruction]) -> Module | ModuleGroup:
    """The program with constants of its entry as further parameters, in this order."""
    if not constants or isinstance(program, ModuleGroup):
        return program
    first = len(program.entry.parameters)
    found = _WithParameters({constant: first + n for n, constant in enumerate(constants)}).module(program)
    return evolve(found, annotations={key: each for key, each in found.annotations.items() if key != LAYOUT})


class _WithParameters(Rewriter):
    """The pass that makes constants parameters of these numbers."""

    def __init__(self, numbers: Mapping[Instruction, int]) -> None:
        super().__init__()
        self.numbers = numbers

    def instruction(self, instruction: Instruction) -> Instruction:
        if instruction not in self.numbers:
            return super().instruction(instruction)
        record = OPS["parameter"].read({"number": self.numbers[instruction], "shape": instruction.shape})
        return self.add(evolve(instruction, opcode="parameter", attributes=record))


def unpaired(*programs: Module | ModuleGroup) -> str:
    """The constants of programs that are neither pairs nor known, and the fix; empty if all are paired or known."""
    found = [
        f"%{each.name}: {each.shape}"
        for program in programs
        for module in (program.modules.values() if isinstance(program, ModuleGroup) else [program])
        for computation in module.entry.reachable()
        for each in computation.instructions
        if is_elided(each)
    ]
    if not found:
        return ""
    names = [*dict.fromkeys(found)]
    shown = ", ".join(names[:4]) + f" and {len(names) - 4} more" * (len(names) > 4)
    return (
        f"the text omits the elements of {shown}; print it with large constants, or pass the pairs of the entry "
        "computations as constants={NAME: OTHER}"
    )
