"""The verdict before the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import Any

from attrs import evolve, frozen

from shape_inference.escaping import Harmless

from ..core.graph import Module, ModuleGroup
from ..process.deadline import DeadlineError, within
from ..process.gc_pause import no_collection
from ..process.recursion_limit import room_for_calls
from ..properties.sites import Site, collectives_of, feeds_of, transfers_of
from .dataflow.control import Control
from .deadlock.examine import Examination
from .deadlock.repair import repair, tries
from .deadlock.run import Context
from .declared_types import declared_types
from .model.describe import finding
from .model.program import Program, Schedule, devices_text, program_of
from .model.verdict import Asked, Finding, Order, Orders, Repair, Scope, Verdict, VerdictKind
from .scenarios.data_dependence import Settlement
from .scenarios.external_waits import outside
from .scenarios.summary import is_summarised, summarised, unfinished
from .structure.meetings import identities, meetings
from .structure.structure import structure
from .structure.transfers import transfers

MOST_BUFFERS = 4


class ScheduleError(Harmless, ValueError):
    """No order lets these programs run; `verdict` says why."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(str(verdict))
        self.verdict = verdict


def check(
    program: Module | ModuleGroup,
    schedule: Schedule | None = None,
    send_buffers: float = 0,
    infeed: Mapping[int, Any] | Sequence[Any] | None = None,
    *,
    max_seconds: float | None = None,
) -> Verdict:
    """Whether a program may deadlock, before it runs: ok, error (its structure is wrong), deadlock, depends (on data).

    A schedule binds where the module is scheduled, or one is given: for each device its instructions (or their names)
    in order, or such an order by computation. Without one any order is legal that keeps dependencies, and one that runs
    is looked for. `send_buffers` is how many sends of a channel go on before their recvs are posted. `infeed` says for
    each device how many items it gets. After `max_seconds` the verdict is depends, and says that time was over.
    Raises KeyError where a schedule names what is not there, TypeError where the program is none.

    >>> import xbuild as xb
    >>> total = xb.computation(xb.f32[2])(xb.cross_replica_sum)
    >>> print(xb.check(xb.Module("total", total, num_replicas=4)))
    ok: no schedule can deadlock: devices 0-3 run one program, which has 1 collective

    Source: Operation Semantics, Send (scheduling of channel instructions).
    """
    asked = Asked(program_of(program, schedule), send_buffers, _counts(infeed))
    with no_collection(), room_for_calls({each.module.entry for each in asked.program.classes}):
        try:
            with within(max_seconds):
                return evolve(_verdict(asked), asked=asked)
        except DeadlineError:
            if max_seconds is None:  # that of who calls
                raise
            return evolve(unfinished(asked.program, max_seconds), asked=asked)


def _verdict(asked: Asked) -> Verdict:
    whole = asked.program
    faults = structure(whole)
    if faults:
        return Verdict("error", "given" if all(f.kind == "bad_schedule" for f in faults) else "every", tuple(faults))
    found, faults = transfers(whole)
    identity = identities(whole)
    faults += meetings(whole, identity, Control(whole).runs)
    faults = faults or declared_types(whole)
    if faults:
        return Verdict("error", "every", tuple(faults))
    context = Context(whole, found, identity, asked.send_buffers, asked.infeed)
    return summarised(context) if is_summarised(whole) else _Check(context).verdict()


def schedule(program: Module | ModuleGroup) -> Mapping[int, Order]:
    """For each device an order of its instructions that runs to the end; the recorded one where that does.

    Raises ScheduleError where there is none.

    >>> import xbuild as xb
    >>> total = xb.computation(xb.f32[2])(xb.cross_replica_sum)
    >>> [i.name for i in xb.schedule(xb.Module("total", total, num_replicas=2))[1]]
    ['parameter.1', 'all-reduce.5']
    """
    verdict = check(program)
    if verdict.refused:
        raise ScheduleError(verdict)
    return verdict.schedule


def _counts(infeed: Mapping[int, Any] | Sequence[Any] | None) -> dict[int, int] | None:
    if infeed is None:
        return None
    items = infeed.items() if isinstance(infeed, Mapping) else enumerate(infeed)
    return {device: len(each) if isinstance(each, Sized) else int(each) for device, each in items}


@frozen(eq=False)
class _Check:
    """One check of programs whose structure is right."""

    context: Context

    def verdict(self) -> Verdict:
        program = self.context.program
        examination = self._examine(program)
        if examination.recorder.torn is not None:
            examination = self._in_recorded_order(examination)
        findings = (*examination.found, *outside(self.context))
        is_open = examination.stuck or findings or examination.fills
        settled = Settlement(self.context, examination).settled() if is_open else None
        if settled is not None:
            found = self._verdict(examination, settled.kind, settled.findings, settled.orders)
            return found if settled.may_end else evolve(found, summary="")
        if examination.stuck:
            return self._refused(examination)
        kind: VerdictKind = "ok" if not findings else "depends"
        if any(finding.kind != "data_dependent" for finding in findings):
            kind, findings = "error", tuple(f for f in findings if f.kind != "data_dependent")
        return self._verdict(examination, kind, findings, examination.recorder.orders())

    def _verdict(
        self, examination: Examination, kind: VerdictKind, findings: tuple[Finding, ...], orders: Mapping[int, Orders]
    ) -> Verdict:
        scope, program = self._scope(examination), self.context.program
        if kind == "deadlock":
            return Verdict(kind, scope, findings)
        return Verdict(
            kind,
            scope,
            findings,
            {
                device: dict(orders.get(device, ())).get(each.module.entry, each.module.entry.instructions)
                for device, each in program.class_of.items()
            },
            summary=_summary(program, orders, scope),
            reordered=orders,
        )

    def _examine(self, program: Program, send_buffers: float | None = None) -> Examination:
        buffers = self.context.send_buffers if send_buffers is None else send_buffers
        return Examination(evolve(self.context, program=program, send_buffers=buffers), Control(program))

    def _in_recorded_order(self, torn: Examination) -> Examination:
        """The recorded order where that or moves in it run; an order that leaves a call and enters it again is none."""
        program = self.context.program.ordered({})
        recorded = self._examine(program)
        if not recorded.stuck:
            return recorded
        mended = repair(program, recorded, torn, self._examine)
        if mended is not None:
            return self._examine(self.context.program.ordered(mended.orders))
        call = torn.recorder.torn
        assert call is not None
        site = Site((), call)
        torn.found.append(
            finding(
                "companion_conflict",
                f"{call.name} would have to be left and entered again: what it calls and what stands around it "
                "wait for each other by turns",
                (self.context.program.devices, site),
                repair_text=f"inline what {call.name} calls",
            )
        )
        return torn

    def _scope(self, examination: Examination) -> Scope:
        if examination.is_forced:
            return "every"
        return "given" if self.context.program.given else "found"

    def _refused(self, examination: Examination) -> Verdict:
        program = self.context.program
        scope: Scope = "every"
        mended: Repair | None = None
        if any(each.given for each in program.classes):
            free = self._examine(program.freed())
            scope = "every" if free.stuck and self._is_hopeless(free) else "given"
            mended = self._confirmed(repair(program, examination, free, self._examine))
        first, *rest = examination.found
        deadlocks = [f for f in (first, *rest) if f.cycle or f.blocked]
        return Verdict(
            "deadlock", scope, (evolve(deadlocks[0], note=self._note(examination)), *deadlocks[1:]), repair=mended
        )

    def _is_hopeless(self, free: Examination) -> bool:
        """Whether what is stuck with no order given stays so, however the data decide."""
        settled = Settlement(evolve(self.context, program=free.context.program), free).settled()
        return settled is None or settled.kind == "deadlock"

    def _confirmed(self, mended: Repair | None) -> Repair | None:
        """A repair that helps: what the levels cannot see, such as items that a loop lacks, no order mends."""
        if mended is None:
            return mended
        program = self.context.program.ordered(mended.orders)
        settled = Settlement(evolve(self.context, program=program), self._examine(program)).settled()
        left = () if settled is None else settled.findings
        stops = settled is not None and settled.kind == "deadlock"
        return None if stops or any(found.cause != "STARVED" for found in left) else mended

    def _note(self, examination: Examination) -> str:
        """From which capacity of send buffers on the program runs."""
        kinds = {run.item(place).kind for run in examination.stuck for place in run.blocked()}
        if "send" in kinds and self.context.send_buffers == 0:
            for buffers in range(1, tries(examination, MOST_BUFFERS) + 1):
                if not self._examine(self.context.program, buffers).stuck:
                    return f"with a send buffer of {buffers} the program runs: send_buffers={buffers}"
        return ""


def _summary(program: Program, orders: Mapping[int, Orders], scope: Scope) -> str:
    counts = _counted(program)
    if not counts:
        return "no schedule can deadlock: nothing communicates, so nobody waits"
    runs = "run" if len(program.devices) > 1 else "runs"
    have = "have" if len(program.devices) > 1 else "has"
    whose = f"{devices_text(program.devices)} {f'{runs} one program, which has' if program.spmd else have} {counts}"
    if scope == "every":
        return f"no schedule can deadlock: {whose}"
    if scope == "given":
        return f"the given schedule runs to its end: {whose}"
    changed = [device for device, each in sorted(orders.items()) if any(order != c.instructions for c, order in each)]
    order = (
        "the recorded order"
        if not changed
        else f"an order that was found (not the recorded one on {devices_text(changed)})"
    )
    return f"{order} runs to its end: {whose}"


def _counted(program: Program) -> str:
    """`2 collectives and 1 channel`"""
    entries = dict.fromkeys(each.module.entry for each in program.classes)
    channels = {site.channel for entry in entries for site in transfers_of(entry)}
    met = {site.instruction for entry in entries for site in collectives_of(entry)}
    feeds = {site.instruction for entry in entries for site in feeds_of(entry)}
    parts = [
        f"{len(found)} {what}{'s' * (len(found) != 1)}"
        for found, what in ((met, "collective"), (channels, "channel"), (feeds, "feed"))
        if found
    ]
    return " and ".join(parts)
