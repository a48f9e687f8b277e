"""Marks: a plan that is watched without values reports each stretch of executed instructions by one call."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from attrs import evolve

from ..rules.lines import Line, Path

Stretch: TypeAlias = tuple[Path, ...]
"""Call paths of instructions that a device executes one after the other, without a request or a branch between."""

MARK = "mark"
"""The text of a placeholder line, which states that the instruction at the line's path is executed."""

SET_UP = "mark, me = device.mark, device.number"

_PARTS = re.compile(r"(?:for|if|elif|else|return|break|def)\b|.*\b(?:yield\b|f\d+_\()")
"""Lines at which a stretch ends: a request, a branch, a loop or a call of another function of the plan."""


def merged(lines: Iterable[Line], bind: Callable[[str, Stretch], str]) -> Iterator[Line]:
    """Merge the marks of each stretch into one call at its end; `begun` of a line in between has the marks so far."""
    seen: list[Path] = []
    indent = 0
    for line in lines:
        if seen and (line.indent != indent or (line.text is not MARK and _PARTS.match(line.text))):
            yield Line(indent, f"mark((me, {bind('m', tuple(seen))}))", seen[-1])
            seen = []
        if line.text is MARK:
            seen.append(line.path)
            indent = line.indent
        else:
            yield evolve(line, begun=(seen, len(seen))) if seen else line
