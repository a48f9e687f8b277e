"""Marks: a plan that is watched without values reports stretches of instructions, each by one call."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from attrs import evolve

from ..rules.lines import Line, Path

Stretch: TypeAlias = tuple[Path, ...]
"""Instructions that a device comes to one after the other, with nothing between them at which it could wait."""

MARK = "mark"
"""The text of a line that stands for: the instruction of this path is done."""

SET_UP = "mark, me = device.mark, device.number"

_PARTS = re.compile(r"(?:for|if|elif|else|return|break|def)\b|.*\b(?:yield\b|f\d+_\()")
"""Lines at which a device may wait, go another way, or come to other instructions."""


def merged(lines: Iterable[Line], bind: Callable[[str, Stretch], str]) -> Iterator[Line]:
    """The lines with one call for the marks of each stretch, at its end; those between say in `begun` what was done."""
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
