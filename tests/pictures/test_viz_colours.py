"""The colours of pictures: themes, words that can be read on their ground, kinds that are told apart."""

from __future__ import annotations

import re

import pytest

import xbuild as xb
from tests.pictures.support import contrast
from xbuild.pictures.picture import DARK, KINDS, LIGHT, theme_of

from ..golden import programs


def test_themes() -> None:
    auto, light, dark = (str(xb.viz(programs.loop(), "svg", theme=theme)) for theme in ("auto", "light", "dark"))
    assert "prefers-color-scheme:dark" in auto
    assert "prefers-color-scheme" not in light + dark
    ground, dark_ground = f".ground{{fill:{LIGHT.ground}}}", f".ground{{fill:{DARK.ground}}}"
    assert (ground in light, dark_ground in light) == (True, False)
    assert (ground in dark, dark_ground in dark) == (False, True)
    # Rules are bound to the theme, so that two pictures may stand on one page.
    assert ".xb.dark .ground" in dark
    assert 'class="xb dark"' in dark
    assert set(re.findall(r"url\(#(xb-\w+)", dark)) == {"xb-dark"}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_can_be_read_on_their_ground(theme: str) -> None:
    for kind in KINDS:
        fill, _, ink = kind.colours(theme)
        assert contrast(fill, ink) >= 4.5, kind.name
    colours = theme_of(theme)
    for ground in (colours.ground, *colours.frames[:2]):
        assert contrast(colours.ink, ground) >= 7
        assert contrast(colours.dim, ground) >= 4.5
        for what, line in colours.lines.items():
            assert contrast(line, ground) >= 2.9, what


def test_every_kind_has_a_letter_an_outline_and_colours_of_its_own() -> None:
    for fact in ("letter", "name", "fill", "dark"):
        assert len({getattr(kind, fact) for kind in KINDS}) == len(KINDS), fact
    # Tuples and what is folded share one: the letter tells them apart.
    assert len({kind.outline for kind in KINDS}) == len(KINDS) - 1
