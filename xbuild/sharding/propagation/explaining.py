"""`explain`: why a value has its sharding, step by step back to what the program states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from attrs import define, field, frozen

from ...core.graph import Computation, Module, Source
from ...properties.mesh import Mesh
from ..sharding import Axis, Placement, Sharding
from .propagated import CauseStep, Propagated
from .propagating import propagate
from .tensors import Axes, ShardingStep, Tensor

# ----------------------------------------------------------------------------
# Origins: for many values at once, where their axes come from, and through which other values

_FEW = 4

State: TypeAlias = "tuple[Tensor, int, float]"
"""An array, one of its dimensions, and the number of a step before which its axes are traced."""


@frozen
class ShardingOrigin:
    """Where a dimension's axes come from: the values on the way, the nearest first, and the value that states them.

    `through` has the first few values on the way; `more` counts the others.
    """

    dim: int
    axes: Axes
    through: tuple[str, ...]
    more: int
    origin: str
    where: Source | None


@define
class Origins:
    """The origins of values of one propagated program; shared steps are traced once."""

    found: Propagated
    _ends: dict[State, tuple[int, Tensor]] = field(factory=dict)

    def ways(self, name: str) -> Iterator[ShardingOrigin]:
        """The origin of each sharded dimension of an array. Raises undefined_name for a name that no value has."""
        tensor = self.found.tensor(name)
        for dim, axes in enumerate(tensor.axes):
            if axes:
                yield self._find_origin(tensor, dim, axes)

    def _find_origin(self, tensor: Tensor, dim: int, axes: Axes) -> ShardingOrigin:
        state: State = (tensor, dim, float("inf"))
        count, end = self._find_end(state)
        through: list[str] = []
        while len(through) < min(_FEW, count - 1) and (step := _last_step(state)):
            state = _state_before(step)
            through.append(_name(state[0]))
        origin = end.names[0][0]
        return ShardingOrigin(dim, axes, tuple(through), max(0, count - 1 - len(through)), origin.name, origin.source)

    def _find_end(self, state: State) -> tuple[int, Tensor]:
        """The number of steps that lead back from a state, and the array at their end."""
        path: list[State] = []
        while state not in self._ends and (step := _last_step(state)):
            path.append(state)
            state = _state_before(step)
        count, end = self._ends.setdefault(state, (0, state[0]))
        for each in reversed(path):
            count += 1
            self._ends[each] = count, end
        return count, end


def _last_step(state: State) -> ShardingStep | None:
    """The last step by which the dimension got axes; None if the array states them itself."""
    tensor, dim, before = state
    found = next((each for each in reversed(tensor.steps) if each.dim == dim and each.number < before), None)
    return None if found is None or found.source is tensor else found


def _state_before(step: ShardingStep) -> State:
    return step.source, step.source_dim, step.number


def _name(tensor: Tensor) -> str:
    return tensor.names[0][0].name


# ----------------------------------------------------------------------------
# explain: why a value has its sharding, step by step back to the sharding that the program states


@frozen
class DimensionReason:
    """Why one dimension is sharded: the steps back from the value, and the value that states it, with its line."""

    dim: int
    axes: tuple[str, ...]
    steps: tuple[CauseStep, ...]
    origin: str
    where: Source | None

    def lines(self, value: str) -> Iterator[str]:
        """The steps as lines, that of the value itself first."""
        yield f"  dimension {self.dim} along {', '.join(self.axes)}"
        for step in self.steps:
            turn = f"priority {step.priority}, level {step.level}, {step.strategy}"
            source = f"dimension {step.source_dim} of %{step.source}"
            yield f"    %{value} takes axes from {source}: {step.what} {step.rule} ({turn})"
            yield from _at(step.where)
            value = step.source
        yield f"    %{self.origin} states them"
        yield from _at(self.where)


def _at(where: Source | None) -> Iterator[str]:
    if where is not None:
        yield f"      at {where}"


@frozen
class ShardingExplanation:
    """Why a value has its sharding; `leaf` numbers the arrays of a tuple.

    `reasons` has an entry for each sharded dimension, `whole` lists the other dimensions, and `clashes` has a sentence
    for each instruction at which the value's sharding conflicts with others.
    """

    value: str
    leaf: int
    shape: str
    sharding: str
    kind: str
    reasons: tuple[DimensionReason, ...]
    whole: tuple[int, ...]
    clashes: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"%{self.value} {self.shape} is {self.sharding}: {_KINDS[self.kind]}"]
        for reason in self.reasons:
            lines += reason.lines(self.value)
        if self.whole and self.reasons:
            dims = ", ".join(map(str, self.whole))
            lines.append(f"  dimension{'s' * (len(self.whole) > 1)} {dims} not sharded, since no axes propagated there")
        return "\n".join([*lines, *(f"  {each}" for each in self.clashes)])

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data for JSON."""
        return {
            "value": self.value,
            "leaf": self.leaf,
            "shape": self.shape,
            "sharding": self.sharding,
            "kind": self.kind,
            "dimensions": [_as_dict(reason) for reason in self.reasons],
            "clashes": list(self.clashes),
        }


_KINDS = {
    "stated": "the program states this sharding",
    "propagated": "its axes propagated from other values",
    "whole": "replicated, since no sharding propagated to this value",
    "fixed": "not placed on axes of the mesh, so no sharding propagates to or from this value",
}


def _as_dict(reason: DimensionReason) -> dict[str, Any]:
    steps = [
        {"at": step.at, "op": step.what, "rule": step.rule, "source": step.source, "source_dim": step.source_dim,
         "priority": step.priority, "level": step.level, "strategy": step.strategy,
         "where": None if step.where is None else str(step.where)}
        for step in reason.steps
    ]  # fmt: skip
    where = None if reason.where is None else str(reason.where)
    return {"dim": reason.dim, "axes": list(reason.axes), "steps": steps, "origin": reason.origin, "where": where}


def explain(found: Propagated | Module | Computation, name: str, *, leaf: int = 0) -> ShardingExplanation:
    """Why a value has its sharding, traced for each sharded dimension back to the value whose sharding is stated.

    `found` is the result of `propagate`, or a program, which is propagated first. `leaf` numbers the arrays of a tuple.
    Raises undefined_name for a name that no value has; and what `propagate` raises.

    >>> import xbuild as xb
    >>> text = '''HloModule m
    ... ENTRY e {
    ...   a = f32[8,4] parameter(0), sharding={mesh['x'=2], [{'x'}, {}]}
    ...   t = f32[8,4] tanh(a)
    ...   ROOT y = f32[4,8] transpose(t), dimensions={1,0}
    ... }'''
    >>> print(explain(xb.parse_hlo(text), "y"))
    %y f32[4,8] is [{}, {x}]: its axes propagated from other values
      dimension 1 along x
        %y takes axes from dimension 0 of %t: transpose ([j, i])->([i, j]) {i=4, j=8} (priority 0, level 0, aggressive)
          at <hlo>:5 in e
        %t takes axes from dimension 0 of %a: tanh ([i, j])->([i, j]) {i=8, j=4} (priority 0, level 0, aggressive)
          at <hlo>:4 in e
        %a states them
          at <hlo>:3 in e
      dimension 0 not sharded, since no axes propagated there

    Source: Shardy, debugging of propagation (sharding origins, edges).
    """
    propagated = found if isinstance(found, Propagated) else propagate(found)
    cause = propagated.cause(name, leaf)
    sharding = propagated.sharding(name)
    own = sharding[leaf] if isinstance(sharding, tuple) else sharding
    chains = propagated.chains(name, leaf)
    reasons = tuple(
        DimensionReason(dim, tuple([axis_text(axis, own.mesh) for axis in axes]), steps, origin, where)
        for dim, axes, steps, origin, where in chains
        if isinstance(own, Sharding)  # a placement has no dimensions
    )
    sharded = {reason.dim for reason in reasons}
    shape = propagated.shape(name, leaf)
    return ShardingExplanation(
        cause.value, leaf, str(shape), short(own), cause.kind, reasons,
        tuple(dim for dim in range(getattr(shape, "rank", 0)) if dim not in sharded),
        tuple(each.sentence() for each in propagated.conflicts if cause.value in dict(each.axes)),
    )  # fmt: skip


def axis_text(axis: Axis, mesh: Mesh) -> str:
    """An axis as people read it: its name, with the part if it is one."""
    return axis.name if axis.size == mesh.size(axis.name) else f"{axis.name}:({axis.pre_size}){axis.size}"


def short(sharding: Sharding | Placement) -> str:
    """A sharding as people read it: the axes of each dimension, then unreduced, manual and replicated axes.

    >>> import xbuild as xb
    >>> short(Sharding(xb.Mesh(x=2)))
    '[]'
    """
    if isinstance(sharding, Placement):
        return str(sharding)
    mesh = sharding.mesh

    def axes_text(axes: tuple[Axis, ...]) -> str:
        return ", ".join(axis_text(axis, mesh) for axis in axes)

    dims = ", ".join(f"{{{axes_text(dim.axes)}}}" for dim in sharding.dims)
    words = (("unreduced", sharding.unreduced), ("manual", sharding.manual), ("replicated", sharding.replicated))
    return f"[{dims}]" + "".join(f" {word}={{{axes_text(axes)}}}" for word, axes in words if axes)
