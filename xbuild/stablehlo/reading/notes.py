"""Annotations of instructions and modules from attributes that mean nothing to the program, as HLO text has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...text.spelling.notes import Raw
from ..syntax.attributes import Record, Symbol


def notes_of(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The annotations that discardable attributes of an operation or an argument are."""
    found: dict[str, Any] = {}
    pairs = _pairs(attributes)
    if pairs:
        found["frontend_attributes"] = pairs
    sharding = attributes.get("mhlo.sharding")
    if isinstance(sharding, str) and sharding.startswith("{"):
        found["sharding"] = Raw(sharding)
    return found


def _pairs(attributes: Mapping[str, Any]) -> dict[str, str]:
    """The frontend attributes, and the shardings of Shardy under the names that XLA gives them."""
    given = attributes.get("mhlo.frontend_attributes")
    found = {}
    if isinstance(given, Record):
        found = {key: value if isinstance(value, str) else shown(value) for key, value in given.fields.items()}
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
