"""The state of the printer: the lines written so far, the names of values, the texts of types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from attrs import Factory, define

from shape_inference import AnyShape, TupleShape

from ....core.graph import Computation, Instruction
from .functions import Functions
from .notes import notes_text
from .types import leaf_types, several, type_text

Tree: TypeAlias = "str | tuple[Tree, ...]"
"""The name of a value, or for a tuple those of its elements."""


def flat(tree: Tree) -> list[str]:
    """The names of the arrays and tokens of a value."""
    return [tree] if isinstance(tree, str) else [name for each in tree for name in flat(each)]


def shaped(shape: AnyShape, names: Iterable[str]) -> Tree:
    """The tree of a value of this shape, whose arrays and tokens have these names."""
    names = iter(names)

    def built(shape: AnyShape) -> Tree:
        return tuple(map(built, shape.elements)) if isinstance(shape, TupleShape) else next(names)

    return built(shape)


@define(eq=False)
class Writer:
    """The lines of one function: `names` has the tree of each instruction, `taken` the names in use."""

    functions: Functions
    has_locations: bool = False
    lines: list[str] = Factory(list)
    names: dict[Instruction, Tree] = Factory(dict)
    taken: dict[str, int] = Factory(dict)
    indent: str = "    "
    awaited: frozenset[Instruction] = frozenset()
    _types: dict[int, str] = Factory(dict)
    _shapes: list[AnyShape] = Factory(list)

    def type(self, shape: AnyShape) -> str:
        """The text of a type, cached by identity, since most shapes are shared; shapes that are cached are kept."""
        known = self._types.get(id(shape))
        if known is None:
            known = self._types[id(shape)] = type_text(shape)
            self._shapes.append(shape)
        return known

    def fresh(self, name: str) -> str:
        """A name that no value of the function has: the given one, or the given one with a number."""
        if name not in self.taken:
            self.taken[name] = 0
            return f"%{name}"
        wanted = name
        while name in self.taken:
            self.taken[wanted] += 1
            name = f"{wanted}_{self.taken[wanted]}"
        self.taken[name] = 0
        return f"%{name}"

    def name(self, instruction: Instruction) -> str:
        """The name of an array or a token; of a tuple of one, that of its element."""
        tree = self.names[instruction]
        return tree if isinstance(tree, str) else flat(tree)[0]

    def flat(self, instructions: Iterable[Instruction]) -> list[str]:
        """The names of the arrays and tokens of values, one after the other."""
        return [name for each in instructions for name in flat(self.names[each])]

    def types(self, instructions: Iterable[Instruction]) -> list[str]:
        found: list[str] = []
        for each in instructions:
            shape = each.shape
            found += leaf_types(shape) if isinstance(shape, TupleShape) else [self.type(shape)]
        return found

    def signature(self, instruction: Instruction) -> str:
        """The types of the operands and of the results."""
        results = self.types((instruction,))
        return f"({', '.join(self.types(instruction.operands))}) -> {several(results)}"

    def define(self, instruction: Instruction, head: str, types: str) -> None:
        """Write the line of an instruction, and name what it gives."""
        notes = notes_text(self, instruction)
        self.names[instruction] = self.results(instruction, f"{head}{notes} : {types}")

    def results(self, instruction: Instruction, text: str) -> Tree:
        """Write an op whose results are the arrays and tokens of the instruction's value."""
        shape = instruction.shape
        if not isinstance(shape, TupleShape):
            return self.emit(instruction.name, text, instruction)
        names = self.pack(instruction.name, shape.count, text, instruction)
        return shaped(shape, names)

    def pack(self, name: str, count: int, text: str, instruction: Instruction | None = None) -> list[str]:
        """Write an op of several results, and give their names."""
        if count == 0:
            self.line(text, instruction)
            return []
        if count == 1:
            return [self.emit(name, text, instruction)]
        pack = self.fresh(name)
        self.line(f"{pack}:{count} = {text}", instruction)
        return [f"{pack}#{number}" for number in range(count)]

    def emit(self, name: str, text: str, instruction: Instruction | None = None) -> str:
        """Write an op of one result, and give its name."""
        found = self.fresh(name)
        self.line(f"{found} = {text}", instruction)
        return found

    def line(self, text: str, instruction: Instruction | None = None) -> None:
        if self.has_locations and instruction is not None:
            text += self.functions.location(instruction)
        self.lines.append(f"{self.indent}{text}")

    def call(self, computation: Computation) -> str:
        """The symbol of the function that a computation becomes."""
        return self.functions.symbol(computation)
