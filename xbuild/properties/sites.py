"""Where a program communicates: each communicating instruction at each place, with the calls on the way."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from ..core.graph import Computation, Instruction
from ..core.memos import remembered
from .effects import (
    COLLECTIVES,
    DONE_OF,
    ENTERING,
    FEEDS,
    MEETING,
    START_OF,
    TRANSFERS,
    Path,
    acts,
    collective_in,
    communicates,
    notable,
    steps,
    where,
)


@frozen(eq=False)
class Site:
    """A communicating instruction at one place: the calls on the way, the instruction."""

    path: Path
    instruction: Instruction

    @property
    def channel(self) -> int:
        return self.instruction.attributes.channel_id  # type: ignore[no-any-return]

    @property
    def kind(self) -> str:
        """As what a device may have to wait there: send, recv, their dones, a feed, meet, start, done; unit.

        A unit is a loop or conditional that communicates inside.
        """
        return KINDS.get(self.instruction.opcode, "unit")

    @property
    def key(self) -> tuple[tuple[int, str] | int, ...]:
        """What tells it from every other place of its program."""
        return (*((id(step.instruction), step.role) for step in self.path), id(self.instruction))

    def __str__(self) -> str:
        """`send.1 in while w`"""
        return f"{self.instruction.name}{where(self.path)}"


KINDS = {
    **dict.fromkeys(COLLECTIVES, "meet"),
    **dict.fromkeys(DONE_OF, "start"),
    **dict.fromkeys(START_OF, "done"),
    **{opcode: opcode for opcode in (*FEEDS, *TRANSFERS, *TRANSFERS.values())},
}


MOST_PLACES = 100_000
"""At how many places of one program the instructions that communicate are told apart."""


@remembered
def places_of(computation: Computation) -> int:
    """How many sites a computation has at most: each call of what communicates, and each instruction in it, is more."""
    found = notable(computation)
    calls = (called for i in found if i.opcode in ENTERING for called in i.called)
    return len(found) + sum(1 + places_of(called) for called in calls if communicates(called))


def is_followed(computation: Computation) -> bool:
    """Whether its places can be told apart; by calls of calls a few lines have 2^60."""
    return places_of(computation) <= MOST_PLACES


def sites(computation: Computation, path: Path = ()) -> Iterator[Site]:
    """Every communicating instruction that a run of the computation may come to, in recorded order.

    Of a computation that has too many places, each instruction once.
    """
    return _sites(computation, path) if is_followed(computation) else _once(computation, path, set())


def _once(computation: Computation, path: Path, seen: set[tuple[Computation, bool]]) -> Iterator[Site]:
    """Each communicating instruction at the first place where it stands, and the first that is not followed."""
    way = computation, all(step.is_followed for step in path)
    if way in seen:
        return
    seen.add(way)
    for instruction in notable(computation):
        if acts(instruction):
            yield Site(path, instruction)
        if instruction.opcode != "async_start":
            for step in steps(instruction):
                if communicates(step.computation):
                    yield from _once(step.computation, (*path, step), seen)


def _sites(computation: Computation, path: Path) -> Iterator[Site]:
    for instruction in notable(computation):
        if acts(instruction):
            yield Site(path, instruction)
        if instruction.opcode != "async_start":
            for step in steps(instruction):
                if communicates(step.computation):
                    yield from _sites(step.computation, (*path, step))


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
