"""Dead code elimination: removes instructions on which neither a root nor a side effect depends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..core.graph import Computation, Instruction, Module
from ..properties.effects import has_effect
from .programs import Program, applied
from .rebuild import Unchanged, rebuilt


class _Kept(Unchanged):
    """A computation without its dead instructions."""

    def __init__(self, computation: Computation, kept: set[Instruction]) -> None:
        super().__init__(computation)
        self.kept = kept

    def __iter__(self) -> Iterator[Instruction]:
        return (each for each in self.instructions if each in self.kept)


def eliminate_dead_code(program: Program) -> Program:
    """The program without the instructions on which neither the root of their computation nor a side effect depends.

    Kept are instructions with side effects (communication with devices or the host, custom calls with side effects,
    updates of a random state, calls of such instructions), control predecessors of kept instructions, and all
    parameters, so that no signature changes. Computations that the entry does not call are removed. A program without
    dead code is returned as the same object.

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
    return rebuilt(module, revisions, only_called=True)


def live(computation: Computation) -> set[Instruction]:
    """The parameters and the instructions on which the root or a side effect depends."""
    kept = (each for each in computation.instructions if each.opcode == "parameter" or has_effect(each))
    return needed_by([computation.root, *kept])


def needed_by(instructions: Iterable[Instruction]) -> set[Instruction]:
    """These instructions, and all on which they depend."""
    stack, found = [*instructions], set[Instruction]()
    while stack:
        each = stack.pop()
        if each not in found:
            found.add(each)
            stack += each.operands
            stack += each.control
    return found
