"""`cost`: the costs of all programs of the devices, collected into one record."""

from __future__ import annotations

from typing import Any

from shape_inference import refuse

from ..core.graph import Computation, Instruction, Module, ModuleGroup, module_in
from ..process.gc_pause import no_collection
from ..properties.mesh import Mesh
from .analysis import Analysis, InstructionCost
from .axes import Axes, axes_of_mesh, inferred_axes
from .collectives import Grid, collective_cost, digits_of_all, is_communication
from .report import Cost, CostRow


def cost(program: Computation | Module | ModuleGroup, *, mesh: Mesh | None = None) -> Cost:
    """What a program costs each device, without running it: FLOPs, transcendentals, bytes, collectives, memory.

    Instructions are counted as XLA's cost analysis counts them, but a loop as often as it runs: by constants, or by the
    trips that a compiler has noted; as one trip, and so marked, where neither tells. Of a conditional the branch of
    most FLOPs counts. `mesh` names the axes of collectives; without it the mesh is inferred from their groups.
    Raises TypeError where the program or the mesh is none; invalid_attribute where the mesh has another number of
    devices.

    >>> import xbuild as xb
    >>> total = xb.computation(xb.f32[1024])(xb.cross_replica_sum)
    >>> print(xb.cost(xb.Module("total", total, num_replicas=4)).table(by="axis"))
    total: 4 devices, mesh a=4
      each device  1.02 kFLOP, 0 transcendentals
      memory       8.19 kB read and written, 0.125 FLOP for each byte
      at most      8.19 kB alive at once, in the recorded order: 4.1 kB arguments, 4.1 kB outputs
      links        6.14 kB of 1 collective, 6 steps
    <BLANKLINE>
    by axis (1 of 1)
      axis    instructions  FLOPs       transcendentals  memory   on a link
      axis a  1             1.02 kFLOP  0                8.19 kB  6.14 kB

    Source: XLA, xla/service/hlo_cost_analysis.cc.
    """
    program = module_in(program)
    if isinstance(program, Computation):
        program = Module(program.name, program)
    grid = _grid(program)
    with no_collection():
        counted = [(list(Analysis(module.entry).rows()), devices) for module, devices in _programs(program).items()]
        axes = _axes(mesh, [each.instruction for rows, _ in counted for each in rows], grid)
        rows = tuple(
            _row(each, number, devices, grid, axes) for number, (rows, devices) in enumerate(counted) for each in rows
        )
    programs = tuple(_programs(program))
    return Cost(_name(program), grid.num_devices, axes.mesh, rows, programs, _first_devices(program, programs))


def _name(program: Module | ModuleGroup) -> str:
    return program.name if isinstance(program, Module) else f"{program.num_devices} programs"


def _programs(program: Module | ModuleGroup) -> dict[Module, int]:
    """The different programs, and how many devices run each."""
    if isinstance(program, Module):
        return {program: program.num_devices}
    found: dict[Module, int] = {}
    for module in program.modules.values():
        found[module] = found.get(module, 0) + 1
    return found


def _first_devices(program: Module | ModuleGroup, programs: tuple[Module, ...]) -> tuple[int, ...]:
    """The first device that runs each program."""
    if isinstance(program, Module):
        return (0,)
    first = {module: device for device, module in sorted(program.modules.items(), reverse=True)}
    return tuple(first[each] for each in programs)


def _grid(program: Any) -> Grid:
    if isinstance(program, Module):
        return Grid(program.num_replicas, program.num_partitions, False)
    if not isinstance(program, ModuleGroup):
        way = "xb.parse_hlo(text) and builder.build() give programs"
        raise TypeError(f"cost: {program!r} is neither a Computation nor a Module or ModuleGroup; {way}")
    if not program.modules:
        refuse("invalid_attribute", "cost: the group has no programs", "xb.ModuleGroup({0: module}) has one")
    replicas, partitions = max(
        ((m.num_replicas, m.num_partitions) for m in program.modules.values()), key=lambda rp: rp[0] * rp[1],
        default=(1, 1),
    )  # fmt: skip
    return Grid(replicas, partitions, True) if replicas * partitions > 1 else Grid(program.num_devices, 1, True)


def _axes(mesh: Mesh | None, instructions: list[Instruction], grid: Grid) -> Axes:
    if mesh is None:
        communicating = [each for each in instructions if is_communication(each)]
        return inferred_axes(digits_of_all(communicating, grid), grid.num_devices)
    if not isinstance(mesh, Mesh):
        raise TypeError(f"cost: mesh is {mesh!r}, and a Mesh is wanted: mesh=xb.Mesh(i=2, j=4)")
    if mesh.num_devices != grid.num_devices:
        refuse(
            "invalid_attribute",
            f"cost: mesh {mesh} has {mesh.num_devices} devices, and the program runs on {grid.num_devices}",
            "give a mesh of as many devices, or none: it is inferred from the device groups",
        )
    return axes_of_mesh(mesh)


def _row(found: InstructionCost, program: int, devices: int, grid: Grid, axes: Axes) -> CostRow:
    instruction = found.instruction
    return CostRow(
        instruction=instruction,
        computation=found.computation.name,
        scope=str(instruction.annotations.get("metadata", {}).get("op_name", "")),
        program=program,
        devices=devices,
        times=found.times,
        is_known=found.is_known,
        work=found.work,
        bytes_read=sum(found.read),
        bytes_written=found.written,
        collective=collective_cost(instruction, grid, axes) if is_communication(instruction) else None,
    )
