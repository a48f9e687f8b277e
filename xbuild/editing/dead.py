"""Dead code elimination: what neither a result nor an effect needs is left out."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.graph import Computation, Instruction, Module
from ..properties.effects import has_effect
from .programs import Program, applied
from .rebuild import Unchanged, renewed


class _Kept(Unchanged):
    """A computation without its dead instructions."""

    def __init__(self, computation: Computation, kept: set[Instruction]) -> None:
        super().__init__(computation)
        self.kept = kept

    def __iter__(self) -> Iterator[Instruction]:
        return (each for each in self.instructions if each in self.kept)


def eliminate_dead_code(program: Program) -> Program:
    """The program without the instructions that neither the root of their computation nor an effect needs.

    Effects (what talks to devices or to the host, custom calls with side effects, what moves a random state, calls of
    these) stay, and so do control predecessors of what stays, and all parameters: no signature changes. Computations
    that the entry does not call are left out. Without dead code it is the same object.

    >>> import xbuild as xb
    >>> module = xb.parse_hlo("ENTRY main { x = f32[2] parameter(0) y = tanh(x) ROOT z = negate(x) }")
    >>> [instruction.name for instruction in xb.eliminate_dead_code(module).entry.instructions]
    ['x', 'z']

    Source: hlo_dce.h, HloDCE.
    """
    return applied(_lean, program)


def _lean(module: Module) -> Module:
    called = module.entry.reachable()
    revisions = {}
    for computation in called:
        kept = live(computation)
        if len(kept) < len(computation.instructions):
            revisions[computation] = _Kept(computation, kept)
    if not revisions and len(called) == len(module.computations):
        return module
    return renewed(module, revisions, only_called=True)


def live(computation: Computation) -> set[Instruction]:
    """What the root, an effect or the signature needs."""
    stack = [computation.root]
    stack += [each for each in computation.instructions if each.opcode == "parameter" or has_effect(each)]
    found: set[Instruction] = set()
    while stack:
        each = stack.pop()
        if each not in found:
            found.add(each)
            stack += each.operands
            stack += each.control
    return found
