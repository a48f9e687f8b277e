"""All entries of the suite by name, rules first."""

from __future__ import annotations

from . import control_flow, elementwise, indexing, matrices, models, products, programs, shapes
from .entry import Entry

RULES = (elementwise, shapes, products, indexing, matrices, control_flow)
PROGRAMS = (models, programs)
ENTRIES: dict[str, Entry] = {}
for _module in RULES + PROGRAMS:
    for _entry in _module.FUNCTIONS:
        assert _entry.name not in ENTRIES, f"two entries {_entry.name!r}"
        ENTRIES[_entry.name] = _entry
