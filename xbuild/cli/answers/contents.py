"""`xbuild trace DIR`: what a trace holds, and where its first NaN and its first infinity were born."""

from __future__ import annotations

from typing import Any

import numpy as np

from shape_inference import Shape, TupleShape

from ...traces import Trace
from ...traces.births import Birth, births, is_stated
from ...traces.saying import said

SHOWN = 4
"""The number of source numbers that are printed for a NaN or an infinity."""


def overview(found: Trace) -> dict[str, Any]:
    """The summary of a trace: its events, values, stop, findings and first births of NaN and infinity."""
    told = [f"{len(found):,} events on {found.num_devices} devices, {found.end:,} steps, {len(found.values):,} values"]
    told += [f"not kept: {found.left_out}"] if found.left_out else []
    told += [found.stop["text"]] if found.stop else []
    told += [f"strict, {finding['text'].strip()}" for finding in found.findings]
    born = births(found)
    firsts = [
        next((birth for birth in born if birth.what == what and not is_stated(found, birth)), None)
        for what in ("NaN", "infinity")
    ]
    odd = [_birth(found, birth) for birth in firsts if birth is not None]
    told += [each["text"] for each in odd] or (["no NaN or infinity is born in what was kept"] if found.values else [])
    return {
        "events": len(found), "devices": found.num_devices, "steps": found.end, "values": len(found.values),
        "left_out": found.left_out, "stop": found.stop, "findings": [*found.findings], "born": odd,
        "text": "\n".join(told),
    }  # fmt: skip


def _birth(found: Trace, birth: Birth) -> dict[str, Any]:
    """The facts of the birth of a NaN or an infinity: its place, its source numbers, and the chain of elements."""
    from ...running import tracing

    event, guilt = found[birth.event], tracing.Guilt(found)
    way = guilt.way(birth)
    rows = [_step(found, place, guilt.number(place)) for place in way]
    lines = [f"  device {row['device']}  {row['at']}  {row['value']}{_element(row)}" for row in rows]
    head = f"the first {birth.what} is born at step {event.time} on device {event.device}, in {rows[-1]['at']}"
    made = guilt.heaviest(way[-1], SHOWN)
    of = [{"instruction": found[each.place.event].instruction.name, "number": said(each.number)} for each in made]
    told = f", of {', '.join(' '.join(each.values()) for each in of)}" if of else ""
    source = event.instruction.source
    text = "\n".join([f"{head}{told}{f'    {source}' if source else ''}", *lines])
    return {"what": birth.what, "device": event.device, "step": event.time, "of": of, "chain": rows, "text": text}


def _step(found: Trace, place: Any, number: Any) -> dict[str, Any]:
    """The facts of an element of a chain, with its index where provenance gives the element."""
    event = found[place.event]
    shape = event.instruction.shape
    if isinstance(shape, TupleShape) and place.part is not None:
        shape = shape.elements[place.part]
    index = None
    if place.element is not None and isinstance(shape, Shape) and shape.rank:
        index = [int(each) for each in np.unravel_index(place.element, shape.dims)]
    return {"device": event.device, "at": found.standing(place.event), "value": said(found.values.get(place.event)),
            "index": index, "number": None if index is None else said(number)}  # fmt: skip


def _element(row: dict[str, Any]) -> str:
    return "" if row["index"] is None else f"  at {row['index']}: {row['number']}"
