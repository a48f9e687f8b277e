"""All entries of the suite by name, rules first, then whole programs."""

from __future__ import annotations

from . import control_flow, elementwise, indexing, matrices, models, only_here, products, programs, shapes
from .entry import Entry

RULES = (elementwise, shapes, products, indexing, matrices, control_flow, only_here)
PROGRAMS = (models, programs)
ENTRIES: dict[str, Entry] = {}
_GROUPS: dict[str, str] = {}

for _module in RULES + PROGRAMS:
    for _entry in _module.FUNCTIONS:
        assert _entry.name not in ENTRIES, f"two entries {_entry.name!r}"
        ENTRIES[_entry.name] = _entry
        _GROUPS[_entry.name] = _module.__name__.rpartition(".")[2]


def group_of(name: str) -> str:
    """The module of an entry."""
    return _GROUPS[name]
