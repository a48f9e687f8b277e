"""`explain`: why a value has its sharding, step by step back to what the program states, with lines of the source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import frozen

from ...core.graph import Computation, Module, Source
from ..axis import Axis
from ..placement import Placement
from ..sharding import Sharding
from .causes import CauseStep
from .propagated import Propagated
from .propagating import propagate


@frozen
class DimensionReason:
    """Why one dimension is cut: the steps from the value back, and the value that states it, with its line."""

    dim: int
    axes: tuple[str, ...]
    steps: tuple[CauseStep, ...]
    origin: str
    where: Source | None

    def lines(self, value: str) -> Iterator[str]:
        """The steps as lines: the value itself first."""
        yield f"  dimension {self.dim} by {', '.join(self.axes)}"
        for step in self.steps:
            turn = f"priority {step.priority}, level {step.level}, {step.strategy}"
            yield f"    of %{value}, as dimension {step.source_dim} of %{step.source}: {step.what} {step.rule} ({turn})"
            yield from _at(step.where)
            value = step.source
        yield f"    %{self.origin} states it"
        yield from _at(self.where)


def _at(where: Source | None) -> Iterator[str]:
    if where is not None:
        yield f"      at {where}"


@frozen
class Explanation:
    """Why a value has its sharding; `leaf` numbers the arrays of a tuple.

    `reasons` has an entry for each dimension that is cut, `whole` the dimensions that are not, `clashes` a sentence for
    each instruction at which the value does not fit others.
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
            lines.append(f"  dimension{'s' * (len(self.whole) > 1)} {dims} whole: no axes reached it")
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
    "stated": "the program states it",
    "propagated": "it came from other values",
    "whole": "no sharding reached it, so that every device has the whole",
    "fixed": "it is on no axes of the mesh, and nothing propagates to it or from it",
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


def explain(found: Propagated | Module | Computation, name: str, *, leaf: int = 0) -> Explanation:
    """Why a value has its sharding: for each dimension that is cut the way back to the value whose sharding is stated.

    `found` is what `propagate` gives, or a program, which is propagated first. `leaf` numbers the arrays of a tuple.
    Raises undefined_name for a name that no value has; and what `propagate` raises.

    >>> import xbuild as xb
    >>> text = '''HloModule m
    ... ENTRY e {
    ...   a = f32[8,4] parameter(0), sharding={mesh['x'=2], [{'x'}, {}]}
    ...   t = f32[8,4] tanh(a)
    ...   ROOT y = f32[4,8] transpose(t), dimensions={1,0}
    ... }'''
    >>> print(explain(xb.parse_hlo(text), "y"))
    %y f32[4,8] is [{}, {x}]: it came from other values
      dimension 1 by x
        of %y, as dimension 0 of %t: transpose ([j, i])->([i, j]) {i=4, j=8} (priority 0, level 0, aggressive)
          at <hlo>:5 in e
        of %t, as dimension 0 of %a: tanh ([i, j])->([i, j]) {i=8, j=4} (priority 0, level 0, aggressive)
          at <hlo>:4 in e
        %a states it
          at <hlo>:3 in e
      dimension 0 whole: no axes reached it

    Source: Shardy, debugging of propagation (sharding origins, edges).
    """
    propagated = found if isinstance(found, Propagated) else propagate(found)
    cause = propagated.cause(name, leaf)
    sharding = propagated.sharding(name)
    own = sharding[leaf] if isinstance(sharding, tuple) else sharding
    chains = propagated.chains(name, leaf)
    reasons = tuple(
        DimensionReason(dim, tuple(map(axis_text, axes)), steps, origin, where)
        for dim, axes, steps, origin, where in chains
    )
    cut = {reason.dim for reason in reasons}
    shape = propagated.shape(name, leaf)
    return Explanation(
        cause.value, leaf, str(shape), short(own), cause.kind, reasons,
        tuple(dim for dim in range(getattr(shape, "rank", 0)) if dim not in cut),
        tuple(each.sentence() for each in propagated.conflicts if cause.value in dict(each.axes)),
    )  # fmt: skip


def axis_text(axis: Axis) -> str:
    """An axis for a person: its name, with the part where it is one."""
    return axis.name if axis.pre_size == 1 else f"{axis.name}:({axis.pre_size}){axis.size}"


def short(sharding: Sharding | Placement) -> str:
    """A sharding for a person: the axes of each dimension, and what else there is.

    >>> import xbuild as xb
    >>> short(Sharding(xb.Mesh(x=2)))
    '[]'
    """
    if isinstance(sharding, Placement):
        return str(sharding)
    full = dict(sharding.mesh.sizes)

    def spelled(axes: tuple[Axis, ...]) -> str:
        return ", ".join(
            axis.name if axis.size == full[axis.name] else f"{axis.name}:({axis.pre_size}){axis.size}" for axis in axes
        )

    dims = ", ".join(f"{{{spelled(dim.axes)}}}" for dim in sharding.dims)
    words = (("unreduced", sharding.unreduced), ("manual", sharding.manual), ("replicated", sharding.replicated))
    return f"[{dims}]" + "".join(f" {word}={{{spelled(axes)}}}" for word, axes in words if axes)
