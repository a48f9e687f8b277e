"""The colours of a picture's ground, words and lines, light and dark."""

from __future__ import annotations

from attrs import frozen


@frozen
class Theme:
    """The colours of a theme: `frames` are the fills of frames by depth, `lines` the colours of lines by their sort."""

    ground: str
    ink: str
    dim: str
    frame: str
    frames: tuple[str, ...]
    hover: str
    lines: dict[str, str]


LIGHT = Theme(
    "#ffffff", "#1d2327", "#5f6b73", "#a9b4bb", ("#f7f8fa", "#eef1f4", "#e5eaee", "#dce3e8"), "#1565c0",
    {"value": "#78909c", "token": "#c2185b", "control": "#d84f00", "call": "#2e7d32", "channel": "#d81b60"},
)  # fmt: skip
DARK = Theme(
    "#15181a", "#e6e9ea", "#9aa7ae", "#4a555c", ("#1b1f22", "#21272b", "#283035", "#2f383e"), "#6db0ff",
    {"value": "#8fa3ad", "token": "#f27bb0", "control": "#ff9d5c", "call": "#7dc982", "channel": "#ff6fa8"},
)  # fmt: skip


def theme_of(name: str) -> Theme:
    """The theme of this name; `auto` is light, for formats that cannot follow the reader's system."""
    return DARK if name == "dark" else LIGHT
