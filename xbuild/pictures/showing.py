"""Pictures of everything that can be shown: a program, a value under construction, a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import evolve

from shape_inference.escaping import in_line

from ..checking import Verdict
from ..core.builder import Value
from ..core.graph import Computation, Instruction, Module, ModuleGroup, module_in
from ..process.gc_pause import no_collection
from ..properties.partitioning import not_partitioned
from ..sharding.partition import Partitioned, Tiling
from ..timelines import Timeline
from . import ViewError
from .lanes import Lanes
from .model.before_after import before_after
from .model.data import Datum, by_instruction, scale_of
from .model.drawing import draw
from .model.picture import Picture
from .tiles import TilePicture, tile_picture
from .timelines import TimePicture
from .views.views import View


def shown(
    thing: Any, view: View, data: Mapping[Any, Datum] | None = None, data_name: str = "data"
) -> Picture | Lanes | TimePicture | TilePicture:
    """The picture of a program, or of what a value depends on, in a view; the lanes of a verdict or a time line."""
    if isinstance(thing, Tiling):
        return tile_picture(thing)
    if isinstance(thing, Partitioned):
        if data is not None:
            raise ViewError("data are laid over the boxes of one program; that of a device is PARTITIONED.module")
        with no_collection():
            return view.of(before_after(thing))
    thing = module_in(thing)
    if isinstance(thing, Verdict):
        if data is not None:
            raise ViewError("data are laid over the boxes of a program; a verdict has none")
        from .lanes.verdict import lanes_of

        return lanes_of(thing)
    if isinstance(thing, Timeline):
        from .timelines.laying import time_picture

        return time_picture(thing)
    if isinstance(thing, Value):
        thing = _made_from(thing)
    if not isinstance(thing, Computation | Module | ModuleGroup):
        raise TypeError(
            f"viz: {type(thing).__name__} has no picture; a Computation, Module, ModuleGroup, Value or Verdict has"
        )
    with no_collection():
        picture = view.of(draw(thing) if data is None else _laid(thing, data, data_name))
    return evolve(picture, notes=(*_not_partitioned(thing), *picture.notes))


def _not_partitioned(program: Computation | Module | ModuleGroup) -> Iterator[str]:
    """The notes that modules are not partitioned yet."""
    modules = program.modules.values() if isinstance(program, ModuleGroup) else (program,)
    for module in dict.fromkeys(each for each in modules if isinstance(each, Module)):
        if note := not_partitioned(module, "drawn"):
            yield note


def _laid(program: Computation | Module | ModuleGroup, data: Mapping[Any, Datum], name: str) -> Picture:
    """The picture of a program with data over its boxes, and a note of how many data have no box."""
    marks, name = by_instruction(program, data), in_line(" ".join(name.split()))
    picture = draw(program, marks)
    shown = {id(box.mark): box.mark for box in picture.all_boxes() if box.mark is not None}
    left = len(marks) - len(shown)
    note = f"{name}: {left:,} more {'is' if left == 1 else 'are'} of what has no box of its own, as small constants"
    scale = scale_of(name, (value for mark in shown.values() for value in mark.values))
    return evolve(picture, scale=scale, notes=(*picture.notes, note) if left else picture.notes)


def _made_from(value: Value) -> Computation:
    """The computation of a value and of all instructions that the value depends on, in the recorded order."""
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
