"""What notebooks show as a picture."""

from __future__ import annotations

from typing import Any


class Showable:
    """Programs, values under construction and verdicts: a picture in a notebook, text in a terminal."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return _drawing(self)._repr_svg_()  # type: ignore[no-any-return]

    def _repr_html_(self) -> str:
        return _drawing(self)._repr_html_()  # type: ignore[no-any-return]


def _drawing(thing: Any) -> Any:
    from .viz import viz

    return viz(thing)
