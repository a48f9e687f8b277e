"""The verdict on programs with too many sites to enumerate: each computation is read once.

One program on all devices runs to its end where all devices take the same branches and trips around communication: each
device then reaches the same collectives in the same order. The verdict on other programs is depends.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from attrs import define

from ..core.graph import Computation, Instruction
from ..properties.effects import TRANSFERS, UNITS, Path, communicates
from ..properties.sites import MOST_PLACES, Site, is_followed, places_of, reached, sites_of
from .dataflow.analysis import Leaf
from .dataflow.replication import Replication, analysed, varies
from .deadlock.level_run import Context
from .model.describe import finding
from .model.program import Program, devices_text
from .model.verdict import Finding, Verdict
from .scenarios import external_wait_findings


def is_summarised(program: Program) -> bool:
    """Whether a program has more sites than are enumerated."""
    return not all(is_followed(each.module.entry) for each in program.classes)


def summary_verdict(context: Context) -> Verdict:
    """The verdict: ok where all devices take the same branches and trips whatever the data, else depends."""
    program = context.program
    left = (*external_wait_findings(context),) if _goes_alike(program) else (_too_many(program),)
    entries = {device: each.module.entry.instructions for device, each in program.class_of.items()}
    if left:
        return Verdict("depends", "given" if program.given else "found", left, entries)
    whose = f"{devices_text(program.devices)} run one program"
    return Verdict(
        "ok",
        "every",
        (),
        entries,
        summary=f"no schedule can deadlock: {whose}, in which every loop and conditional around collectives goes alike",
    )


def unfinished_verdict(program: Program, seconds: float) -> Verdict:
    """The verdict of a check that reached its time limit."""
    entries = {device: each.module.entry.instructions for device, each in program.class_of.items()}
    found = finding(
        "data_dependent",
        f"the check was not finished within {seconds:g} seconds",
        (program.devices, Site((), program.classes[0].module.entry.root)),
        cause="NOT_ALL_TRIED",
        cause_text="nothing was found by then that stops it; the run will show it",
        repair_text=f"give it more time: max_seconds={max(1, round(seconds * 4))}",
    )
    return Verdict("depends", "given" if program.given else "found", (found,), entries)


def _goes_alike(program: Program) -> bool:
    """Whether one program runs on all devices, without transfers, and all devices take the same branches and trips."""
    if len(program.classes) > 1:
        return False
    entry = program.classes[0].module.entry
    if any(site.instruction.opcode in TRANSFERS for site in sites_of(entry)):
        return False
    walk = analysed(_Summary(varies, program.devices, *program.grid), entry)
    return not walk.gave_up and all(walk.is_alike(unit) for unit in _units(entry))


def _units(entry: Computation) -> Iterator[Instruction]:
    """The loops and conditionals that contain communication."""
    for computation in reached(entry):
        for instruction in computation.instructions:
            if instruction.opcode in UNITS and any(map(communicates, instruction.called)):
                yield instruction


@define(eq=False)
class _Summary(Replication):
    """Replication analysis that keeps one fact for each loop and conditional, joined over all paths that lead to it."""

    def where(self, computation: Computation, path: Path) -> Hashable:
        return ()

    def decide(self, instruction: Instruction, path: Path, leaf: Leaf) -> None:
        super().decide(instruction, (), leaf)

    def is_alike(self, unit: Instruction) -> bool:
        """Whether all devices agree on the predicate or trip count of a unit; true where the unit is never reached."""
        found = self.decides.get((id(unit),))
        return found is None or found.is_everywhere


def _too_many(program: Program) -> Finding:
    most = max(program.classes, key=lambda each: places_of(each.module.entry))
    entry = most.module.entry
    return finding(
        "data_dependent",
        f"more than could be followed: through the calls of {entry.name} there are {_count(places_of(entry))} places "
        f"that communicate, and at most {MOST_PLACES:,} are told apart",
        (most.devices, Site((), entry.root)),
        cause="NOT_ALL_TRIED",
        cause_text="nothing was found that stops it, and not every way through it was gone; the run will show it",
        repair_text="let a loop repeat what calls of calls do now, or make what decides the same everywhere",
    )


def _count(number: int) -> str:
    """`131,072`, `about 10^18`"""
    return f"{number:,}" if number < 10**12 else f"about 10^{len(str(number)) - 1}"
