"""Provenance of the small results of a trace: the elements of the operands from which each element came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xbuild.core.attributes import Array
from xbuild.traces import Trace

from ..provenance.elements import READS_VALUES, origins_of

SMALL = 256
"""The largest result, in elements, whose origins are recorded."""

ROOM = 1 << 20
"""The most numbers in all tables of a trace together."""


def origins_in(trace: Trace) -> Mapping[int, Sequence[Array | None]]:
    """The provenance tables by event; the events of a spot share their tables unless these depend on values."""
    found: dict[int, Sequence[Array | None]] = {}
    known: dict[int, Sequence[Array | None] | None] = {}
    room = ROOM
    for number, spot in enumerate(trace.spot.tolist()):
        fixed = trace.spots[spot].instruction.opcode not in READS_VALUES
        if not fixed or spot not in known:
            fresh = known[spot] = _tables(trace, number) if room > 0 else None
            room -= sum(table.size for table in fresh or () if table is not None)
        tables = known[spot]
        if tables is not None:
            found[number] = tables
    return found


def _tables(trace: Trace, number: int) -> Sequence[Array | None] | None:
    values = [None if event is None else trace.values.get(event) for event in trace.operands(number)]
    result: Any = trace.values.get(number)
    if not _is_array(result) or result.size > SMALL or not all(map(_is_array, values)):
        return None
    return origins_of(trace.spots[int(trace.spot[number])].instruction, values)


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic)
