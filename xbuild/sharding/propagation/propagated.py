"""`Propagated`, a program with the sharding of every value, its causes and its conflicts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TypeAlias

from attrs import define, field

from shape_inference import AnyShape, TupleShape, leaves, refuse

from ...core.graph import Instruction, Module, Source
from ...properties.mesh import Mesh
from ..factors import factor_name
from ..hlo_text import AnySharding
from ..placement import Placement
from ..sharding import Sharding
from .causes import Cause, CauseKind, CauseStep, Conflict
from .flow import Flow
from .nodes import Node
from .prefixes import Axes
from .stating import closed
from .tensors import Step, Tensor, view
from .values import of_one


@define(eq=False, repr=False, slots=False)
class Propagated:
    """A program in which every array has a closed sharding, and why.

    `module` carries the shardings as annotations; a computation that was called several times has a copy for each call.
    `strategy` is the one by which they were found, `shardy` or `dialect`.
    """

    module: Module
    mesh: Mesh
    strategy: str
    shardings: dict[Instruction, AnySharding] = field(repr=False)
    _flow: Flow = field(repr=False)

    @property
    def given(self) -> Module:
        """The program with the shardings that it states alone; each call has a copy of what it calls."""
        return self._flow.module

    @cached_property
    def _by_name(self) -> dict[str, Instruction]:
        named: dict[str, Instruction] = {}
        for computation in reversed(self._flow.module.entry.reachable()):
            for instruction in computation.instructions:
                if instruction in self._flow.leaves:
                    named.setdefault(instruction.name, instruction)
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
            refuse("undefined_name", f"{name} has {count} leaves, and {leaf} is none of them")
        return self.cause_of(instruction, leaf)

    def cause_of(self, instruction: Instruction, leaf: int = 0) -> Cause:
        """Why an instruction of the program that was given has its sharding."""
        return _cause(instruction.name, self._tensors(instruction)[leaf], instruction)

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
        """For each dimension of a value that is cut: its number, axes, the steps back, the value that states it, and
        the line of that value.
        """
        tensor = self._tensors(self._find(name))[leaf]
        return tuple(_chain(tensor, dim) for dim, axes in enumerate(tensor.axes) if axes)

    def instructions(self) -> Iterator[Instruction]:
        """The instructions that have a sharding, as the program had them, callers before what they call."""
        return (instruction for _, instruction in self.homes())

    def homes(self) -> Iterator[tuple[str, Instruction]]:
        """The instructions that have a sharding, each with the name of its computation."""
        for computation in reversed(self._flow.module.entry.reachable()):
            yield from ((computation.name, each) for each in computation.instructions if each in self._flow.leaves)

    @cached_property
    def conflicts(self) -> tuple[Conflict, ...]:
        """Where the arrays of an instruction do not fit each other, in the order of the program."""
        return tuple(each for node in self._flow.nodes for each in _conflicts(node))

    def __repr__(self) -> str:
        return f"Propagated({self.module.name}, {self.mesh}, {len(self.shardings)} values)"


def shardings_of(flow: Flow, mesh: Mesh) -> dict[Instruction, AnySharding]:
    """The sharding that each instruction of a flow has come to."""
    found: dict[Instruction, AnySharding] = {}
    for instruction in flow.leaves:
        tensors = flow.tensors_of(instruction)
        if instruction is flow.module.entry.root and flow.results:
            tensors = tuple(flow.results)
        each = tuple(closed(tensor, mesh) for tensor in tensors)
        if isinstance(instruction.shape, TupleShape):
            found[instruction] = each
        elif each and not _is_token(instruction):
            found[instruction] = _of_copies(flow, instruction, mesh) or each[0]
    return found


def _is_token(instruction: Instruction) -> bool:
    return not hasattr(next(iter(leaves(instruction.shape))), "dims")


def _of_copies(flow: Flow, instruction: Instruction, mesh: Mesh) -> Sharding | Placement | None:
    """The sharding of a constant with a copy for each use: what all copies agree on."""
    copies = {closed(of_one(each), mesh) for each in flow.copies.get(instruction, ())}
    return copies.pop() if len(copies) == 1 else None


def _cause(name: str, tensor: Tensor, instruction: Instruction) -> Cause:
    kind: CauseKind = "whole"
    if tensor.is_fixed:
        kind = "fixed"
    elif tensor.steps:
        kind = "propagated"
    elif tensor.stated is not None:
        kind = "stated"
    return Cause(name, kind, tuple(map(step_record, tensor.steps)), instruction.source)


def step_record(step: Step) -> CauseStep:
    """A step as a record of names."""
    node, turn = step.node, step.turn
    return CauseStep(
        step.dim, step.before, step.after, step.source.names[0][0].name, step.source_dim, node.instruction.name,
        node.what, str(node.rule), turn.priority, turn.level, turn.strategy, node.instruction.source,
    )  # fmt: skip


Chain: TypeAlias = "tuple[int, Axes, tuple[CauseStep, ...], str, Source | None]"


def _chain(tensor: Tensor, dim: int) -> Chain:
    """The steps by which a dimension came to be cut as it is, the last one first."""
    found: list[CauseStep] = []
    axes, own, before = tensor.axes[dim], dim, float("inf")
    while True:
        steps = [step for step in tensor.steps if step.dim == own and step.number < before]
        if not steps or steps[-1].source is tensor:
            origin = tensor.names[0][0]
            return dim, axes, tuple(found), origin.name, origin.source
        found.append(step_record(steps[-1]))
        tensor, own, before = steps[-1].source, steps[-1].source_dim, steps[-1].number


def _conflicts(node: Node) -> Iterator[Conflict]:
    """The factors of a node along which its arrays differ, or whose axes another factor of the node has, too."""
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


__all__ = ["Propagated", "shardings_of", "step_record"]
