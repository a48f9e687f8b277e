"""The picture of a partition: the global program with its shardings, beside what each device runs, and why."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from attrs import evolve

from shape_inference.escaping import in_line

from ...core.graph import Instruction, Module
from ...costs.table import short as amount
from ...sharding.partition import Communication, Partitioned
from ...sharding.propagation import Propagated, short
from ...sharding.sharding import Sharding
from ...sharding.stored import sharding_of
from .data import Mark, Scale
from .drawing import draw
from .picture import Box, Cluster, Picture, Words

_WIDE = 40  # letters of a row of a reason


def before_after(found: Partitioned) -> Picture:
    """The global program with the sharding of each value, beside the device's, whose new collectives say why."""
    before = _renamed(draw(found.whole, _shardings(found.whole, found.propagated)), "before")
    after = _renamed(with_reasons(draw(found.module), found), "after")
    mesh = in_line(" x ".join(f"{axis}={size}" for axis, size in found.mesh.sizes))
    devices = f"what each of {found.mesh.num_devices} devices runs, {mesh}"
    titles = f"{in_line(found.whole.name)}, written for one device", devices
    frames = [evolve(each.clusters[0], title=title) for each, title in zip((before, after), titles, strict=True)]
    scale = Scale("left the sharding of each value, right the bytes that a collective sends", None, None)
    edges = (*before.edges, *after.edges)
    return Picture(f"{in_line(found.whole.name)}, before and after", tuple(frames), edges, _notes(found), scale)


def _notes(found: Partitioned) -> tuple[str, ...]:
    count, total = len(found.communications), sum(each.bytes for each in found.communications)
    return (f"{count} collective{'s' * (count != 1)} inserted; a device sends {amount(total, 'B')}",)


def _shardings(module: Module, causes: Propagated | None) -> dict[Instruction, Mark]:
    """The sharding of each array of the global program that has dimensions."""
    every = (each for computation in module.entry.reachable() for each in computation.instructions)
    found = ((each, sharding_of(each)) for each in every if getattr(each.shape, "rank", 0))
    return {
        each: Mark((in_line(short(sharding)) + _stated(each, causes),))
        for each, sharding in found
        if isinstance(sharding, Sharding)
    }


def _stated(instruction: Instruction, causes: Propagated | None) -> str:
    """A word for a sharding that the program states; nothing for one that followed."""
    return " stated" if causes is not None and instruction.name in causes.stated else ""


def with_reasons(picture: Picture, found: Partitioned) -> Picture:
    """The picture of what each device runs, in which inserted collectives say why they are there."""
    told = {each.name: each for each in found.communications}
    return evolve(picture, clusters=tuple(_told(each, told) for each in picture.clusters))


def _told(cluster: Cluster, told: Mapping[str, Communication]) -> Cluster:
    boxes = tuple(_with_reason(each, told[each.name]) if each.name in told else each for each in cluster.boxes)
    return evolve(cluster, boxes=boxes, clusters=tuple(_told(each, told) for each in cluster.clusters))


def _with_reason(box: Box, communication: Communication) -> Box:
    """The box of an inserted collective, which says why it is there in place of its attributes."""
    axes = ", ".join(dict.fromkeys(axis.name for axis in communication.axes))
    rows = tuple(textwrap.wrap(in_line(communication.reason), _WIDE))
    mark = Mark((in_line(f"{amount(communication.bytes, 'B')} over {axes}"),))
    return evolve(box, words=Words(box.shape, rows, box.arguments), mark=mark)


def _renamed(picture: Picture, prefix: str) -> Picture:
    """The picture with other ids, so that it can stand beside one with boxes of the same names."""
    edges = tuple(evolve(each, tail=f"{prefix}/{each.tail}", head=f"{prefix}/{each.head}") for each in picture.edges)
    return evolve(picture, clusters=tuple(_moved(each, prefix) for each in picture.clusters), edges=edges)


def _moved(cluster: Cluster, prefix: str) -> Cluster:
    boxes = tuple(evolve(each, id=f"{prefix}/{each.id}") for each in cluster.boxes)
    inner = tuple(_moved(each, prefix) for each in cluster.clusters)
    caller = cluster.caller and f"{prefix}/{cluster.caller}"
    return evolve(cluster, id=f"{prefix}/{cluster.id}", boxes=boxes, clusters=inner, caller=caller)
