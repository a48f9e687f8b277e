"""Axes of a mesh, and parts of them, as shardings name them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

from attrs import frozen

from ..properties.mesh import Mesh


@frozen(order=True, cache_hash=True)
class Axis:
    """An axis of a mesh, or a part of it: the axis is reshaped to [pre_size, size, rest], and the middle is this part.

    >>> Axis("x", 8), Axis("x", 2, pre_size=4)
    (Axis(name='x', size=8, pre_size=1), Axis(name='x', size=2, pre_size=4))

    Source: Shardy, sharding representation (sub-axes).
    """

    name: str
    size: int
    pre_size: int = 1

    @property
    def end(self) -> int:
        """The parts of the axis up to the end of this part: the pre-size of a part that may follow."""
        return self.pre_size * self.size

    def overlaps(self, other: Axis) -> bool:
        """Whether two parts share devices' coordinates, so that no array may be cut by both."""
        return self.name == other.name and self.pre_size < other.end and other.pre_size < self.end

    def fits(self, other: Axis) -> bool:
        """Whether an array may be cut by both, as far as their sizes go: one splitting of the axis has both as parts.

        >>> Axis("x", 2).fits(Axis("x", 3, pre_size=2)), Axis("x", 2).fits(Axis("x", 2, pre_size=3))
        (True, False)

        Source: Shardy, axes that can coexist.
        """
        if self.name != other.name:
            return True
        ends = sorted((self.pre_size, other.pre_size, self.end, other.end))
        return all(large % small == 0 for small, large in pairwise(ends))

    def spelled(self, mesh: Mesh) -> str:
        """The axis as Shardy's text has it: the name, and for a part its pre-size and size.

        >>> import xbuild as xb
        >>> Axis("x", 2, pre_size=4).spelled(xb.Mesh(x=8))
        '"x":(4)2'
        """
        part = "" if self.size == mesh.size(self.name) else f":({self.pre_size}){self.size}"
        return f'"{self.name}"{part}'


def whole(mesh: Mesh, name: str | int) -> Axis:
    """A whole axis of a mesh by its name or number; unbound_axis for one that the mesh does not have."""
    (found,) = mesh.named(name)
    return Axis(found, mesh.size(found))


def merged(axes: Iterable[Axis]) -> tuple[Axis, ...]:
    """Axes in which adjacent parts of one axis are one part.

    >>> merged([Axis("x", 2), Axis("x", 4, pre_size=2), Axis("y", 2)])
    (Axis(name='x', size=8, pre_size=1), Axis(name='y', size=2, pre_size=1))
    """
    found: list[Axis] = []
    for axis in axes:
        last = found[-1] if found else None
        if last is not None and last.name == axis.name and last.end == axis.pre_size:
            found[-1] = Axis(axis.name, last.size * axis.size, last.pre_size)
        else:
            found.append(axis)
    return tuple(found)


def count(axes: Iterable[Axis]) -> int:
    """Into how many parts axes cut together."""
    return math.prod(axis.size for axis in axes)
