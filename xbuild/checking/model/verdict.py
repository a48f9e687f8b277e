"""Verdict, finding and repair: the result of the check as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from attrs import field, frozen

from shape_inference.kinds import KINDS

from ...core.graph import Computation, Instruction, Source
from ...core.hooks import Showable

if TYPE_CHECKING:
    from .program import Program

VerdictKind: TypeAlias = Literal["ok", "error", "deadlock", "depends"]
Scope: TypeAlias = Literal["every", "given", "found"]
Order: TypeAlias = tuple[Instruction, ...]
Orders: TypeAlias = tuple[tuple[Computation, Order], ...]


@frozen
class Wait:
    """One edge of a cycle: an instruction on a device waits for one on another, which stands `behind` a third there."""

    device: int
    instruction: Instruction
    partner_device: int
    partner: Instruction
    reason: str
    behind: str = ""


@frozen
class ReportRow:
    """A row of the report: devices, the instruction at which they stand, its facts, its line, what they wait for."""

    devices: tuple[int, ...]
    text: str
    fact: str = ""
    source: Source | None = None
    waits: str = ""


def _kind(finding: Finding, attribute: Any, kind: str) -> None:
    assert kind in KINDS, kind


@frozen
class Finding:
    """One finding: its kind, message, instructions and devices; of a deadlock also the blocked devices and the cycle.

    `cause` is a class of causes such as P2P_CYCLE, `cause_text` the sentence that says it, `repair_text` what mends it.
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
        """The user's lines of its instructions, each once."""
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
    """The smallest edit that makes a given schedule safe, checked; no moves where the whole order is another.

    `schedule` is the order of each device's entry after it, `orders` that of all computations that it changes.
    """

    text: str
    moves: tuple[Move, ...]
    schedule: Mapping[int, Order]
    orders: Mapping[int, Orders]

    def to_dict(self) -> dict[str, Any]:
        moves = [{"devices": list(m.devices), "move": m.instruction.name, "before": m.before.name} for m in self.moves]
        return {"text": self.text, "moves": moves, "schedule": _names(self.schedule)}


def _names(schedule: Mapping[int, Order]) -> dict[int, list[str]]:
    return {device: [i.name for i in order] for device, order in schedule.items()}


@frozen(eq=False)
class CheckArguments:
    """The arguments of the check, kept for pictures: the programs of all devices, send buffers, infeed items."""

    program: Program
    send_buffers: float = 0
    infeed: Mapping[int, int] | None = None


@frozen(eq=False, repr=False)
class Verdict(Showable):
    """Whether a program may deadlock, found before it runs; str() of it is the report.

    `scope` says for which schedules: every legal one, the given one, or the one that was found. `schedule` is for each
    device an order of its entry's instructions that runs to the end (none where the program is refused).
    """

    kind: VerdictKind
    scope: Scope
    findings: tuple[Finding, ...] = ()
    schedule: Mapping[int, Order] = field(factory=dict)
    repair: Repair | None = None
    summary: str = ""
    reordered: Mapping[int, Orders] = field(factory=dict)
    asked: CheckArguments | None = None

    @property
    def refused(self) -> bool:
        """Whether the program must not run: its structure is wrong, or it deadlocks."""
        return self.kind in ("error", "deadlock")

    def orders(self, device: int) -> Orders:
        """The computations that this device must run in another order than the recorded one, each with that order."""
        return self.reordered.get(device, ())

    def to_dict(self) -> dict[str, Any]:
        """The facts of the report as plain data."""
        return {
            "kind": self.kind,
            "scope": self.scope,
            "refused": self.refused,
            "findings": [finding.to_dict() for finding in self.findings],
            "schedule": _names(self.schedule),
            "repair": None if self.repair is None else self.repair.to_dict(),
            "summary": self.summary,
        }

    def __str__(self) -> str:
        from .report import report

        return report(self)

    __repr__ = __str__
