"""The kind of an instruction: that of its op, of the op that it starts, or of the main op of a fusion."""

from __future__ import annotations

from ...core.graph import Computation, Instruction
from ...core.memos import remembered
from ...properties.async_pairs import origin, wrapped_in
from ...text.codecs.sugar import ASYNC
from .kinds import CHANNEL, COLLECTIVE, CONTRACTION, REDUCTION, Kind, kind_of

_MAIN = (COLLECTIVE, CHANNEL, CONTRACTION, REDUCTION)
"""The kinds that decide what a fusion costs, the first that occurs before the others."""


def kind_of_instruction(instruction: Instruction) -> Kind:
    """The kind of an instruction; an async op has the kind of the op that it wraps, a fusion that of its main op."""
    start = instruction if instruction.opcode == "async_start" else origin(instruction)
    is_async = instruction.opcode in ASYNC and start is not None and start.opcode == "async_start"
    wrapped = wrapped_in(start) if is_async and start is not None else None
    named = instruction if wrapped is None else wrapped
    return _main(named.called[0]) if named.opcode == "fusion" and named.called else kind_of(named.opcode)


@remembered
def _main(fused: Computation) -> Kind:
    """The first of the main kinds that occurs in a fused computation; without any of them, the kind of its result."""
    found = {kind_of(each.opcode).letter for each in fused.instructions}
    result = fused.root
    while result.opcode == "tuple" and result.operands:
        result = result.operands[0]
    return next((kind for kind in _MAIN if kind.letter in found), None) or kind_of(result.opcode)
