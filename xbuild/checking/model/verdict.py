"""Verdict, finding and repair: the result of the check as data, and the report of a verdict as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from attrs import field, frozen

from shape_inference.escaping import Harmless
from shape_inference.kinds import KINDS

from ...core.graph import Instruction, Source
from ...core.hooks import Showable
from ...core.issues import Issue, related_places
from ...core.report_text import (
    MORE,
    WIDTH,
    Line,
    PlaceRow,
    StyledText,
    first_screen,
    folded,
    labelled,
    more_line,
    place_rows,
    plain,
)
from .program import GridProgram, Order, Orders, device_ranges, devices_text

if TYPE_CHECKING:
    from ...runtimes.machine import Interleaving
    from ...runtimes.record import Runtime

VerdictKind: TypeAlias = Literal["ok", "error", "deadlock", "depends"]
Scope: TypeAlias = Literal["every", "given", "found"]


@frozen
class Wait:
    """One edge of a cycle: an instruction on a device waits for one on another, which is `behind` a third there."""

    device: int
    instruction: Instruction
    partner_device: int
    partner: Instruction
    reason: str
    behind: str = ""


@frozen
class ReportRow:
    """A row of the report: devices, the instruction at which they stop, its facts, its line, what they wait for."""

    devices: tuple[int, ...]
    text: str
    fact: str = ""
    source: Source | None = None
    waits: str = ""


def _kind(finding: Finding, attribute: Any, kind: str) -> None:
    assert kind in KINDS, kind


@frozen
class Finding:
    """One finding: its kind, message, instructions and devices. For a deadlock, it also has the blocked devices and the
    cycle.

    `cause` is a class of causes such as P2P_CYCLE, `cause_text` explains the cause, and `repair_text` says how to fix
    it.
    """

    kind: str = field(validator=_kind)
    message: str
    rows: tuple[ReportRow, ...] = ()
    instructions: tuple[Instruction, ...] = ()
    devices: tuple[int, ...] = ()
    cause: str = ""
    cause_text: str = ""
    repair_text: str = ""
    note: str = ""
    facts: tuple[str, ...] = ()
    blocked: Mapping[int, tuple[Instruction, ...]] = field(factory=dict)
    cycle: tuple[Wait, ...] = ()

    @property
    def sources(self) -> tuple[Source, ...]:
        """The user's lines that recorded the instructions, without duplicates."""
        return tuple(dict.fromkeys(i.source for i in self.instructions if i.source is not None))

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "message": self.message,
            "instructions": [i.name for i in self.instructions],
            "devices": list(self.devices),
            "sources": [str(source) for source in self.sources],
            "cause": self.cause or None,
            "explanation": self.cause_text or None,
            "repair": self.repair_text or None,
            "note": self.note or None,
            "facts": list(self.facts),
            "rows": [_row(row) for row in self.rows],
            "blocked": {device: [i.name for i in at] for device, at in self.blocked.items()},
            "cycle": [_wait(wait) for wait in self.cycle],
        }


def _row(row: ReportRow) -> dict[str, Any]:
    source = None if row.source is None else str(row.source)
    return {
        "devices": list(row.devices),
        "text": row.text,
        "fact": row.fact or None,
        "source": source,
        "waits": row.waits or None,
    }


def _wait(wait: Wait) -> dict[str, Any]:
    return {
        "device": wait.device,
        "instruction": wait.instruction.name,
        "waits_for": wait.partner.name,
        "on_device": wait.partner_device,
        "reason": wait.reason,
        "behind": wait.behind or None,
    }


@frozen
class Move:
    """An edit of a schedule: on these devices, this instruction before that one."""

    devices: tuple[int, ...]
    instruction: Instruction
    before: Instruction


@frozen
class Repair:
    """The smallest edit that makes a given schedule pass the check. It has no moves if the order changes completely.

    `schedule` is the repaired order of each device's entry. `orders` has the orders of all computations that change.
    """

    text: str
    moves: tuple[Move, ...]
    schedule: Mapping[int, Order]
    orders: Mapping[int, Orders]

    def to_dict(self) -> dict[str, Any]:
        moves = [{"devices": list(m.devices), "move": m.instruction.name, "before": m.before.name} for m in self.moves]
        return {"text": self.text, "moves": moves, "schedule": _names(self.schedule)}


def _names(schedule: Mapping[int, Order]) -> dict[str, list[str]]:
    """The orders by the devices that have them, such as `0-3,7`; devices with the same order share one."""
    devices: dict[tuple[str, ...], list[int]] = {}
    known: dict[int, tuple[str, ...]] = {}
    for device, order in schedule.items():
        names = known.get(id(order)) or known.setdefault(id(order), tuple(i.name for i in order))
        devices.setdefault(names, []).append(device)
    return {",".join(device_ranges(which)): list(names) for names, which in devices.items()}


@frozen(eq=False)
class CheckArguments:
    """The arguments of the check, for pictures: the programs of all devices, send buffers, infeed items, a runtime."""

    program: GridProgram
    send_buffers: float = 0
    infeed: Mapping[int, int] | None = None
    runtime: Runtime | None = None


@frozen(eq=False, repr=False)
class Verdict(Showable):
    """Whether a program may deadlock, decided before it runs.

    str() returns the report. The verdict on a refused program is false.

    `scope` names the schedules for which the verdict holds: every legal schedule, the given schedule, or the schedule
    that the check found. `schedule` has, for each device, an order of its entry's instructions that runs to completion;
    it is empty if the program is refused. `notes` lists what the verdict does not cover, such as the collectives of a
    module that is not partitioned yet. Under a runtime whose threads or other places are limited, `interleavings`
    are orders in which calls take places and hang; a run follows the one that fits it.
    """

    kind: VerdictKind
    scope: Scope
    findings: tuple[Finding, ...] = ()
    schedule: Mapping[int, Order] = field(factory=dict)
    repair: Repair | None = None
    summary: str = ""
    reordered: Mapping[int, Orders] = field(factory=dict)
    asked: CheckArguments | None = None
    notes: tuple[str, ...] = ()
    interleavings: tuple[Interleaving, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether the program must not run because its structure is wrong or it deadlocks."""
        return self.kind in ("error", "deadlock")

    @property
    def may_hang(self) -> bool:
        """Whether the program hangs on some data although its host callbacks return."""
        return self.kind == "depends" and any(found.cause != "CALLBACK" for found in self.findings)

    def __bool__(self) -> bool:
        """Whether the program is not refused, so that `assert xb.check(program)` fails for one that would hang."""
        return not self.refused

    def raise_if_refused(self) -> None:
        """Raise Refused, whose text is the report, if the program must not run.

        >>> import xbuild as xb
        >>> xb.check(xb.computation(xb.f32[2])(lambda x: x + x)).raise_if_refused()
        """
        __tracebackhide__ = True
        if self.refused:
            raise Refused(self)

    def orders(self, device: int) -> Orders:
        """Return the computations whose order this device must change, each with its new order."""
        return self.reordered.get(device, ())

    @property
    def issues(self) -> tuple[Issue, ...]:
        """The findings and the notes as issues. Findings are errors if the program is refused, and warnings otherwise.

        >>> import xbuild as xb
        >>> xb.check(xb.computation(xb.f32[2])(lambda x: x + x)).issues
        ()
        """
        findings = (_issue(self, finding) for finding in self.findings)
        return (*findings, *(Issue("note", "note", note) for note in self.notes))

    def to_dict(self) -> dict[str, Any]:
        """Return the contents of the report as plain data; devices with the same order share one entry in
        `schedule`."""
        return {
            "kind": self.kind,
            "scope": self.scope,
            "refused": self.refused,
            "findings": [finding.to_dict() for finding in self.findings],
            "schedule": _names(self.schedule),
            "repair": None if self.repair is None else self.repair.to_dict(),
            "summary": self.summary,
            "notes": list(self.notes),
        }

    def report(self, *, all: bool = False, width: int = WIDTH) -> str:
        """Return the report as text; `all` also shows the rows after the tenth, which str() omits."""
        return plain(report_lines(self, all, width))

    def __str__(self) -> str:
        return self.report()

    __repr__ = __str__


def _issue(verdict: Verdict, finding: Finding) -> Issue:
    """A finding as an issue at its first line; the lines of a cycle, or of the blocked devices, are related."""
    source = next(iter(finding.sources), None)
    places = [(_wait_text(wait), wait.instruction.source) for wait in finding.cycle]
    places += [(f"{devices_text(row.devices)}: {row.text}", row.source) for row in finding.rows if not finding.cycle]
    places += [(i.name, i.source) for i in finding.instructions]
    return Issue(
        rule=finding.kind,
        level="error" if verdict.refused else "warning",
        message=finding.message
        if verdict.refused
        else f"the program deadlocks under this condition: {finding.message}",
        source=source,
        instructions=tuple(i.name for i in finding.instructions),
        devices=finding.devices,
        fix=fix_text(verdict, finding),
        facts={"cause": finding.cause or None, "explanation": finding.cause_text or None},
        related=related_places(places, source),
    )


def _wait_text(wait: Wait) -> str:
    partner = f"{wait.partner.name} on device {wait.partner_device}"
    return f"{wait.instruction.name} on device {wait.device} waits for {partner}"


# ----------------------------------------------------------------------------
# The report of a verdict
#
# The sentence, the devices with their lines, the cause and the fix; then further devices, the cycle, and notes.

MOST_EDGES = 4


class Refused(Harmless):
    """Raised if the check before the run refuses a program; `verdict` contains the findings."""

    def __init__(self, verdict: Verdict, *hints: str) -> None:
        self.verdict, self.hints = verdict, hints
        super().__init__(plain(self.lines()))

    def lines(self, all: bool = False, width: int = WIDTH, more: str = MORE) -> Iterator[Line]:
        """Return the lines of the verdict's report, then the hints."""
        yield from report_lines(self.verdict, all, width, more)
        yield from ((f"  hint: {hint}",) for hint in self.hints)

    def _repr_html_(self) -> str:
        return self.verdict._repr_html_()


def report_lines(verdict: Verdict, all: bool = False, width: int = WIDTH, more: str = MORE) -> Iterator[Line]:
    """The lines of the report; `more` says how to see the rows that are folded."""
    if verdict.kind == "ok":
        yield (StyledText(f"ok: {verdict.summary}", "good"),)
    elif verdict.kind == "depends":
        yield (StyledText(f"depends: {_conditions(verdict)}", "waits"),)
    findings, hidden = folded(verdict.findings, all)
    for finding in findings:
        yield from _finding_lines(verdict, finding, all, width, more)
    if hidden:
        yield ()
        yield more_line(hidden, more, noun="condition" if verdict.kind == "depends" else "finding")
    if verdict.kind == "depends" and verdict.summary:
        yield from ((), ("  ", StyledText("otherwise", "title"), f" {verdict.summary}"))
    if verdict.notes and verdict.kind != "ok":
        yield ()
    for note in verdict.notes:
        yield from labelled("note", note, width, title="dim")


def _conditions(verdict: Verdict) -> str:
    count = len(verdict.findings)
    return (
        "the data decide; the program deadlocks "
        f"{'under one of these conditions' if count > 1 else 'under this condition'}"
    )


def _finding_lines(verdict: Verdict, finding: Finding, all: bool, width: int, more: str) -> Iterator[Line]:
    if verdict.kind == "depends" or finding is not verdict.findings[0]:
        yield ()
    if verdict.kind == "depends":
        yield ("  ", StyledText(finding.message, "title"))
    else:
        yield (StyledText(f"{verdict.kind}: {finding.message} [{finding.kind}]", "bad"),)
    rows, hidden = folded(_grouped(_cycle_first(finding)), all)
    blocks = place_rows(rows, width)
    first = first_screen(blocks)
    yield from _section(line for block in blocks[:first] for line in block)
    yield from _section(_cause_and_fix(verdict, finding, width))
    further = [line for block in blocks[first:] for line in block]
    if hidden:
        further.append(more_line(hidden, more, noun="place"))
    cycle = labelled("cycle", _cycle(finding.cycle, all), width, title="dim") if finding.cycle else ()
    note = labelled("note", finding.note, width, title="dim") if finding.note else ()
    if len(blocks) > first:
        yield from _section([("  ", StyledText("further devices", "title")), *further])
        yield from _section([*cycle, *note])
    else:
        yield from _section([*further, *cycle, *note])


def _section(lines: Iterable[Line]) -> Iterator[Line]:
    """The lines below an empty one; nothing if there are none."""
    for number, line in enumerate(lines):
        if not number:
            yield ()
        yield line


def _cause_and_fix(verdict: Verdict, finding: Finding, width: int) -> Iterator[Line]:
    if finding.cause_text:
        yield from labelled("cause", finding.cause_text, width)
    if fix := fix_text(verdict, finding):
        yield from labelled("fix", fix, width, style="good")


def fix_text(verdict: Verdict, finding: Finding) -> str:
    """How to fix a finding; for the first one, the repair that was checked."""
    is_repaired = verdict.repair is not None and finding is verdict.findings[0]
    return f"{verdict.repair.text} (checked: ok)" if is_repaired and verdict.repair else finding.repair_text


def _cycle_first(finding: Finding) -> list[ReportRow]:
    """The rows of the devices in the cycle, then the others, which wait because of it."""
    cycle = {wait.device for wait in finding.cycle}
    return sorted(finding.rows, key=lambda row: bool(cycle) and not cycle.intersection(row.devices))


def _grouped(rows: Iterable[ReportRow]) -> list[PlaceRow]:
    """A row for each group of devices with equal rows; the others are listed with the first of them."""
    alike: dict[tuple[object, ...], list[ReportRow]] = {}
    for row in rows:
        alike.setdefault(_likeness(row), []).append(row)
    return [_place_row(group) for group in alike.values()]


def _place_row(group: list[ReportRow]) -> PlaceRow:
    row, label = group[0], devices_text(group[0].devices)
    below = (f"waits for {row.waits}",) if row.waits else ()
    others = sorted({device for other in group[1:] for device in other.devices} - set(row.devices))
    alike = devices_text(others) if others else ""
    unlike = _other_waits(row, [other for other in group[1:] if {*other.devices} - {*row.devices}])
    return PlaceRow(label, row.text, row.fact, str(row.source or ""), below, alike, "name", unlike)


def _other_waits(row: ReportRow, others: Sequence[ReportRow]) -> str:
    """For whom devices in other groups of a collective wait, if that differs from the first row of the group."""
    waits = {other.waits.partition(" (")[0] for other in others if other.waits}
    if not waits - {row.waits.partition(" (")[0]} or row.fact.startswith("channel"):
        return ""
    return f"; {'waits' if len(others) == 1 else 'wait'} for {waits.pop()}" if len(waits) == 1 else ", in other groups"


def _likeness(row: ReportRow) -> tuple[object, ...]:
    """The key that equal rows share; partners may differ, and so may the channel and peer of a waiting transfer."""
    is_transfer = row.fact.startswith("channel")
    return row.text, row.source, "" if row.waits and is_transfer else row.fact


def _cycle(cycle: tuple[Wait, ...], all: bool) -> str:
    """`send.1 @0 -> recv.1 @1 -> (after send.2 in the schedule of device 1) send.2 @1 -> ... -> send.1 @0`"""
    most = len(cycle) if all else MOST_EDGES
    parts = [f"{cycle[0].instruction.name} @{cycle[0].device}"]
    for number, wait in enumerate(cycle[:most]):
        parts.append(f"{wait.partner.name} @{wait.partner_device}")
        following = cycle[(number + 1) % len(cycle)]
        if wait.behind:
            parts.append(f"({wait.behind}) {following.instruction.name} @{following.device}")
    if len(cycle) > most:
        parts.append(f"... {len(cycle) - most} more waits")
        parts.append(f"{cycle[0].instruction.name} @{cycle[0].device}")
    return " -> ".join(parts)
