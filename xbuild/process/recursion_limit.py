"""The depth of calls of computations, and the recursion limit of Python for recursive walks over these calls."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from ..core.diagnostics import BuildError
from ..core.graph import Computation, Instruction
from ..core.memos import remembered

DEEPEST = 500
SHALLOW = 16  # levels within the default recursion limit
_FRAMES = 40  # Python frames for each level of calls, of the deepest walk


@remembered
def depth(computation: Computation) -> int:
    """The length of the longest chain of calls from a computation.

    Raises BuildError where a computation calls itself, directly or indirectly.
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
    """Raise Python's recursion limit for walks over the calls; raises BuildError where calls are nested too deep."""
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
