"""What would help: the time line again on machines that are better in one thing."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve, frozen

from .machines import Link, Machine
from .record import Timeline

MOST_SPANS = 30_000
"""Above so many spans nothing is tried, since each change is a time line of its own."""

_LEAST = 0.005
"""The part of the time that a change must save to be told."""


@frozen
class Change:
    """A change of the machine or of the schedule, and when the program would end with it."""

    what: str
    seconds: float


def changes(timeline: Timeline) -> list[Change]:
    """Changes that help, the most first: a part of the machine twice as fast, and all communication hidden."""
    if len(timeline.recorder) > MOST_SPANS or not timeline.seconds:
        return []
    found = [Change(what, timeline.again(machine).seconds) for what, machine in _machines(timeline)]
    if timeline.exposed:
        found.append(Change("all communication hidden behind work (at best)", timeline.lower_bound))
    helping = (each for each in found if each.seconds < timeline.seconds * (1 - _LEAST))
    return sorted(helping, key=lambda each: each.seconds)


def _machines(timeline: Timeline) -> Iterator[tuple[str, Machine]]:
    machine = timeline.machine
    faster = {name: 2 * peak for name, peak in machine.flops.items()}
    yield "peak FLOPs twice as high", evolve(machine, flops=faster)
    yield "memory twice as fast", evolve(machine, memory_bandwidth=2 * machine.memory_bandwidth)
    if timeline.num_devices > 1:
        links = {axis: _doubled(link) for axis, link in machine.links.items()}
        network = None if machine.network is None else _doubled(machine.network)
        yield "links with twice the bandwidth", evolve(machine, links=links, network=network)
        quick = {axis: evolve(link, alpha=link.alpha / 2) for axis, link in machine.links.items()}
        network = None if machine.network is None else evolve(machine.network, alpha=machine.network.alpha / 2)
        yield "steps over links in half the time", evolve(machine, links=quick, network=network)


def _doubled(link: Link) -> Link:
    return evolve(link, bandwidth=2 * link.bandwidth)
