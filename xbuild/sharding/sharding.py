"""A sharding: which axes of a mesh cut each dimension of an array, and along which axes devices hold parts of a sum."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve, frozen

from ..properties.mesh import Mesh
from .axis import Axis, count


@frozen
class DimSharding:
    """How a dimension is cut: the axes from the outermost, whether propagation may append axes, and its priority.

    Source: Shardy, sharding representation.
    """

    axes: tuple[Axis, ...] = ()
    is_open: bool = False
    priority: int = 0

    @property
    def parts(self) -> int:
        """Into how many parts the dimension is cut."""
        return count(self.axes)


@frozen
class Sharding:
    """How an array lies on the devices of a mesh.

    Dimensions that are not named are whole. Along axes of `unreduced` each device holds a part of a sum. `replicated`
    are axes that propagation must not use; `manual` are axes along which the program is one of a device already.
    `halo_sizes` has two numbers for each cut dimension: elements of the neighbours below and above that each device
    holds too. `offsets` has n + 1 numbers for each cut dimension: where the part of each device begins, and the end.

    Source: Shardy, sharding representation; MLIR, shard dialect, shard.sharding (halo_sizes, sharded_dims_offsets).
    """

    mesh: Mesh
    dims: tuple[DimSharding, ...] = ()
    replicated: tuple[Axis, ...] = ()
    unreduced: tuple[Axis, ...] = ()
    manual: tuple[Axis, ...] = ()
    halo_sizes: tuple[int, ...] = ()
    offsets: tuple[int, ...] = ()

    def dim(self, number: int) -> DimSharding:
        """How a dimension is cut; one that is not named is whole."""
        return self.dims[number] if number < len(self.dims) else DimSharding()

    def padded(self, rank: int) -> Sharding:
        """The same sharding with an entry for each of `rank` dimensions."""
        return evolve(self, dims=(*self.dims, *[DimSharding()] * (rank - len(self.dims))))

    @property
    def cut_axes(self) -> tuple[Axis, ...]:
        """The axes that cut a dimension, in the order of the dimensions."""
        return tuple(axis for dim in self.dims for axis in dim.axes)

    @property
    def is_replicated(self) -> bool:
        """Whether every device holds the whole array."""
        return not self.cut_axes and not self.unreduced


def cut(mesh: Mesh, dims: Iterable[Sequence[Axis]], unreduced: Iterable[Axis] = ()) -> Sharding:
    """A closed sharding by the axes of each dimension."""
    return Sharding(mesh, tuple(DimSharding(tuple(axes)) for axes in dims), unreduced=tuple(unreduced))
