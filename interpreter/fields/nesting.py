"""Whether a program has exponentials of what exponentials have part in."""

from __future__ import annotations

from xbuild.core.graph import Computation, Instruction
from xbuild.properties.effects import LOOPS
from xbuild.properties.sites import reached

from .rules.laws import LAWFUL

EXPONENTIALS = LAWFUL - {"log", "log_plus_one"}


def is_nested(entry: Computation) -> bool:
    """Whether an exponential may have the value of another in its argument; in a loop that of an earlier trip.

    >>> import xbuild as xb
    >>> functions = (lambda x: xb.exp(x) + xb.tanh(x)), (lambda x: xb.exp(xb.tanh(x)))
    >>> [is_nested(xb.computation(xb.f32[2])(each)) for each in functions]
    [False, True]
    """
    return any(_within(computation) for computation in reached(entry))


def _within(computation: Computation) -> bool:
    above: dict[Instruction, bool] = {}
    for instruction in computation.instructions:
        own = _has(instruction)
        before = any(above[each] for each in instruction.operands)
        if own and (before or instruction.opcode in LOOPS):
            return True
        above[instruction] = own or before
    return False


def _has(instruction: Instruction) -> bool:
    """Whether an instruction is an exponential, or calls one."""
    if instruction.opcode in EXPONENTIALS:
        return True
    return any(
        each.opcode in EXPONENTIALS for called in instruction.called for c in reached(called) for each in c.instructions
    )
