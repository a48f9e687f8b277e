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
    """The text of a box: its shape, the details below its title, its operands in order."""

    shape: str = ""
    details: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


@frozen(slots=False)
class Box:
    """A box of one instruction or of several; its text and its tooltip are computed on demand.

    `added` are further details, `scope` is its scope (`xbuild/properties/scopes.py`), `folded` are the names of the
    instructions that stand as words in the box, `hidden_before` and `hidden_after` are the numbers of its neighbours
    that are left out of the picture, `holds` makes the pictures of the boxes that are folded into it, `mark` is its
    datum, and `alike` makes its label.
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
    alike: Callable[[], bytes] | None = field(default=None, eq=False)

    @cached_property
    def label(self) -> bytes:
        """What boxes of one op, shape and attributes share; of a folded box, its words."""
        return self.alike() if self.alike is not None else repr((self.title, self._told)).encode()

    @cached_property
    def _told(self) -> Words:
        return self.words if isinstance(self.words, Words) else self.words()

    @property
    def shape(self) -> str:
        return self._told.shape

    @property
    def details(self) -> tuple[str, ...]:
        """The details below the title of the box."""
        return (*self._told.details, *self.added)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The operands of the instruction as words."""
        return self._told.arguments

    @property
    def tooltip(self) -> str:
        """The text on hover."""
        return self.hover if isinstance(self.hover, str) else self.hover()

    @property
    def says_its_op(self) -> bool:
        """Whether the name of the box already contains the op, as `add.3` does."""
        stem, dot, number = self.name.rpartition(".")
        return self.name == self.title or bool(dot and number.isdigit() and stem == self.title)

    @property
    def stubs(self) -> tuple[str, ...]:
        """The words that count the neighbours that are left out."""
        told = ((self.hidden_before, "before"), (self.hidden_after, "after"))
        return tuple(f"+{count:,} hidden {where}" for count, where in told if count)


@frozen
class Edge:
    """A line from one box to another: `what` is value, token, control, call or channel; both ends may have a label."""

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
    """A frame of a computation: `caller` is the box that calls it as its `role`, `name` the computation's name."""

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
    """The picture of a program; `notes` state what is not shown, and why; `scale` is that of the data over its boxes.

    `lines` are the edges of the whole program, from before boxes were folded or left out.
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
        """The number of boxes."""
        return sum(1 for _ in self.all_boxes())

    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of boxes that occur, in the order of `KINDS`."""
        from .kinds import KINDS

        found = {box.kind for box in self.all_boxes()}
        return tuple(kind for kind in KINDS if kind in found)
