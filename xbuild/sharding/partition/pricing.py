"""What the inserted collectives cost on a machine: how often each runs, and the seconds that it takes."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from ...core.graph import Instruction, Module
from ...costs import cost
from ...costs.axes import axes_of_mesh
from ...costs.collectives import Grid, collective_cost
from ...properties.mesh import Mesh
from ...timelines.collective_times import collective_time
from ...timelines.machines import Machine
from ...timelines.presets import machine as named_machine
from .reasons import Communication


@frozen
class CommunicationCost:
    """An inserted collective on a machine: `runs` executions, each of `seconds` by the fastest algorithm.

    `is_known` is False inside of a loop whose trips are unknown, which counts as one trip, and in a branch of a
    conditional that is not the one of most FLOPs, whose collectives have no runs.
    """

    communication: Communication
    runs: int
    is_known: bool
    seconds: float
    algorithm: str

    @property
    def total_bytes(self) -> int:
        """The bytes that a device sends in all executions."""
        return self.communication.bytes * self.runs

    @property
    def total_seconds(self) -> float:
        """The seconds of all executions, one after the other, without what overlaps with them."""
        return self.seconds * self.runs

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data for JSON."""
        return {
            **self.communication.to_dict(), "runs": self.runs, "runs_known": self.is_known, "seconds": self.seconds,
            "total_bytes": self.total_bytes, "total_seconds": self.total_seconds, "algorithm": self.algorithm,
        }  # fmt: skip


def priced(
    communications: tuple[Communication, ...], module: Module, mesh: Mesh, machine: Machine | str
) -> tuple[CommunicationCost, ...]:
    """The cost of each inserted collective of a partitioned program, in the order of the program."""
    where, grid, axes = _machine(machine), Grid(1, mesh.num_devices, False), axes_of_mesh(mesh)
    named = {each.name: each for computation in module.computations for each in computation.instructions}
    counted = {row.instruction: row for row in cost(module, mesh=mesh).rows if row.collective is not None}
    found = []
    for each in communications:
        instruction = named[each.name]
        row = counted.get(instruction)
        runs, is_known = (0, False) if row is None else (row.times, row.is_known)
        taken = collective_time(collective_cost(instruction, grid, axes), where, dict(mesh.sizes), _groups(instruction))
        found.append(CommunicationCost(each, runs, is_known, taken.seconds, taken.algorithm))
    return tuple(found)


def _machine(machine: Machine | str) -> Machine:
    found = named_machine(machine) if isinstance(machine, str) else machine
    if not isinstance(found, Machine):
        raise TypeError(f"costs: machine is {machine!r}, and a Machine is wanted: 'h100', or xb.Machine(flops=...)")
    return found


def _groups(instruction: Instruction) -> Any:
    attributes = instruction.attributes
    return getattr(attributes, "source_target_pairs", None) or getattr(attributes, "replica_groups", None) or ()
