"""Which value of the global program an instruction of a device's program has a part of, and where each part stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from attrs import frozen

from shape_inference import Shape

from ...planning.places import index_along
from ...sharding import Sharding
from .frame import Frame, Piece
from .layouts import Tree, leaves_of, local_dims

Table = np.ndarray[Any, np.dtype[np.int64]]


@frozen
class Held:
    """A part of a value of the global program: the value's name, its shape there, and how it is cut."""

    value: str
    shape: Shape
    sharding: Sharding

    @property
    def tiles(self) -> tuple[int, ...]:
        """Into how many tiles each dimension is cut."""
        return tuple(self.sharding.dim(number).parts for number in range(self.shape.rank))

    @property
    def local(self) -> tuple[int, ...]:
        """The extents of a tile, with the padding of the last ones."""
        return local_dims(self.sharding, self.shape.dims)

    @property
    def place(self) -> Table:
        """A row for each device: the number of its tile along each dimension."""
        mesh, rank = self.sharding.mesh, self.shape.rank
        columns = [index_along(mesh, self.sharding.dim(number).axes) for number in range(rank)]
        return np.stack(columns, axis=1) if columns else np.zeros((mesh.num_devices, 0), np.int64)

    @property
    def part(self) -> Table:
        """For each device the number of its part of a sum; 0 for all where the value is none."""
        return index_along(self.sharding.mesh, self.sharding.unreduced)


def held_by(frames: Iterable[Frame]) -> Mapping[str, Held]:
    """For each instruction that holds parts of a global value, by its name, what they are parts of."""
    found: dict[str, Held] = {}
    for frame in frames:
        for tree in frame.values.values():
            for name, held in _of(tree):
                found.setdefault(name, held)
    return found


def _of(tree: Tree) -> Iterator[tuple[str, Held]]:
    """The values of a tree of pieces by name, in each sharding that a piece was brought to."""
    for piece in leaves_of(tree):
        if isinstance(piece, Piece) and isinstance(piece.shape, Shape):
            for sharding, value in piece.versions.items():
                yield value.name, Held(piece.origin.name, piece.shape, sharding)
