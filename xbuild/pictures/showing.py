"""The picture of anything that `viz` takes: a program, a value, a partition, tiles, a verdict or a timeline.

Sections:

    The picture of a subject
    The picture of a partition
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import evolve

from shape_inference.escaping import in_line

from ..checking import Verdict
from ..core.builder import Value
from ..core.graph import Computation, Instruction, Module, ModuleGroup, module_in
from ..costs.report import short as amount
from ..process.limits import no_collection
from ..process.progress import during
from ..sharding.partition import Communication, Partitioned, Tiling
from ..sharding.propagation import Propagated, short
from ..sharding.sharding import Sharding
from ..sharding.stated_shardings import sharding_of
from ..sharding.unpartitioned import not_partitioned
from ..timelines import Timeline
from . import ViewError
from .data import BoxData, Datum, Scale, by_instruction, scale_of
from .drawing import draw
from .lanes import Lanes
from .picture import Box, Cluster, Picture, Words
from .tiles import TilePicture, tile_picture
from .time_lanes import TimePicture
from .views import View

# ----------------------------------------------------------------------------
# The picture of a subject


def picture_of(
    subject: Any, view: View, data: Mapping[Any, Datum] | None = None, data_name: str = "data"
) -> Picture | Lanes | TimePicture | TilePicture:
    """The picture of a program, or of what a value depends on, in a view; the lanes of a verdict or a timeline."""
    if isinstance(subject, Tiling):
        return tile_picture(subject)
    if isinstance(subject, Partitioned):
        if data is not None:
            raise ViewError(
                "data needs a picture of one program; for the program of each device, pass PARTITIONED.module"
            )
        with no_collection(), during("drawing the picture"):
            return view.apply(partition_picture(subject))
    subject = module_in(subject)
    if isinstance(subject, Verdict):
        if data is not None:
            raise ViewError("data needs the boxes of a program, but a verdict has no boxes")
        from .lanes import lanes_of

        return lanes_of(subject)
    if isinstance(subject, Timeline):
        from .time_lanes import time_picture

        return time_picture(subject)
    if isinstance(subject, Value):
        subject = _computation_of(subject)
    if not isinstance(subject, Computation | Module | ModuleGroup):
        raise TypeError(
            f"viz: expected a Computation, Module, ModuleGroup, Value or Verdict, got {type(subject).__name__}"
        )
    with no_collection(), during("drawing the picture"):
        picture = view.apply(draw(subject) if data is None else _draw_with_data(subject, data, data_name))
    return evolve(picture, notes=(*_partition_notes(subject), *picture.notes))


def _partition_notes(program: Computation | Module | ModuleGroup) -> Iterator[str]:
    """A note for each module that is not partitioned yet."""
    modules = program.modules.values() if isinstance(program, ModuleGroup) else (program,)
    for module in dict.fromkeys(module for module in modules if isinstance(module, Module)):
        if note := not_partitioned(module, "drawn"):
            yield note


def _draw_with_data(program: Computation | Module | ModuleGroup, data: Mapping[Any, Datum], name: str) -> Picture:
    """The picture of a program with data over its boxes, and a note on how many data have no box."""
    marks, name = by_instruction(program, data), in_line(" ".join(name.split()))
    picture = draw(program, marks)
    drawn = {id(box.mark): box.mark for box in picture.all_boxes() if box.mark is not None}
    hidden = len(marks) - len(drawn)
    note = f"{name}: {hidden:,} not shown, for instructions without a box, such as small constants"
    scale = scale_of(name, (value for mark in drawn.values() for value in mark.values))
    return evolve(picture, scale=scale, notes=(*picture.notes, note) if hidden else picture.notes)


def _computation_of(value: Value) -> Computation:
    """The computation of a value: all instructions that it depends on, in the recorded order."""
    ordered: dict[Instruction, None] = {}
    stack = [value.instruction]
    while stack:
        instruction = stack[-1]
        waiting = [before for before in (*instruction.operands, *instruction.control) if before not in ordered]
        if instruction in ordered or not waiting:
            ordered[stack.pop()] = None
        else:
            stack += reversed(waiting)
    return Computation(value.name, tuple(ordered), value.instruction)


# ----------------------------------------------------------------------------
# The picture of a partition
#
# The global program with its shardings beside the program of a device, with the reasons for its collectives.

_WIDE = 40  # letters of a row of a reason


def partition_picture(partitioned: Partitioned) -> Picture:
    """The global program with the sharding of each value, beside the device's program with reasons for collectives."""
    whole, mesh = partitioned.whole, partitioned.mesh
    before = _prefix_ids(draw(whole, _sharding_marks(whole, partitioned.propagated)), "before")
    after = _prefix_ids(add_reasons(draw(partitioned.module), partitioned), "after")
    axes = in_line(" x ".join(f"{axis}={size}" for axis, size in mesh.sizes))
    titles = f"{in_line(whole.name)}, the global program", f"the program of each of {mesh.num_devices} devices, {axes}"
    frames = [evolve(side.clusters[0], title=title) for side, title in zip((before, after), titles, strict=True)]
    scale = Scale("left: the sharding of each value; right: the bytes that a collective sends", None, None)
    edges = (*before.edges, *after.edges)
    notes = (_collectives_note(partitioned),)
    return Picture(f"{in_line(whole.name)}, before and after", tuple(frames), edges, notes, scale)


def _collectives_note(partitioned: Partitioned) -> str:
    inserted = partitioned.communications
    total = amount(sum(communication.bytes for communication in inserted), "B")
    return f"{len(inserted)} collective{'s' * (len(inserted) != 1)} inserted; a device sends {total}"


def _sharding_marks(module: Module, propagated: Propagated | None) -> dict[Instruction, BoxData]:
    """The sharding of each array of the global program that has dimensions."""
    marks = {}
    for computation in module.entry.reachable():
        for instruction in computation.instructions:
            sharding = sharding_of(instruction) if getattr(instruction.shape, "rank", 0) else None
            if isinstance(sharding, Sharding):
                is_stated = propagated is not None and instruction.name in propagated.stated
                marks[instruction] = BoxData((in_line(short(sharding)) + " stated" * is_stated,))
    return marks


def add_reasons(picture: Picture, partitioned: Partitioned) -> Picture:
    """The picture of a device's program, with its reason in the box of each inserted collective."""
    inserted = {communication.name: communication for communication in partitioned.communications}
    return evolve(picture, clusters=tuple(_add_reasons(cluster, inserted) for cluster in picture.clusters))


def _add_reasons(cluster: Cluster, inserted: Mapping[str, Communication]) -> Cluster:
    boxes = tuple(_add_reason(box, inserted[box.name]) if box.name in inserted else box for box in cluster.boxes)
    return evolve(cluster, boxes=boxes, clusters=tuple(_add_reasons(inner, inserted) for inner in cluster.clusters))


def _add_reason(box: Box, communication: Communication) -> Box:
    """The box of an inserted collective, with its reason in place of its attributes."""
    axes = ", ".join(dict.fromkeys(axis.name for axis in communication.axes))
    rows = tuple(textwrap.wrap(in_line(communication.reason), _WIDE))
    mark = BoxData((in_line(f"{amount(communication.bytes, 'B')} over {axes}"),))
    return evolve(box, words=Words(box.shape, rows, box.arguments), mark=mark)


def _prefix_ids(picture: Picture, prefix: str) -> Picture:
    """The picture with a prefix in all ids, so that it can be beside a picture with boxes of the same names."""
    edges = tuple(evolve(edge, tail=f"{prefix}/{edge.tail}", head=f"{prefix}/{edge.head}") for edge in picture.edges)
    return evolve(picture, clusters=tuple(_prefix_cluster(each, prefix) for each in picture.clusters), edges=edges)


def _prefix_cluster(cluster: Cluster, prefix: str) -> Cluster:
    boxes = tuple(evolve(box, id=f"{prefix}/{box.id}") for box in cluster.boxes)
    inner = tuple(_prefix_cluster(each, prefix) for each in cluster.clusters)
    caller = cluster.caller and f"{prefix}/{cluster.caller}"
    return evolve(cluster, id=f"{prefix}/{cluster.id}", boxes=boxes, clusters=inner, caller=caller)
