"""`cost`: what each instruction of a program costs, how often it is executed, and both collected for all programs.

Sections:

    The walk over one program
    cost: the costs of all programs, in one record
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from attrs import frozen

from shape_inference import refuse

from ..core.graph import Computation, Instruction, Module, ModuleGroup, module_in
from ..core.op import OPS
from ..process.limits import no_collection
from ..process.progress import during, over
from ..properties.mesh import Mesh, mesh_of
from ..properties.trip_counts import known_trips
from .collectives import (
    Axes,
    DeviceCounts,
    axes_of_mesh,
    collective_cost,
    infer_axes,
    is_communication,
    list_digits,
)
from .report import Cost, CostRow
from .work import NO_WORK, Work, bytes_read, bytes_written, work_of_instruction

# ----------------------------------------------------------------------------
# The walk over one program: what an execution of each instruction costs, and how often it is executed


@frozen
class InstructionCost:
    """The cost of one execution of an instruction, and how often a device executes it.

    `work` has the operations, `read` the bytes of each operand, `written` those of the result. `times` counts the
    executions; a loop with an unknown trip count counts as one trip, and `is_known` is False inside it.
    """

    instruction: Instruction
    computation: Computation
    work: Work
    read: tuple[int, ...]
    written: int
    times: int
    is_known: bool

    @property
    def bytes(self) -> int:
        """Bytes that one execution reads and writes."""
        return sum(self.read) + self.written


class CostAnalysis:
    """The costs of an entry computation and of its callees; for a conditional, of the branch with the most work."""

    def __init__(self, entry: Computation) -> None:
        self.entry = entry
        self._work: dict[Computation, Work] = {}
        self._totals: dict[Computation, tuple[int, int]] = {}

    def work_of(self, computation: Computation) -> Work:
        """The Work of one execution of a computation."""
        if computation not in self._work:
            for each in computation.reachable(self._work):
                self._work[each] = self._sum(each)
        return self._work[computation]

    def _sum(self, computation: Computation) -> Work:
        return sum((self._work_at(instruction) for instruction in computation.instructions), NO_WORK)

    def _work_at(self, instruction: Instruction) -> Work:
        """The Work of an instruction with that of the computations that it calls."""
        own = work_of_instruction(instruction, self.work_of)
        return sum((self.work_of(called) * times for called, times, _ in self.calls(instruction)), own)

    def calls(self, instruction: Instruction) -> Iterator[tuple[Computation, int, bool]]:
        """The computations that an instruction runs as parts of the program, how often, and whether that is known."""
        calling = OPS[instruction.opcode].properties.calls
        if calling == "branch":
            yield max(instruction.called, key=self._expense), 1, True
        elif calling == "loop":
            trips = known_trips(instruction)
            for called in instruction.called:
                extra = instruction.opcode == "while" and called is instruction.attributes.condition
                yield called, (trips if trips is not None else 1) + (extra and trips is not None), trips is not None
        elif calling in ("once", "wrapped") and instruction.opcode != "fusion":
            yield from ((called, 1, True) for called in instruction.called)

    def _expense(self, branch: Computation) -> tuple[int, int, int]:
        work = self.work_of(branch)
        return work.flops, work.transcendentals, len(branch.instructions)

    def rows(self) -> Iterator[InstructionCost]:
        """The cost of every instruction that is executed, callers before what they call."""
        times: dict[Computation, int] = defaultdict(int, {self.entry: 1})
        known: dict[Computation, bool] = defaultdict(lambda: True)
        for computation in reversed(self.entry.reachable()):
            for instruction in over(
                computation.instructions if times[computation] else (), "counting costs", "instructions"
            ):
                yield self._row(instruction, computation, times[computation], known[computation])
                for called, count, is_known in self.calls(instruction):
                    times[called] += times[computation] * count
                    known[called] &= is_known and known[computation]

    def _row(self, instruction: Instruction, computation: Computation, times: int, known: bool) -> InstructionCost:
        work = work_of_instruction(instruction, self.work_of)
        return InstructionCost(
            instruction, computation, work, bytes_read(instruction), bytes_written(instruction), times, known
        )


class _OfAllBranches(CostAnalysis):
    """The costs of everything that may be executed: of all branches of a conditional, and inside fusions."""

    def calls(self, instruction: Instruction) -> Iterator[tuple[Computation, int, bool]]:
        if OPS[instruction.opcode].properties.calls == "branch" or instruction.opcode == "fusion":
            yield from ((called, 1, True) for called in dict.fromkeys(instruction.called))
        else:
            yield from super().calls(instruction)


# ----------------------------------------------------------------------------
# cost: the costs of all programs, in one record


def cost(program: Computation | Module | ModuleGroup, *, mesh: Mesh | None = None) -> Cost:
    """Count what a program costs each device, without running it.

    The cost comprises FLOPs, transcendentals, bytes, collectives and memory. Instructions are counted as in XLA's cost
    analysis, except that those in a loop count once per trip. Constants, or the trip count that a compiler has noted,
    determine the number of trips. A loop with an unknown trip count counts as one trip and is marked. For a
    conditional, the branch with the most FLOPs counts. `mesh` names the axes of collectives; without it, the axes are
    those of the mesh in the module's header, which `xb.from_jax` writes, or are inferred from the groups. Raises
    TypeError if `program` is not a program or `mesh` is not a Mesh, and invalid_attribute if the mesh has a different
    number of devices.

    >>> import xbuild as xb
    >>> total = xb.computation(xb.f32[1024])(xb.cross_replica_sum)
    >>> print(xb.cost(xb.Module("total", total, num_replicas=4)).table(by="axis"))
    total: a device computes 1.02 kFLOP, reads and writes 8.19 kB, sends 6.14 kB, needs 8.19 kB of memory
      devices      4, mesh a=4
      each device  1.02 kFLOP, 0 transcendentals
      traffic      8.19 kB read and written, 0.125 FLOP per byte
      memory       8.19 kB reserved for a run: 4.1 kB arguments + 4.1 kB outputs
      live         8.19 kB at most at once, in the recorded order: 4.1 kB arguments, 4.1 kB outputs
      links        6.14 kB of 1 collective, 6 steps
      XLA has not scheduled this program: compiled, it may need more or less memory
    <BLANKLINE>
    by axis (1 of 1)
      axis    instructions  FLOPs       transcendentals  memory   on a link
      axis a  1             1.02 kFLOP  0                8.19 kB  6.14 kB

    Source: XLA, xla/service/hlo_cost_analysis.cc.
    """
    program = module_in(program)
    if isinstance(program, Computation):
        program = Module(program.name, program)
    rows, axes = _rows_of(program, mesh, CostAnalysis)
    programs = tuple(_programs(program))
    grid = _grid(program)
    return Cost(_name(program), grid.num_devices, axes.mesh, rows, programs, _first_devices(program, programs))


def communication(program: Computation | Module | ModuleGroup, *, mesh: Mesh | None = None) -> tuple[CostRow, ...]:
    """The rows of all collectives, transfers and async-starts of a program, of every branch and inside fusions too.

    `mesh` is that of `cost`, and so are the errors.

    >>> import xbuild as xb
    >>> total = xb.computation(xb.f32[8])(xb.cross_replica_sum)
    >>> [row.op for row in communication(xb.Module("total", total, num_replicas=2))]
    ['all-reduce']
    """
    program = module_in(program)
    if isinstance(program, Computation):
        program = Module(program.name, program)
    rows, _ = _rows_of(program, mesh, _OfAllBranches)
    return tuple(row for row in rows if row.collective is not None or row.op == "async-start")


def _rows_of(
    program: Module | ModuleGroup, mesh: Mesh | None, analysis: type[CostAnalysis]
) -> tuple[tuple[CostRow, ...], Axes]:
    grid = _grid(program)
    with no_collection(), during("counting costs"):
        counted = [
            (list(analysis(module.entry).rows()), devices)
            for module, devices in over(_programs(program).items(), "counting costs", "programs")
        ]
        mesh = _stated_mesh(program, grid) if mesh is None else mesh
        axes = _axes(mesh, [each.instruction for rows, _ in counted for each in rows], grid)
        rows = tuple(
            _row(each, number, devices, grid, axes) for number, (rows, devices) in enumerate(counted) for each in rows
        )
    return rows, axes


def _name(program: Module | ModuleGroup) -> str:
    return program.name if isinstance(program, Module) else f"{program.num_devices} programs"


def _programs(program: Module | ModuleGroup) -> dict[Module, int]:
    """The different programs, and how many devices run each."""
    if isinstance(program, Module):
        return {program: program.num_devices}
    instruction_cost: dict[Module, int] = {}
    for module in program.modules.values():
        instruction_cost[module] = instruction_cost.get(module, 0) + 1
    return instruction_cost


def _first_devices(program: Module | ModuleGroup, programs: tuple[Module, ...]) -> tuple[int, ...]:
    """The first device that runs each program."""
    if isinstance(program, Module):
        return (0,)
    first = {module: device for device, module in sorted(program.modules.items(), reverse=True)}
    return tuple(first[each] for each in programs)


def _grid(program: Any) -> DeviceCounts:
    if isinstance(program, Module):
        return DeviceCounts(program.num_replicas, program.num_partitions, False)
    if not isinstance(program, ModuleGroup):
        hint = "xb.parse_hlo(text) and builder.build() return programs"
        raise TypeError(f"cost: {program!r} is not a Computation, a Module or a ModuleGroup; {hint}")
    if not program.modules:
        refuse(
            "invalid_attribute",
            "cost: the group has no programs",
            "pass a group with at least one program, such as xb.ModuleGroup({0: module})",
        )
    replicas, partitions = max(
        ((m.num_replicas, m.num_partitions) for m in program.modules.values()), key=lambda rp: rp[0] * rp[1],
        default=(1, 1),
    )  # fmt: skip
    return (
        DeviceCounts(replicas, partitions, True)
        if replicas * partitions > 1
        else DeviceCounts(program.num_devices, 1, True)
    )


def _stated_mesh(program: Module | ModuleGroup, grid: DeviceCounts) -> Mesh | None:
    """The mesh of all devices that the header of a program names, if any."""
    found = mesh_of(program) if isinstance(program, Module) else None
    return None if found is None or found.num_devices != grid.num_devices else found


def _axes(mesh: Mesh | None, instructions: list[Instruction], grid: DeviceCounts) -> Axes:
    if mesh is None:
        communicating = [each for each in instructions if is_communication(each)]
        return infer_axes(list_digits(communicating, grid), grid.num_devices)
    if not isinstance(mesh, Mesh):
        raise TypeError(f"cost: expected a Mesh, such as xb.Mesh(i=2, j=4), got {mesh!r}")
    if mesh.num_devices != grid.num_devices:
        refuse(
            "invalid_attribute",
            f"cost: mesh {mesh} has {mesh.num_devices} devices, but the program runs on {grid.num_devices}",
            f"pass a mesh with {grid.num_devices} devices, or omit mesh= to infer the mesh from the device groups",
        )
    return axes_of_mesh(mesh)


def _row(instruction_cost: InstructionCost, program: int, devices: int, grid: DeviceCounts, axes: Axes) -> CostRow:
    instruction = instruction_cost.instruction
    return CostRow(
        instruction=instruction,
        computation=instruction_cost.computation.name,
        scope=str(instruction.annotations.get("metadata", {}).get("op_name", "")),
        program=program,
        devices=devices,
        times=instruction_cost.times,
        is_known=instruction_cost.is_known,
        work=instruction_cost.work,
        bytes_read=sum(instruction_cost.read),
        bytes_written=instruction_cost.written,
        collective=collective_cost(instruction, grid, axes) if is_communication(instruction) else None,
    )
