"""Instructions that get no box: small constants and tuple elements stand as words in the boxes of their users."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, field

from ...core.graph import Computation, Instruction
from ...text.spelling.literals import literal_text

_ELEMENTS, _CHARACTERS = 8, 24


@define(repr=False)
class Folding:
    """The instructions of a computation without a box: small constants and their broadcasts, and tuple elements."""

    computation: Computation
    _texts: dict[Instruction, str] = field(factory=dict, init=False)
    _tied: set[Instruction] = field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        instructions = self.computation.instructions
        self._tied = {self.computation.root, *(before for i in instructions for before in i.control)}
        for instruction in instructions:
            if self._may_fold(instruction) and (text := self._value(instruction)) is not None:
                self._texts[instruction] = text

    def drawn(self) -> tuple[Instruction, ...]:
        return tuple(i for i in self.computation.instructions if i not in self._texts and not self._is_element(i))

    def text(self, operand: Instruction) -> str | None:
        """The operand as a word, or None where it has a box."""
        return self._texts.get(operand)

    def origin(self, operand: Instruction) -> tuple[Instruction, str]:
        """The box that the operand comes from, and which of its elements it is: `[1][0]`."""
        path = ""
        while self._is_element(operand):
            path = f"[{operand.attributes.index}]{path}"
            operand = operand.operands[0]
        return operand, path

    def names(self, user: Instruction) -> Iterator[str]:
        """The instructions that stand as words in a user's box, or on the lines to it."""
        for operand in user.operands:
            while operand in self._texts or self._is_element(operand):
                yield operand.name
                if not operand.operands:
                    break
                operand = operand.operands[0]

    def _may_fold(self, instruction: Instruction) -> bool:
        return instruction not in self._tied and not instruction.control

    def _is_element(self, instruction: Instruction) -> bool:
        return instruction.opcode == "get_tuple_element" and self._may_fold(instruction)

    def _value(self, instruction: Instruction) -> str | None:
        if instruction.opcode == "constant":
            literal = instruction.attributes.literal
            text = literal_text(literal) if literal.size <= _ELEMENTS else ""
            return text if 0 < len(text) <= _CHARACTERS else None
        if instruction.opcode == "broadcast":
            return self._texts.get(instruction.operands[0])
        return None


def simple_reducer(computation: Computation) -> str | None:
    """The op of a computation that only applies one op to its two parameters, in order; else None."""
    if len(computation.instructions) != 3:
        return None
    root = computation.root
    fits = root.operands == computation.parameters and len(root.operands) == 2
    return root.opcode.replace("_", "-") if fits else None
