"""The picture of a program in a step page, and the boxes that show each instruction."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.graph import Module, ModuleGroup
from ..pictures.model.picture import Picture
from ..pictures.showing import shown
from ..pictures.svg.document import svg_text
from ..pictures.views.views import View
from ..traces import Spot

MOST = 240


def drawn(program: Module | ModuleGroup) -> tuple[Picture, str]:
    """The picture, large programs folded, and its svg, which has both themes: the page chooses."""
    picture = shown(program, View(max_nodes=MOST))
    assert isinstance(picture, Picture)
    return picture, svg_text(picture, "page")


def boxes(picture: Picture, spots: Sequence[Spot]) -> list[list[str]]:
    """For each spot the ids of the boxes that show it: its own, or those in which it is folded."""
    places: dict[str, list[str]] = {}
    for box in picture.all_boxes():
        for name in (box.name, *box.folded):
            places.setdefault(name, []).append(box.id)
    return [places.get(spot.instruction.name, []) for spot in spots]
