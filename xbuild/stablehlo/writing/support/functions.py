"""The functions of a module under construction, and the locations of instructions."""

from __future__ import annotations

from attrs import Factory, define

from shape_inference.escaping import mlir_string

from ....core.graph import Computation, Instruction, Source

MAIN = "main"


@define(eq=False)
class Functions:
    """The symbol of each computation that is written as a function; those in `waiting` are still to be written."""

    symbols: dict[Computation, str] = Factory(dict)
    waiting: list[Computation] = Factory(list)
    written: int = 0
    _taken: set[str] = Factory(lambda: {MAIN})
    _sources: dict[tuple[int, int], Source | None] = Factory(dict)

    def symbol(self, computation: Computation) -> str:
        known = self.symbols.get(computation)
        if known is None:
            known = self.symbols[computation] = self._fresh(computation.name)
            self.waiting.append(computation)
        return known

    def _fresh(self, name: str) -> str:
        wanted, count = name, 0
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._taken.add(name)
        return name

    def location(self, instruction: Instruction) -> str:
        """The name of an instruction, and the user's line if it is known, as a location."""
        source = self._source(instruction)
        name = mlir_string(instruction.name)
        return f" loc({name}({mlir_string(source.file)}:{source.line}:0))" if source else f" loc({name})"

    def _source(self, instruction: Instruction) -> Source | None:
        """The source line, looked up once for each line of the user's program."""
        where = instruction.where
        if not isinstance(where, tuple):
            return where
        place = id(where[0]), where[1]
        if place not in self._sources:
            self._sources[place] = instruction.source
        return self._sources[place]
