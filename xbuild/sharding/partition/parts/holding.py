"""Tiles of global arrays: which device has which, and of which array an instruction of its program has a tile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from attrs import frozen

from shape_inference import Shape

from ...planning.places import index_along
from ...sharding import Sharding
from .frame import Piece, Shared
from .layouts import Tree, leaves_of, local_dims

Table = np.ndarray[Any, np.dtype[np.int64]]


@frozen
class Tiling:
    """How an array of the global program is cut in tiles, and which device has which.

    `value` is its name there, `shape` its shape; `sharding` has an entry for each dimension.
    """

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
        return local_dims(self.sharding.padded(self.shape.rank), self.shape.dims)

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

    @property
    def holders(self) -> dict[tuple[int, ...], list[int]]:
        """The devices that have each tile, by the number of the tile along each dimension."""
        found: dict[tuple[int, ...], list[int]] = {each: [] for each in np.ndindex(self.tiles)}
        for device, tile in enumerate(map(tuple, self.place.tolist())):
            found[tile].append(device)
        return found

    def ranges(self, tile: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        """From where to where a tile goes along each dimension, without padding."""
        pairs = zip(tile, self.local, self.shape.dims, strict=True)
        return tuple((min(n * size, extent), min((n + 1) * size, extent)) for n, size, extent in pairs)


def held_by(shared: Shared) -> Mapping[str, Tiling]:
    """For each instruction that holds parts of a global value, by its name, what they are parts of."""
    found: dict[str, Tiling] = {}
    for frame in shared.frames:
        for tree in frame.values.values():
            for name, held in _of(tree):
                found.setdefault(name, held)
    for name, (piece, sharding) in shared.brought.items():
        if isinstance(piece.shape, Shape):
            found.setdefault(name, Tiling(piece.origin.name, piece.shape, sharding))
    return found


def _of(tree: Tree) -> Iterator[tuple[str, Tiling]]:
    """The values of a tree of pieces by name, in each sharding that a piece was brought to."""
    for piece in leaves_of(tree):
        if isinstance(piece, Piece) and isinstance(piece.shape, Shape):
            for sharding, value in piece.versions.items():
                yield value.name, Tiling(piece.origin.name, piece.shape, sharding)
