"""How long an instruction takes: rooflines for work, the alpha-beta model for collectives and transfers.

Sections:

    Rooflines: the longer of an instruction's operations and its bytes, each at full speed
    Links: alpha for each step, beta for each byte
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from attrs import define, evolve, field, frozen

from shape_inference import Shape

from ..core.graph import Computation, Instruction
from ..costs.analysis import CostAnalysis
from ..costs.collectives import Algorithm, CollectiveCost
from ..costs.work import bytes_read, bytes_written, work_of_instruction
from .machines import Link, Machine

# ----------------------------------------------------------------------------
# Rooflines: the longer of an instruction's operations and its bytes, each at full speed

PRODUCTS = frozenset({"dot", "convolution", "ragged_dot"})


@frozen
class Roofline:
    """The seconds of an instruction's operations at the peak of its element type, and of its bytes."""

    compute: float
    memory: float

    @property
    def seconds(self) -> float:
        return max(self.compute, self.memory)

    @property
    def bound(self) -> str:
        """`compute` or `memory`, whichever takes longer."""
        return "compute" if self.compute > self.memory else "memory"


@define(eq=False)
class Durations:
    """The durations of one program's instructions on a machine."""

    analysis: CostAnalysis
    machine: Machine
    _seconds: dict[Computation, float] = field(factory=dict, init=False)

    def roofline(self, instruction: Instruction) -> Roofline:
        """The two terms of one execution of an instruction, without the computations that it runs."""
        work = work_of_instruction(instruction, self.analysis.work_of)
        bytes_moved = sum(bytes_read(instruction)) + bytes_written(instruction)
        operations = work.flops + work.transcendentals
        compute = operations / self.machine.peak(_dtype(instruction)) if operations else 0.0
        return Roofline(compute, bytes_moved / self.machine.memory_bandwidth)

    def total_seconds(self, instruction: Instruction) -> float:
        """The seconds of an instruction and its callees, with loops by their trip counts."""
        own = self.roofline(instruction).seconds
        return own + sum(
            self._computation_seconds(called) * times for called, times, _ in self.analysis.calls(instruction)
        )

    def _computation_seconds(self, computation: Computation) -> float:
        if computation not in self._seconds:
            for each in computation.reachable(self._seconds):
                self._seconds[each] = sum(map(self.total_seconds, each.instructions))
        return self._seconds[computation]


def _dtype(instruction: Instruction) -> str:
    """The element type whose peak counts: for a product its first operand's, for a fusion that of its product."""
    product = instruction
    if instruction.opcode == "fusion":
        product = max(_products(instruction.attributes.calls), key=lambda each: _size(each), default=instruction)
    shape = product.operands[0].shape if product.opcode in PRODUCTS else product.shape
    return shape.dtype.name if isinstance(shape, Shape) else "f32"


def _products(computation: Computation) -> Iterator[Instruction]:
    return (instruction for instruction in computation.instructions if instruction.opcode in PRODUCTS)


def _size(instruction: Instruction) -> int:
    return instruction.shape.size if isinstance(instruction.shape, Shape) else 0


# ----------------------------------------------------------------------------
# Links: alpha for each step, beta for each byte


@frozen
class CollectiveTime:
    """The seconds of a collective, the algorithm that takes them, and the axes whose links carry it."""

    seconds: float
    algorithm: str
    axes: tuple[str, ...]


def collective_time(
    collective: CollectiveCost, machine: Machine, sizes: Mapping[str, int], groups: Sequence[Sequence[int]] = ()
) -> CollectiveTime:
    """The fastest of the algorithms that fit the links: launch + alpha for each step + beta for each byte on a link.

    `sizes` are those of the mesh axes, `groups` the devices that meet, which decide whether they share a node. If
    devices are linked only to neighbours, rings count; a group along several axes uses the links of all of them.

    Source: Thakur, Rabenseifner and Gropp (2005); How To Scale Your Model, Parts 3 (tori) and 12 (nodes).
    """
    axes = _axes(collective)
    link = _link(machine, axes, groups)
    if collective.group_size <= 1:
        return CollectiveTime(0.0, "none", axes)
    if link.wraps:
        return _on_torus(collective, link, axes, [sizes[axis] for axis in axes] or [collective.group_size])
    times = ((_seconds(algorithm, collective.payload, link), algorithm.name) for algorithm in collective.algorithms)
    return CollectiveTime(*min(times, key=lambda each: each[0]), axes)


def _axes(collective: CollectiveCost) -> tuple[str, ...]:
    """The axes that the text of a collective names."""
    word, _, names = collective.axes.partition(" ")
    return tuple(names.split(", ")) if word in ("axis", "axes") else ()


def _link(machine: Machine, axes: Sequence[str], groups: Sequence[Sequence[int]]) -> Link:
    """The links inside a node, or between nodes, where the ports of all members of a node work in parallel."""
    inside, network, node = machine.link(axes), machine.network, machine.node
    if network is None or node is None or not groups:
        return inside
    members = max(_most_in_one_node(group, node) for group in groups)
    if members is None or all(len(set(np.asarray(group) // node)) == 1 for group in groups):
        return inside
    return evolve(network, bandwidth=min(network.bandwidth * members, inside.bandwidth))


def _most_in_one_node(group: Sequence[int], node: int) -> int:
    """The most participants of a group in one node."""
    return int(np.unique(np.asarray(group) // node, return_counts=True)[1].max())


def _seconds(algorithm: Algorithm, payload: int, link: Link) -> float:
    """The seconds of an algorithm; a step of a tree passes the whole array on after the previous step has ended."""
    sent = algorithm.steps * payload if algorithm.name == "tree" else algorithm.link_bytes
    return link.launch + algorithm.steps * link.alpha + sent / link.bandwidth


def _on_torus(collective: CollectiveCost, link: Link, axes: tuple[str, ...], sizes: Sequence[int]) -> CollectiveTime:
    """The time on rings along axes: each axis has its own links, and a closed ring carries data both ways."""
    kind, size = collective.instruction.opcode.removesuffix("_start"), collective.group_size
    ways = min(link.ways(each) for each in sizes)
    steps, axis_links = sum(-(-(each - 1) // ways) for each in sizes), ways * len(sizes)
    if "all_to_all" in kind:
        # A quarter of all data crosses each bisection of a ring, shared by its closed ends.
        sent = collective.payload * max(sizes) / 4
        return CollectiveTime(link.launch + steps * link.alpha + sent / (ways * link.bandwidth), "ring", axes)
    if kind in ("all_reduce", "all_gather", "reduce_scatter"):
        rounds = 2 if kind == "all_reduce" else 1
        sent = rounds * (size - 1) * collective.payload / size
        seconds = link.launch + rounds * steps * link.alpha + sent / (axis_links * link.bandwidth)
        return CollectiveTime(seconds, "ring", axes)
    if kind == "collective_broadcast":
        seconds = link.launch + steps * link.alpha + collective.payload / (axis_links * link.bandwidth)
        return CollectiveTime(seconds, "ring", axes)
    algorithm = collective.algorithms[0]
    return CollectiveTime(_seconds(algorithm, collective.payload, link), algorithm.name, axes)
