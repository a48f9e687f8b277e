"""Outlines of boxes, one for each kind of op, so that kinds differ in more than colour."""

from __future__ import annotations

from collections.abc import Sequence

from ..layout.places import Point, Rectangle
from ..model.kinds import Outline

_CUT = 8.0


def outline(kind: Outline, place: Rectangle) -> str:
    """The svg path of the outline of a box."""
    x, y, w, h = place.x, place.y, place.width, place.height
    if kind in ("plain", "double"):
        return rounded(place, 3)
    if kind == "round":
        return rounded(place, 9)
    if kind == "pill":
        return rounded(place, min(16.0, h / 2))
    return _polygon([(x + px, y + py) for px, py in _corners(kind, w, h)])


def _corners(kind: Outline, w: float, h: float) -> Sequence[Point]:
    c = _CUT
    return {
        "house": [(0, c), (c, 0), (w - c, 0), (w, c), (w, h), (0, h)],
        "octagon": [(0, c), (c, 0), (w - c, 0), (w, c), (w, h - c), (w - c, h), (c, h), (0, h - c)],
        "slanted": [(c, 0), (w, 0), (w - c, h), (0, h)],
        "funnel": [(0, 0), (w, 0), (w - c, h), (c, h)],
        "hexagon": [(0, h / 2), (c, 0), (w - c, 0), (w, h / 2), (w - c, h), (c, h)],
        "flag": [(0, 0), (w - c, 0), (w, h / 2), (w - c, h), (0, h)],
        "tab": [(0, 0), (w, 0), (w, h - c), (w - c, h), (c, h), (0, h - c)],
        "cut": [(0, 0), (w - c, 0), (w, c), (w, h), (0, h)],
    }[kind]


def rounded(place: Rectangle, r: float) -> str:
    """The svg path of a rectangle with round corners."""
    x, y, right, bottom = (n(each) for each in (place.x, place.y, place.right, place.bottom))
    inner = (n(place.x + r), n(place.right - r), n(place.y + r), n(place.bottom - r))
    left, end, top, low = inner
    return (
        f"M{left} {y}H{end}Q{right} {y} {right} {top}V{low}Q{right} {bottom} {end} {bottom}"
        f"H{left}Q{x} {bottom} {x} {low}V{top}Q{x} {y} {left} {y}Z"
    )


def _polygon(points: Sequence[Point]) -> str:
    return f"M{'L'.join(f'{n(x)} {n(y)}' for x, y in points)}Z"


def curve(points: Sequence[Point], *, sideways: bool = False) -> str:
    """The svg path of a route: straight within each pair of points, curved from pair to pair."""
    if sideways:
        start, *bends = (f"{n(x)} {n(y)}" for x, y in points)
        return f"M{start}" + "".join(f"C{' '.join(bends[at : at + 3])}" for at in range(0, len(bends), 3))
    (x, y), *rest = points
    parts = [f"M{n(x)} {n(y)}"]
    for number, (nx, ny) in enumerate(rest):
        if abs(nx - x) < 0.05:
            parts.append(f"V{n(ny)}" if abs(ny - y) > 0.05 else "")
        elif number % 2:
            middle = n((y + ny) / 2)
            parts.append(f"C{n(x)} {middle} {n(nx)} {middle} {n(nx)} {n(ny)}")
        else:
            parts.append(f"L{n(nx)} {n(ny)}")
        x, y = nx, ny
    return "".join(parts)


def n(number: float) -> str:
    """A number with at most one decimal place."""
    return (
        f"{number:.1f}".removesuffix(".0").replace("-0", "0")
        if abs(number) < 0.05
        else f"{number:.1f}".removesuffix(".0")
    )
