"""The style sheet of an svg, in the light or the dark theme, or in that of the reader's system."""

from __future__ import annotations

from collections.abc import Iterator

from ..model.kinds import KINDS
from ..model.themes import theme_of

FONT = "ui-monospace,'SF Mono',Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"

DASHES = {"token": "5 3", "control": "1.5 3.5", "call": "6 4"}


def style(theme: str, extra: tuple[str, str] = ("", "")) -> str:
    """The style sheet of a theme (`page` follows the root of the page); `extra` are further rules of both themes."""
    light, dark = _rules("light") + extra[0], _rules("dark") + extra[1]
    if theme == "page":
        return _common() + light + dark.replace(".xb ", ":root[data-theme=dark] .xb ")
    if theme == "auto":
        found = f"{_common()}{light}@media (prefers-color-scheme:dark){{{dark}}}"
    else:
        found = _common() + (dark if theme == "dark" else light)
    # The class of the theme is in each rule, since a notebook may show pictures in several themes.
    return found.replace(".xb ", f".xb.{theme} ")


def _common() -> str:
    rules = (
        f"text{{font-family:{FONT};white-space:pre}}",
        ".name{font-weight:700}",
        ".stub{font-style:italic}",
        ".line path{fill:none;stroke-width:1.2}",
        ".channel path{stroke-width:2}",
        ".shapes path{stroke-width:1.2}",
        ".root path:first-of-type{stroke-width:2.6}",
        *(f".{what} path{{stroke-dasharray:{dash}}}" for what, dash in DASHES.items()),
        ".line:hover path{stroke-width:2.6}",
    )
    return "".join(f".xb {rule}" for rule in rules)


def _rules(theme: str) -> str:
    return "".join(f".xb {rule}" for rule in _colours(theme))


def _colours(name: str) -> Iterator[str]:
    theme = theme_of(name)
    yield f".ground{{fill:{theme.ground}}}"
    yield f"text{{fill:{theme.ink}}}"
    yield f".dim,.xb .line text{{fill:{theme.dim}}}"
    yield f".frame{{stroke:{theme.frame}}}"
    yield from (f".f{depth}{{fill:{fill}}}" for depth, fill in enumerate(theme.frames))
    for kind in KINDS:
        fill, border, words = kind.colours(name)
        yield f".{kind_class(kind.letter)} path{{fill:{fill};stroke:{border}}}"
        yield f".{kind_class(kind.letter)} text{{fill:{words}}}"
    for what, colour in theme.lines.items():
        yield f".{what} path{{stroke:{colour}}}"
        yield f".a-{what},.xb .w-{what}{{fill:{colour}}}"
    yield f".line:hover path{{stroke:{theme.hover}}}"


def kind_class(letter: str) -> str:
    """The CSS class of boxes of the kind with this letter."""
    return "kFolded" if letter == "+" else f"k{letter}"
