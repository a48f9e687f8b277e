"""`timeline`: writes the tapes of all classes of devices, simulates them, and records both."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from attrs import define, field

from shape_inference import refuse

from ..checking import check
from ..checking.dataflow.decisions import Decisions
from ..checking.deadlock.level_run import LevelContext
from ..checking.model.program import GridProgram, as_program, program_of
from ..checking.model.verdict import Finding
from ..checking.structure.collective_matching import collective_identities
from ..checking.structure.structure import structure_faults
from ..checking.structure.transfers import match_transfers
from ..core.graph import Computation, Instruction, Module, ModuleGroup
from ..costs import Cost, cost
from ..costs.analysis import CostAnalysis
from ..costs.collectives import Axes, axes_of_mesh
from ..process.limits import no_collection, room_for_calls
from ..process.progress import during, over
from ..properties.effects import LOOPS, Path, communicates, notable, steps
from ..properties.mesh import Mesh
from ..properties.sites import is_followed
from ..properties.trip_counts import known_trips
from ..running import one_evaluator
from .durations import Durations
from .machines import Machine
from .machines import machine as named_machine
from .record import ClassTimes, Timeline
from .simulation import Simulation, StuckError, run_tapes
from .tape import MOST_ENTRIES, CommunicationEntries, DeviceClasses, LinkTimes, Tape, TapeWriter, device_classes


def timeline(
    program: Computation | Module | ModuleGroup,
    machine: Machine | str,
    *,
    mesh: Mesh | None = None,
    send_buffers: float = 0,
) -> Timeline:
    """Compute when each device would run each instruction if all devices ran at the rooflines of a machine.

    Use the times as bounds and for rankings, not as predictions of actual times. An instruction takes as long as its
    FLOPs at the peak or its bytes at full bandwidth, whichever takes longer; `cost` counts both. A collective takes
    alpha for each step and beta for each byte of its fastest algorithm. Devices run their instructions in the given or
    recorded order, and wait for each other according to the rules of `check`, with the given `send_buffers`. Between a
    start and its done, a device continues with other instructions. A loop is simulated trip by trip until two
    consecutive trips are equal. `machine` is a Machine, a name such as v5e, or the path of a machine file. Raises
    TypeError if the argument is not a program, and invalid_attribute if the machine is unknown. Raises an error with
    the kind of the finding if the check refuses the program, and limit_trips if loops are too long to be unrolled.

    >>> import xbuild as xb
    >>> square = xb.computation(xb.bf16[4096, 4096])(lambda x: xb.dot(x, x))
    >>> found = xb.timeline(square, "v5e")
    >>> f"{found.seconds * 1e6:.0f} us, {found.classes[0].busy / found.seconds:.0%} busy"
    '698 us, 100% busy'

    Source: S. Williams, A. Waterman, D. Patterson, Roofline (2009); R. W. Hockney (1994) for alpha and beta.
    """
    machine_record = named_machine(machine) if isinstance(machine, str) else machine
    if not isinstance(machine_record, Machine):
        raise TypeError(
            f"timeline: expected the name of a machine, such as 'v5e', or xb.Machine(flops=...), got {machine!r}"
        )
    return _build_timeline(as_program(program), cost(program, mesh=mesh), machine_record, send_buffers)


def _build_timeline(program: Module | ModuleGroup, costs: Cost, machine: Machine, send_buffers: float) -> Timeline:
    entries = {device_class.module.entry for device_class in program_of(program).classes}
    with no_collection(), room_for_calls(entries), during("modelling time"):
        return _TimelineBuilder(program, costs, machine, send_buffers).timeline()


def _refuse_fault(faults: Sequence[Finding]) -> None:
    if faults:
        first = faults[0]
        refuse(first.kind, f"timeline: {first.message}", "xbuild check prints the full report")


@define(eq=False)
class _TimelineBuilder:
    """The construction of one timeline."""

    program: Module | ModuleGroup
    costs: Cost
    machine: Machine
    send_buffers: float
    _durations: dict[Computation, Durations] = field(factory=dict)

    @one_evaluator()
    def timeline(self) -> Timeline:
        """The timeline in the given or recorded order, or in the order that the check finds."""
        program = program_of(self.program)
        try:
            return self._in_order(program)
        except StuckError as stuck:
            verdict = check(self.program, send_buffers=self.send_buffers)
            if verdict.kind != "ok" or program.given or not verdict.reordered:
                entry = next(iter(stuck.entries.values()))
                refuse("deadlock", f"timeline: the devices wait for each other at {entry.instruction.name}",
                       "xbuild check explains the cause and how to fix it")  # fmt: skip
            return self._in_order(program.with_orders(verdict.reordered))

    def _in_order(self, program: GridProgram) -> Timeline:
        context = self._context(program)
        decisions = Decisions(program)
        units = {device_class.module: [*_open_units(device_class.module.entry, ())] for device_class in program.classes}
        decisions_by_device = [
            self._decisions_on_device(decisions, device, units[program.class_of[device].module])
            for device in program.devices
        ]
        classes = device_classes(context, decisions_by_device)
        try:
            return self._simulated(context, classes, decisions, unrolls=not program.spmd)
        except StuckError:
            if not program.spmd:
                raise
            return self._simulated(context, classes, decisions, unrolls=True)

    def _context(self, program: GridProgram) -> LevelContext:
        """The channels and collectives as the check sees them; refused if they have faults."""
        _refuse_fault(structure_faults(program))
        for device_class in program.classes:
            if not is_followed(device_class.module.entry):
                refuse("too_many_calls", f"timeline: {device_class.module.name} has too many calls that communicate",
                       "inline the calls, or replace them with a loop")  # fmt: skip
        transfers, faults = match_transfers(program)
        _refuse_fault(faults)
        return LevelContext(program, transfers, collective_identities(program), self.send_buffers)

    def _decisions_on_device(
        self, decisions: Decisions, device: int, units: list[tuple[Instruction, Path]]
    ) -> Hashable:
        return tuple(decisions.decided(device, instruction, path) for instruction, path in units)

    def _simulated(
        self, context: LevelContext, classes: DeviceClasses, decisions: Decisions, *, unrolls: bool
    ) -> Timeline:
        axes = axes_of_mesh(self.costs.mesh) if self.costs.mesh is not None else Axes(None, ())
        times = LinkTimes(context, axes, self.machine)
        tapes = {
            label: self._tape(context, classes, decisions, times, device, unrolls)
            for label, device in over(classes.first.items(), "listing the work", "devices")
        }
        run = Simulation(self.send_buffers, dict.fromkeys(tapes, 0.0), _classes_of_loops(tapes))
        with during("modelling time", lambda: run.steps, None, "steps"):
            run_tapes(run, tapes)
        found = tuple(
            ClassTimes.of(run.spans, label, classes.members(label), run.clock[label]) for label in sorted(tapes)
        )
        return Timeline(
            self.costs, self.machine, found, context, tapes, run.spans, dict(run.last_span), times.all_times(),
            self._rooflines(),
            self._build_on,
        )  # fmt: skip

    def _build_on(self, machine: Machine) -> Timeline:
        return _build_timeline(self.program, self.costs, machine, self.send_buffers)

    def _tape(
        self,
        context: LevelContext,
        classes: DeviceClasses,
        decisions: Decisions,
        times: LinkTimes,
        device: int,
        unrolls: bool,
    ) -> Tape:
        of_class = context.program.class_of[device]
        durations = self._durations_of(of_class.module.entry)
        matching = CommunicationEntries(context, classes, device, durations, times)

        def decided(instruction: Instruction, path: Path) -> int | None:
            return decisions.decided(device, instruction, path)

        writer = TapeWriter(
            durations, of_class.order, matching.entries, decided, unrolls, MOST_ENTRIES // len(classes.first)
        )
        return writer.tape(of_class.module.entry)

    def _durations_of(self, entry: Computation) -> Durations:
        if entry not in self._durations:
            self._durations[entry] = Durations(CostAnalysis(entry), self.machine)
        return self._durations[entry]

    def _rooflines(self) -> tuple[Durations, ...]:
        return tuple(self._durations.values())


def _classes_of_loops(tapes: dict[int, Tape]) -> dict[Hashable, frozenset[int]]:
    """Which classes run each loop."""
    found: dict[Hashable, set[int]] = {}
    for label, tape in tapes.items():
        stack = [*tape]
        while stack:
            entry = stack.pop()
            if entry.action == "loop":
                found.setdefault(entry.key, set()).add(label)
                stack += (*entry.condition, *entry.body)
    return {key: frozenset(labels) for key, labels in found.items()}


def _open_units(computation: Computation, path: Path) -> Iterator[tuple[Instruction, Path]]:
    """The conditionals that communicate, and the loops that do and whose trips do not follow from constants."""
    for instruction in notable(computation):
        for step in steps(instruction) if any(map(communicates, instruction.called)) else ():
            is_open = instruction.opcode in LOOPS and known_trips(instruction) is None
            if instruction.opcode == "conditional" or is_open:
                yield instruction, path
            if communicates(step.computation) and step.is_followed:
                yield from _open_units(step.computation, (*path, step))
