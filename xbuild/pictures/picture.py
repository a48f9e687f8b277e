"""A picture as plain data, before it is converted to a format: boxes, frames around them, lines between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from attrs import field, frozen

from shape_inference.escaping import Harmless

if TYPE_CHECKING:
    from .data import BoxData, Scale


# ----------------------------------------------------------------------------
# The error for a view, or data, that name something that the program does not contain

MOST = 300  # boxes of a picture, above which it is folded


class ViewError(Harmless, ValueError):
    """Raised if a view, or data over boxes, do not match the program."""


# ----------------------------------------------------------------------------
# Themes: the colours of a picture's background, text and lines, light and dark


@frozen
class Theme:
    """The colours of a theme: `frames` are the fills of frames by depth, `lines` the colours of lines by their sort."""

    ground: str
    ink: str
    dim: str
    frame: str
    frames: tuple[str, ...]
    hover: str
    lines: dict[str, str]


LIGHT = Theme(
    "#ffffff", "#1d2327", "#5f6b73", "#a9b4bb", ("#f7f8fa", "#eef1f4", "#e5eaee", "#dce3e8"), "#1565c0",
    {"value": "#78909c", "token": "#c2185b", "control": "#d84f00", "call": "#2e7d32", "channel": "#d81b60"},
)  # fmt: skip
DARK = Theme(
    "#15181a", "#e6e9ea", "#9aa7ae", "#4a555c", ("#1b1f22", "#21272b", "#283035", "#2f383e"), "#6db0ff",
    {"value": "#8fa3ad", "token": "#f27bb0", "control": "#ff9d5c", "call": "#7dc982", "channel": "#ff6fa8"},
)  # fmt: skip


def theme_of(name: str) -> Theme:
    """The theme of this name; `auto` is light, for formats that cannot follow the reader's system."""
    return DARK if name == "dark" else LIGHT


# ----------------------------------------------------------------------------
# Kinds of ops, shown by colour (mostly that of XLA's own graphs), by letter, and by outline

Outline: TypeAlias = Literal[
    "plain", "house", "octagon", "slanted", "funnel", "double", "hexagon", "pill", "flag", "round", "tab", "cut"
]


@frozen
class Kind:
    """A kind of op: its letter, its outline and its colours; `dark` are fill, border and ink in the dark theme."""

    name: str
    letter: str
    outline: Outline
    fill: str
    border: str
    ink: str = "#212121"
    dark: tuple[str, str, str] = ("#37434a", "#90a4ae", "#e6e9ea")

    def colours(self, theme: str) -> tuple[str, str, str]:
        """Fill, border and ink in the light or the dark theme."""
        return self.dark if theme == "dark" else (self.fill, self.border, self.ink)


_PALE = "#e6e9ea"
_WHITE = "#ffffff"

PARAMETER = Kind("parameter", "P", "house", "#ffe0b2", "#ca9b52", dark=("#4d3718", "#c08d48", _PALE))
LEAF = Kind("constant, iota", "K", "octagon", "#eceff1", "#90a4ae", dark=("#2b3338", "#7b8f99", _PALE))
ELEMENTWISE = Kind("elementwise", "E", "plain", "#fff9c4", "#cbc074", dark=("#46411d", "#a89b4a", _PALE))
MOVEMENT = Kind("data movement", "M", "slanted", "#c8e6c9", "#81b184", dark=("#1f3d25", "#67996d", _PALE))
REDUCTION = Kind("reduction, window", "R", "funnel", "#e1bee7", "#a776b0", dark=("#42274a", "#b07fbb", _PALE))
CONTRACTION = Kind("dot, convolution", "D", "double", "#1565c0", "#003c8f", _WHITE, ("#0f4c8c", "#6aa8ee", _WHITE))
FLOW = Kind("control flow", "F", "hexagon", "#2e7d32", "#00500a", _WHITE, ("#1d5a22", "#6cc072", _WHITE))
COLLECTIVE = Kind("collective", "C", "pill", "#d81b60", "#880e4f", _WHITE, ("#a31550", "#ff7fb4", _WHITE))
CHANNEL = Kind("send, recv, feeds", "S", "flag", "#f8bbd0", "#c2185b", dark=("#571c39", "#f27bb0", "#ffe9f2"))
DEVICE = Kind("device number", "N", "tab", "#d7ccc8", "#8d6e63", dark=("#40342f", "#a1887f", _PALE))
TUPLE = Kind("tuple, token", "T", "round", "#ffffff", "#b0bec5", dark=("#1c2226", "#78909c", _PALE))
OTHER = Kind("other", "O", "cut", "#cfd8dc", "#78909c")
FOLDED = Kind("folded", "+", "round", "#f5f5f5", "#9e9e9e", dark=("#262b2e", "#8a8f92", _PALE))

KINDS = (
    PARAMETER, LEAF, DEVICE, ELEMENTWISE, MOVEMENT, REDUCTION, CONTRACTION, FLOW, COLLECTIVE, CHANNEL, TUPLE, OTHER,
    FOLDED,
)  # fmt: skip

_BY_FAMILY = {
    "asynchronous": COLLECTIVE, "collectives": COLLECTIVE, "contraction": CONTRACTION, "control_flow": FLOW,
    "conversion": ELEMENTWISE, "elementwise": ELEMENTWISE, "gather": MOVEMENT, "leaves": LEAF,
    "linear_algebra": CONTRACTION, "normalization": REDUCTION, "ordering": MOVEMENT, "random": LEAF,
    "reduction": REDUCTION, "scatter": REDUCTION, "shaping": MOVEMENT, "slicing": MOVEMENT, "transfer": CHANNEL,
    "tuples": TUPLE, "windows": REDUCTION,
}  # fmt: skip
_BY_OPCODE = {
    "async_done": FLOW, "async_start": FLOW, "async_update": FLOW, "convolution": CONTRACTION, "copy_done": MOVEMENT,
    "copy_start": MOVEMENT, "custom_call": OTHER, "parameter": PARAMETER, "partition_id": DEVICE, "replica_id": DEVICE,
}  # fmt: skip


def kind_of(opcode: str) -> Kind:
    """The kind of an op: that of the family that declares the op, with a few exceptions."""
    if opcode in _BY_OPCODE:
        return _BY_OPCODE[opcode]
    from ..core.op import OPS

    return _BY_FAMILY.get(OPS[opcode].declaration.__module__.rpartition(".")[2], OTHER) if opcode in OPS else OTHER


# ----------------------------------------------------------------------------
# The picture as data: boxes, the frames around them, the lines between them


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
    instructions that are words in the box, `hidden_before` and `hidden_after` are the numbers of its neighbours that
    the picture omits, `holds` makes the pictures of the boxes that are folded into it, `mark` is its datum, and `alike`
    makes its label.
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
    mark: BoxData | None = None
    alike: Callable[[], bytes] | None = field(default=None, eq=False)

    @cached_property
    def label(self) -> bytes:
        """The same bytes for boxes of the same op, shape and attributes; for a folded box, from its words."""
        return self.alike() if self.alike is not None else repr((self.title, self._words)).encode()

    @cached_property
    def _words(self) -> Words:
        return self.words if isinstance(self.words, Words) else self.words()

    @property
    def shape(self) -> str:
        return self._words.shape

    @property
    def details(self) -> tuple[str, ...]:
        """The details below the title of the box."""
        return (*self._words.details, *self.added)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The operands of the instruction as words."""
        return self._words.arguments

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
        """The words that count the omitted neighbours."""
        counts = ((self.hidden_before, "before"), (self.hidden_after, "after"))
        return tuple(f"+{count:,} hidden {where}" for count, where in counts if count)


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

        found = {box.kind for box in self.all_boxes()}
        return tuple(kind for kind in KINDS if kind in found)
