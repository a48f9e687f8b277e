"""An issue: what a command says about one line of a program, whatever the format of its output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

from attrs import field, frozen

from .graph import Source
from .identifiers import short_path

Level: TypeAlias = Literal["error", "warning", "note"]
"""An error makes a command fail, a warning costs or surprises, and a note only informs."""


@frozen
class RelatedPlace:
    """Another line that an issue is about, such as that of a further instruction of a cycle, and what is there."""

    message: str
    source: Source

    def to_dict(self) -> dict[str, Any]:
        """The place as plain data, with file, line and function as separate fields."""
        return {"message": self.message, **place_facts(self.source)}


def related_places(places: Iterable[tuple[str, Source | None]], source: Source | None) -> tuple[RelatedPlace, ...]:
    """A related place for each line among the places, except the line of the issue itself.

    >>> from xbuild.core.graph import Source
    >>> ring = [(f"step {n}", Source("ring.py", n, "step")) for n in (3, 4, 4, 5)]
    >>> [place.message for place in related_places(ring, ring[0][1])]
    ['step 4', 'step 5']
    """
    first: dict[Source, str] = {}
    for message, place in places:
        if place is not None and place != source:
            first.setdefault(place, message)
    return tuple(RelatedPlace(message, place) for place, message in first.items())


def place_facts(source: Source | None) -> dict[str, Any]:
    """File, line and function of a source as plain data."""
    return {
        "file": short_path(source.file) if source else None,
        "line": source.line if source else None,
        "function": (source.function or None) if source else None,
    }


@frozen
class Issue:
    """A message about a place in a program, with the rule that found it and the usual fix.

    `rule` is a kind of finding such as `deadlock`, or a rule of `xbuild lint`. `facts` are numbers such as `bytes` and
    `seconds`, by name. `source` is a line of source code or of HLO text; `related` are further lines. `xb.lint`
    reports, verdicts and costs all contain issues.

    >>> import xbuild as xb
    >>> twice = xb.computation(xb.f32[1024])(lambda x: xb.cross_replica_sum(xb.cross_replica_sum(x)))
    >>> (issue,) = xb.lint(xb.Module("twice", twice, num_replicas=4)).issues
    >>> isinstance(issue, xb.Issue), issue.rule, issue.level, issue.facts["bytes"]
    (True, 'reduced_twice', 'warning', 4096)

    Source: docs/formats.md.
    """

    rule: str
    level: Level
    message: str
    source: Source | None = None
    instructions: tuple[str, ...] = ()
    devices: tuple[int, ...] = ()
    fix: str = ""
    facts: Mapping[str, Any] = field(factory=dict)
    related: tuple[RelatedPlace, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The issue as plain data, with file, line and function as separate fields."""
        return {
            "rule": self.rule,
            "level": self.level,
            "message": self.message,
            **place_facts(self.source),
            "instructions": list(self.instructions),
            "devices": list(self.devices),
            "fix": self.fix or None,
            "facts": dict(self.facts),
            "related": [place.to_dict() for place in self.related],
        }
