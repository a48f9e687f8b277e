"""An issue: what a command says about one line of a program, whatever the format of its output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from attrs import field, frozen

from .graph import Source

Level: TypeAlias = Literal["error", "warning", "note"]
"""An error makes a command fail, a warning costs or surprises, and a note only informs."""


@frozen
class Issue:
    """A message about a place in the user's program, with the rule that found it and the usual fix.

    `rule` is a kind of finding such as `deadlock`, or a rule of `xbuild lint`. `facts` are numbers such as `bytes` and
    `seconds`, by name. `source` is a line of the user's code or of the HLO text.
    """

    rule: str
    level: Level
    message: str
    source: Source | None = None
    instructions: tuple[str, ...] = ()
    devices: tuple[int, ...] = ()
    fix: str = ""
    facts: Mapping[str, Any] = field(factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The issue as plain data, with file, line and function apart."""
        place = self.source
        return {
            "rule": self.rule,
            "level": self.level,
            "message": self.message,
            "file": place.file if place else None,
            "line": place.line if place else None,
            "function": place.function if place else None,
            "instructions": list(self.instructions),
            "devices": list(self.devices),
            "fix": self.fix or None,
            "facts": dict(self.facts),
        }
