"""The check under a runtime: for each scenario, every device does the steps of its calls as the runtime makes it wait.

Sections:

    The calls of each device
    The stage: all scenarios, in all orders in which calls take places
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import cached_property

from attrs import define, evolve, field, frozen

from ...core.graph import Computation, Instruction, Module
from ...core.memos import remembered
from ...process.limits import ask
from ...process.progress import over
from ...properties.device_groups import Group
from ...properties.effects import (
    START_OF,
    TRANSFERS,
    UNITS,
    CallStep,
    Path,
    communicates,
    communicates_anywhere,
    communicates_itself,
    is_with_host,
    start_of,
    steps,
)
from ...properties.sites import Site, collectives_of, members, reached
from ...properties.waiting import KINDS, takes_item
from ...runtimes.calls import (
    ACCEPT,
    BEGIN_SEND,
    CREATION,
    CUSTOM,
    DONE,
    INFEED,
    MEET,
    RECV,
    RECV_DONE,
    SEND,
    START,
    Launched,
    Launcher,
    RuntimeCall,
    collective_call,
    counts_under,
    is_waiting_call,
    transfer_call,
)
from ...runtimes.explaining import comparison, explain_difference, explain_stop, row_facts
from ...runtimes.launches import launch_of
from ...runtimes.machine import Interleaving, LaneMachine, SearchResult, interleaving_of, search
from ...runtimes.record import Runtime
from ..dataflow.decisions import Decisions
from ..deadlock.level_run import LevelContext
from ..model.describe import finding
from ..model.program import GridProgram, Orders
from ..model.verdict import Finding, VerdictKind
from ..structure.collective_matching import CollectiveIdentities, channel_of
from .scenarios import MOST_WORK, Scenario, Scenarios
from .simulate import ProgramWalker, TooLongError, communicating_order
from .stage import MOST_CHOICES, external_wait_findings

# ----------------------------------------------------------------------------
# The calls of each device


@frozen(eq=False)
class RuntimeIdentities(CollectiveIdentities):
    """Identities under a runtime: the executions of a collective are counted within the key that the runtime uses."""

    runtime: Runtime = field(kw_only=True)

    def key(self, module: Module, site: Site, group: Group) -> Hashable:
        if self.runtime.collectives == "site":
            return super().key(module, site, group)
        if self.runtime.collectives == "order":
            return None, group
        return (channel_of(site.instruction), launch_of([step.instruction for step in site.path])), group


def identities_under(runtime: Runtime, identity: CollectiveIdentities) -> RuntimeIdentities:
    return RuntimeIdentities(identity.unique, identity.spmd, identity.aligned, runtime=runtime)


@define
class CallWalker(ProgramWalker[RuntimeCall]):
    """The walk of one device through its program, as the calls that a runtime sees."""

    runtime: Runtime = field(kw_only=True)

    def calls(self) -> Iterator[RuntimeCall]:
        """All calls, if every order is decided. Raises TooLongError."""
        return (call for call in self.trace() if isinstance(call, RuntimeCall))

    def counts_at(self, instruction: Instruction) -> bool:
        return communicates_itself(instruction) or is_waiting_call(self.runtime, instruction)

    def _entered(self, instruction: Instruction, path: Path) -> Iterator[CallStep]:
        """The calls of an instruction; one that only leads to custom calls makes each once, since no data matter."""
        if instruction.opcode in UNITS and not any(map(communicates, instruction.called)):
            yield from steps(instruction)
        else:
            yield from ProgramWalker._entered(self, instruction, path)

    def at(self, instruction: Instruction, path: Path) -> Iterator[RuntimeCall]:
        if instruction.opcode == "custom_call":
            yield RuntimeCall(CUSTOM, instruction, path=path)
            return
        site, kind = Site(path, instruction), KINDS[instruction.opcode]
        if kind == "infeed":
            yield from self._infeed(site)
        elif kind in ("send", "recv", "recv_done"):
            yield from self._transfer(kind, site)
        elif kind in ("meet", "start", "done"):
            yield from self._collectives(kind, site)

    def _infeed(self, site: Site) -> Iterator[RuntimeCall]:
        """The call of an infeed that finds no item; the others do not wait."""
        counts = self.context.infeed
        number = self._next_number("item") if takes_item(site.instruction) else 0
        if counts is not None and number > counts.get(self.device, 0):
            yield RuntimeCall(INFEED, site.instruction, path=site.path)

    def _transfer(self, kind: str, site: Site) -> Iterator[RuntimeCall]:
        role = "send" if kind == "send" else "recv"
        peer = self.context.transfers.peer_at(site.instruction, role, self.device)
        if peer is not None and not is_with_host(site.instruction):
            half = start_of(site.instruction) if kind == "recv_done" else site.instruction
            calls = {"send": SEND, "recv": RECV, "recv_done": RECV_DONE}
            launch = launch_of([step.instruction for step in site.path])
            yield transfer_call(calls[kind], site.instruction, half, self.device, peer, path=site.path, launch=launch)

    def _collectives(self, kind: str, site: Site) -> Iterator[RuntimeCall]:
        """The call of a collective, of its start or of its done; for a group, those of its members."""
        start = start_of(site.instruction) if site.instruction.opcode in START_OF else None
        for each in members(site if start is None else Site(site.path, start)):
            if each.instruction.opcode in TRANSFERS:
                yield from self._member_transfer(site, each.instruction, is_done=start is not None)
            else:
                identity = self.context.identity.of(self.program.module, each)
                yield collective_call(
                    {"meet": MEET, "start": START, "done": DONE}[kind],
                    site.instruction,
                    self.device,
                    self.context.program.grid,
                    begun=each.instruction,
                    identity=identity,
                    path=site.path,
                    launch=launch_of([step.instruction for step in site.path]),
                )

    def _member_transfer(self, site: Site, half: Instruction, *, is_done: bool) -> Iterator[RuntimeCall]:
        """The call of a send or recv of a group."""
        peer = self.context.transfers.peer(half, self.device)
        if peer is not None:
            is_send = half.opcode == "send"
            kind = (ACCEPT if is_send else RECV_DONE) if is_done else (BEGIN_SEND if is_send else RECV)
            launch = launch_of([step.instruction for step in site.path])
            yield transfer_call(kind, site.instruction, half, self.device, peer, path=site.path, launch=launch)


@remembered
def _custom_calls(computation: Computation) -> tuple[Instruction, ...]:
    """The custom calls of a computation and of all that it calls."""
    return tuple([i for one in reached(computation) for i in one.instructions if i.opcode == "custom_call"])


# ----------------------------------------------------------------------------
# The stage: all scenarios, in all orders in which calls take places


MOST_INTERLEAVINGS = 64  # scenarios whose order of calls a run can follow


@frozen(eq=False)
class RuntimeConclusion:
    """How the programs end under a runtime; `interleavings` are orders in which calls take places and they do not.

    `notes` say what a user should know about calls that meet.
    """

    kind: VerdictKind
    findings: tuple[Finding, ...] = ()
    interleavings: tuple[Interleaving, ...] = ()
    notes: tuple[str, ...] = ()


@define(eq=False, slots=False)
class RuntimeStage:
    """The run of programs in their given or recorded order under a runtime, in all scenarios."""

    context: LevelContext
    runtime: Runtime
    decisions: Decisions
    _work: int = 0
    _notes: dict[str, None] = field(factory=dict)
    _interleavings: list[Interleaving] = field(factory=list)  # of the scenarios that hang
    _launched: dict[tuple[int, Scenario], tuple[Launched, ...]] = field(factory=dict)

    @cached_property
    def scenarios(self) -> Scenarios:
        return Scenarios(self.context, self.decisions)

    def conclusion(self) -> RuntimeConclusion:
        """What all scenarios show."""
        return evolve(self._conclude(), notes=(*self._notes,), interleavings=(*self._interleavings,))

    def _conclude(self) -> RuntimeConclusion:
        good: Scenario | None = None
        bad: Scenario | None = None
        found, is_complete = SearchResult(), len(self.scenarios.choices) <= MOST_CHOICES
        try:
            scenarios = self.scenarios.enumerated if is_complete else self.scenarios.enumerated[:1]
            is_complete = is_complete and self.scenarios.is_exhaustive
            for scenario in over(scenarios, "simulating the choices that data make", "choices"):
                result = self._search(scenario)
                is_complete &= not result.gave_up
                if result.ends:
                    good = scenario if good is None and not result.gave_up else good
                elif bad is None:
                    bad, found = scenario, result
                if good is not None and bad is not None and not self._may_add_interleavings:
                    break
        except TooLongError:
            is_complete = False
        if bad is not None and (good is not None or not is_complete) and self.scenarios.choices:
            return self._conditional(good, bad, found)
        if bad is not None:
            stopped = self._finding(found)
            kind: VerdictKind = "error" if found.differ is not None else "deadlock"
            return RuntimeConclusion(kind, (stopped,))
        waits = tuple(external_wait_findings(self.context, self.scenarios.may_take_item))
        waits = tuple(wait for wait in waits if wait.cause != "STARVED" or self.context.infeed is None)
        if not is_complete:
            return RuntimeConclusion("depends", (self._untried(), *waits))
        return RuntimeConclusion("depends" if waits else "ok", waits)

    @property
    def _may_add_interleavings(self) -> bool:
        """Whether the order in which calls take places matters, and more scenarios may be kept for runs."""
        return self.runtime.is_timed and len(self._interleavings) < MOST_INTERLEAVINGS

    def _search(self, scenario: Scenario) -> SearchResult:
        machine = self._machine(scenario)
        result = search(machine.copy())
        if not result.ends and self._may_add_interleavings:
            self._interleavings.append(interleaving_of(machine, result.grants))
        return result

    def _machine(self, scenario: Scenario) -> LaneMachine:
        """The machine with all steps of all devices in a scenario. Raises TooLongError."""
        program = self.context.program
        machine = LaneMachine(self.runtime, comparison(self.runtime, program.grid, self._notes))
        for device in program.devices:
            ask()
            for lane, steps_ in self._lanes(device, scenario):
                machine.add(lane, steps_)
        return machine

    def _lanes(self, device: int, scenario: Scenario) -> tuple[Launched, ...]:
        """What a device launches in a scenario."""
        key = device, tuple(scenario[at] for at in self.scenarios.all_choices.of_device[device])
        if key not in self._launched:
            device_class = self.context.program.class_of[device]
            counts = counts_under(self.runtime)

            def leads_there(instruction: Instruction) -> bool:
                return (
                    communicates_anywhere(instruction)
                    or counts(instruction)
                    or any(counts(each) for called in instruction.called for each in _custom_calls(called))
                )

            walk = communicating_order(device_class, leads_there)
            decide = self.scenarios.decide(scenario)(device)
            walker = CallWalker(self.context, device, walk, decide, runtime=self.runtime)
            launcher = Launcher(self.runtime, device, self.context.send_buffers)
            found: list[Launched] = [(launcher.lane, launcher.begin(self._uses(device), self.context.program.devices))]
            for call in walker.calls():
                found += launcher.launch(call)
            found.append((launcher.lane, launcher.end()))
            self._launched[key] = tuple(found)
        self._work += len(self._launched[key])
        if self._work > MOST_WORK:
            raise TooLongError
        return self._launched[key]

    def _uses(self, device: int) -> list[RuntimeCall]:
        """The collectives of the program of a device, for a runtime that creates all communicators at the start."""
        if self.runtime.communicators != "start":
            return []
        entry = self.context.program.class_of[device].module.entry
        return uses_of(entry, device, self.context.program)

    def _finding(self, found: SearchResult) -> Finding:
        """Where devices stop, or which calls do not fit."""
        if found.differ is not None:
            error, why = found.differ, explain_difference(self.runtime, found.differ)
            sides = sorted((error.first, error.second), key=lambda each: each[0])
            places = [((device,), Site(call.path, call.instruction)) for device, call in sides]
            return finding(why.kind, why.message, *places, cause=why.cause, cause_text=why.rule, repair_text=why.repair)
        assert found.stop is not None
        stop, why = found.stop, explain_stop(self.runtime, found.stop)
        facts = row_facts(stop)
        first = [fact for fact in facts if fact[0] in stop.causes] + [f for f in facts if f[0] not in stop.causes]
        places = [((device,), Site(call.path, call.instruction)) for device, call, _ in first]
        base = finding(why.kind, why.message, *places, cause=why.cause, cause_text=why.rule, repair_text=why.repair)
        rows = tuple(evolve(row, waits=text) for row, (_, _, text) in zip(base.rows, first, strict=True))
        begun = [] if self.runtime.communicators == "start" and why.cause == CREATION.upper() else facts
        return evolve(base, rows=rows, blocked={device: (call.instruction,) for device, call, _ in begun})

    def _conditional(self, good: Scenario | None, bad: Scenario, found: SearchResult) -> RuntimeConclusion:
        """The conclusion if the programs end in one scenario and not in another, or not all were tried."""
        if good is None:
            stopped = self._finding(found)
            message = f"in a case that was tried: {stopped.message}"
            return RuntimeConclusion(
                "depends", (evolve(stopped, kind="data_dependent", message=message), self._untried())
            )
        message = self._finding(found).message

        def is_same(scenario: Scenario) -> bool:
            result = self._search(scenario)
            return not result.ends and self._finding(result).message == message

        condition, bad = self.scenarios.condition(good, bad, is_same)
        result = self._search(bad)
        stopped = self._finding(result)
        one = evolve(stopped, kind="data_dependent", message=f"if {condition}: {stopped.message}")
        return RuntimeConclusion("depends", (one,))

    def _untried(self) -> Finding:
        program = self.context.program
        return finding(
            "data_dependent",
            "the check could not try all cases under this runtime",
            (program.devices, Site((), program.classes[0].module.entry.root)),
            cause="NOT_ALL_TRIED",
            cause_text=(
                "the data lead to too many combinations of choices, the devices take too many steps, or their calls "
                "take places in too many orders"
            ),
            repair_text="check a smaller program, or make the deciding values equal on all devices",
        )


def uses_of(entry: Computation, device: int, program: GridProgram) -> list[RuntimeCall]:
    """The collectives that a program contains, as calls of a device."""
    found = {site.instruction: None for site in collectives_of(entry)}
    return [collective_call(MEET, each, device, program.grid, begun=each, identity=None) for each in found]


def orders_to_try(
    program: GridProgram, found: Callable[[], Mapping[int, Orders]]
) -> Iterator[tuple[GridProgram, Mapping[int, Orders]]]:
    """The programs in the order in which a runtime takes them, then in those that the check `found` without one."""
    yield program, {}
    if not program.given and any((orders := found()).values()):
        yield program.with_orders(orders), orders
