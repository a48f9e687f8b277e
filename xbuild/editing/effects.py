"""Which instructions do more than give a value, so that they stay, in their order, whether or not they are used."""

from __future__ import annotations

from ..graph import Computation, Instruction
from ..op import OPS
from ..scheduling.effects import acts, has_side_effect, remembered

_DRAWS = frozenset({"rng", "rng_get_and_update_state"})


def has_effect(instruction: Instruction) -> bool:
    """Whether it talks to devices or the host, reaches outside, or moves a random state, itself or in what it calls."""
    if acts(instruction) or instruction.opcode in _DRAWS or has_side_effect(instruction):
        return True
    return bool(OPS[instruction.opcode].regions) and any(map(has_effects, instruction.called))


@remembered
def has_effects(computation: Computation) -> bool:
    """Whether a run of it may do more than give its result."""
    return any(map(has_effect, computation.instructions))
