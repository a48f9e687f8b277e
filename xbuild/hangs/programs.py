"""The program beside the dumps: where in it each rank is, why the next collective is missing, and what fixes it.

A rank is taken to be the device of the same number. A rendezvous or a progress line names its instruction. Counts of a
group are projected onto the order of the program: the collectives of these devices repeat with each execution.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from attrs import define, frozen

from shape_inference.escaping import in_line

from ..checking import Verdict, check
from ..core.graph import Computation, Instruction, Module, ModuleGroup
from ..core.report_text import WIDTH, Line, StyledText, indented, join_words, labelled
from ..properties.device_groups import grouping
from ..properties.effects import collective_in, communicates_itself, spelling
from ..properties.order import needed_by
from ..properties.sites import Site, collectives_of
from .diagnosis import Diagnosis
from .logs import PROGRESS
from .records import Launch, XlaRendezvous, name_ranks

_KINDS = {
    "AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter",
    "Broadcast": "collective_broadcast", "broadcast": "collective_broadcast", "AlltoAll": "all_to_all",
    "AllToAll": "all_to_all",
}  # fmt: skip


@frozen
class ProgramPlace:
    """Where ranks are in the program. `is_missing` says that they never launched the instruction.

    `are_all` says that some of the ranks are at the instruction and some never reached it.
    """

    ranks: tuple[int, ...]
    site: Site
    is_missing: bool
    reason: str = ""
    are_all: bool = True

    @property
    def instruction(self) -> Instruction:
        return self.site.instruction

    def to_dict(self) -> dict[str, Any]:
        """The placement as plain data."""
        source = self.instruction.source
        return {
            "ranks": list(self.ranks),
            "instruction": self.instruction.name,
            "file": None if source is None else source.file,
            "line": None if source is None else source.line,
            "missing": self.is_missing,
            "reason": self.reason,
        }

    def lines(self, width: int) -> Iterator[Line]:
        place = f"{self.site}" + (f", {self.instruction.source}" if self.instruction.source is not None else "")
        does = "is at" if len(self.ranks) == 1 else "are at" if self.are_all else "meet at"
        does = "never launched" if self.is_missing else does
        text = f"{name_ranks(self.ranks)} {does} {place}"
        yield from indented(in_line(text), width, "bad" if self.is_missing else "waits")
        if self.reason:
            yield from (("  ", *line) for line in indented(in_line(self.reason), width))


@define
class ProgramFindings:
    """What a program adds to a diagnosis: placements, the verdict of the check, and sentences on what is not placed.

    `processes` are sentences on how the programs differ that the processes of the job compiled under this name;
    `processes_hang` says that the difference hangs.
    """

    name: str
    verdict: Verdict
    placements: tuple[ProgramPlace, ...]
    notes: tuple[str, ...]
    processes: tuple[str, ...] = ()
    processes_hang: bool = False

    @property
    def recurs(self) -> str:
        """Whether the program would hang on healthy machines as well, as a sentence."""
        if self.processes_hang:
            return "healthy machines hang as well, or fail: the processes of the job run different programs"
        first = str(self.verdict).partition("\n")[0].removeprefix(f"{self.verdict.kind}: ")
        first = re.sub(r" \[\w+\]$", "", first)
        if self.verdict.refused:
            return f"healthy machines hang as well: {first}"
        if self.verdict.kind == "depends":
            conditions = [each.message for each in self.verdict.findings if each.message.startswith("if ")]
            hang = f"they do {join_words(conditions)}" if conditions else first
            return f"whether healthy machines hang depends on data: {hang}"
        return "the program does not hang on healthy machines: look at machines, inputs, hosts, and other programs"

    @property
    def fixes(self) -> tuple[str, ...]:
        """How to fix the program, for each finding that says so."""
        own = [finding.repair_text for finding in self.verdict.findings if finding.repair_text]
        same = [
            "compile the same program on all processes: the same code, flags and versions, traced in the same order"
        ]
        return tuple(dict.fromkeys([*same * self.processes_hang, *own]))

    def lines(self, width: int = WIDTH) -> Iterator[Line]:
        """The lines of the report about the program."""
        yield (StyledText(f"in the program {in_line(self.name)}", "title"),)
        for placement in self.placements:
            yield from placement.lines(width)
        for sentence in self.processes:
            yield from labelled("cause", in_line(sentence), width)
        yield from labelled("cause", self.recurs, width)
        for fix in self.fixes:
            yield from labelled("fix", fix, width)
        for note in self.notes:
            yield from labelled("note", in_line(note), width, "dim")

    def to_dict(self) -> dict[str, Any]:
        """The findings as plain data."""
        return {
            "name": self.name,
            "verdict": self.verdict.kind,
            "recurs": self.recurs,
            "fixes": list(self.fixes),
            "placements": [placement.to_dict() for placement in self.placements],
            "notes": list(self.notes),
            "processes": list(self.processes),
        }


def find_in_program(diagnosis: Diagnosis, program: Module | ModuleGroup) -> ProgramFindings:
    """Project a diagnosis onto a program, and check the program."""
    verdict, notes = check(program), list[str]()
    placements = [*_from_rendezvous(diagnosis, program, verdict, notes), *_from_names(diagnosis, program)]
    if not placements:
        placements = [*_from_counts(diagnosis, program, notes)]
    if not placements:
        notes.append("no collective of the program could be matched with the dumps")
    name = program.name if isinstance(program, Module) else f"of each of {len(program.modules)} devices"
    return ProgramFindings(name, verdict, tuple(placements), tuple(dict.fromkeys(notes)))


def best_program(diagnosis: Diagnosis, programs: Iterable[Module | ModuleGroup]) -> ProgramFindings:
    """The findings in the program with the most placements, the first one of several."""
    return max((find_in_program(diagnosis, each) for each in programs), key=lambda found: len(found.placements))


# ----------------------------------------------------------------------------
# Logs that name the instruction


def _entry(program: Module | ModuleGroup, device: int) -> Computation:
    return program.entry if isinstance(program, Module) else program.modules[device].entry


def _devices(program: Module | ModuleGroup) -> Sequence[int]:
    return range(program.num_devices) if isinstance(program, Module) else sorted(program.modules)


def _from_rendezvous(
    diagnosis: Diagnosis, program: Module | ModuleGroup, verdict: Verdict, notes: list[str]
) -> Iterator[ProgramPlace]:
    """The collective of each rendezvous; of several with its op and channel, one that a finding explains."""
    found = {instruction for each in verdict.findings for instruction in each.instructions}
    for rendezvous in dict.fromkeys(diagnosis.job.rendezvous):
        sites = [*_sites_of_rendezvous(rendezvous, program)]
        explained = [
            site for site in sites if site.instruction in found or any(step.instruction in found for step in site.path)
        ]
        sites = explained or sites
        if len(sites) > 1:
            names = join_words([site.instruction.name for site in sites[:4]])
            more = f" and {len(sites) - 4} more" if len(sites) > 4 else ""
            notes.append(f"the log fits {names}{more}, which are the same to XLA: the first of them is shown")
        for site in sites[:1]:
            missing = rendezvous.participants - rendezvous.arrived
            reason = f"{missing} participant{'s' * (missing != 1)} never reached it. {_why_missing(site)}".rstrip()
            yield ProgramPlace(rendezvous.devices, site, False, reason, are_all=False)


def _sites_of_rendezvous(rendezvous: XlaRendezvous, program: Module | ModuleGroup) -> Iterator[Site]:
    devices = [device for device in rendezvous.devices if device in _devices(program)]
    for device in devices[:1]:
        for site in collectives_of(_entry(program, device)):
            collective = collective_in(site.instruction)
            assert collective is not None
            channel = getattr(site.instruction.attributes, "channel_id", None)
            has_channel = rendezvous.channel is None or channel is None or channel == rendezvous.channel
            if has_channel and spelling(collective.opcode).removesuffix("-start") == rendezvous.opcode:
                yield site


def _from_names(diagnosis: Diagnosis, program: Module | ModuleGroup) -> Iterator[ProgramPlace]:
    """The instructions that progress lines name."""
    at: dict[str, list[int]] = defaultdict(list)
    for rank, frontier in diagnosis.waits.frontiers.items():
        for operation in frontier[:1]:
            if operation.group == PROGRESS:
                at[operation.name].append(rank)
    roots = {root.rank for root in diagnosis.roots}
    for name, ranks in at.items():
        for device in _devices(program)[:1]:
            for computation in _entry(program, device).reachable():
                for instruction in computation.instructions:
                    if instruction.name == name:
                        reason = _why_missing(Site((), instruction)) if {*ranks} & roots else ""
                        yield ProgramPlace(tuple(ranks), Site((), instruction), False, reason)


# ----------------------------------------------------------------------------
# Counts of groups


def _from_counts(diagnosis: Diagnosis, program: Module | ModuleGroup, notes: list[str]) -> Iterator[ProgramPlace]:
    """The collective at which each rank is, by its count in the group, and the one that is missing."""
    job = diagnosis.job
    at: dict[tuple[int, bool], tuple[Site, list[int]]] = {}
    for root in diagnosis.roots:
        operation = root.operation
        if operation is None or operation.pair is not None or operation.group not in job.groups:
            continue
        is_missing = root.kind in ("never_launched", "dead", "unknown")
        members = job.groups[operation.group].members
        _add(at, _site_at(members, operation, program, root.rank, notes), root.rank, is_missing)
    for rank in diagnosis.waiting:
        for operation in diagnosis.waits.frontiers.get(rank, [])[:1]:
            if operation.pair is None:
                members = job.groups[operation.group].members
                _add(at, _site_at(members, operation, program, rank, notes), rank, False)
    for (_, is_missing), (site, ranks) in at.items():
        yield ProgramPlace(tuple(sorted(ranks)), site, is_missing, _why_missing(site) if is_missing else "")


def _add(at: dict[tuple[int, bool], tuple[Site, list[int]]], site: Site | None, rank: int, is_missing: bool) -> None:
    if site is not None:
        at.setdefault((id(site.instruction), is_missing), (site, []))[1].append(rank)


def _site_at(
    members: tuple[int, ...] | None, operation: Launch, program: Module | ModuleGroup, rank: int, notes: list[str]
) -> Site | None:
    """The collective of the program with this number in the group; None if the program has none, or several loops."""
    if members is None or rank not in _devices(program):
        return None
    found = [*_collectives_of_group(program, rank, members)]
    if not found:
        return None
    if len({tuple(id(step.instruction) for step in site.path) for site in found}) > 1:
        notes.append(
            f"the collectives of group {operation.group} are in several computations, so that its count gives no place"
        )
        return None
    notes.append(
        f"group {operation.group} has {len(found)} collective{'s' * (len(found) != 1)} in "
        + ("each trip" if found[0].path else "each execution")
        + "; its count is taken to be from this program alone"
    )
    site = found[(operation.sequence - 1) % len(found)]
    collective = collective_in(site.instruction)
    kind = _KINDS.get(operation.name, operation.name)
    opcode = "" if collective is None else collective.opcode.removesuffix("_start")
    if kind not in ("collective", "operation") and opcode != kind:
        notes.append(f"the count of group {operation.group} leads to {site}, but the dumps say {operation.name}")
        return None
    return site


def _collectives_of_group(program: Module | ModuleGroup, rank: int, members: tuple[int, ...]) -> Iterator[Site]:
    is_own = isinstance(program, ModuleGroup)
    replicas, partitions = len(_devices(program)), 1
    if isinstance(program, Module):
        replicas, partitions = program.num_replicas, program.num_partitions
    for site in collectives_of(_entry(program, rank)):
        collective = collective_in(site.instruction)
        if collective is None or not hasattr(collective.attributes, "replica_groups"):
            continue
        group = grouping(collective, replicas, partitions, is_own).of.get(rank)
        if group is not None and sorted(group) == sorted(members):
            yield site


def _why_missing(site: Site) -> str:
    """What an instruction needs before it, as sentences: decisions of control flow, and other communication."""
    needed = needed_by([site.instruction]) - {site.instruction}
    before = [each for each in needed if communicates_itself(each)]
    above = [step.instruction for step in site.path if step.instruction.opcode in ("conditional", "while")]
    sentences = []
    if above:
        names = ", ".join(each.name for each in above)
        sentences.append(
            f"It is inside {names}, so a device that takes another branch, or fewer trips, never reaches it"
        )
    if before:
        names = ", ".join(sorted(each.name for each in before)[:4])
        sentences.append(f"Its operands need {names}")
    return "".join(f"{sentence}. " for sentence in sentences).rstrip()
