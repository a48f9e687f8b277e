"""Records of why an array has its sharding, and where shardings clash."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import frozen

from ...core.graph import Source
from .prefixes import Axes

CauseKind: TypeAlias = Literal["stated", "propagated", "whole", "fixed"]
"""Why: the program states it; it came from another array; nothing reached the array; it is on no axes of the mesh."""


@frozen
class CauseStep:
    """One dimension of an array that came to be cut more: from `before` to `axes`, as dimension `source_dim` of the
    value `source` is, by the rule of the instruction `at` (`what` is its opcode, or loop, branch, barrier, result).

    `priority` is the user's, `level` that of op priorities (0 to 4), `strategy` basic or aggressive.
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
    """Why a value has its sharding: its kind, the steps that led to it, and the line of the value."""

    value: str
    kind: CauseKind
    steps: tuple[CauseStep, ...]
    where: Source | None

    @property
    def source(self) -> str | None:
        """The value that the last step came from."""
        return self.steps[-1].source if self.steps else None


@frozen
class Conflict:
    """An instruction whose arrays want a factor cut differently, or one axis for two factors: something is resharded.

    `factor` is the name of the factor in `rule`, `axes` the values with the axes that each has along it.
    """

    at: str
    what: str
    rule: str
    factor: str
    axes: tuple[tuple[str, Axes], ...]
    where: Source | None

    def sentence(self) -> str:
        """The clash in words."""
        if len({axes for _, axes in self.axes}) == 1:
            axes = ", ".join(axis.name for axis in self.axes[0][1])
            names = ", ".join(f"%{name}" for name, _ in self.axes)
            return f"{self.what} %{self.at} has two factors cut by {axes}; one is {self.factor}, of {names}"
        each = ", ".join(f"{_by(axes)} in %{name}" for name, axes in self.axes)
        return f"{self.what} %{self.at} has factor {self.factor} cut in several ways: {each}"


def _by(axes: Axes) -> str:
    return f"by {', '.join(axis.name for axis in axes)}" if axes else "whole"
