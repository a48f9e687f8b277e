"""Printer of names and shapes, whose text depends on the style and on other names in the text."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import Factory, define, evolve

from shape_inference import AnyShape, Layout, Shape, TokenShape, TupleShape

from ...core.graph import Computation, Instruction, Source, TextSource
from ...properties.variances import declared, typed_text
from .style import STYLES, Style


@define
class Writer:
    """A printer of names and shapes, which caches the text of each shape."""

    style: Style = STYLES["short"]
    names: dict[Computation, str] = Factory(dict)
    _shapes: dict[int, tuple[AnyShape, str]] = Factory(dict)
    _sources: dict[tuple[int, int], Source | None] = Factory(dict)

    @property
    def sigil(self) -> str:
        return "%" if self.style.percent else ""

    def reference(self, instruction: Instruction) -> str:
        return f"{self.sigil}{instruction.name}"

    def references(self, instructions: Iterable[Instruction]) -> str:
        if self.style.percent:
            return numbered([f"%{i.name}" for i in instructions])
        return ", ".join([i.name for i in instructions])

    def called(self, computation: Computation) -> str:
        return f"{self.sigil}{self.names.get(computation, computation.name)}"

    def shape_of(self, instruction: Instruction) -> str:
        """The shape of an instruction, with its type on a mesh where the style shows types."""
        if not self.style.types or declared(instruction) is None:
            return self.shape(instruction.shape)
        return typed_text(instruction, self.shape)

    def shape(self, shape: AnyShape) -> str:
        """The text of a shape, cached by identity, since most shapes are shared; the cache keeps the shape alive."""
        known = self._shapes.get(id(shape))
        if known is None:
            known = self._shapes[id(shape)] = shape, self._spelled(shape)
        return known[1]

    def source(self, instruction: Instruction) -> Source | None:
        """The source line of an instruction, looked up once for each line of the user's program."""
        where = instruction.where
        if isinstance(where, TextSource):
            return None
        if not isinstance(where, tuple):
            return where
        place = id(where[0]), where[1]
        if place not in self._sources:
            self._sources[place] = instruction.source
        return self._sources[place]

    def _spelled(self, shape: AnyShape) -> str:
        if isinstance(shape, TupleShape):
            return f"({numbered(list(map(self._spelled, shape.elements)))})"
        if isinstance(shape, TokenShape):
            return "token[]"
        if shape.layout is None and self.style.layouts:
            shape = _laid_out(shape)
        return repr(shape) if shape.rank else repr(shape.plain())

    def name_all(self, computations: Iterable[Computation]) -> None:
        """Give computations of equal names unique names, since calls in text refer to names."""
        taken: set[str] = set()
        for computation in computations:
            name, count = computation.name, 0
            while name in taken:
                count += 1
                name = f"{computation.name}.{count}"
            taken.add(name)
            if name != computation.name:
                self.names[computation] = name


def _laid_out(shape: Shape) -> Shape:
    return evolve(shape, layout=Layout(tuple(reversed(range(shape.rank)))))


def numbered(items: list[str]) -> str:
    """Items separated by commas; in long lists each fifth has its index as a comment, as XLA prints them."""
    if len(items) > 5:
        items = [f"/*index={n}*/{item}" if n and n % 5 == 0 else item for n, item in enumerate(items)]
    return ", ".join(items)
