"""What the rules ask of a program: costs and seconds, users and sources through calls, groups, equal values.

`ProgramFacts` is one program on its devices, with the machine on which time is modelled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from attrs import define, field, frozen

from shape_inference import Shape, XbuildError
from shape_inference.escaping import in_line
from shape_inference.trees import flatten

from ..checking.replicated_values import Replication, replication
from ..core.graph import Instruction, MetadataSource, Module, Source
from ..costs import Cost, CostRow, cost
from ..costs.analysis import CostAnalysis
from ..costs.collectives import DeviceCounts
from ..costs.memory import aliases_of
from ..costs.work import leaf_bytes, work_of_instruction
from ..process.progress import over
from ..properties.device_groups import Groups, grouping, pairs_of
from ..properties.effects import name_in_report
from ..properties.mesh import Mesh
from ..sharding.hlo_text import parsed
from ..sharding.partition import Partitioned
from ..timelines.durations import Durations, collective_time
from ..timelines.machines import Machine
from .flow import ELEMENTWISE, MOVES, ValueFlow


@frozen
class StatePair:
    """State that a program updates: a parameter, or a leaf of it, and the value of the result that replaces it."""

    parameter: Instruction
    value: Instruction
    number: int


@define(eq=False)
class ProgramFacts:
    """One program, its costs, and what analyses find, each computed when a rule first asks.

    `partitioned` is set if xbuild partitioned the program. `stated` is then the same; for a program that XLA
    partitioned, it is the partition by xbuild, which has the shardings with their axes.
    """

    module: Module
    cost: Cost
    rows: tuple[CostRow, ...]
    machine: Machine
    is_own: bool
    least_share: float
    partitioned: Partitioned | None = None
    stated: Partitioned | None = None
    _row_of: dict[Instruction, CostRow] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        for row in self.rows:
            self._row_of.setdefault(row.instruction, row)

    # -- costs

    @property
    def grid(self) -> DeviceCounts:
        return DeviceCounts(self.module.num_replicas, self.module.num_partitions, self.is_own)

    @property
    def num_devices(self) -> int:
        return self.grid.num_devices

    @property
    def mesh(self) -> Mesh | None:
        return self.cost.mesh

    @cached_property
    def _analysis(self) -> CostAnalysis:
        return CostAnalysis(self.module.entry)

    @cached_property
    def _durations(self) -> Durations:
        return Durations(self._analysis, self.machine)

    def row(self, instruction: Instruction) -> CostRow | None:
        """The cost of an instruction; None for one that no device executes as a part of the program."""
        return self._row_of.get(instruction)

    def times(self, instruction: Instruction) -> int:
        """How often a device executes an instruction, or the fusion or call that it is part of; at least once."""
        row = self._row_of.get(instruction)
        return max(row.times, 1) if row is not None else 1

    def seconds_once(self, instruction: Instruction) -> float:
        """The seconds of one execution on the machine: of links for a collective, else by the roofline."""
        row = self._row_of.get(instruction)
        if row is not None and row.collective is not None:
            sizes = dict(self.mesh.sizes) if self.mesh else {}
            return collective_time(row.collective, self.machine, sizes, self.groups(instruction)).seconds
        return self._durations.roofline(instruction).seconds

    @cached_property
    def total_seconds(self) -> float:
        """The seconds of all instructions in sequence, which findings are compared with."""
        return sum(
            self.seconds_once(row.instruction) * row.times for row in over(self.rows, "modelling time", "instructions")
        )

    @property
    def least_seconds(self) -> float:
        """The least seconds of a cost that is worth a report."""
        return self.least_share * self.total_seconds

    def product_work(self, product: Instruction) -> int:
        """The FLOPs of one execution of a product, in a fusion too."""
        return work_of_instruction(product, self._analysis.work_of).flops

    @cached_property
    def argument_bytes(self) -> int:
        """The bytes of all arguments of a device."""
        return sum(size_of(each) for each in self.module.entry.parameters)

    def of_partition(self, partitioned: Partitioned) -> ProgramFacts:
        """The facts of another partition of the program, on the same machine."""
        counted = cost(partitioned.module, mesh=partitioned.mesh)
        return ProgramFacts(
            partitioned.module,
            counted,
            counted.rows,
            self.machine,
            False,
            self.least_share,
            partitioned,
            partitioned,
        )

    # -- values

    @cached_property
    def flow(self) -> ValueFlow:
        return ValueFlow(self.module.entry.reachable())

    @cached_property
    def replication(self) -> Replication:
        """Which devices hold equal values, with the promises of annotations."""
        return replication(self.module)

    @cached_property
    def replication_of_steps(self) -> Replication:
        """The same for a step of training: state of replicas, which no annotation describes, is equal at first."""
        if self.module.num_replicas == 1 or self.module.num_partitions > 1:
            return self.replication
        whole = {pair.parameter.attributes.number for pair in self.state}
        return replication(self.module, dict.fromkeys(whole, True))

    def is_equal_within(self, value: Instruction, groups: Groups, in_steps: bool = False) -> bool:
        """Whether the devices of each group hold equal values; False for a value that no device holds by itself."""
        held = self.equal_groups(value, in_steps)
        number = {device: n for n, group in enumerate(held) for device in group}
        return bool(held) and all(len({number.get(device, -1 - device) for device in group}) == 1 for group in groups)

    def equal_groups(self, value: Instruction, in_steps: bool = False) -> Groups:
        """The groups of devices that hold equal values; none for a value that no device holds by itself."""
        try:
            return (self.replication_of_steps if in_steps else self.replication).groups(value)
        except (KeyError, XbuildError):
            return ()

    def groups(self, instruction: Instruction) -> Groups:
        """The groups of a collective, or the pairs of a permutation."""
        counts = (self.module.num_replicas, self.module.num_partitions, self.is_own)
        if "source_target_pairs" in instruction.attribute_values():
            return pairs_of(instruction, *counts)
        return grouping(instruction, *counts).groups if hasattr(instruction.attributes, "replica_groups") else ()

    @cached_property
    def results(self) -> tuple[Instruction, ...]:
        """The values of the entry's result: the operands of its tuple, or the root alone."""
        return results_of(self.module)

    @cached_property
    def stated_results(self) -> tuple[Any, ...]:
        """The sharding that is stated for each value of the result; empty if not all are."""
        if self.partitioned is not None:
            found = flatten(self.partitioned.out_shardings)
        else:
            text = str(self.module.entry.root.annotations.get("sharding", ""))
            if not text or self.module.num_partitions < 2:
                return ()
            try:
                read = parsed(text)
            except XbuildError:  # a promise that cannot be read promises nothing
                return ()
            found = [each.stated for each in read] if isinstance(read, tuple) else [read.stated] * len(self.results)
        return tuple(found) if len(found) == len(self.results) else ()

    @cached_property
    def state(self) -> tuple[StatePair, ...]:
        """The parameters that the program updates: by the aliases of its header, else by shape and elementwise ops."""
        return tuple(self._aliased_state()) or tuple(updated_state(self.module, self.flow))

    def _aliased_state(self) -> Iterator[StatePair]:
        parameters = self.module.entry.parameters
        if any(not isinstance(each.shape, Shape) for each in (*parameters, *self.results)):
            return
        for result, number in aliases_of(self.module).items():
            if result < len(self.results) and number < len(parameters):
                pair = StatePair(parameters[number], self.results[result], result)
                if pair.parameter.shape.plain() == pair.value.shape.plain():
                    yield pair

    @cached_property
    def global_state(self) -> tuple[StatePair, ...]:
        """The parameters that the global program updates; none if that program is unknown."""
        if self.partitioned is None or self.global_flow is None:
            return ()
        return tuple(updated_state(self.partitioned.whole, self.global_flow))

    def name_of_parameter(self, parameter: Instruction) -> str:
        """The name of a parameter in reports, which the global program may know better."""
        named = parameter
        if self.partitioned is not None:
            whole = self.partitioned.whole.entry.parameters
            number = parameter.attributes.number
            named = whole[number] if number < len(whole) else parameter
        return in_line(name_in_report(named))

    # -- lines

    def source(self, instruction: Instruction) -> Source | None:
        """The user's line of an instruction, or of the nearest value around it that metadata gives a line."""
        own = instruction.source
        if isinstance(own, MetadataSource) or not self._has_metadata:
            return own
        return next(filter(_is_metadata, self._lines_around(instruction)), own)

    def has_own_line(self, instruction: Instruction) -> bool:
        """Whether the instruction itself names a line of the user, which a gather that XLA inserts may lack."""
        return instruction.source is not None and (_is_metadata(instruction.source) or not self._has_metadata)

    def _lines_around(self, instruction: Instruction) -> Iterator[Source | None]:
        """The lines of the users and sources of a value, nearest first."""
        queue, seen = deque([instruction]), {instruction}
        while queue and len(seen) < 200:
            value = queue.popleft()
            yield value.source
            around = [*self.flow.users.get(value, ()), *self.flow.behind(value)]
            for each in around:
                if each not in seen:
                    seen.add(each)
                    queue.append(each)

    def line_of_caller(self, instruction: Instruction) -> Source | None:
        """The line of the nearest call around an instruction of the global program, for a nested jit without lines."""
        flow, seen = self.global_flow, {instruction}
        while flow is not None and instruction in flow.home:
            callers = [each for each in flow.callers.get(flow.home[instruction], ()) if each not in seen]
            if not callers or _is_metadata(callers[0].source):
                return callers[0].source if callers else None
            instruction = callers[0]
            seen.add(instruction)
        return None

    @cached_property
    def global_flow(self) -> ValueFlow | None:
        """The flow of the global program; None if that program is unknown."""
        return None if self.partitioned is None else ValueFlow(self.partitioned.whole.entry.reachable())

    @cached_property
    def _has_metadata(self) -> bool:
        return any(_is_metadata(each.source) for each in self.flow.home)


def results_of(module: Module) -> tuple[Instruction, ...]:
    """The values of the entry's result: the operands of its tuple, or the root alone."""
    root = module.entry.root
    return root.operands if root.opcode == "tuple" else (root,)


def updated_state(module: Module, flow: ValueFlow) -> Iterator[StatePair]:
    """A result that elementwise ops compute from a parameter of its shape replaces the nearest that is left."""
    taken: set[Instruction] = set()
    for place, result in enumerate(results_of(module)):
        if not isinstance(result.shape, Shape) or result.shape.rank == 0 or result.opcode == "parameter":
            continue
        for value in flow.sources([result], lambda each: each.opcode in ELEMENTWISE or each.opcode in MOVES):
            is_own = value.opcode == "parameter" and flow.home[value] is module.entry
            if is_own and value not in taken and value.shape.plain() == result.shape.plain():
                taken.add(value)
                yield StatePair(value, result, place)
                break


def _is_metadata(source: Source | None) -> bool:
    return isinstance(source, MetadataSource)


def size_of(instruction: Instruction) -> int:
    """The bytes of a value, of all leaves of a tuple."""
    return leaf_bytes(instruction.shape)
