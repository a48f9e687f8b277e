"""`xbuild trace DIR --of NAME --element I,J`: the elements, on all devices, from which an element was computed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import numpy as np

from shape_inference import Shape, TupleShape

from ...properties.effects import spelling
from ...traces import Event, Trace
from ...traces.saying import said

DEPTH = 2
"""The number of ops that are followed back where --depth does not say."""

_MOST_MOVES = 12
"""The greatest number of steps that are followed on which the number is only moved."""

SHOWN = 4
"""The greatest number of source elements that are printed of one element."""


def made_of(found: Trace, name: str, element: str, device: int | None, turn: int | None, depth: int) -> dict[str, Any]:
    """The facts and the text: an element of the first turn (or of the turn that is given), and what it was made of."""
    from ...running import tracing

    event = next(found.where(name, device=device, count=turn), None)
    if event is None:
        raise click.UsageError(f"no such turn of {name} is in the trace; --of {name} alone lists them")
    guilt = tracing.Guilt(found)
    tree = _node(found, guilt, guilt.place(event.number, _number(event, element)), depth)
    return {**tree, "text": "\n".join(_lines(tree, 0))}


def _number(event: Event, element: str) -> int:
    """The flat number of an element of an array that a text such as `0,1` names."""
    shape = event.instruction.shape
    if not isinstance(shape, Shape):
        raise click.UsageError(f"{event.instruction.name} is {shape}, and --element is for an array")
    try:
        index = [int(word) for word in element.strip("[]").split(",") if word.strip()]
    except ValueError:
        index = []
    legal = len(index) == shape.rank and all(0 <= i < extent for i, extent in zip(index, shape.dims, strict=True))
    if not legal:
        raise click.UsageError(
            f"--element {element}: {event.instruction.name} is {shape}, and an index for each dimension is wanted, as "
            f"{','.join(str(max(extent - 1, 0)) for extent in shape.dims) or 'an empty text for a scalar'}"
        )
    return int(np.ravel_multi_index(index, shape.dims)) if index else 0


def _node(found: Trace, guilt: Any, place: Any, depth: int, moves: int = _MOST_MOVES) -> dict[str, Any]:
    """The facts of an element, with the elements that it was made of, as deep as is told.

    A step on which the number is only moved, as by a transfer or a tuple, does not count for the depth.
    """
    event = found[place.event]
    made = guilt.made(place) if depth else []
    is_moved = moves > 0 and len(made) == 1 and said(made[0].number) == said(guilt.number(place))
    depth, moves = (depth, moves - 1) if is_moved else (depth - 1, moves)
    shown = guilt.heaviest(place, SHOWN) if len(made) > SHOWN else made
    return {
        "instruction": event.instruction.name, "op": spelling(event.instruction.opcode), "device": event.device,
        "step": event.time, "at": found.standing(place.event), "index": _index(event, place),
        "number": said(guilt.number(place)), "sources": len(made),
        "of": [_node(found, guilt, each.place, depth, moves) for each in shown],
    }  # fmt: skip


def _index(event: Event, place: Any) -> list[int] | None:
    shape = event.instruction.shape
    if isinstance(shape, TupleShape) and place.part is not None:
        shape = shape.elements[place.part]
    if place.element is None or not isinstance(shape, Shape):
        return None
    return [int(each) for each in np.unravel_index(place.element, shape.dims)] if shape.rank else []


def _lines(node: dict[str, Any], level: int) -> Iterator[str]:
    index = "" if node["index"] == [] else " (all of it)" if node["index"] is None else str(node["index"])
    place = f"{node['at']}{index} on device {node['device']}, step {node['step']}"
    yield f"{'  ' * level}{node['number']}  {node['op']} {place}{_count(node)}"
    for each in node["of"]:
        yield from _lines(each, level + 1)


def _count(node: dict[str, Any]) -> str:
    left = node["sources"] - len(node["of"])
    return f", of {node['sources']} elements, the largest of which are" if left > 0 else ""
