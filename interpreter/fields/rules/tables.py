"""The table of rules over prime fields, and what is done with ops that have none."""

from __future__ import annotations

from shape_inference import RuleTable
from xbuild.core.op import OPS, opcodes
from xbuild.properties.effects import STRUCTURE

fields = RuleTable("field")
"""Rules of floats, with the signature of the declaration: floats are words of residues, integers are themselves."""

WALKED = STRUCTURE | opcodes(
    lambda op: (
        op.calls in ("once", "branch", "loop", "wrapped")
        or op.depends_on in ("device", "outside", "target", "random_state")
        or op.half != "none"
        or op.needs != "nobody"
        or (op.elements == "whole" and op.calls == "nothing")
    )
)
"""Ops that the walk carries out itself, with the devices of the run: structure, control flow, communication."""

MOVED = opcodes(lambda op: bool(op.moves) and op.needs == "nobody")
"""Ops whose value rules move words as they move floats."""


class Undecidable(Exception):
    """Raised at an instruction of a class that is not decided; `reason` names the class."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


REFUSED = {
    "set_dimension_size": "dimensions whose extent is known only at run time",
    "get_dimension_size": "dimensions whose extent is known only at run time",
    "dynamic_reshape": "dimensions whose extent is known only at run time",
    "infeed": "data from the host",
    "outfeed": "data from the host",
    "custom_call": "the user's functions",
    "rng_get_and_update_state": "the random state of a device",
}
"""Ops that are not decided, with the class that a verdict names; custom calls that mark placement are."""


def treatment(opcode: str) -> str:
    """How an op is read over prime fields, in a word: walked, moved, rule, exact or undecided.

    >>> [treatment(op) for op in ("while", "transpose", "dot", "popcnt", "infeed")]
    ['walked', 'moved', 'rule', 'exact', 'undecided']
    """
    if opcode in REFUSED:
        return "undecided"
    if opcode in fields:
        return "rule"
    if opcode in MOVED:
        return "moved"
    if opcode in WALKED:
        return "walked"
    return "exact" if opcode in _ON_INTEGERS and opcode in OPS else "undecided"


_ON_INTEGERS = frozenset({
    "and", "or", "xor", "not", "shift_left", "shift_right_arithmetic", "shift_right_logical", "popcnt",
    "count_leading_zeros", "mulhi", "rng_bit_generator",
})  # fmt: skip
"""Ops that take no floats, and are computed as in a run."""
