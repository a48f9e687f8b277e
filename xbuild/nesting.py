"""How deep computations call each other, and room on the stack for the walks that follow them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from .diagnostics import BuildError
from .graph import Computation

DEEPEST = 500
SHALLOW = 16  # levels for which there is always room
_FRAMES = 40  # of the walk that takes most, for each level


def depth(computation: Computation) -> int:
    """How many calls lie between a computation and the innermost that it calls; found once."""
    known = vars(computation)
    if "_depth" not in known:
        found: dict[Computation, int] = {}
        for each in computation.reachable():
            calling = (i for i in each.instructions if i.attributes is not None and i.attributes.calling)
            found[each] = max((found[called] + 1 for i in calling for called in i.called), default=0)
        known["_depth"] = found[computation]
    return known["_depth"]  # type: ignore[no-any-return]


@contextmanager
def room(entries: Iterable[Computation]) -> Iterator[None]:
    """Walks may follow every call in these. Raises BuildError where they are nested deeper than DEEPEST."""
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
