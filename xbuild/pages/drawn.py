"""The picture of a program in a step page, and the boxes that show each instruction."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from ..core.graph import Module, ModuleGroup
from ..pictures.model.before_after import with_reasons
from ..pictures.model.data import Scale
from ..pictures.model.picture import Picture
from ..pictures.showing import shown
from ..pictures.svg.document import svg_text
from ..pictures.views.views import View
from ..sharding.partition import Partitioned
from ..traces import Spot

MOST = 240


def drawn(program: Module | ModuleGroup, partitioned: Partitioned | None = None) -> tuple[Picture, str]:
    """The picture of a program, folded where it is large, and its svg, which has both themes."""
    picture = shown(program, View(max_nodes=MOST))
    assert isinstance(picture, Picture)
    if partitioned is not None and partitioned.communications:
        scale = Scale("bytes that an inserted collective sends", None, None)
        picture = evolve(with_reasons(picture, partitioned), scale=scale)
    return picture, svg_text(picture, "page")


def boxes(picture: Picture, spots: Sequence[Spot]) -> list[list[str]]:
    """For each spot the ids of the boxes that show its instruction: its own boxes, or those that it is folded into."""
    places: dict[str, list[str]] = {}
    for box in picture.all_boxes():
        for name in (box.name, *box.folded):
            places.setdefault(name, []).append(box.id)
    return [places.get(spot.instruction.name, []) for spot in spots]
