"""`check` and `schedule`: the stages of the static check, called in order, and the verdict from their findings.

Sections:

    check and schedule: the stages in order, and the verdict
    Programs with too many sites: each computation is read once
    One order for all devices of one program
"""

from __future__ import annotations

import functools
import heapq
import math
import operator
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import define, evolve, frozen

from shape_inference.escaping import Harmless

from ..core.graph import Computation, Instruction, Module, ModuleGroup
from ..core.report_text import join_words
from ..process.limits import DeadlineError, no_collection, room_for_calls, within
from ..process.progress import during
from ..properties.effects import (
    PLAIN_CALLS,
    TRANSFERS,
    UNITS,
    Path,
    communicates,
    communicates_itself,
    is_debug_print,
    notable,
    start_of,
)
from ..properties.sites import (
    MOST_PLACES,
    Site,
    collectives_of,
    feeds_of,
    is_followed,
    places_of,
    reached,
    sites_of,
    transfers_of,
)
from ..properties.trip_counts import never_ends
from ..properties.waiting import KINDS, sequences_of
from ..running import one_evaluator
from ..sharding.unpartitioned import annotated_devices, not_partitioned
from .dataflow.analysis import Leaf
from .dataflow.decisions import Decisions
from .dataflow.promises import declared_types
from .dataflow.replication import ReplicationAnalysis, analyse, varies
from .deadlock.level_run import FIRST, RANK, LevelContext
from .deadlock.levels import LevelStage, OrderConflict
from .deadlock.repair import find_repair, most_tries
from .model.describe import finding
from .model.program import GridProgram, Order, Orders, Schedule, as_program, devices_text, program_of
from .model.verdict import CheckArguments, Finding, Repair, Scope, Verdict, VerdictKind
from .scenarios import conclude, external_wait_findings
from .structure.collective_matching import collective_faults, collective_identities, faults_by_themselves
from .structure.structure import structure_faults
from .structure.transfers import match_transfers

if TYPE_CHECKING:
    from ..runtimes.record import Runtime
    from .scenarios.runtime_stage import RuntimeConclusion

# ----------------------------------------------------------------------------
# check and schedule: the stages in order, and the verdict

MOST_BUFFERS = 4


class ScheduleError(Harmless, ValueError):
    """Raised if the programs cannot run to completion in any order; `verdict` says why."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(str(verdict))
        self.verdict = verdict


def check(
    program: Computation | Module | ModuleGroup,
    schedule: Schedule | None = None,
    send_buffers: float = 0,
    infeed: Mapping[int, Any] | Sequence[Any] | None = None,
    *,
    runtime: Runtime | str | None = None,
    max_seconds: float | None = None,
) -> Verdict:
    """Decide before a run whether a program may deadlock.

    The verdict is ok, error (the structure is wrong, or a scheduled program has a race), deadlock, or depends (on
    data). The check follows the schedule if the module is scheduled, or if a schedule is given. A schedule lists, for
    each device, its instructions (or their names) in order, or has such a list for each computation. Otherwise, any
    order that respects the dependencies is legal, and the check searches for one that runs to completion.
    `send_buffers` is the number of sends on each channel that complete before their recvs are posted. `infeed` states
    how many items each device gets. With a `runtime`, a `Runtime`, the name of one of `RUNTIMES` or the path of a TOML
    file with its fields, devices wait as that runtime makes them wait, in the given or recorded order or, if that one
    hangs, in an order that the check finds without a runtime. A Computation is the program of one device. After
    `max_seconds`, the verdict is `depends`, and its report says that time ran out. Raises KeyError if a schedule names
    a device or instruction that does not exist, invalid_attribute for an unknown runtime, and TypeError if the argument
    is not a program.

    >>> import xbuild as xb
    >>> total = xb.computation(xb.f32[2])(xb.cross_replica_sum)
    >>> print(xb.check(xb.Module("total", total, num_replicas=4)))
    ok: no schedule can deadlock: devices 0-3 run one program, which has 1 collective

    Source: Operation Semantics, Send (scheduling of channel instructions).
    """
    if runtime is not None:
        from ..runtimes.record import runtime_of  # few checks are those of a runtime

        runtime = runtime_of(runtime)
    arguments = CheckArguments(program_of(as_program(program), schedule), send_buffers, _infeed_counts(infeed), runtime)
    with no_collection(), room_for_calls({device_class.module.entry for device_class in arguments.program.classes}):
        try:
            with within(max_seconds), during("checking the program"):
                found = _with_races(_verdict(arguments), arguments.program)
                return evolve(found, asked=arguments, notes=(*found.notes, *_notes(arguments.program)))
        except DeadlineError:
            if max_seconds is None:  # the deadline is that of a caller
                raise
            return evolve(unfinished_verdict(arguments.program, max_seconds), asked=arguments)


def _notes(program: GridProgram) -> tuple[str, ...]:
    """What the verdict does not cover: collectives that are yet to be inserted, trips of endless loops, prints."""
    modules = dict.fromkeys(device_class.module for device_class in program.classes)
    notes = [note for module in modules if (note := not_partitioned(module, "checked"))]
    more = (note for module in modules for note in (*_endless_loops(module), *_debug_prints(program, module)))
    return (*notes, *dict.fromkeys(more))


def _is_unpartitioned(program: GridProgram) -> bool:
    return any(annotated_devices(device_class.module) for device_class in program.classes)


def _debug_prints(program: GridProgram, module: Module) -> Iterator[str]:
    """A note on the debugging prints of a program of several devices."""
    if len(program.devices) < 2 or not any(map(communicates, reached(module.entry))):
        return
    computations = reached(module.entry)
    prints = [each.name for computation in computations for each in notable(computation) if is_debug_print(each)]
    if prints:
        names = prints[0] if len(prints) == 1 else f"{prints[0]} and {len(prints) - 1} more"
        yield f"the verdict assumes that the host returns from {names} (jax.debug)"


def _endless_loops(module: Module) -> Iterator[str]:
    for computation in reached(module.entry):
        for instruction in notable(computation):
            if never_ends(instruction) and any(map(communicates, instruction.called)):
                name = instruction.name
                yield f"while {name} never ends, since its condition is constant; the verdict covers one trip"


@one_evaluator()
def _verdict(arguments: CheckArguments) -> Verdict:
    if arguments.runtime is not None:
        return _verdict_under(arguments, arguments.runtime)
    context = context_of(arguments)
    if isinstance(context, Verdict):
        return context
    return summary_verdict(context) if has_too_many_sites(arguments.program) else _Check(context).verdict()


def context_of(arguments: CheckArguments) -> LevelContext | Verdict:
    """What later stages read: channels and identities; the verdict if the structural stages find faults."""
    program = arguments.program
    faults = structure_faults(program)
    if faults:
        return _refused_for_structure(faults)
    found, faults = match_transfers(program)
    identity = collective_identities(program)
    faults += collective_faults(program, identity, Decisions(program).runs)
    faults = faults or declared_types(program)
    if faults:
        return Verdict("error", "every", tuple(faults))
    return LevelContext(program, found, identity, arguments.send_buffers, arguments.infeed)


def _refused_for_structure(faults: Sequence[Finding]) -> Verdict:
    return Verdict("error", "given" if all(f.kind == "bad_schedule" for f in faults) else "every", tuple(faults))


def schedule(program: Computation | Module | ModuleGroup) -> Mapping[int, Order]:
    """Return, for each device, an order of its instructions that runs to completion: the recorded order, if that order
    does.

    Raises ScheduleError if no order runs to completion.

        >>> import xbuild as xb
        >>> total = xb.computation(xb.f32[2])(xb.cross_replica_sum)
        >>> [i.name for i in xb.schedule(xb.Module("total", total, num_replicas=2))[1]]
        ['parameter.1', 'all-reduce.5']
    """
    verdict = check(program)
    if verdict.refused:
        raise ScheduleError(verdict)
    return verdict.schedule


def _infeed_counts(infeed: Mapping[int, Any] | Sequence[Any] | None) -> dict[int, int] | None:
    if infeed is None:
        return None
    items = infeed.items() if isinstance(infeed, Mapping) else enumerate(infeed)
    return {device: len(each) if isinstance(each, Sized) else int(each) for device, each in items}


def _with_races(verdict: Verdict, program: GridProgram) -> Verdict:
    """The verdict, or an error if programs that it does not refuse have races in their schedules."""
    if verdict.refused or not any(each.module.is_scheduled for each in program.classes):
        return verdict
    from .races import race_findings  # few programs have a final order

    races = race_findings(program)
    return Verdict("error", "given", tuple(races)) if races else verdict


# ----------------------------------------------------------------------------
# The check under a runtime


def _verdict_under(arguments: CheckArguments, runtime: Runtime) -> Verdict:
    """The verdict on programs that wait as a runtime makes them wait."""
    from .scenarios.runtime_stage import RuntimeConclusion, RuntimeStage, orders_to_try

    program = arguments.program
    context = _context_under(arguments, runtime)
    if isinstance(context, Verdict):
        return context
    if has_too_many_sites(program):
        return evolve(summary_verdict(context), kind="depends", findings=(_too_many_places(program),))
    if _is_alike_and_large(context, runtime):
        return _runtime_verdict(program, runtime, RuntimeConclusion("ok"), {})
    first: RuntimeConclusion | None = None
    for each, orders in orders_to_try(program, lambda: _orders_without_runtime(arguments)):
        concluded = RuntimeStage(evolve(context, program=each), runtime, Decisions(each)).conclusion()
        first = concluded if first is None else first
        if concluded.kind == "ok" or (concluded.kind == "depends" and first.kind not in ("ok", "depends")):
            return _runtime_verdict(program, runtime, concluded, orders)
    assert first is not None
    return _runtime_verdict(program, runtime, first, {})


MOST_SIMULATED = 20_000  # sites of all devices together; beyond, programs that are alike are not simulated


def _is_alike_and_large(context: LevelContext, runtime: Runtime) -> bool:
    """Whether all devices of a large program make the same calls of collectives in the same order, whatever the data.

    Then the n-th calls of the members of a group belong together however a runtime matches them, and no device waits
    for a call behind one that waits for it. Limits of places, splits and hosts that launch in turn break this.
    """
    program = context.program
    if (
        len(program.classes) > 1
        or runtime.is_timed
        or runtime.launches == "in_turn"
        or runtime.communicators == "split"
    ):
        return False
    entry = program.classes[0].module.entry
    is_large = len(sites_of(entry)) * len(program.devices) > MOST_SIMULATED
    return is_large and not any(external_wait_findings(context)) and not feeds_of(entry) and _is_uniform(program)


def _orders_without_runtime(arguments: CheckArguments) -> Mapping[int, Orders]:
    """The orders that the check without a runtime finds; none if it refuses the program."""
    return _verdict(evolve(arguments, runtime=None)).reordered


def _runtime_verdict(
    program: GridProgram, runtime: Runtime, concluded: RuntimeConclusion, orders: Mapping[int, Orders]
) -> Verdict:
    scope: Scope = "given" if program.given else "found"
    if concluded.kind in ("error", "deadlock"):
        return Verdict(
            concluded.kind, "given", concluded.findings, notes=concluded.notes, interleavings=concluded.interleavings
        )
    schedule = {
        device: dict(orders.get(device, ())).get(each.module.entry, each.module.entry.instructions)
        for device, each in program.class_of.items()
    }
    summary = f"under {runtime.name}, {_summary(program, orders, scope)}" if concluded.kind == "ok" else ""
    return Verdict(
        concluded.kind,
        scope,
        concluded.findings,
        schedule,
        summary=summary,
        reordered=orders,
        notes=concluded.notes,
        interleavings=concluded.interleavings,
    )


def _context_under(arguments: CheckArguments, runtime: Runtime) -> LevelContext | Verdict:
    """What the check under a runtime reads; the verdict if a program has faults by itself, or its channels do.

    If the runtime matches collectives by their site, as the check without a runtime does, those of different programs
    have the same faults; else the runtime says whether they match.
    """
    program = arguments.program
    faults = structure_faults(program)
    if faults:
        return _refused_for_structure(faults)
    found, faults = match_transfers(program)
    identity = collective_identities(program)
    if runtime.collectives == "site":
        faults = faults or collective_faults(program, identity, Decisions(program).runs)
    else:
        faults = faults or faults_by_themselves(program)
    faults = faults or declared_types(program)
    if faults:
        return Verdict("error", "every", tuple(faults))
    from .scenarios.runtime_stage import identities_under

    under = identities_under(runtime, identity)
    return LevelContext(program, found, under, arguments.send_buffers, arguments.infeed)


@frozen(eq=False)
class _Check:
    """The stages after the structural ones, for programs without structural faults."""

    context: LevelContext

    def verdict(self) -> Verdict:
        levels = self._examine(self.context.program)
        conflict = levels.recorder.find_conflict()
        if conflict is not None:
            levels = self._without_conflict(levels, conflict)
        with during("simulating the choices that data make"):
            concluded = conclude(self.context, levels)
        if concluded.kind == "deadlock" and not concluded.is_simulated:
            return self._refused(levels)
        found = self._verdict(levels, concluded.kind, concluded.findings, concluded.orders)
        found = found if concluded.may_end else evolve(found, summary="")
        return in_common_order(found, self.context.program, self._runs)

    def _runs(self, program: GridProgram) -> bool:
        """Whether a program whose orders are given runs to completion with all data."""
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

    def _examine(self, program: GridProgram) -> LevelStage:
        with during("running all devices level by level"):
            return LevelStage(evolve(self.context, program=program), Decisions(program))

    def _without_conflict(self, levels: LevelStage, conflict: OrderConflict) -> LevelStage:
        """The levels in orders that each computation can have: those that were found, the recorded, or repaired ones.

        Where none runs, the levels with the conflict as a finding.
        """
        program = self.context.program.with_orders({})
        if conflict.shared is not None:
            found = self._examine(self.context.program.with_orders(levels.recorder.orders()))
            if not found.stuck:
                return found
        recorded = self._examine(program)
        if not recorded.stuck:
            return recorded
        repair = find_repair(program, recorded, levels, self._examine)
        if repair is not None:
            return self._examine(self.context.program.with_orders(repair.orders))
        levels.found.append(self._conflict_finding(conflict))
        return levels

    def _conflict_finding(self, conflict: OrderConflict) -> Finding:
        devices = self.context.program.devices
        if conflict.call is not None:
            name = conflict.call.name
            return finding(
                "companion_conflict",
                f"a device would have to leave {name} and enter it again: its callee and its caller wait for each "
                "other alternately",
                (devices, Site((), conflict.call)),
                repair_text=f"inline the computation that {name} calls",
            )
        assert conflict.shared is not None
        name = conflict.shared.name
        return finding(
            "companion_conflict",
            f"computation {name} would have to run in one order at its first call and in another order at a later call",
            (devices, Site((), conflict.shared.root)),
            repair_text=f"give each call of {name} its own copy of the computation",
        )

    def _scope(self, levels: LevelStage) -> Scope:
        if levels.is_forced:
            return "every"
        return "given" if self.context.program.given else "found"

    def _refused(self, levels: LevelStage) -> Verdict:
        program = self.context.program
        scope: Scope = "every"
        repair: Repair | None = None
        if any(device_class.given for device_class in program.classes):
            free = self._examine(program.without_orders())
            scope = "every" if free.stuck and self._is_hopeless(free) else "given"
            repair = self._confirmed(find_repair(program, levels, free, self._examine))
        first, *rest = levels.found
        deadlocks = [f for f in (first, *rest) if f.cycle or f.blocked]
        return Verdict(
            "deadlock", scope, (evolve(deadlocks[0], note=self._note(levels)), *deadlocks[1:]), repair=repair
        )

    def _is_hopeless(self, free: LevelStage) -> bool:
        """Whether programs that are stuck in every order are stuck in all scenarios."""
        return conclude(evolve(self.context, program=free.context.program), free).kind == "deadlock"

    def _confirmed(self, repair: Repair | None) -> Repair | None:
        """The repair, if the repaired programs also end in the scenario stage, which sees more than the levels."""
        if repair is None:
            return repair
        program = self.context.program.with_orders(repair.orders)
        concluded = conclude(evolve(self.context, program=program), self._examine(program))
        is_repaired = concluded.kind != "deadlock" and all(found.cause == "STARVED" for found in concluded.findings)
        return repair if is_repaired or not concluded.is_simulated else None

    def _note(self, levels: LevelStage) -> str:
        """The note that states which capacity of send buffers makes the programs run, if one does."""
        kinds = {run.item(place).kind for run in levels.stuck for place in run.blocked()}
        if "send" in kinds and self.context.send_buffers == 0:
            for buffers in range(1, most_tries(levels, MOST_BUFFERS) + 1):
                if buffers == 2 and levels.with_buffers(math.inf).stuck:
                    return ""
                if not levels.with_buffers(buffers).stuck:
                    return (
                        f"the program runs to completion if each channel has a send buffer of {buffers}: "
                        f"send_buffers={buffers}"
                    )
        return ""


def _summary(program: GridProgram, orders: Mapping[int, Orders], scope: Scope) -> str:
    counts = _counts_text(program)
    if not counts:
        yet = " yet" * _is_unpartitioned(program)
        return f"no schedule can deadlock: nothing communicates{yet}, so no device can block"
    runs = "run" if len(program.devices) > 1 else "runs"
    have = "have" if len(program.devices) > 1 else "has"
    whose = f"{devices_text(program.devices)} {f'{runs} one program, which has' if program.spmd else have} {counts}"
    if scope == "every":
        return f"no schedule can deadlock: {whose}"
    if scope == "given":
        return f"the given schedule runs to completion: {whose}"
    changed = [device for device, each in sorted(orders.items()) if any(order != c.instructions for c, order in each)]
    order = (
        "the recorded order"
        if not changed
        else f"a schedule that the check found (not the recorded order on {devices_text(changed)})"
    )
    return f"{order} runs to completion: {whose}"


def _counts_text(program: GridProgram) -> str:
    """`2 collectives and 1 channel`"""
    entries = dict.fromkeys(device_class.module.entry for device_class in program.classes)
    channels = {site.channel for entry in entries for site in transfers_of(entry)}
    met = {site.instruction for entry in entries for site in collectives_of(entry)}
    feeds = {site.instruction for entry in entries for site in feeds_of(entry)}
    parts = [
        f"{len(found)} {what}{'s' * (len(found) != 1)}"
        for found, what in ((met, "collective"), (channels, "channel"), (feeds, "feed"))
        if found
    ]
    return join_words(parts)


# ----------------------------------------------------------------------------
# Programs with too many sites: each computation is read once
#
# One program on all devices runs to completion if all devices take the same branches and trips around communication:
# each device then reaches the same collectives in the same order. For other programs the verdict is depends.


def has_too_many_sites(program: GridProgram) -> bool:
    """Whether a program has more sites than can be enumerated."""
    return not all(is_followed(device_class.module.entry) for device_class in program.classes)


def summary_verdict(context: LevelContext) -> Verdict:
    """The verdict: ok if all devices take the same branches and trips whatever the data, else depends."""
    program = context.program
    left = (*external_wait_findings(context),) if _is_uniform(program) else (_too_many_places(program),)
    entries = {device: each.module.entry.instructions for device, each in program.class_of.items()}
    if left:
        return Verdict("depends", "given" if program.given else "found", left, entries)
    whose = f"{devices_text(program.devices)} run one program"
    return Verdict(
        "ok",
        "every",
        (),
        entries,
        summary=f"no schedule can deadlock: {whose}, in which all devices take the same branches and trips "
        "around collectives",
    )


def unfinished_verdict(program: GridProgram, seconds: float) -> Verdict:
    """The verdict of a check that reached its time limit."""
    entries = {device: each.module.entry.instructions for device, each in program.class_of.items()}
    found = finding(
        "data_dependent",
        f"the check did not finish within {seconds:g} seconds",
        (program.devices, Site((), program.classes[0].module.entry.root)),
        cause="NOT_ALL_TRIED",
        cause_text="the check found no deadlock by then; only a run can show whether the program completes",
        repair_text=f"give the check more time: max_seconds={max(1, round(seconds * 4))}",
    )
    return Verdict("depends", "given" if program.given else "found", (found,), entries)


def _is_uniform(program: GridProgram) -> bool:
    """Whether one program runs on all devices, without transfers, and all devices take the same branches and trips."""
    if len(program.classes) > 1:
        return False
    entry = program.classes[0].module.entry
    if any(site.instruction.opcode in TRANSFERS for site in sites_of(entry)):
        return False
    walk = analyse(_JoinedReplication(varies, program.devices, *program.grid), entry)
    return not walk.gave_up and all(walk.is_uniform(unit) for unit in _units(entry))


def _units(entry: Computation) -> Iterator[Instruction]:
    """The loops and conditionals that contain communication."""
    for computation in reached(entry):
        for instruction in computation.instructions:
            if instruction.opcode in UNITS and any(map(communicates, instruction.called)):
                yield instruction


@define(eq=False)
class _JoinedReplication(ReplicationAnalysis):
    """Replication analysis with one fact for each loop and conditional, joined over all paths that lead to it."""

    def call_context(self, computation: Computation, path: Path) -> Hashable:
        return ()

    def decide(self, instruction: Instruction, path: Path, leaf: Leaf) -> None:
        super().decide(instruction, (), leaf)

    def is_uniform(self, unit: Instruction) -> bool:
        """Whether all devices agree on the predicate or trip count of a unit; true if the unit is never reached."""
        fact = self.decision_facts.get((id(unit),))
        return fact is None or fact.is_everywhere


def _too_many_places(program: GridProgram) -> Finding:
    most = max(program.classes, key=lambda each: places_of(each.module.entry))
    entry = most.module.entry
    return finding(
        "data_dependent",
        f"too many places communicate: the calls of {entry.name} lead to {_number_text(places_of(entry))}, but the "
        f"check distinguishes at most {MOST_PLACES:,}",
        (most.devices, Site((), entry.root)),
        cause="NOT_ALL_TRIED",
        cause_text=(
            "the check found no deadlock, but did not follow every path; only a run can show whether the program "
            "completes"
        ),
        repair_text="replace nested calls with a loop, or make the deciding values equal on all devices",
    )


def _number_text(number: int) -> str:
    """`131,072`, `about 10^18`"""
    return f"{number:,}" if number < 10**12 else f"about 10^{len(str(number)) - 1}"


# ----------------------------------------------------------------------------
# One order for all devices of one program, if the order that was found differs between devices

Runs: TypeAlias = Callable[[GridProgram], bool]
Rank: TypeAlias = Callable[[Instruction], int]


def in_common_order(found: Verdict, program: GridProgram, runs: Runs) -> Verdict:
    """The verdict with one order for all devices, since a compiled module has only one, or a note that none was found.

    `runs` says whether a program whose orders are given runs to completion with all data. Verdicts other than ok, and
    programs that differ between devices, are unchanged.
    """
    if found.kind != "ok" or found.scope != "found" or not program.spmd:
        return found
    orders: dict[int, Orders] = {device: found.reordered.get(device, ()) for device in program.devices}
    if len({*orders.values()}) == 1:
        return found
    for candidate in _common_candidates(orders):
        common = dict.fromkeys(program.devices, candidate)
        if runs(program.with_orders(common)):
            entry = program.classes[0].module.entry
            order = dict(candidate).get(entry, entry.instructions)
            return evolve(found, reordered=common, schedule=dict.fromkeys(program.devices, order))
    return _say_that_no_common_order_runs(found)


def _common_candidates(orders: Mapping[int, Orders]) -> Iterator[Orders]:
    """The order of each device, with those of others for the computations that it does not enter."""
    every = {computation: order for each in orders.values() for computation, order in each}
    for own in dict.fromkeys(orders.values()):
        yield (*{**every, **dict(own)}.items(),)
    for rank in _list_ranks(orders):
        yield tuple((computation, sort_by_rank(computation, rank)) for computation in every)


def _list_ranks(orders: Mapping[int, Orders]) -> Iterator[Rank]:
    """Ranks by kind, so that instructions that never wait run early; then ranks by position on the devices."""
    places: dict[Instruction, list[int]] = {}
    for each in orders.values():
        for _, order in each:
            for place, instruction in enumerate(order):
                places.setdefault(instruction, []).append(place)
    yield _rank_by_kind
    waits = {
        i: n
        for each in dict.fromkeys(c for o in orders.values() for c, _ in o)
        for i, n in _instructions_before_partner(each)
    }
    yield lambda instruction: waits.get(instruction, -1)
    yield from (lambda instruction, of=of: of(places[instruction]) for of in (sum, max, min))


def sort_by_rank(computation: Computation, rank: Rank) -> Order:
    """The order that keeps dependencies and, of the instructions that may come next, takes one of the least rank."""
    after, before = _dependencies(computation.instructions)
    number = {each: n for n, each in enumerate(computation.instructions)}
    ready = [(rank(each), n) for each, n in number.items() if not before[each]]
    heapq.heapify(ready)
    order: list[Instruction] = []
    while ready:
        order.append(computation.instructions[heapq.heappop(ready)[1]])
        for each in after[order[-1]]:
            before[each] -= 1
            if not before[each]:
                heapq.heappush(ready, (rank(each), number[each]))
    return tuple(order)


def _dependencies(instructions: Order) -> tuple[dict[Instruction, list[Instruction]], dict[Instruction, int]]:
    """For each instruction those that depend on it, and the number of those that it depends on."""
    after: dict[Instruction, list[Instruction]] = {each: [] for each in instructions}
    count: dict[Instruction, int] = {}
    last: dict[Hashable, Instruction] = {}
    for each in instructions:
        needs = {*each.operands, *each.control}
        for sequence in sequences_of(each) if communicates_itself(each) else ():
            needs |= {last[sequence]} if sequence in last else set()
            last[sequence] = each
        count[each] = len(needs)
        for need in needs:
            after[need].append(each)
    return after, count


def _instructions_before_partner(computation: Computation) -> Iterator[tuple[Instruction, int]]:
    """For each half of a channel how many communicating instructions precede its partner, the other half."""
    before: dict[Instruction, int] = {}  # a set of bits
    halves: dict[Hashable, list[Instruction]] = {}
    for n, each in enumerate(computation.instructions):
        own = 1 << n if communicates_itself(each) else 0
        before[each] = functools.reduce(operator.or_, (before[i] for i in (*each.operands, *each.control)), own)
        if each.opcode in TRANSFERS:
            halves.setdefault((each.opcode, each.attributes.channel_id), []).append(each)
    for each in computation.instructions:
        half = start_of(each) if each.opcode == "recv_done" else each
        if half is not None and half.opcode in TRANSFERS:
            other = "recv" if each.opcode == "send" else "send"
            partners = halves.get((other, half.attributes.channel_id), ())
            yield each, 0 if each.opcode == "recv" else max((before[i].bit_count() for i in partners), default=0)


def _rank_by_kind(instruction: Instruction) -> int:
    if any(map(communicates, instruction.called)) and instruction.opcode in UNITS | PLAIN_CALLS:
        return len(FIRST)
    return RANK.get(KINDS.get(instruction.opcode, ""), -1)


def _say_that_no_common_order_runs(found: Verdict) -> Verdict:
    """The verdict whose summary says that no common order was found."""
    more = (
        "; the devices run different orders: the check found no common order, and a compiled module has only one order"
    )
    return evolve(found, summary=f"{found.summary}{more}")
