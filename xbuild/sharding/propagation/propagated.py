"""`Propagated`: a program with the sharding of every value, the cause of each, and the conflicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Literal, TypeAlias

from attrs import define, field, frozen

from shape_inference import AnyShape, TupleShape, leaves, refuse

from ...core.graph import Instruction, Module, Source
from ...properties.effects import name_in_report
from ...properties.mesh import Mesh
from ..hlo_text import AnySharding
from ..rules import factor_name
from ..sharding import Placement, Sharding
from .flow import Flow, FlowNode, of_one
from .tensors import Axes, ShardingStep, Tensor, close_dimensions, view

__all__ = ["Propagated", "shardings_of", "step_record"]


# ----------------------------------------------------------------------------
# Cause and Conflict: why an array has its sharding, and where shardings conflict

CauseKind: TypeAlias = Literal["stated", "propagated", "whole", "fixed"]
"""The program states it; it propagated from another array; nothing did; or it is not on axes of the mesh."""


@frozen
class CauseStep:
    """A dimension of an array whose axes grew from `before` to `axes`, which dimension `source_dim` of `source` has.

    They grew by the rule of the instruction `at` (`what` is its opcode, or loop, branch, barrier, result). `priority`
    is the user's, `level` that of op priorities (0 to 4), `strategy` basic or aggressive.
    """

    dim: int
    before: Axes
    axes: Axes
    source: str
    source_dim: int
    at: str
    what: str
    rule: str
    priority: int
    level: int
    strategy: str
    where: Source | None


@frozen
class Cause:
    """Why a value has its sharding: its kind, the steps that led to it, and the value's line."""

    value: str
    kind: CauseKind
    steps: tuple[CauseStep, ...]
    where: Source | None

    @property
    def source(self) -> str | None:
        """The value from which the last step came."""
        return self.steps[-1].source if self.steps else None


@frozen
class Conflict:
    """An instruction whose arrays split a factor differently, or two factors by one axis, so that it needs a reshard.

    `factor` is the name of the factor in `rule`, `axes` the values with the axes that each has along it.
    """

    at: str
    what: str
    rule: str
    factor: str
    axes: tuple[tuple[str, Axes], ...]
    where: Source | None

    def sentence(self, paths: Mapping[str, str] = MappingProxyType({})) -> str:
        """The conflict in words; `paths` has the names by which reports name parameters."""
        if len({axes for _, axes in self.axes}) == 1:
            axes = ", ".join(axis.name for axis in self.axes[0][1])
            names = ", ".join(paths.get(name, f"%{name}") for name, _ in self.axes)
            return f"{self.what} %{self.at} has two factors sharded along {axes}; one is {self.factor}, of {names}"
        ways = ", ".join(f"{_describe(axes)} in {paths.get(name, f'%{name}')}" for name, axes in self.axes)
        return f"{self.what} %{self.at} has factor {self.factor} in several shardings: {ways}"


def _describe(axes: Axes) -> str:
    return f"along {', '.join(axis.name for axis in axes)}" if axes else "not sharded"


# ----------------------------------------------------------------------------
# Propagated: a program with the sharding of every value, its causes and its conflicts


@define(eq=False, repr=False, slots=False)
class Propagated:
    """A program in which every array has a closed sharding, with the reasons.

    `module` has the shardings as annotations; a computation with several calls has a copy for each. `strategy` is the
    one by which they were propagated, `shardy` or `dialect`.
    """

    module: Module
    mesh: Mesh
    strategy: str
    shardings: dict[Instruction, AnySharding] = field(repr=False)
    _flow: Flow = field(repr=False)

    @property
    def given(self) -> Module:
        """The program with only the shardings that it states; each call has its own copy of its callee."""
        return self._flow.module

    @cached_property
    def _by_name(self) -> dict[str, Instruction]:
        named: dict[str, Instruction] = {}
        for computation in reversed(self._flow.module.entry.reachable()):
            for instruction in computation.instructions:
                if instruction in self._flow.leaves:
                    named.setdefault(instruction.name, instruction)
        for parameter in self._flow.module.entry.parameters:
            named.setdefault(name_in_report(parameter), parameter)
        return named

    def _find(self, name: str) -> Instruction:
        found = self._by_name.get(name.lstrip("%"))
        hint = "xbuild shard TARGET lists all values"
        return found or refuse("undefined_name", f"module {self.module.name} has no value {name!r}", hint)

    def sharding(self, name: str) -> AnySharding:
        """The sharding of a value by its name, a tuple for a tuple; the entry is searched first.

        Raises undefined_name for a name that no value has.
        """
        return self.shardings[self._find(name)]

    def cause(self, name: str, leaf: int = 0) -> Cause:
        """Why a value has its sharding; `leaf` numbers the arrays of a tuple.

        Raises undefined_name for a name that no value has, or a tuple that has no such leaf.
        """
        instruction = self._find(name)
        count = len(self._tensors(instruction))
        if not 0 <= leaf < count:
            refuse("undefined_name", f"{name} has no leaf {leaf}; it has {count} leaves")
        return self.cause_of(instruction, leaf)

    def cause_of(self, instruction: Instruction, leaf: int = 0) -> Cause:
        """Why an instruction of the `given` program has its sharding."""
        return _make_cause(instruction.name, self._tensors(instruction)[leaf], instruction)

    @cached_property
    def stated(self) -> frozenset[str]:
        """The names of the arrays whose shardings the program states."""
        every = (each for each in self.instructions() if len(self._tensors(each)) == 1)
        return frozenset(each.name for each in every if self.cause_of(each).kind == "stated")

    def tensor(self, name: str, leaf: int = 0) -> Tensor:
        """The array of a value as it was propagated. Raises undefined_name for a name that no value has."""
        return self._tensors(self._find(name))[leaf]

    def _tensors(self, instruction: Instruction) -> tuple[Tensor, ...]:
        if instruction is self._flow.module.entry.root and self._flow.results:
            return tuple(self._flow.results)
        return self._flow.tensors_of(instruction)

    def shape(self, name: str, leaf: int = 0) -> AnyShape:
        """The shape of a value, or of an array of a tuple."""
        return list(leaves(self._find(name).shape))[leaf]

    def chains(self, name: str, leaf: int = 0) -> tuple[Chain, ...]:
        """For each sharded dimension: its number, axes, the steps back, and the value that states it with its line."""
        tensor = self._tensors(self._find(name))[leaf]
        return tuple(_trace_back(tensor, dim) for dim, axes in enumerate(tensor.axes) if axes)

    def instructions(self) -> Iterator[Instruction]:
        """The instructions of the `given` program that have a sharding, callers before callees."""
        return (instruction for _, instruction in self.homes())

    def homes(self) -> Iterator[tuple[str, Instruction]]:
        """The instructions that have a sharding, each with the name of its computation."""
        for computation in reversed(self._flow.module.entry.reachable()):
            yield from ((computation.name, each) for each in computation.instructions if each in self._flow.leaves)

    @cached_property
    def paths(self) -> Mapping[str, str]:
        """The names by which reports name parameters, of those whose name in the program is a different one."""
        named = {each.name: name_in_report(each) for each in self.given.entry.parameters}
        return {name: path for name, path in named.items() if name != path}

    @cached_property
    def conflicts(self) -> tuple[Conflict, ...]:
        """The instructions whose arrays have conflicting shardings, in the order of the program."""
        return tuple(each for node in self._flow.nodes for each in _find_conflicts(node))

    def __repr__(self) -> str:
        return f"Propagated({self.module.name}, {self.mesh}, {len(self.shardings)} values)"


def shardings_of(flow: Flow, mesh: Mesh) -> dict[Instruction, AnySharding]:
    """The propagated sharding of each instruction of a flow."""
    found: dict[Instruction, AnySharding] = {}
    for instruction in flow.leaves:
        tensors = flow.tensors_of(instruction)
        if instruction is flow.module.entry.root and flow.results:
            tensors = tuple(flow.results)
        each = tuple(close_dimensions(tensor, mesh) for tensor in tensors)
        if isinstance(instruction.shape, TupleShape):
            found[instruction] = each
        elif each and not _is_token(instruction):
            found[instruction] = _sharding_of_copies(flow, instruction, mesh) or each[0]
    return found


def _is_token(instruction: Instruction) -> bool:
    return not hasattr(next(iter(leaves(instruction.shape))), "dims")


def _sharding_of_copies(flow: Flow, instruction: Instruction, mesh: Mesh) -> Sharding | Placement | None:
    """The sharding of a constant that has a copy for each use, if all copies agree."""
    copies = {close_dimensions(of_one(each), mesh) for each in flow.copies.get(instruction, ())}
    return copies.pop() if len(copies) == 1 else None


def _make_cause(name: str, tensor: Tensor, instruction: Instruction) -> Cause:
    kind: CauseKind = "whole"
    if tensor.is_fixed:
        kind = "fixed"
    elif tensor.steps:
        kind = "propagated"
    elif tensor.stated is not None:
        kind = "stated"
    return Cause(name, kind, tuple(map(step_record, tensor.steps)), instruction.source)


def step_record(step: ShardingStep) -> CauseStep:
    """A step as a record with names."""
    node, turn = step.node, step.turn
    return CauseStep(
        step.dim, step.before, step.after, step.source.names[0][0].name, step.source_dim, node.instruction.name,
        node.what, str(node.rule), turn.priority, turn.level, turn.strategy, node.instruction.source,
    )  # fmt: skip


Chain: TypeAlias = "tuple[int, Axes, tuple[CauseStep, ...], str, Source | None]"


def _trace_back(tensor: Tensor, dim: int) -> Chain:
    """The steps by which a dimension got its axes, the last one first."""
    found: list[CauseStep] = []
    axes, own, before = tensor.axes[dim], dim, float("inf")
    while True:
        steps = [step for step in tensor.steps if step.dim == own and step.number < before]
        if not steps or steps[-1].source is tensor:
            origin = tensor.names[0][0]
            return dim, axes, tuple(found), origin.name, origin.source
        found.append(step_record(steps[-1]))
        tensor, own, before = steps[-1].source, steps[-1].source_dim, steps[-1].number


def _find_conflicts(node: FlowNode) -> Iterator[Conflict]:
    """The factors of a node that its arrays split differently, or whose axes also split another factor."""
    if not any(tensor.is_cut for tensor in node.tensors):
        return
    views = [view(t, dims, node.rule.factors) for t, dims in zip(node.tensors, node.maps, strict=True)]
    for factor in range(len(node.rule.factors)):
        found = [(n, own[factor].axes + own[factor].overflow) for n, own in enumerate(views) if factor in own]
        others = [axis for own in views for f, state in own.items() if f != factor for axis in state.axes]
        is_shared = any(axis.overlaps(other) for _, axes in found for axis in axes for other in others)
        if len({axes for _, axes in found}) > 1 or is_shared:
            names = tuple((node.tensors[n].names[0][0].name, axes) for n, axes in found)
            own = node.instruction
            yield Conflict(own.name, node.what, str(node.rule), factor_name(factor), names, own.source)
