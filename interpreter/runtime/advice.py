"""Explanations in the report of a stop: open findings of the check, why a device is missing, the repair."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from xbuild.checking.model.verdict import Finding
from xbuild.properties.effects import branch_name

from .replica import Device, Standing

if TYPE_CHECKING:
    from xbuild.checking import Verdict

    from .grid import Grid


def let_through(verdict: Verdict | None, *, other_than: str = "") -> str:
    """The messages of the findings that the check left to the run, without the findings of one cause."""
    if verdict is None or verdict.kind != "depends":
        return ""
    return "; ".join(f.message for f in verdict.findings if not other_than or f.cause != other_than)


def repair(verdict: Verdict | None, stuck: Iterable[Standing]) -> str:
    """The repair that the check suggests for the loop or conditional in which devices stand."""
    around = {id(place.instruction) for standing in stuck for place in standing.path}
    findings: tuple[Finding, ...] = verdict.findings if verdict else ()
    told = (f.repair_text for f in findings if f.repair_text and around & {*map(id, f.instructions)})
    return next(told, "")


def skipped_text(device: int, waiting: Standing) -> str:
    """The sentence that names the branches and trips that a device skipped before it ended."""
    units = [
        (f"took another branch of {place.instruction.name} than {branch_name(place.instruction, place.branch)}")
        if place.branch is not None
        else f"ran {place.instruction.name} fewer than {trip} times"
        for place, trip in zip(waiting.path, waiting.trips, strict=True)
        if place.branch is not None or trip is not None
    ]
    name = waiting.instruction.name
    if not units:
        return f"device {device} has ended without coming to {name}, for which others wait"
    return f"device {device} has ended without coming to {name}, for which others wait: it {', or '.join(units)}"


def is_starved(device: Device) -> bool:
    return device.waiting is not None and device.waiting.instruction.opcode == "infeed"


def causes_of(grid: Grid, missing: dict[int, tuple[int, ...]]) -> set[int]:
    """The devices at the end of all chains of waits: ended, starved, or waiting for each other in a cycle."""
    import networkx as nx

    waits: nx.DiGraph[Hashable] = nx.DiGraph()
    waits.add_nodes_from(missing)
    for device, others in missing.items():
        if others:
            waits.add_edge(device, ("all", id(others)))  # who waits for the same has one way to all of these
    for others in {id(each): each for each in missing.values()}.values():
        waits.add_edges_from((("all", id(others)), other) for other in others)
    rounds = nx.condensation(waits)
    last = [node for node in rounds if not rounds.out_degree(node)]
    return {device for node in last for device in rounds.nodes[node]["members"] if isinstance(device, int)}


def cause_text(grid: Grid, causes: set[int], missing: dict[int, tuple[int, ...]]) -> str:
    """The sentence that names the cause: an empty infeed, a device that has ended, or a cycle of waits."""
    starved = sorted(d for d in causes if is_starved(grid.devices[d]))
    if starved:
        request = grid.devices[starved[0]].waiting
        assert request is not None
        return f"infeed {request.instruction.name} of device {starved[0]} has no more items"
    ended = sorted(d for d in causes if grid.devices[d].ended)
    if ended:
        waiting = next(d.stands() for d in grid.devices if not d.ended and ended[0] in missing.get(d.number, ()))
        assert waiting is not None
        return skipped_text(ended[0], waiting)
    return f"devices {', '.join(map(str, sorted(causes)))} wait for each other"
