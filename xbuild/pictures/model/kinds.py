"""The kind of each op, shown by colour (mostly that of XLA's own graphs), by letter, and by outline."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import frozen

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
    from ...core.op import OPS

    return _BY_FAMILY.get(OPS[opcode].declaration.__module__.rpartition(".")[2], OTHER) if opcode in OPS else OTHER
