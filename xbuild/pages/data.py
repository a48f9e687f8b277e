"""The data of a step page as JSON: columns of events by device, each value and each table once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, field

from shape_inference.escaping import in_line

from ..core.attributes import Array
from ..core.graph import Module, ModuleGroup
from ..properties.scopes import scopes_of
from ..sharding.partition import Partitioned
from ..traces import Across, Meeting, Trace
from ..traces.partners import bringing
from .drawn import boxes, drawn
from .fitting import fitted
from .marks import marks
from .packing import small_ints
from .stuck import reasons, stopped, with_standing
from .telling import rules, sentence, told
from .tiled import tiled


def page_data(trace: Trace, source_root: Path | None = None, partitioned: Partitioned | None = None) -> dict[str, Any]:
    """The data of a step page as values of JSON; `graph` is the picture of the program as svg."""
    cut = tiled(trace, partitioned)
    trace = with_standing(trace)
    place = _places(trace)
    values = fitted(trace)
    picture, graph = drawn(trace.program, partitioned)
    tables = _Tables()
    scopes = scopes_of(trace.program)
    of_events = {number: tables.add(each, _table) for number, each in trace.origins.items()}
    of_events |= {number: tables.add(each, _across) for number, each in trace.across.items()}
    return {
        "title": _name(trace.program),
        "facts": [*_facts(trace, partitioned)],
        "verdict": trace.verdict and {key: trace.verdict[key] for key in ("kind", "refused", "text")},
        "stop": stopped(trace),
        "reasons": reasons(trace),
        "left_out": "; ".join(filter(None, (trace.left_out, values.left_out))),
        "devices": trace.num_devices,
        "labels": _labels(trace.program, partitioned),
        "layouts": cut.layouts,
        "arrays": cut.arrays,
        "end": trace.end,
        "spots": [
            told(spot, source_root)
            | cut.of_spot.get(spot.instruction.name, {})
            | {
                "b": in_line(scopes.of(spot.instruction)),
                "in": operands,
                "up": caller,
                "l": [[loop.name, loop.condition, loop.itself] for loop in loops],
            }
            for spot, operands, caller, loops in zip(
                trace.spots, _operands(trace), _callers(trace), trace.loops, strict=True
            )
        ],
        "ops": {each: [sentence(each.replace("-", "_")), rules(each.replace("-", "_"))] for each in _opcodes(trace)},
        "boxes": boxes(picture, trace.spots),
        "cut": any(note.startswith("large") for note in picture.notes),
        "lanes": [_lane(trace, events, values.refs, of_events) for events in trace.of_device.values()],
        "meets": [_meeting(trace, meeting, place) for meeting in trace.meetings],
        "sends": [[t.source, place[t.send], t.target, place[t.done], t.channel] for t in trace.transfers],
        "values": values.data,
        "tables": tables.items,
        "marks": marks(trace, place),
        "graph": graph,
    }


def _name(program: Module | ModuleGroup) -> str:
    if isinstance(program, Module):
        return program.name
    names = [*dict.fromkeys(module.name for module in program.modules.values())]
    return " · ".join([*names[:3], f"and {len(names) - 3} more"] if len(names) > 4 else names)


def _facts(trace: Trace, partitioned: Partitioned | None) -> Iterator[str]:
    program = trace.program
    if partitioned is not None:
        yield in_line(" x ".join(f"{axis}={size}" for axis, size in partitioned.mesh.sizes))
    modules = [program] if isinstance(program, Module) else list(program.modules.values())
    if isinstance(program, Module) and program.num_partitions == 1:
        yield f"{program.num_replicas} replica{'s' * (program.num_replicas != 1)}"
    else:
        yield f"{trace.num_devices} device{'s' * (trace.num_devices != 1)}"
    count = sum(len(c.instructions) for module in dict.fromkeys(modules) for c in module.computations)
    yield f"{count:,} instruction{'s' * (count != 1)}"
    yield f"{len(trace):,} event{'s' * (len(trace) != 1)}"


def _labels(program: Module | ModuleGroup, partitioned: Partitioned | None) -> list[str]:
    if partitioned is not None:
        return [f"device {d}" for d in range(program.num_devices)]
    if isinstance(program, ModuleGroup):
        return [f"device {d}" for d in sorted(program.modules)]
    if program.num_partitions == 1:
        return [f"replica {r}" for r in range(program.num_replicas)]
    pairs = (divmod(d, program.num_partitions) for d in range(program.num_devices))
    return [f"replica {r}, partition {p}" for r, p in pairs]


def _opcodes(trace: Trace) -> list[str]:
    return sorted({spot.instruction.opcode.replace("_", "-") for spot in trace.spots})


def _places(trace: Trace) -> list[int]:
    """The place of each event on the lane of its device."""
    place = np.empty(len(trace), np.int64)
    for events in trace.of_device.values():
        place[events] = np.arange(len(events))
    return place.tolist()


def _callers(trace: Trace) -> Iterator[int]:
    """For each spot the spot of the op that calls its computation, -1 where the op was not executed."""
    known = {(*spot.path, spot.instruction.name): number for number, spot in enumerate(trace.spots)}
    for spot in trace.spots:
        label = spot.path[-1].partition(" branch ")[0] if spot.path else ""
        yield known.get((*spot.path[:-1], label), -1)


def _operands(trace: Trace) -> Iterator[list[int]]:
    """For each spot the spots of its operands, -1 where an operand was not executed."""
    known = {(spot.path, spot.instruction): number for number, spot in enumerate(trace.spots)}
    for spot in trace.spots:
        yield [known.get((spot.path, operand), -1) for operand in spot.instruction.operands]


def _lane(trace: Trace, events: Array, refs: Sequence[int], tables: Mapping[int, int]) -> dict[str, Any]:
    """The lane of a device: its spots in order, its waits, and the values and tables of its events."""
    waited = trace.time[events] - trace.since[events]
    places = np.flatnonzero(waited)
    numbers = events.tolist()
    return {
        "spots": small_ints(trace.spot[events]),
        "waits": np.stack([places, waited[places]], axis=1).tolist(),
        "values": small_ints(np.array([refs[number] for number in numbers], np.int64)),
        "tables": small_ints(np.array([tables.get(number, -1) for number in numbers], np.int64)),
    }


def _meeting(trace: Trace, meeting: Meeting, place: Sequence[int]) -> dict[str, Any]:
    """The time of a meeting, the places of the members' events, and those of the events that brought the operands."""
    events = [[int(trace.device[event]), place[event]] for event in meeting.events]
    brought = [place[bringing(trace, event)] for event in meeting.events]
    same = all(b == e for b, (_, e) in zip(brought, events, strict=True))
    return {"n": meeting.instruction.name, "t": meeting.time, "e": events} | ({} if same else {"b": brought})


def _table(table: Array | None) -> dict[str, Any] | None:
    return None if table is None else {"k": table.shape[1], **small_ints(table)}


def _across(across: Across) -> dict[str, Any]:
    """The provenance across devices as one array: the tables of devices, operands and elements, one after the other."""
    columns = np.stack([across.device, across.operand, across.element])
    return {"part": across.part, "k": across.element.shape[1], **small_ints(columns)}


@define
class _Tables:
    """The tables of origins, each stored once."""

    items: list[Any] = field(factory=list)
    _known: dict[int, int] = field(factory=dict)

    def add(self, tables: Sequence[Any], spelled: Callable[[Any], Any]) -> int:
        number = self._known.get(id(tables))
        if number is None:
            number = self._known[id(tables)] = len(self.items)
            self.items.append([spelled(each) for each in tables])
        return number
