"""Annotations of instructions and modules from attributes that mean nothing to the program, as HLO text has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.identifiers import is_identifier
from ...text.spelling.faults import Fault
from ...text.spelling.notes import Raw
from ...text.spelling.scanner import Scanner
from ...text.spelling.shardings import read_sharding
from ..syntax.attributes import Record, Symbol


def notes_of(attributes: Mapping[str, Any], place: int) -> dict[str, Any]:
    """The annotations that discardable attributes of an operation or an argument are; `place` is where faults are."""
    found: dict[str, Any] = {}
    pairs = _pairs(attributes, place)
    if pairs:
        found["frontend_attributes"] = pairs
    sharding = attributes.get("mhlo.sharding")
    if isinstance(sharding, str) and sharding.startswith("{"):
        found["sharding"] = Raw(_checked(sharding, place))
    return found


def _checked(sharding: str, place: int) -> str:
    """A sharding as HLO text has it. Raises Fault of what is none."""
    scanner = Scanner(sharding)
    try:
        read_sharding(scanner)
        if scanner.skip() < len(sharding):
            scanner.expected("the end of the sharding")
    except Fault as fault:
        raise Fault("invalid_attribute", f"mhlo.sharding: {fault.message}", place, fault.hints) from None
    return sharding


def _pairs(attributes: Mapping[str, Any], place: int) -> dict[str, str]:
    """The frontend attributes, and the shardings of Shardy under the names that XLA gives them."""
    given = attributes.get("mhlo.frontend_attributes")
    found = {}
    if isinstance(given, Record):
        found = {key: value if isinstance(value, str) else shown(value) for key, value in given.fields.items()}
        if odd := next((key for key in found if not is_identifier(key)), None):
            raise Fault("invalid_attribute", f"mhlo.frontend_attributes: HLO text has no key {odd[:60]!r}", place)
    for key in ("sdy.sharding", "sdy.sharding_rule"):
        if key in attributes:
            found[f"xla.{key}"] = shown(attributes[key])
    return found


def shown(value: Any) -> str:
    """The text of an attribute."""
    if isinstance(value, Record):
        return value.text if not value.kind else f"#{value.kind}<{value.text}>"
    if isinstance(value, Symbol):
        return f"@{value.name}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(shown, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)
