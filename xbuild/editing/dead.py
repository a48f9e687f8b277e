"""Dead code elimination: removes instructions on which neither a root nor a side effect depends."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.graph import Computation, Instruction, Module
from ..properties.effects import has_effect
from ..properties.order import live_instructions
from .rebuild import Program, Unchanged, apply_edit, rebuild_module


class _LiveOnly(Unchanged):
    """A computation without its dead instructions."""

    def __init__(self, computation: Computation, kept: set[Instruction]) -> None:
        super().__init__(computation)
        self.kept = kept

    def __iter__(self) -> Iterator[Instruction]:
        return (each for each in self.instructions if each in self.kept)


def eliminate_dead_code(program: Program) -> Program:
    """Remove the instructions on which neither the root of their computation nor a side effect depends.

    The result keeps all parameters, so that no signature changes. It keeps the control predecessors of kept
    instructions. It also keeps instructions with side effects: communication with devices or the host, custom calls
    with side effects, updates of a random state, and calls of such instructions. Computations that the entry does not
    call are removed. A program without dead code is returned as the same object.

    >>> import xbuild as xb
    >>> module = xb.parse_hlo("ENTRY main { x = f32[2] parameter(0) y = tanh(x) ROOT z = negate(x) }")
    >>> [instruction.name for instruction in xb.eliminate_dead_code(module).entry.instructions]
    ['x', 'z']

    Source: hlo_dce.h, HloDCE.
    """
    return apply_edit(_remove_dead, program)


def _remove_dead(module: Module) -> Module:
    called = module.entry.reachable()
    revisions = {}
    for computation in called:
        kept = live_instructions(computation.instructions, computation.root, is_kept=_is_kept)
        if len(kept) < len(computation.instructions):
            revisions[computation] = _LiveOnly(computation, kept)
    if not revisions and len(called) == len(module.computations):
        return module
    return rebuild_module(module, revisions, only_called=True)


def _is_kept(instruction: Instruction) -> bool:
    return instruction.opcode == "parameter" or has_effect(instruction)
