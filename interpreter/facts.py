"""What a compilation must know of a computation before it writes it: effects, live instructions, size."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from xbuild.graph import Computation, Instruction

COLLECTIVES = frozenset({"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute"})
TRANSFERS = frozenset({"send", "send_done", "recv", "recv_done", "infeed", "outfeed"})
REQUESTS = COLLECTIVES | TRANSFERS

Fact = TypeVar("Fact")


def _remembered(fact: Callable[[Computation], Fact]) -> Callable[[Computation], Fact]:
    """Keep a fact with the computation itself, which never changes."""
    key = f"_{fact.__name__}"

    def ask(computation: Computation) -> Fact:
        known = vars(computation)
        if key not in known:
            known[key] = fact(computation)
        return known[key]  # type: ignore[no-any-return]

    return ask


def acts(instruction: Instruction) -> bool:
    """Whether it must run though no result uses it: it talks to other devices or to the host."""
    return instruction.opcode in REQUESTS or any(map(communicates, instruction.called))


@_remembered
def communicates(computation: Computation) -> bool:
    """Whether a run of it may need another device or the host, so that its plan is a generator."""
    return any(map(acts, computation.instructions))


@_remembered
def weight(computation: Computation) -> int:
    """How many instructions it is with all that it calls written out, up to a million."""
    inner = sum(weight(called) for i in computation.instructions for called in i.called)
    return min(len(computation.instructions) + inner, 1_000_000)


@_remembered
def live(computation: Computation) -> frozenset[Instruction]:
    """The instructions that the root or an effect needs; the others are not evaluated."""
    stack = [computation.root, *filter(acts, computation.instructions)]
    found: set[Instruction] = set()
    while stack:
        instruction = stack.pop()
        if instruction not in found:
            found.add(instruction)
            stack += instruction.operands
    return frozenset(found)
