"""Provenance across devices: the elements and devices from which small results of collectives and transfers came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from shape_inference import Shape
from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction
from xbuild.core.op import OPS
from xbuild.properties.effects import base_of, is_in_place
from xbuild.traces import Across, Meeting, Trace

from ..provenance.elements import MOST
from ..rules.tables import compute
from .sources import ROOM, SMALL

_MOVES = ("all_gather", "all_to_all", "collective_broadcast", "collective_permute")
"""Collectives that only move elements: their value rule is applied to the indices of the elements."""


def across_in(trace: Trace) -> Mapping[int, Sequence[Across]]:
    """The provenance tables by event; all rounds of a collective in one group share their tables."""
    found: dict[int, Sequence[Across]] = {}
    known: dict[tuple[Instruction, tuple[int, ...]], Sequence[Sequence[Across]]] = {}
    room = ROOM
    for meeting in trace.meetings:
        key = meeting.instruction, meeting.group
        if key not in known:
            known[key] = of_members(meeting) if room > 0 else ()
            room -= sum(each.element.size for parts in known[key] for each in parts)
        of_device = dict(zip(meeting.group, known[key], strict=False))
        for event in meeting.events:
            if trace[event].instruction.opcode == "reshape":  # of an all-to-all that text has in several instructions
                continue
            if parts := of_device.get(int(trace.device[event])):
                found[event] = parts
    return found | _received(trace)


def _received(trace: Trace) -> dict[int, Sequence[Across]]:
    """The tables of recv-dones: each element comes from the same place of the value that was sent."""
    known: dict[tuple[int, int], Sequence[Across]] = {}
    found: dict[int, Sequence[Across]] = {}
    for transfer in trace.transfers:
        shape = trace[transfer.send].instruction.operands[0].shape
        if isinstance(shape, Shape) and 0 < shape.size <= SMALL:
            key = transfer.source, shape.size
            place = np.arange(shape.size)[:, None]
            known[key] = known.get(key) or [
                Across(0, np.full_like(place, transfer.source), np.zeros_like(place), place)
            ]
            found[transfer.done] = known[key]
    return found


def of_members(meeting: Meeting) -> Sequence[Sequence[Across]]:
    """The provenance tables of the parts of each member's result."""
    collective, group = meeting.instruction, meeting.group
    opcode = base_of(collective)
    shapes = [operand.shape for operand in collective.operands]
    sizes = [shape.size for shape in shapes if isinstance(shape, Shape)]
    if len(sizes) != len(shapes) or not all(sizes) or max(sizes, default=0) > SMALL:
        return ()
    if is_in_place(collective) or sum(sizes) * len(group) > MOST or (opcode not in _MOVES and opcode not in _FOLDS):
        return ()
    dims = [shape.dims for shape in shapes]  # type: ignore[union-attr]
    rule = _moved if opcode in _MOVES else _FOLDS[opcode]
    found: Sequence[Sequence[Across]] = rule(collective, group, dims)
    return found


def _folded(collective: Instruction, group: Sequence[int], dims: Sequence[tuple[int, ...]]) -> Any:
    """The tables of an all-reduce: an element comes from the same place of all members."""
    places = [np.arange(prod(each)) for each in dims]
    return [[_column(group, part, place, len(dims)) for part, place in enumerate(places)]] * len(group)


def _scattered(collective: Instruction, group: Sequence[int], dims: Sequence[tuple[int, ...]]) -> Any:
    """The tables of a reduce-scatter: those of an all-reduce, of which each member gets its share."""
    axis = collective.attributes.scatter_dimension
    shares = [np.split(np.arange(prod(each)).reshape(each), len(group), axis) for each in dims]
    return [
        [_column(group, part, share[member].reshape(-1), len(dims)) for part, share in enumerate(shares)]
        for member in range(len(group))
    ]


_FOLDS: dict[str, Any] = {"all_reduce": _folded, "reduce_scatter": _scattered}


def _column(group: Sequence[int], part: int, place: Array, parts: int) -> Across:
    element = np.repeat(place[:, None], len(group), axis=1)
    device = np.broadcast_to(np.array(group), element.shape)
    return Across(part if parts > 1 else None, device, np.full_like(element, part), element)


def _moved(collective: Instruction, group: Sequence[int], dims: Sequence[tuple[int, ...]]) -> Any:
    """The tables of a collective that moves elements: its rule is applied to indices from 1; 0 means that none came."""
    sizes = [prod(each) for each in dims] * len(group)
    starts = np.cumsum([1, *sizes])
    numbered = [
        np.arange(start, start + size).reshape(each)
        for start, size, each in zip(starts, sizes, [*dims] * len(group), strict=False)
    ]
    brought: Any = [tuple(numbered[n : n + len(dims)]) for n in range(0, len(numbered), len(dims))]
    opcode = base_of(collective)
    columns = zip(*brought, strict=True) if OPS[opcode].is_flat else (brought,)
    attributes = {key: value for key, value in collective.attribute_values().items() if key != "context_shapes"}
    return [
        [_origin(part, each, starts, group, len(dims)) for part, each in _parts(result)]
        for result in compute[opcode](*columns, **attributes)
    ]


def _parts(result: Any) -> Sequence[tuple[int | None, Array]]:
    return [*enumerate(result)] if isinstance(result, tuple) else [(None, result)]


def _origin(part: int | None, numbers: Any, starts: Array, group: Sequence[int], operands: int) -> Across:
    flat = np.reshape(numbers, (-1, 1))
    slot = np.maximum(np.searchsorted(starts, flat, side="right") - 1, 0)
    device = np.where(flat > 0, np.array(group)[slot // operands], -1)
    return Across(part, device, slot % operands, np.where(flat > 0, flat - starts[slot], -1))
