"""Data over boxes in an svg: the colours of their scale, the badges with their words, the legend."""

from __future__ import annotations

from collections.abc import Iterator

from ..layout.places import Rectangle
from ..layout.sizes import PILL, Line, width_of
from ..model.data import STEPS, Mark, Scale, colours
from ..model.themes import theme_of
from .outlines import n, rounded

_SIZE = 10.5
_SWATCH = 22.0


def mark_class(scale: Scale | None, mark: Mark | None) -> str:
    """The CSS class of a box under a scale of numbers: that of its step, or `plain` without a number."""
    if scale is None or scale.low is None:
        return ""
    step = scale.step(mark)
    return " plain" if step is None else f" m{step}"


def mark_rules(name: str) -> str:
    """The CSS rules of a scale in a theme; kinds lose their colours, so that a colour stands for a number alone."""
    theme = theme_of(name)
    rules = [f".plain path{{fill:{theme.ground};stroke:{theme.dim}}}", f".plain text{{fill:{theme.ink}}}"]
    for step in range(STEPS):
        fill, ink = colours(step, name)
        rules += [
            f".m{step} path{{fill:{fill};stroke:{theme.dim}}}",
            f".m{step} rect{{fill:{fill}}}",
            f".m{step} text{{fill:{ink}}}",
        ]
    rules += [
        f".shapes .mark path{{fill:{theme.ground};stroke:{theme.dim};stroke-width:1}}",
        f".shapes .mark text{{fill:{theme.ink};font-weight:700}}",
    ]
    return "".join(f".xb {rule}" for rule in rules)


def badge(x: float, y: float, line: Line) -> str:
    """The badge of a datum: its text in a pill, aligned with the other text of the box."""
    from .document import text

    place = Rectangle(x, y - 9, width_of(line.text, line.size) + 2 * PILL, 15)
    return f'<g class="mark"><path d="{rounded(place, 7)}"/>{text(x + PILL, y + 2.4, line.text, line.size)}</g>'


def scale_legend(scale: Scale, y: float, *, folded: bool) -> tuple[list[str], float]:
    """The legend of a scale in a row, and its width; `folded` states that some boxes stand for several instructions."""
    after = f"{scale.words[1]}{scale.way}"
    after += "; what is folded: the sum, in the colour of the highest" if folded else ""
    return [*_parts(scale, y, after)], _start(scale) + STEPS * _SWATCH + 16 + width_of(after, _SIZE)


def _parts(scale: Scale, y: float, after: str) -> Iterator[str]:
    from .document import text

    if scale.low is None:
        yield text(0, y + 14, f"{scale.name}: texts in the boxes", _SIZE)
        return
    x = _start(scale)
    yield text(0, y + 14, scale.name, _SIZE, "name")
    yield text(x - 8, y + 14, scale.words[0], _SIZE, "", "end")
    for step in range(STEPS):
        place = f'x="{n(x + step * _SWATCH)}" y="{n(y + 3)}" width="{n(_SWATCH)}" height="14"'
        yield f'<g class="m{step}"><rect {place} style="stroke:none"/></g>'
    yield text(x + STEPS * _SWATCH + 8, y + 14, after, _SIZE)


def _start(scale: Scale) -> float:
    return width_of(scale.name, _SIZE) + width_of(scale.words[0], _SIZE) + 24
