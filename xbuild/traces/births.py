"""Search for the events at which a NaN or an infinity is born: the value has one, and no operand has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from attrs import frozen

from .data import Trace
from .partners import remote_operands
from .summary import Summary

_FLOATS = "fcV"
LONGEST = 12
"""The greatest number of events of a chain."""


@frozen
class Birth:
    """An event whose value has a NaN, or an infinity, that no operand of it has."""

    event: int
    what: Literal["NaN", "infinity"]


def births(trace: Trace) -> list[Birth]:
    """All births of NaN and infinity, in the order of the events; an event whose value was not kept has none."""
    odd: dict[int, tuple[bool, bool]] = {}
    known: dict[int, tuple[Any, tuple[bool, bool]]] = {}
    for number, value in trace.values.items():
        same = known.get(id(value))
        flags = same[1] if same and same[0] is value else _flags(value)
        known[id(value)] = value, flags
        if len(known) > 1 << 16:
            known.clear()
        if flags != (False, False):
            odd[number] = flags
    remote = remote_operands(trace) if odd else {}
    return [birth for number in sorted(odd) for birth in _born(trace, odd, remote, number)]


def _born(
    trace: Trace, odd: Mapping[int, tuple[bool, bool]], remote: Mapping[int, Sequence[int]], number: int
) -> Iterator[Birth]:
    before = [odd.get(event, (False, False)) for event in _operand_events(trace, remote, number)]
    nan, infinity = odd[number]
    if nan and not any(each[0] for each in before):
        yield Birth(number, "NaN")
    if infinity and not any(each[1] for each in before):
        yield Birth(number, "infinity")


def _operand_events(trace: Trace, remote: Mapping[int, Sequence[int]], number: int) -> list[int]:
    """The events that gave the operands of an event, on its device and on others."""
    return [*(event for event in trace.operands(number) if event is not None), *remote.get(number, ())]


def is_stated(trace: Trace, birth: Birth) -> bool:
    """Whether a birth is a constant infinity of the program, such as the init value of a maximum, or a mask."""
    return birth.what == "infinity" and trace[birth.event].instruction.opcode == "constant"


def _flags(value: Any) -> tuple[bool, bool]:
    """Whether a value has a NaN, and whether it has an infinity."""
    if isinstance(value, tuple):
        return _any([_flags(each) for each in value])
    if isinstance(value, Summary):
        return value.nans > 0, value.infs > 0
    if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind not in _FLOATS or _finite(value):
        return False, False
    return bool(np.isnan(value).any()), bool(np.isinf(value).any())


def _finite(value: Any) -> bool:
    return bool(np.isfinite(value).all())


def _any(flags: Sequence[tuple[bool, bool]]) -> tuple[bool, bool]:
    return any(nan for nan, _ in flags), any(inf for _, inf in flags)
