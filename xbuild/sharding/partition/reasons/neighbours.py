"""`Neighbours`: a device lacks elements of a cut dimension that others hold, and a permute brings some of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Protocol

from attrs import frozen

from ....core.graph import Instruction
from ....properties.mesh import Mesh
from ...axis import Axis
from .reason import Move, Reason
from .words import called, listed, name_of, named


class Run(Protocol):
    """Elements of a part of a source: `count` of them from `first` on, `step` apart."""

    @property
    def source(self) -> int: ...
    @property
    def first(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def step(self) -> int: ...


class Sent(Protocol):
    """A run that the device at one place along axes has, and that at another place wants."""

    @property
    def part(self) -> int: ...
    @property
    def place(self) -> int: ...
    @property
    def segment(self) -> Run: ...


class Permute(Protocol):
    """What is sent at once."""

    @property
    def moves(self) -> Sequence[Sent]: ...
    @property
    def size(self) -> int: ...


class Wanted(Protocol):
    """All that is sent for an op along a dimension; `parts` are the extents of a part of each source."""

    @property
    def parts(self) -> Sequence[int]: ...
    @property
    def rounds(self) -> Sequence[Permute]: ...


@frozen(eq=False)
class Wish:
    """Who wants elements, of which arrays, and all that is sent for it."""

    user: Instruction
    sources: tuple[Instruction, ...]
    wanted: Wanted


@frozen(eq=False, repr=False)
class Neighbours(Reason):
    """An op moves elements of a dimension that axes cut. Of all that are `wanted`, `permute` brings some."""

    kind: ClassVar[str] = "neighbours"
    user: Instruction
    sources: tuple[Instruction, ...]
    mesh: Mesh
    axes: tuple[Axis, ...]
    dim: int
    wanted: Wanted
    permute: Permute

    def lacking(self) -> tuple[int, int]:
        """How many elements a device wants, at most, of the parts before its own and of those after it."""
        before, after = dict[int, int](), dict[int, int]()
        for each in (sent for permute in self.wanted.rounds for sent in permute.moves):
            if each.part != each.place:
                side = before if each.part < each.place else after
                side[each.place] = side.get(each.place, 0) + each.segment.count
        return max(before.values(), default=0), max(after.values(), default=0)

    def sentence(self, move: Move) -> str:
        return (
            f"{called(self.user)} {self._what()}, which {self._cut()}: {self._lacks()}; it gets {self._brought()} of "
            f"{self._part()} of {self._sender()}"
        )

    def _what(self) -> str:
        names = listed([name_of(each) for each in dict.fromkeys(self.sources)])
        if any(each not in self.user.operands for each in self.sources):
            return f"is made of elements of {names} that move along dimension {self.dim}"
        return f"{_WHAT.get(self.user.opcode, 'moves elements along')} dimension {self.dim} of {names}"

    def _cut(self) -> str:
        sizes = dict.fromkeys(self.wanted.parts)
        return f"is cut over {named(self.axes, self.mesh)} in parts of {listed([*map(str, sizes)])}"

    def _lacks(self) -> str:
        before, after = self.lacking()
        sides = [_elements(count, word) for count, word in ((before, "before"), (after, "after")) if count]
        return f"a device lacks up to {' and '.join(sides)} its own part"

    def _brought(self) -> str:
        """The elements that the permute brings, the same of each part or not."""
        runs = dict.fromkeys((each.segment.first, each.segment.count, each.segment.step) for each in self.permute.moves)
        if len(runs) == 1:
            return _span(*next(iter(runs)))
        many = f"{self.permute.size} {'element' if self.permute.size == 1 else 'elements'}"
        return many if len({count for _, count, _ in runs}) == 1 else f"up to {many}"

    def _part(self) -> str:
        """Whose part is sent, where there are several arrays."""
        given = dict.fromkeys(self.sources[each.segment.source] for each in self.permute.moves)
        names = [name_of(each) for each in given]
        return f"the part of {listed(names)}" if len(dict.fromkeys(self.sources)) > 1 else "the part"

    def _sender(self) -> str:
        apart = {each.part - each.place for each in self.permute.moves}
        axes = named(self.axes, self.mesh)
        if len(apart) > 1:
            return f"another device along {axes}"
        (shift,) = apart
        word = "before" if shift < 0 else "after"
        return f"the device {abs(shift)} {'place' if abs(shift) == 1 else 'places'} {word} it along {axes}"

    def pairs(self) -> Iterator[tuple[int, int]]:
        """The places along the axes that send, each with the place that gets what it sends."""
        return ((each.part, each.place) for each in self.permute.moves)

    def facts(self, move: Move) -> dict[str, Any]:
        before, after = self.lacking()
        sent = {"elements": self.permute.size, "pairs": [list(each) for each in self.pairs()]}
        found = {"dim": self.dim, "parts": list(self.wanted.parts), "before": before, "after": after}
        return {**super().facts(move), "of": [each.name for each in self.sources], **found, **sent}


def _elements(count: int, word: str) -> str:
    return f"{count} {'element' if count == 1 else 'elements'} {word}"


def _span(first: int, count: int, step: int) -> str:
    """Elements in words, the last one of a negative step first."""
    low, high = sorted((first, first + (count - 1) * step))
    if count == 1:
        return f"element {first}"
    between = "" if abs(step) == 1 else f", {abs(step)} apart,"
    return f"elements {low} to {high}{between}"


_WHAT = {
    "slice": "takes a slice of", "dynamic_slice": "takes a slice of", "pad": "pads", "reverse": "turns round",
    "concatenate": "joins arrays along", "reduce_window": "slides a window along",
    "convolution": "slides a window along", "select_and_scatter": "slides a window along",
}  # fmt: skip
