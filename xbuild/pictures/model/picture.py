"""A picture before it is lowered to any form: boxes, the frames around them, the lines between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from attrs import field, frozen

from .kinds import Kind

if TYPE_CHECKING:
    from .data import Mark, Scale


@frozen
class Words:
    """What a box says: a shape, lines below its title, its operands in order."""

    shape: str = ""
    details: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


@frozen(slots=False)
class Box:
    """An instruction, or several. Its words and what it says on hover are made when they are asked for.

    `added` are more lines of details, `scope` is the name that its metadata gives it, `folded` the names of
    instructions that stand in it as words, `hidden_before` and `hidden_after` say how many of its neighbours are left
    out of the picture, `holds` makes the pictures of what is folded into it, `mark` is
    what is laid over it.
    """

    id: str
    name: str
    title: str
    words: Words | Callable[[], Words] = field(eq=False)
    kind: Kind
    added: tuple[str, ...] = ()
    hover: str | Callable[[], str] = field(default="", eq=False)
    is_root: bool = False
    scope: str = ""
    folded: frozenset[str] = frozenset()
    hidden_before: int = 0
    hidden_after: int = 0
    holds: tuple[Callable[[], Picture], ...] = field(default=(), eq=False)
    mark: Mark | None = None

    @cached_property
    def _told(self) -> Words:
        return self.words if isinstance(self.words, Words) else self.words()

    @property
    def shape(self) -> str:
        return self._told.shape

    @property
    def details(self) -> tuple[str, ...]:
        """Lines below its title."""
        return (*self._told.details, *self.added)

    @property
    def arguments(self) -> tuple[str, ...]:
        """Its operands in words."""
        return self._told.arguments

    @property
    def tooltip(self) -> str:
        """All that is known of it."""
        return self.hover if isinstance(self.hover, str) else self.hover()

    @property
    def says_its_op(self) -> bool:
        """Whether its name is the op's with a number, so that one of them is enough: `add.3`."""
        stem, dot, number = self.name.rpartition(".")
        return self.name == self.title or bool(dot and number.isdigit() and stem == self.title)

    @property
    def stubs(self) -> tuple[str, ...]:
        """What is said of neighbours that are left out."""
        told = ((self.hidden_before, "before"), (self.hidden_after, "after"))
        return tuple(f"+{count:,} hidden {where}" for count, where in told if count)


@frozen
class Edge:
    """A line from a box to another: `what` is value, token, control, call or channel, the words stand at its ends."""

    tail: str
    head: str
    what: str = "value"
    at_tail: str = ""
    at_head: str = ""
    hover: str | Callable[[], str] = field(default="", eq=False)

    @property
    def tooltip(self) -> str:
        return self.hover if isinstance(self.hover, str) else self.hover()


@frozen
class Cluster:
    """A frame: a computation, or a device. `caller` is the box whose `role` it plays, `name` the computation's."""

    id: str
    title: str
    boxes: tuple[Box, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    role: str = ""
    caller: str = ""
    name: str = ""

    def all_boxes(self) -> Iterator[Box]:
        return _boxes((self,))


def _boxes(clusters: Sequence[Cluster]) -> Iterator[Box]:
    """The boxes of frames, those of a frame before those of the frames in it."""
    stack = [*reversed(clusters)]
    while stack:
        cluster = stack.pop()
        yield from cluster.boxes
        stack += reversed(cluster.clusters)


@frozen(slots=False)
class Picture:
    """A program, drawn; `notes` say what of it is not shown, and why, `scale` what is laid over its boxes.

    `lines` are those of the whole program, where boxes of it are folded or left out.
    """

    name: str
    clusters: tuple[Cluster, ...]
    edges: tuple[Edge, ...]
    notes: tuple[str, ...] = ()
    scale: Scale | None = None
    lines: tuple[Edge, ...] = field(default=(), eq=False)

    def all_boxes(self) -> Iterator[Box]:
        return _boxes(self.clusters)

    @cached_property
    def size(self) -> int:
        """How many boxes there are."""
        return sum(1 for _ in self.all_boxes())

    def kinds(self) -> tuple[Kind, ...]:
        """The kinds that occur, in the order of the table."""
        from .kinds import KINDS

        found = {box.kind for box in self.all_boxes()}
        return tuple(kind for kind in KINDS if kind in found)
