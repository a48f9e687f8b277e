"""`Origins`: for many values at once, from which value each of their axes came first, and by way of which others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from attrs import define, field, frozen

from ...core.graph import Source
from .prefixes import Axes
from .propagated import Propagated
from .tensors import Step, Tensor

_FEW = 4

State: TypeAlias = "tuple[Tensor, int, float]"
"""An array, one of its dimensions, and the number of the step before which its axes are asked for."""


@frozen
class Way:
    """How a dimension came to be cut: its axes, the values on the way from the nearest, the value that states them.

    `through` has the first few values on the way, `more` how many others there are.
    """

    dim: int
    axes: Axes
    through: tuple[str, ...]
    more: int
    origin: str
    where: Source | None


@define
class Origins:
    """The ways of values of one propagated program; what they share is followed once."""

    found: Propagated
    _ends: dict[State, tuple[int, Tensor]] = field(factory=dict)

    def ways(self, name: str) -> Iterator[Way]:
        """A way for each dimension of an array that is cut. Raises undefined_name for a name that no value has."""
        tensor = self.found.tensor(name)
        for dim, axes in enumerate(tensor.axes):
            if axes:
                yield self._way(tensor, dim, axes)

    def _way(self, tensor: Tensor, dim: int, axes: Axes) -> Way:
        state: State = (tensor, dim, float("inf"))
        count, end = self._end(state)
        through: list[str] = []
        while len(through) < min(_FEW, count - 1) and (step := _last(state)):
            state = _before(step)
            through.append(_name(state[0]))
        origin = end.names[0][0]
        return Way(dim, axes, tuple(through), max(0, count - 1 - len(through)), origin.name, origin.source)

    def _end(self, state: State) -> tuple[int, Tensor]:
        """How many steps lead back from here, and the array at their end."""
        path: list[State] = []
        while state not in self._ends and (step := _last(state)):
            path.append(state)
            state = _before(step)
        count, end = self._ends.setdefault(state, (0, state[0]))
        for each in reversed(path):
            count += 1
            self._ends[each] = count, end
        return count, end


def _last(state: State) -> Step | None:
    """The last step by which the dimension got axes before this one; None where the array states them itself."""
    tensor, dim, before = state
    found = next((each for each in reversed(tensor.steps) if each.dim == dim and each.number < before), None)
    return None if found is None or found.source is tensor else found


def _before(step: Step) -> State:
    return step.source, step.source_dim, step.number


def _name(tensor: Tensor) -> str:
    return tensor.names[0][0].name
