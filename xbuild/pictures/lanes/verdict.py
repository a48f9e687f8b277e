"""From a verdict to its lanes."""

from __future__ import annotations

from ...checking.dataflow.control import Control
from ...checking.deadlock.examine import Examination
from ...checking.deadlock.run import Context, Level, Run
from ...checking.model.verdict import Asked, Finding, Verdict
from ...checking.structure.meetings import identities
from ...checking.structure.transfers import transfers
from . import Lanes
from .faults import of_fault
from .runs import of_run


def lanes_of(verdict: Verdict) -> Lanes:
    """Each device's way to its end, or to where it is stuck; where the structure is wrong, what is wrong in it."""
    name = f"xbuild check: {verdict.kind}"
    if verdict.asked is None:
        return Lanes(name, verdict.kind, _headline(verdict), remarks=_remarks(verdict), report=str(verdict))
    if verdict.kind == "error":
        parts = of_fault(verdict, verdict.asked.program)
    else:
        parts = of_run(verdict, _run(verdict, verdict.asked))
    remarks, text = _remarks(verdict), str(verdict)
    return Lanes(name, verdict.kind, _headline(verdict), *parts[:-1], remarks=remarks, notes=parts[-1], report=text)


def _run(verdict: Verdict, asked: Asked) -> Run:
    """The run that is stuck, or one to its end of the outermost level at which something but loops runs."""
    program = asked.program
    if verdict.kind != "deadlock" and verdict.reordered:
        program = program.ordered(verdict.reordered)
    context = Context(program, transfers(program)[0], identities(program), asked.send_buffers, asked.infeed)
    examination = Examination(context, Control(program))
    if examination.stuck:
        return examination.stuck[0]
    levels = examination.levels or [Level({}, {})]
    return Run(context, next((level for level in levels if _says_much(level)), levels[0]))


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
