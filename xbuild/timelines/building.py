"""`timeline`: tapes of all classes of devices, the simulation of them, and the record of both."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from attrs import define, field

from shape_inference import refuse

from ..checking import check
from ..checking.dataflow.decisions import Decisions
from ..checking.deadlock.level_run import Context
from ..checking.model.program import Program, program_of, runnable
from ..checking.model.verdict import Finding
from ..checking.structure.collective_matching import collective_identities
from ..checking.structure.structure import structure_faults
from ..checking.structure.transfers import match_transfers
from ..core.graph import Computation, Instruction, Module, ModuleGroup
from ..costs import Cost, cost
from ..costs.analysis import Analysis, trips_of_loop
from ..costs.axes import Axes, axes_of_mesh
from ..process.gc_pause import no_collection
from ..process.recursion_limit import room_for_calls
from ..properties.effects import LOOPS, Path, communicates, notable, steps
from ..properties.mesh import Mesh
from ..properties.sites import is_followed
from ..running import one_evaluator
from .device_classes import DeviceClasses, device_classes
from .durations import Durations
from .levels import StuckError, run_tapes
from .machines import Machine
from .matching import LinkTimes, Matching
from .presets import machine as named_machine
from .record import ClassTimes, Timeline
from .simulation import Simulation
from .tape import MOST_ENTRIES, Tape, TapeWriter


def timeline(
    program: Computation | Module | ModuleGroup,
    machine: Machine | str,
    *,
    mesh: Mesh | None = None,
    send_buffers: float = 0,
) -> Timeline:
    """When each device would do what, if all ran at the rooflines of a machine: bounds and a ranking, not milliseconds.

    An instruction takes the longer of its FLOPs at the peak and its bytes at full bandwidth; what it does is that of
    `cost`. A collective takes alpha for each step and beta for each byte of its fastest algorithm. Devices run their
    instructions in the given or recorded order; they wait for each other as `check` has it, with so many
    `send_buffers`; between a start and its done they go on. A loop runs trip by trip until two trips are alike.
    `machine` is a Machine, a name such as v5e, or the path of a machine file.
    Raises TypeError where the program is none, invalid_attribute where the machine is none, the kind of the finding
    where the check refuses the program, and limit_trips where loops are too long to be written out.

    >>> import xbuild as xb
    >>> square = xb.computation(xb.bf16[4096, 4096])(lambda x: xb.dot(x, x))
    >>> found = xb.timeline(square, "v5e")
    >>> f"{found.seconds * 1e6:.0f} us, {found.classes[0].busy / found.seconds:.0%} busy"
    '698 us, 100% busy'

    Source: S. Williams, A. Waterman, D. Patterson, Roofline (2009); R. W. Hockney (1994) for alpha and beta.
    """
    found_machine = named_machine(machine) if isinstance(machine, str) else machine
    if not isinstance(found_machine, Machine):
        raise TypeError(f"timeline: machine is {machine!r}, and a Machine is wanted: 'v5e', or xb.Machine(flops=...)")
    return _timed(runnable(program), cost(program, mesh=mesh), found_machine, send_buffers)


def _timed(program: Module | ModuleGroup, costs: Cost, machine: Machine, send_buffers: float) -> Timeline:
    with no_collection(), room_for_calls({each.module.entry for each in program_of(program).classes}):
        return _Timing(program, costs, machine, send_buffers).timeline()


def _refuse_fault(faults: Sequence[Finding]) -> None:
    if faults:
        first = faults[0]
        refuse(first.kind, f"timeline: {first.message}", "xbuild check tells it in full")


@define(eq=False)
class _Timing:
    """The making of one time line."""

    program: Module | ModuleGroup
    costs: Cost
    machine: Machine
    send_buffers: float
    _durations: dict[Computation, Durations] = field(factory=dict)

    @one_evaluator()
    def timeline(self) -> Timeline:
        """The time line in the given or recorded order, or in the order that the check finds."""
        whole = program_of(self.program)
        try:
            return self._in_order(whole)
        except StuckError as stuck:
            verdict = check(self.program, send_buffers=self.send_buffers)
            if verdict.kind != "ok" or whole.given or not verdict.reordered:
                entry = next(iter(stuck.entries.values()))
                refuse("deadlock", f"timeline: the devices wait for each other at {entry.instruction.name}",
                       "xbuild check says why, and how it is mended")  # fmt: skip
            return self._in_order(whole.ordered(verdict.reordered))

    def _in_order(self, whole: Program) -> Timeline:
        context = self._context(whole)
        decisions = Decisions(whole)
        units = {each.module: [*_units(each.module.entry, ())] for each in whole.classes}
        ways = [self._ways(decisions, device, units[whole.class_of[device].module]) for device in whole.devices]
        classes = device_classes(context, ways)
        try:
            return self._simulated(context, classes, decisions, unrolls=not whole.spmd)
        except StuckError:
            if not whole.spmd:
                raise
            return self._simulated(context, classes, decisions, unrolls=True)

    def _context(self, whole: Program) -> Context:
        """What the check knows of channels and collectives; refused where these are wrong."""
        _refuse_fault(structure_faults(whole))
        for each in whole.classes:
            if not is_followed(each.module.entry):
                refuse("too_many_calls", f"timeline: {each.module.name} has too many calls that communicate",
                       "inline or share them less")  # fmt: skip
        transfers, faults = match_transfers(whole)
        _refuse_fault(faults)
        return Context(whole, transfers, collective_identities(whole), self.send_buffers)

    def _ways(self, decisions: Decisions, device: int, units: list[tuple[Instruction, Path]]) -> Hashable:
        return tuple(decisions.decided(device, instruction, path) for instruction, path in units)

    def _simulated(self, context: Context, classes: DeviceClasses, decisions: Decisions, *, unrolls: bool) -> Timeline:
        axes = axes_of_mesh(self.costs.mesh) if self.costs.mesh is not None else Axes(None, ())
        times = LinkTimes(context, axes, self.machine)
        tapes = {
            label: self._tape(context, classes, decisions, times, device, unrolls)
            for label, device in classes.first.items()
        }
        run = Simulation(self.send_buffers, dict.fromkeys(tapes, 0.0), _loops(tapes))
        run_tapes(run, tapes)
        found = tuple(
            ClassTimes.of(run.spans, label, classes.members(label), run.clock[label]) for label in sorted(tapes)
        )
        return Timeline(
            self.costs, self.machine, found, context, tapes, run.spans, dict(run.last), times.seen(), self._rooflines(),
            self._again,
        )  # fmt: skip

    def _again(self, machine: Machine) -> Timeline:
        return _timed(self.program, self.costs, machine, self.send_buffers)

    def _tape(
        self,
        context: Context,
        classes: DeviceClasses,
        decisions: Decisions,
        times: LinkTimes,
        device: int,
        unrolls: bool,
    ) -> Tape:
        of_class = context.program.class_of[device]
        durations = self._durations_of(of_class.module.entry)
        matching = Matching(context, classes, device, durations, times)

        def decided(instruction: Instruction, path: Path) -> int | None:
            return decisions.decided(device, instruction, path)

        writer = TapeWriter(
            durations, of_class.order, matching.entries, decided, unrolls, MOST_ENTRIES // len(classes.first)
        )
        return writer.tape(of_class.module.entry)

    def _durations_of(self, entry: Computation) -> Durations:
        if entry not in self._durations:
            self._durations[entry] = Durations(Analysis(entry), self.machine)
        return self._durations[entry]

    def _rooflines(self) -> tuple[Durations, ...]:
        return tuple(self._durations.values())


def _loops(tapes: dict[int, Tape]) -> dict[Hashable, frozenset[int]]:
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


def _units(computation: Computation, path: Path) -> Iterator[tuple[Instruction, Path]]:
    """The conditionals that communicate, and the loops that do and whose trips no constant tells."""
    for instruction in notable(computation):
        for step in steps(instruction) if any(map(communicates, instruction.called)) else ():
            is_open = instruction.opcode in LOOPS and trips_of_loop(instruction) is None
            if instruction.opcode == "conditional" or is_open:
                yield instruction, path
            if communicates(step.computation) and step.is_followed:
                yield from _units(step.computation, (*path, step))
