"""Lanes of a verdict, from the run that the check made or from the faults that it found."""

from __future__ import annotations

from ...checking.dataflow.decisions import Decisions
from ...checking.deadlock.level_run import Context, Level, LevelRun
from ...checking.deadlock.levels import LevelStage
from ...checking.model.verdict import CheckArguments, Finding, Verdict
from ...checking.structure.collective_matching import collective_identities
from ...checking.structure.transfers import match_transfers
from . import Lanes
from .faults import of_fault
from .runs import of_run


def lanes_of(verdict: Verdict) -> Lanes:
    """The lanes of a verdict: each device up to its end or its halt; of an error, the communication and its faults."""
    name = f"xbuild check: {verdict.kind}"
    if verdict.asked is None:
        return Lanes(name, verdict.kind, _headline(verdict), remarks=_remarks(verdict), report=str(verdict))
    if verdict.kind == "error":
        parts = of_fault(verdict, verdict.asked.program)
    else:
        parts = of_run(verdict, _run(verdict, verdict.asked))
    remarks, text = _remarks(verdict), str(verdict)
    return Lanes(name, verdict.kind, _headline(verdict), *parts[:-1], remarks=remarks, notes=parts[-1], report=text)


def _run(verdict: Verdict, asked: CheckArguments) -> LevelRun:
    """The run that is stuck; else the finished run of the outermost level that has other items than loops."""
    program = asked.program
    if verdict.kind != "deadlock" and verdict.reordered:
        program = program.ordered(verdict.reordered)
    context = Context(
        program, match_transfers(program)[0], collective_identities(program), asked.send_buffers, asked.infeed
    )
    stage = LevelStage(context, Decisions(program))
    if stage.stuck:
        return stage.stuck[0]
    levels = stage.levels or [Level({}, {})]
    return LevelRun(context, next((level for level in levels if _says_much(level)), levels[0]))


def _says_much(level: Level) -> bool:
    return any(item.kind != "unit" for skeleton in level.skeletons.values() for item in skeleton.items)


def _headline(verdict: Verdict) -> str:
    if verdict.kind == "ok":
        return verdict.summary
    if verdict.kind == "depends":
        return f"the data decide: {verdict.findings[0].message}"
    return verdict.findings[0].message


def _remarks(verdict: Verdict) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    if verdict.kind == "depends":
        found += (("or", finding.message) for finding in verdict.findings[1:3])
        found.append(("otherwise", verdict.summary))
    for finding in verdict.findings[:1]:
        found += _facts(verdict, finding)
    if len(verdict.findings) > 1 and verdict.kind != "depends":
        found.append(("also", verdict.findings[1].message))
    return tuple(found)


def _facts(verdict: Verdict, finding: Finding) -> list[tuple[str, str]]:
    repair = f"{verdict.repair.text} (checked: ok)" if verdict.repair else finding.repair_text
    told = (("cause", finding.cause_text), ("repair", repair), ("note", finding.note))
    return [(label, text) for label, text in told if text]
