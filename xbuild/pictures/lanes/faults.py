"""Lanes of programs with structural faults: their communicating instructions, and lines between those that clash."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ...checking.model.describe import fact
from ...checking.model.program import Program
from ...checking.model.verdict import Verdict
from ...core.graph import Computation, Instruction
from ...properties.sites import Site, sites_of
from ..model.kinds import kind_of
from . import Arrow, State, Stop
from .devices import rows
from .runs import Parts

_MOST = 8  # instructions of a lane that are shown, besides faulty ones


def of_fault(verdict: Verdict, program: Program) -> Parts:
    """The lanes, stops, arrows and notes of a fault; the instructions that the first finding names are marked."""
    wrong = verdict.findings[0].instructions
    listed = {device: _sites(each.module.entry, wrong) for device, each in program.class_of.items()}
    alike = {device: tuple(str(site) for site in sites) for device, sites in listed.items()}
    found = rows(alike, [d for d in verdict.findings[0].devices if d in listed])
    stops: list[Stop] = []
    notes = []
    for lane, device in enumerate(found.shown):
        sites = listed[device]
        shown = _few(sites, wrong)
        if len(shown) < len(sites):
            notes.append(f"+{len(sites) - len(shown):,} of {found.lanes[lane].title} hidden")
        stops += (_stop(lane, column, site, wrong) for column, site in enumerate(shown))
    return found.lanes, tuple(stops), (), (*_clashes(stops),), None, tuple(notes)


def _sites(entry: Computation, wrong: tuple[Instruction, ...]) -> list[Site]:
    """The communicating instructions, and the faulty instructions even where they do not communicate."""
    sites = [*sites_of(entry)]
    known = {site.instruction for site in sites}
    inside = {*entry.instructions}
    return [*sites, *(Site((), each) for each in wrong if each in inside - known)]


def _few(sites: list[Site], wrong: tuple[Instruction, ...]) -> list[Site]:
    return [site for n, site in enumerate(sites) if n < _MOST or site.instruction in wrong][: 2 * _MOST]


def _stop(lane: int, column: int, site: Site, wrong: tuple[Instruction, ...]) -> Stop:
    instruction = site.instruction
    tooltip = "\n".join(str(each) for each in (instruction, instruction.source) if each)
    state: State = "cycle" if instruction in wrong else "done"
    told = fact(instruction).replace("channel ", "#")
    return Stop(lane, column, str(site), told, kind_of(instruction.opcode), state, tooltip)


def _clashes(stops: list[Stop]) -> Iterator[Arrow]:
    """The arrows between faulty instructions of successive lanes."""
    wrong = [n for n, stop in enumerate(stops) if stop.state == "cycle"]
    for a, b in itertools.pairwise(wrong):
        if stops[a].lane != stops[b].lane:
            yield Arrow(a, b, "clash")
