"""Which collective by axis name an instruction stands for, as a note on the instruction."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from attrs import frozen

from shape_inference import refuse

from ...core.graph import Instruction

COLLECTIVE = "xbuild.collective"
CAST = "xbuild.cast"
_ATTRIBUTES = "frontend_attributes"

_MARK = re.compile(r"(\w+)\(([\w,]*)\)(?:: (.*))?", re.DOTALL)


@frozen
class Mark:
    """A collective by axis name: its name and its axes, in the order in which they were given.

    `reason` tells why a cast was inserted; a cast of the program itself has none.
    """

    op: str
    axes: tuple[str, ...]
    reason: str = ""

    def text(self) -> str:
        return f"{self.op}({','.join(self.axes)})" + (f": {self.reason}" if self.reason else "")


def mark_of(instruction: Instruction, key: str = COLLECTIVE) -> Mark | None:
    """What an instruction is marked as; invalid_attribute for a mark that reads as none."""
    notes = instruction.annotations.get(_ATTRIBUTES)
    if not notes or key not in notes:
        return None
    found = _MARK.fullmatch(str(notes[key]))
    if found is None:
        refuse("invalid_attribute", f"{key}={notes[key]!r} on %{instruction.name} does not read as psum(i,j)")
    return Mark(found[1], tuple(filter(None, found[2].split(","))), found[3] or "")


def cast_of(instruction: Instruction) -> Mark | None:
    """The cast that an instruction stands for, or None."""
    return mark_of(instruction, CAST)


def marks_of(instruction: Instruction) -> tuple[str, ...]:
    """What tells two instructions apart that compute the same: the collective or the cast that each stands for."""
    notes = instruction.annotations.get(_ATTRIBUTES)
    return tuple(str(notes[key]).partition(":")[0] for key in (COLLECTIVE, CAST) if key in notes) if notes else ()


def with_marks(notes: Mapping[str, Any], instruction: Instruction) -> Mapping[str, Any]:
    """Notes with those of an instruction that say which collective or cast it stands for."""
    given = instruction.annotations.get(_ATTRIBUTES)
    return MappingProxyType({**notes, _ATTRIBUTES: given}) if given else notes
