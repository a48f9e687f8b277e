"""The base class of objects that notebooks show as a picture."""

from __future__ import annotations

from typing import Any

from .hooks import Hook

drawing: Hook[[Any], Any] = Hook("draws a picture")
"""The picture of what a notebook shows."""


class Showable:
    """Base of programs, values and verdicts: a notebook shows a picture, a terminal text."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return drawing(self)._repr_svg_()  # type: ignore[no-any-return]

    def _repr_html_(self) -> str:
        return drawing(self)._repr_html_()  # type: ignore[no-any-return]
