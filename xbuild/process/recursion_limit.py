"""How deep computations call each other, and the recursion limit of Python that walks over these calls need."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from ..core.diagnostics import BuildError
from ..core.graph import Computation, Instruction
from ..core.memos import remembered

DEEPEST = 500
SHALLOW = 16  # levels for which there is always room
_FRAMES = 40  # of the walk that takes most, for each level


@remembered
def depth(computation: Computation) -> int:
    """How many calls lie between a computation and the innermost that it calls.

    Raises BuildError where a computation calls itself, in whatever way.
    """
    found: dict[Computation, int] = {}
    for each in computation.reachable():
        calling = (i for i in each.instructions if i.attributes is not None and i.attributes.calling)
        calls = [(i, called) for i in calling for called in i.called]
        for instruction, called in calls:
            if called not in found:
                _refuse_recursion(each, instruction, called)
        found[each] = max((found[called] + 1 for _, called in calls), default=0)
    return found[computation]


def _refuse_recursion(computation: Computation, instruction: Instruction, called: Computation) -> NoReturn:
    between = "itself" if called is computation else f"{called.name}, which calls it in turn"
    raise BuildError(
        "cycle",
        f"computation {computation.name} calls {between} at {instruction.name}, and so would run without end",
        ("a loop that ends is xb.while_",),
    )


@contextmanager
def room_for_calls(entries: Iterable[Computation]) -> Iterator[None]:
    """Inside the block a walk may recurse into every call of these. Raises BuildError where calls nest too deep."""
    deepest = max(map(depth, entries), default=0)
    if deepest > DEEPEST:
        raise BuildError(
            "nested_too_deep",
            f"computations call each other {deepest} deep, and at most {DEEPEST} levels are followed",
            ("inline what is called only once: xb.edit(module), editor.inline(name)",),
        )
    before = sys.getrecursionlimit()
    if deepest > SHALLOW:
        sys.setrecursionlimit(before + deepest * _FRAMES)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
