"""From whatever can be shown to its picture: a program, a value under construction, a verdict."""

from __future__ import annotations

from typing import Any

from ..builder import Value
from ..collection import no_collection
from ..graph import Computation, Instruction, Module, ModuleGroup
from ..scheduling import Verdict
from .drawing import draw
from .lanes import Lanes
from .picture import Picture
from .views import View


def shown(thing: Any, view: View) -> Picture | Lanes:
    """The picture of a program or of what a value is made from, as a view has it; of a verdict its lanes."""
    if isinstance(thing, Verdict):
        from .lanes.verdict import lanes_of

        return lanes_of(thing)
    if isinstance(thing, Value):
        thing = _made_from(thing)
    if not isinstance(thing, Computation | Module | ModuleGroup):
        raise TypeError(
            f"viz: {type(thing).__name__} has no picture; a Computation, Module, ModuleGroup, Value or Verdict has"
        )
    with no_collection():
        return view.of(draw(thing))


def _made_from(value: Value) -> Computation:
    """A value and all that it depends on, in the recorded order."""
    found: dict[Instruction, None] = {}
    stack = [value.instruction]
    while stack:
        instruction = stack[-1]
        waiting = [each for each in (*instruction.operands, *instruction.control) if each not in found]
        if instruction in found or not waiting:
            found[stack.pop()] = None
        else:
            stack += reversed(waiting)
    return Computation(value.name, tuple(found), value.instruction)
