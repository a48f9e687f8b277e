"""The memory of a device over a program's positions as svg: what is alive, the peak, and what the machine has."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...costs.memory import Memory
from ...costs.table import short
from ..timelines.laying import WIDTH
from .document import document, text
from .outlines import n

_HEIGHT, _TOP, _LEFT = 120.0, 46.0, 70.0


def memory_svg(memory: Memory, limit: float | None = None, theme: str = "auto") -> str:
    """The curve of a program's memory as svg; `limit` is the bytes of the machine, drawn where it is near the peak."""
    alive = memory.curve.bytes
    shown = limit if limit is not None and limit <= 2 * memory.peak else None
    most = max(float(memory.peak), shown or 0.0, 1.0)
    body = [*_head(memory, len(alive)), *_axis(most), _area(alive, most), *_peak(memory, most)]
    if shown is not None:
        body += _limit(shown, most)
    return document(body, _LEFT + WIDTH + 52, _TOP + _HEIGHT + 64, theme, "memory", _EXTRA)


def _head(memory: Memory, count: int) -> Iterator[str]:
    order = "a compiler's order" if memory.is_scheduled else "the recorded order"
    yield text(0, 14, f"memory of a device: at most {short(memory.peak, 'B')} alive at once", 13, "name")
    said = f"over {count:,} positions of the program, in {order}; callees stand at their first call"
    yield text(0, 30, said, 11, "dim")


def _y(size: float, most: float) -> float:
    return _TOP + _HEIGHT * (1 - size / most)


def _axis(most: float) -> Iterator[str]:
    for part in (0.0, 0.5, 1.0):
        y = _y(part * most, most)
        yield f'<path class="tick" d="M{n(_LEFT)} {n(y)}h{n(WIDTH)}"/>'
        yield text(_LEFT - 8, y + 4, short(part * most, "B"), 10, "dim", "end")


def _area(alive: np.ndarray, most: float) -> str:
    """Steps of equal width; where positions are more than points, the most of those that share one."""
    columns = min(len(alive), int(WIDTH))
    if not columns:
        return ""
    firsts = np.arange(columns) * len(alive) // columns
    steps = "".join(
        f"V{n(_y(size, most))}H{n(_LEFT + (place + 1) * WIDTH / columns)}"
        for place, size in enumerate(np.maximum.reduceat(alive, firsts).tolist())
    )
    bottom = n(_TOP + _HEIGHT)
    return f'<path class="alive" d="M{n(_LEFT)} {bottom}{steps}V{bottom}z"/>'


def _peak(memory: Memory, most: float) -> Iterator[str]:
    """A dot at the peak, and below the axis the instruction that runs there."""
    count = len(memory.curve.bytes)
    if count:
        x = _LEFT + (memory.peak_position + 0.5) * WIDTH / count
        anchor = "end" if x > _LEFT + WIDTH / 2 else ""
        yield f'<circle class="peak" cx="{n(x)}" cy="{n(_y(memory.peak, most))}" r="3.5"/>'
        words = f"peak at {memory.curve.instructions[memory.peak_position].name}"
        yield text(x, _TOP + _HEIGHT + 16, words, 10.5, "dim", anchor)


def _limit(limit: float, most: float) -> list[str]:
    y = _y(limit, most)
    line = f'<path class="limit" d="M{n(_LEFT)} {n(y)}h{n(WIDTH)}"/>'
    return [line, text(_LEFT + WIDTH, y - 5, f"the machine has {short(limit, 'B')}", 10.5, "dim", "end")]


def _rules(fill: str, line: str, limit: str) -> str:
    return (
        f".xb .alive{{fill:{fill};stroke:{line};stroke-width:1}}.xb .peak{{fill:{line};stroke:none}}"
        f".xb .limit{{fill:none;stroke:{limit};stroke-width:1.4;stroke-dasharray:5 3}}"
        f".xb .tick{{stroke:{line};opacity:.25;fill:none}}"
    )


_EXTRA = (_rules("#cfe3f5", "#2a6fb0", "#c62828"), _rules("#1f3d59", "#7db8ee", "#ff6b6b"))
