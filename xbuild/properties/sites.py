"""Sites: each communicating instruction of a program with each path of calls that leads to it."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from ..core.graph import Computation, Instruction
from ..core.memos import remembered
from .effects import (
    ENTERING,
    FEEDS,
    MEETING,
    TRANSFERS,
    Path,
    Step,
    collective_in,
    communicates,
    communicates_itself,
    notable,
    steps,
    where,
)
from .waiting import KINDS


@frozen(eq=False)
class Site:
    """A communicating instruction and the path of calls from the entry to it."""

    path: Path
    instruction: Instruction

    @property
    def channel(self) -> int:
        return self.instruction.attributes.channel_id  # type: ignore[no-any-return]

    @property
    def kind(self) -> str:
        """The kind of waiting at the site: send, recv, their dones, a feed, meet, start, done; unit.

        A unit is a loop or conditional that communicates inside.
        """
        return KINDS.get(self.instruction.opcode, "unit")

    @property
    def key(self) -> tuple[tuple[int, str] | int, ...]:
        """A key that no other site of the program has."""
        return (*((id(step.instruction), step.role) for step in self.path), id(self.instruction))

    def __str__(self) -> str:
        """`send.1 in while w`"""
        return f"{self.instruction.name}{where(self.path)}"


MOST_PLACES = 100_000
"""At how many places of one program the instructions that communicate are told apart."""


@remembered
def places_of(computation: Computation) -> int:
    """An upper bound of the number of sites of a computation, with each call of a communicating one."""
    found = notable(computation)
    calls = (called for i in found if i.opcode in ENTERING for called in i.called)
    return len(found) + sum(1 + places_of(called) for called in calls if communicates(called))


def is_followed(computation: Computation) -> bool:
    """Whether the sites of a computation are few enough to enumerate; calls of calls make 2^60 of a few lines."""
    return places_of(computation) <= MOST_PLACES


def sites(computation: Computation, path: Path = ()) -> Iterator[Site]:
    """Every communicating instruction that a run of the computation may come to, in recorded order.

    Where these are too many to enumerate, each instruction once.
    """
    return _sites(computation, path) if is_followed(computation) else _once(computation, path, set())


def _once(computation: Computation, path: Path, seen: set[tuple[Computation, bool]]) -> Iterator[Site]:
    """The first site of each communicating instruction, and the first in a computation that is applied to elements."""
    way = computation, all(step.is_followed for step in path)
    if way in seen:
        return
    seen.add(way)
    for instruction in notable(computation):
        if communicates_itself(instruction):
            yield Site(path, instruction)
        for step in _communicating_steps(instruction):
            yield from _once(step.computation, (*path, step), seen)


def _sites(computation: Computation, path: Path) -> Iterator[Site]:
    for instruction in notable(computation):
        if communicates_itself(instruction):
            yield Site(path, instruction)
        for step in _communicating_steps(instruction):
            yield from _sites(step.computation, (*path, step))


def _communicating_steps(instruction: Instruction) -> list[Step]:
    """The calls of an instruction whose computations communicate; what an async-start calls is part of its own site."""
    if instruction.opcode == "async_start" or not any(map(communicates, instruction.called)):
        return []
    return [step for step in steps(instruction) if communicates(step.computation)]


@remembered
def sites_of(computation: Computation) -> tuple[Site, ...]:
    """The sites of an entry, found once."""
    return tuple(sites(computation))


@remembered
def transfers_of(computation: Computation) -> tuple[Site, ...]:
    """The sends and recvs among the sites of an entry."""
    return tuple([site for site in sites_of(computation) if site.instruction.opcode in TRANSFERS])


@remembered
def collectives_of(computation: Computation) -> tuple[Site, ...]:
    """The collectives among the sites of an entry, blocking or started."""
    maybe = [site for site in sites_of(computation) if site.instruction.opcode in MEETING]
    return tuple([site for site in maybe if collective_in(site.instruction) is not None])


@remembered
def feeds_of(computation: Computation) -> tuple[Site, ...]:
    """The infeeds and outfeeds among the sites of an entry."""
    return tuple([site for site in sites_of(computation) if site.instruction.opcode in FEEDS])


@remembered
def reached(computation: Computation) -> tuple[Computation, ...]:
    """The computation and all that it calls, found once."""
    return computation.reachable()
