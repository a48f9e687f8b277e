"""Sites: each communicating instruction of a program with each path of calls that leads to it."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Any, TypeAlias

from attrs import frozen

from ..core.graph import Computation, Instruction
from ..core.memos import remembered
from ..process.limits import ask
from .effects import (
    ENTERING,
    FEEDS,
    MEETING,
    TRANSFERS,
    CallStep,
    Path,
    call_in,
    collective_in,
    communicates,
    communicates_itself,
    grouped_in,
    name_in_report,
    notable,
    steps,
    where,
)
from .waiting import KINDS

Key: TypeAlias = tuple[Any, ...]


def path_key(path: Path) -> Key:
    """A key of a path of calls."""
    return (*((id(step.instruction), step.role) for step in path),)


def site_key(instruction: Instruction, path: Path) -> Key:
    """A key of an instruction and the path of calls that leads to it."""
    return (*path_key(path), id(instruction))


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
    def key(self) -> Key:
        """A key that no other site of the program has."""
        return site_key(self.instruction, self.path)

    def __str__(self) -> str:
        """`send.1 in while w`"""
        return f"{name_in_report(self.instruction)}{where(self.path)}"


MOST_PLACES = 100_000
"""The most places of communicating instructions that are distinguished in one program."""


@remembered
def places_of(computation: Computation) -> int:
    """An upper bound of the number of sites of a computation, with each call of a communicating one."""
    instructions = notable(computation)
    calls = (called for i in instructions if i.opcode in ENTERING for called in i.called)
    return len(instructions) + sum(1 + places_of(called) for called in calls if communicates(called))


def is_followed(computation: Computation) -> bool:
    """Whether the sites of a computation are few enough to enumerate; calls of calls make 2^60 of a few lines."""
    return places_of(computation) <= MOST_PLACES


def sites(computation: Computation, path: Path = ()) -> Iterator[Site]:
    """Every communicating instruction that a run of the computation may reach, in recorded order.

    If these are too many to enumerate, each instruction once.
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
    ask()
    for instruction in notable(computation):
        if communicates_itself(instruction):
            yield Site(path, instruction)
        for step in _communicating_steps(instruction):
            yield from _sites(step.computation, (*path, step))


def _communicating_steps(instruction: Instruction) -> Sequence[CallStep]:
    """The calls of an instruction whose computations communicate; the callee of an async-start is part of its site."""
    attributes = instruction.attributes
    if attributes is None or not attributes.calling or instruction.opcode == "async_start":
        return ()
    return [step for step in steps(instruction) if communicates(step.computation)]


def members(site: Site) -> tuple[Site, ...]:
    """The collectives and transfers of a group that a start begins; the site itself if it has no group."""
    group = grouped_in(site.instruction)
    if not group:
        return (site,)
    call = call_in(site.instruction)
    calls = [step for each in (site.instruction, call) if each is not None for step in steps(each)]
    return tuple([Site((*site.path, *calls), each) for each in group])


@remembered
def sites_of(computation: Computation) -> tuple[Site, ...]:
    """The sites of an entry, cached."""
    return tuple(sites(computation))


@remembered
def transfers_of(computation: Computation) -> tuple[Site, ...]:
    """The sends and recvs among the sites of an entry."""
    return tuple(_among(computation, TRANSFERS))


@remembered
def collectives_of(computation: Computation) -> tuple[Site, ...]:
    """The collectives among the sites of an entry, blocking or started."""
    return tuple([site for site in _among(computation, MEETING) if collective_in(site.instruction) is not None])


def _among(computation: Computation, opcodes: Container[str]) -> list[Site]:
    """The sites of an entry, and the members of its groups, whose opcode is one of these."""
    found = []
    for site in sites_of(computation):
        if site.instruction.opcode == "async_start":
            found += [each for each in members(site) if each.instruction.opcode in opcodes]
        elif site.instruction.opcode in opcodes:
            found.append(site)
    return found


@remembered
def feeds_of(computation: Computation) -> tuple[Site, ...]:
    """The infeeds and outfeeds among the sites of an entry."""
    return tuple([site for site in sites_of(computation) if site.instruction.opcode in FEEDS])


def reached(computation: Computation) -> tuple[Computation, ...]:
    """The computation and all that it calls; callees first."""
    return computation.reachable()
