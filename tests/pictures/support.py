"""What tests of pictures share: whether graphviz can paint here, and the contrast of two colours."""

from __future__ import annotations

import pytest

from xbuild.pictures.graphviz import DrawingError, render


def has_engine() -> bool:
    try:
        render("digraph { a }", "svg", 30, engine="dot")
    except DrawingError:
        return False
    return True


needs_engine = pytest.mark.skipif(not has_engine(), reason="neither dot nor pygraphviz is here")


def _brightness(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = (int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a: str, b: str) -> float:
    bright, dim = sorted((_brightness(a), _brightness(b)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)
