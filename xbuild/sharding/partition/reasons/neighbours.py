"""`Neighbours`: a device lacks elements of a cut dimension that stand on devices beside it."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from attrs import frozen

from ....core.graph import Instruction
from ....properties.mesh import Mesh
from ...axis import Axis
from .reason import Move, Reason
from .words import called, name_of, named


class Window(Protocol):
    """The elements that each place along axes wants: `size` of them from its start on, where it has `part` itself."""

    @property
    def mesh(self) -> Mesh: ...
    @property
    def axes(self) -> tuple[Axis, ...]: ...
    @property
    def extent(self) -> int: ...
    @property
    def part(self) -> int: ...
    @property
    def starts(self) -> tuple[int, ...]: ...
    @property
    def size(self) -> int: ...


@frozen(eq=False, repr=False)
class Neighbours(Reason):
    """An op takes windows of a dimension of its first operand. `span` are the elements of a part that are sent, and
    `pairs` the places along the axes that send them, each with the place that gets them.
    """

    kind: ClassVar[str] = "neighbours"
    user: Instruction
    dim: int
    window: Window
    span: tuple[int, int]
    pairs: tuple[tuple[int, int], ...]

    def lacking(self) -> tuple[int, int]:
        """How many elements before its part, and after it, a device lacks, at most."""
        window = self.window
        before, after = 0, 0
        for place, start in enumerate(window.starts):
            own = place * window.part
            first, end = max(start, 0), min(start + window.size, window.extent)
            if first < end:
                before = max(before, min(own, end) - first)
                after = max(after, end - max(min(own + window.part, window.extent), first))
        return before, after

    def sentence(self, move: Move) -> str:
        before, after = self.lacking()
        source, axes = name_of(self.user.operands[0]), named(self.window.axes, self.window.mesh)
        sides = [_elements(count, word) for count, word in ((before, "before"), (after, "after")) if count]
        lacking = f"a device lacks up to {' and '.join(sides)} its own part" if sides else "only padding is moved"
        what = f"{_WHAT.get(self.user.opcode, 'moves elements along')} dimension {self.dim} of {source}"
        return (
            f"{called(self.user)} {what}, which is cut over {axes} in parts of {self.window.part}: {lacking}; "
            f"it gets {_span(*self.span)} of the part of {self._sender()}"
        )

    def _sender(self) -> str:
        apart = {part - place for part, place in self.pairs}
        axes = named(self.window.axes, self.window.mesh)
        if len(apart) > 1:
            return f"another device along {axes}"
        (shift,) = apart
        word = "before" if shift < 0 else "after"
        return f"the device {abs(shift)} {'place' if abs(shift) == 1 else 'places'} {word} it along {axes}"

    def facts(self, move: Move) -> dict[str, Any]:
        before, after = self.lacking()
        found = {"dim": self.dim, "part": self.window.part, "before": before, "after": after, "span": list(self.span)}
        return {**super().facts(move), **found, "pairs": [list(each) for each in self.pairs]}


def _elements(count: int, word: str) -> str:
    return f"{count} {'element' if count == 1 else 'elements'} {word}"


def _span(low: int, high: int) -> str:
    return f"element {low}" if high - low == 1 else f"elements {low} to {high - 1}"


_WHAT = {
    "slice": "takes a slice of", "pad": "pads", "reverse": "turns round", "concatenate": "joins",
    "reduce_window": "slides a window along", "convolution": "slides a window along",
}  # fmt: skip
