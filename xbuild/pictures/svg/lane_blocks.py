"""Scopes as blocks on the lanes of a verdict: frames around successive stops of one scope, such as F0 and B0."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from shape_inference.escaping import in_html

from ..lanes import Lanes
from ..layout.places import Rectangle
from ..layout.sizes import ADVANCE
from .outlines import rounded

_SIZE = 10.0
_SIDE, _ABOVE, _BELOW = 9.0, 18.0, 7.0


def scope_blocks(lanes: Lanes, places: Sequence[Rectangle]) -> Iterator[str]:
    """The frames of all lanes, each with the name of its scope; those of one row of a lane stand beside each other."""
    from .document import text

    for scope, place in _blocks(lanes, places):
        yield f'<g><title>{in_html(scope)}</title><path class="block" d="{rounded(place, 6)}"/></g>'
        if words := _short(scope, place.width - 10):
            # Waits are written above the left of a stop.
            x, anchor = (place.x + 6, "") if lanes.halt is None else (place.right - 6, "end")
            yield text(x, place.y + 12, words, _SIZE, "dim", anchor)


def _blocks(lanes: Lanes, places: Sequence[Rectangle]) -> Iterator[tuple[str, Rectangle]]:
    numbers = sorted(range(len(places)), key=lambda n: (lanes.stops[n].lane, lanes.stops[n].column))
    for (_, scope, _), found in itertools.groupby(numbers, lambda n: _key(lanes, places, n)):
        if scope:
            first, *rest = found
            place, last = places[first], places[rest[-1] if rest else first]
            wide = last.right - place.x + 2 * _SIDE
            yield scope, Rectangle(place.x - _SIDE, place.y - _ABOVE, wide, place.height + _ABOVE + _BELOW)


def _key(lanes: Lanes, places: Sequence[Rectangle], number: int) -> tuple[int, str, float]:
    stop = lanes.stops[number]
    return stop.lane, stop.scope, places[number].y


def _short(scope: str, width: float) -> str:
    """A scope in so much room: whole, its last part, or nothing."""
    most = int(width / (_SIZE * ADVANCE))
    return next((words for words in (scope, scope.rpartition("/")[2]) if len(words) <= most), "")
