"""What sort of op each is: a colour (XLA's own graphs have most of these), and a letter beside it."""

from __future__ import annotations

from attrs import frozen


@frozen
class Kind:
    """`fill`, `border` and `ink` are colours, `letter` marks the box beside them."""

    name: str
    letter: str
    fill: str
    border: str
    ink: str = "#212121"


PARAMETER = Kind("parameter", "P", "#ffe0b2", "#ca9b52")
LEAF = Kind("constant, iota", "K", "#eceff1", "#90a4ae")
ELEMENTWISE = Kind("elementwise", "E", "#fff9c4", "#cbc074")
MOVEMENT = Kind("data movement", "M", "#c8e6c9", "#81b184")
REDUCTION = Kind("reduction, window", "R", "#e1bee7", "#a776b0")
CONTRACTION = Kind("dot, convolution", "D", "#1565c0", "#003c8f", "#ffffff")
FLOW = Kind("control flow", "F", "#2e7d32", "#00500a", "#ffffff")
COLLECTIVE = Kind("collective", "C", "#d81b60", "#880e4f", "#ffffff")
CHANNEL = Kind("send, recv, feeds", "S", "#f8bbd0", "#c2185b")
DEVICE = Kind("device number", "N", "#d7ccc8", "#8d6e63")
TUPLE = Kind("tuple, token", "T", "#ffffff", "#b0bec5")
OTHER = Kind("other", "O", "#cfd8dc", "#78909c")

KINDS = (
    PARAMETER, LEAF, DEVICE, ELEMENTWISE, MOVEMENT, REDUCTION, CONTRACTION, FLOW, COLLECTIVE, CHANNEL, TUPLE, OTHER,
)  # fmt: skip

_BY_FAMILY = {
    "collectives": COLLECTIVE, "contraction": CONTRACTION, "control_flow": FLOW, "conversion": ELEMENTWISE,
    "elementwise": ELEMENTWISE, "gather": MOVEMENT, "leaves": LEAF, "linear_algebra": CONTRACTION,
    "normalization": REDUCTION, "ordering": MOVEMENT, "random": LEAF, "reduction": REDUCTION, "scatter": REDUCTION,
    "shaping": MOVEMENT, "slicing": MOVEMENT, "transfer": CHANNEL, "tuples": TUPLE, "windows": REDUCTION,
}  # fmt: skip
_BY_OPCODE = {"parameter": PARAMETER, "partition_id": DEVICE, "replica_id": DEVICE}


def kind_of(opcode: str) -> Kind:
    """The kind of an op: that of the family whose file declares it, but for a few."""
    from ..op import OPS

    family = OPS[opcode].declaration.__module__.rpartition(".")[2] if opcode in OPS else ""
    return _BY_OPCODE.get(opcode) or _BY_FAMILY.get(family, OTHER)
