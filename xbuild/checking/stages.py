"""`check` and `schedule`: the stages of the static check, called in order, and the verdict made of their findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Sized
from typing import Any

from attrs import evolve, frozen

from shape_inference.escaping import Harmless

from ..core.graph import Computation, Module, ModuleGroup
from ..process.deadline import DeadlineError, within
from ..process.gc_pause import no_collection
from ..process.recursion_limit import room_for_calls
from ..properties.effects import communicates, notable
from ..properties.loops import never_ends
from ..properties.partitioning import annotated_devices, not_partitioned
from ..properties.sites import Site, collectives_of, feeds_of, reached, transfers_of
from ..running import one_evaluator
from .common_order import in_common_order
from .dataflow.decisions import Decisions
from .deadlock.level_run import Context
from .deadlock.levels import LevelStage
from .deadlock.repair import find_repair, most_tries
from .declared_types import declared_types
from .model.describe import finding
from .model.program import Program, Schedule, devices_text, program_of, runnable
from .model.verdict import CheckArguments, Finding, Order, Orders, Repair, Scope, Verdict, VerdictKind
from .scenarios import conclude
from .structure.collective_matching import collective_faults, collective_identities
from .structure.structure import structure_faults
from .structure.transfers import match_transfers
from .summary import is_summarised, summary_verdict, unfinished_verdict

MOST_BUFFERS = 4


class ScheduleError(Harmless, ValueError):
    """No order lets these programs run; `verdict` says why."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(str(verdict))
        self.verdict = verdict


def check(
    program: Computation | Module | ModuleGroup,
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
    each device how many items it gets. A Computation is the program of one device. After `max_seconds` the verdict is
    depends, and says that time was over.
    Raises KeyError where a schedule names what is not there, TypeError where the program is none.

    >>> import xbuild as xb
    >>> total = xb.computation(xb.f32[2])(xb.cross_replica_sum)
    >>> print(xb.check(xb.Module("total", total, num_replicas=4)))
    ok: no schedule can deadlock: devices 0-3 run one program, which has 1 collective

    Source: Operation Semantics, Send (scheduling of channel instructions).
    """
    asked = CheckArguments(program_of(runnable(program), schedule), send_buffers, _counts(infeed))
    with no_collection(), room_for_calls({each.module.entry for each in asked.program.classes}):
        try:
            with within(max_seconds):
                return evolve(_verdict(asked), asked=asked, notes=_notes(asked.program))
        except DeadlineError:
            if max_seconds is None:  # the deadline is that of a caller
                raise
            return evolve(unfinished_verdict(asked.program, max_seconds), asked=asked)


def _notes(program: Program) -> tuple[str, ...]:
    """What the verdict does not look at: collectives that are still to be inserted, trips of loops without an end."""
    modules = dict.fromkeys(each.module for each in program.classes)
    told = [note for module in modules if (note := not_partitioned(module, "checked"))]
    return (*told, *dict.fromkeys(note for module in modules for note in _endless(module)))


def _is_unpartitioned(program: Program) -> bool:
    return any(annotated_devices(each.module) for each in program.classes)


def _endless(module: Module) -> Iterator[str]:
    for computation in reached(module.entry):
        for each in notable(computation):
            if never_ends(each) and any(map(communicates, each.called)):
                yield f"while {each.name} never ends, as its condition is constant: what is said is of one trip of it"


@one_evaluator()
def _verdict(asked: CheckArguments) -> Verdict:
    context = context_of(asked)
    if isinstance(context, Verdict):
        return context
    return summary_verdict(context) if is_summarised(asked.program) else _Check(context).verdict()


def context_of(asked: CheckArguments) -> Context | Verdict:
    """What the stages after the structural ones read: channels and identities; the verdict where these find faults."""
    whole = asked.program
    faults = structure_faults(whole)
    if faults:
        return Verdict("error", "given" if all(f.kind == "bad_schedule" for f in faults) else "every", tuple(faults))
    found, faults = match_transfers(whole)
    identity = collective_identities(whole)
    faults += collective_faults(whole, identity, Decisions(whole).runs)
    faults = faults or declared_types(whole)
    if faults:
        return Verdict("error", "every", tuple(faults))
    return Context(whole, found, identity, asked.send_buffers, asked.infeed)


def schedule(program: Computation | Module | ModuleGroup) -> Mapping[int, Order]:
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
    """The stages after the structural ones, for programs without structural faults."""

    context: Context

    def verdict(self) -> Verdict:
        levels = self._examine(self.context.program)
        if levels.recorder.torn is not None:
            levels = self._in_recorded_order(levels)
        concluded = conclude(self.context, levels)
        if concluded.kind == "deadlock" and not concluded.is_simulated:
            return self._refused(levels)
        found = self._verdict(levels, concluded.kind, concluded.findings, concluded.orders)
        found = found if concluded.may_end else evolve(found, summary="")
        return in_common_order(found, self.context.program, self._runs)

    def _runs(self, program: Program) -> bool:
        """Whether a program whose orders are given runs to its end with all data."""
        levels = self._examine(program)
        return not levels.stuck and conclude(evolve(self.context, program=program), levels).kind == "ok"

    def _verdict(
        self, levels: LevelStage, kind: VerdictKind, findings: tuple[Finding, ...], orders: Mapping[int, Orders]
    ) -> Verdict:
        scope, program = self._scope(levels), self.context.program
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

    def _examine(self, program: Program, send_buffers: float | None = None) -> LevelStage:
        buffers = self.context.send_buffers if send_buffers is None else send_buffers
        return LevelStage(evolve(self.context, program=program, send_buffers=buffers), Decisions(program))

    def _in_recorded_order(self, torn: LevelStage) -> LevelStage:
        """The levels in the recorded order, or with moves in it, where the order found leaves and reenters a call."""
        program = self.context.program.ordered({})
        recorded = self._examine(program)
        if not recorded.stuck:
            return recorded
        mended = find_repair(program, recorded, torn, self._examine)
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

    def _scope(self, levels: LevelStage) -> Scope:
        if levels.is_forced:
            return "every"
        return "given" if self.context.program.given else "found"

    def _refused(self, levels: LevelStage) -> Verdict:
        program = self.context.program
        scope: Scope = "every"
        mended: Repair | None = None
        if any(each.given for each in program.classes):
            free = self._examine(program.freed())
            scope = "every" if free.stuck and self._is_hopeless(free) else "given"
            mended = self._confirmed(find_repair(program, levels, free, self._examine))
        first, *rest = levels.found
        deadlocks = [f for f in (first, *rest) if f.cycle or f.blocked]
        return Verdict(
            "deadlock", scope, (evolve(deadlocks[0], note=self._note(levels)), *deadlocks[1:]), repair=mended
        )

    def _is_hopeless(self, free: LevelStage) -> bool:
        """Whether programs that are stuck in every order stay so in all scenarios."""
        return conclude(evolve(self.context, program=free.context.program), free).kind == "deadlock"

    def _confirmed(self, mended: Repair | None) -> Repair | None:
        """The repair, if the repaired programs end by the scenario stage, too; it sees stops that the levels do not."""
        if mended is None:
            return mended
        program = self.context.program.ordered(mended.orders)
        concluded = conclude(evolve(self.context, program=program), self._examine(program))
        is_mended = concluded.kind != "deadlock" and all(found.cause == "STARVED" for found in concluded.findings)
        return mended if is_mended or not concluded.is_simulated else None

    def _note(self, levels: LevelStage) -> str:
        """The note which capacity of send buffers makes the programs run, if one does."""
        kinds = {run.item(place).kind for run in levels.stuck for place in run.blocked()}
        if "send" in kinds and self.context.send_buffers == 0:
            for buffers in range(1, most_tries(levels, MOST_BUFFERS) + 1):
                if not self._examine(self.context.program, buffers).stuck:
                    return f"with a send buffer of {buffers} the program runs: send_buffers={buffers}"
        return ""


def _summary(program: Program, orders: Mapping[int, Orders], scope: Scope) -> str:
    counts = _counted(program)
    if not counts:
        return f"no schedule can deadlock: nothing communicates{' yet' * _is_unpartitioned(program)}, so nobody waits"
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
