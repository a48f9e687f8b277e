"""Layouts of results that no text states: runs show which part of each global result a device holds.

The text of a compiled program states the shardings of its parameters, not those of its results, which XLA may choose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain, islice, permutations, product
from math import prod
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen

from shape_inference import Dims, Shape, XbuildError
from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction, Module
from xbuild.properties.mesh import Mesh
from xbuild.sharding.partition import Partitioned
from xbuild.sharding.sharding import Axis, Sharding, index_along, shard_dims

from ..fields.draws import flat_arrays, float_array, nest_arrays, shapes_of
from ..fields.layouts import layout_of, split_to_devices
from ..runtime.report import Stopped
from ..runtime.run import Refused, execute

Tile: TypeAlias = tuple[int, ...]
"""The number of a tile along each dimension of a global array."""

DRAWS = 3
"""The random inputs on which values of devices are compared with the global results."""
MOST_CANDIDATES = 8
"""The layouts of all results that are tried at most."""
MOST_UNLIKELY = 2
"""The shardings of a result that are tried at most if some device holds no part of it."""
MOST_SHARDINGS = 4096
"""The shardings of one result that are considered at most."""
NEAR = {2: 2.0**-5, 4: 2.0**-12}
"""How far results of two programs may be apart by rounding, by the bytes of their type."""


def fits_all(layouts: Sequence[Any], whole: Sequence[Instruction], local: Sequence[Instruction]) -> bool:
    """Whether shardings split the arrays of values of a global program into those of a per-device program."""
    return all(map(_fits, layouts, shapes_of(whole), shapes_of(local)))


def _fits(sharding: Any, shape: Shape, local: Shape) -> bool:
    """Whether a sharding splits an array into arrays of the dimensions of `local`; None does if they are equal."""
    if not isinstance(sharding, Sharding):
        return shape.dims == local.dims
    parts = [sharding.padded(shape.rank).dim(number).parts for number in range(shape.rank)]
    return tuple(-(-extent // count) for extent, count in zip(shape.dims, parts, strict=True)) == local.dims


@frozen(eq=False, slots=False)
class ResultLayouts:
    """The results of a global program, and those of each device of a partitioned one, on the same random inputs.

    `whole` is the program for one device, or one that is partitioned so that each device holds all results.
    """

    whole: Module | Partitioned
    other: Module
    inputs: Sequence[Any] | None
    mesh: Mesh | None

    @cached_property
    def shapes(self) -> list[tuple[Shape, Shape]]:
        """The shape of each global result, and of the part of a device."""
        module = self.whole.whole if isinstance(self.whole, Partitioned) else self.whole
        return [*zip(shapes_of([module.entry.root]), shapes_of([self.other.entry.root]), strict=True)]

    def candidates(self) -> Iterator[list[Any]]:
        """The layouts of all results that the runs allow, the likely ones first; at least one.

        If a device holds no part of a result, the programs differ, or rounding hides that they are equal; then the
        layouts of that result fit as many devices as possible.
        """
        columns = [self._of_result(number) for number in range(len(self.shapes))]
        yield from islice((list(each) for each in product(*columns)), MOST_CANDIDATES)

    def _of_result(self, number: int) -> list[Any]:
        shape, local = self.shapes[number]
        if shape.dims == local.dims:
            return [None]
        if not self.is_known:
            return [*islice(self._shardings(shape, local), 1)] or [None]
        held = self._held_tiles(number)
        found: list[tuple[int, int, Sharding]] = []
        for sharding in self._shardings(shape, local):
            pairs = zip(_tiles_of(sharding, shape.rank), held, strict=True)
            wrong = sum(tile not in own and not _is_padding(tile, shape.dims, local.dims) for tile, own in pairs)
            found.append((wrong, len(found), sharding))
        found.sort(key=lambda each: each[:2])
        exact: list[Any] = [sharding for wrong, _, sharding in found if not wrong]
        is_covered = all(held) and set().union(*held) == {*_tiles(shape.dims, local.dims)}
        if not exact and is_covered and isinstance(self.whole, Module):  # a partition takes shardings alone
            exact = [[_slices(min(own), shape.dims, local.dims) for own in held]]
        return exact[:MOST_CANDIDATES] or [sharding for *_, sharding in found[:MOST_UNLIKELY]] or [None]

    def _shardings(self, shape: Shape, local: Shape) -> Iterator[Sharding]:
        """The shardings by axes of the mesh, then by parts of axes, that split an array into parts of this shape."""
        if self.mesh is None:
            return
        whole = [Axis(name, size) for name, size in self.mesh.sizes if size > 1]
        parts = [part for axis in whole for part in _prime_parts(axis)]
        several = (islice(_splits(axes, shape.dims, local.dims), MOST_SHARDINGS) for axes in (whole, parts))
        for dims in dict.fromkeys(chain.from_iterable(several)):
            yield shard_dims(self.mesh, dims)

    def _held_tiles(self, number: int) -> list[set[Tile]]:
        """For each device, the tiles of a global result that it holds on all inputs."""
        _, local = self.shapes[number]
        held: list[set[Tile]] = []
        for whole, parts in self._runs:
            now = [_equal_tiles(whole[number], part[number], local.dims) for part in parts]
            held = [a & b for a, b in zip(held, now, strict=True)] if held else now
        return held

    @cached_property
    def is_known(self) -> bool:
        """Whether the programs run, so that their results show the layouts."""
        try:
            return bool(self._runs)
        except (XbuildError, Refused, Stopped) as error:
            if isinstance(error, Stopped):
                error.raise_interrupt()
            return False

    @cached_property
    def _runs(self) -> list[tuple[list[Array], list[list[Array]]]]:
        """For each random input, the global results, and the results of each device."""
        return [self._run(np.random.default_rng([7, number])) for number in range(DRAWS)]

    def _run(self, random: np.random.Generator) -> tuple[list[Array], list[list[Array]]]:
        module = self.whole.whole if isinstance(self.whole, Partitioned) else self.whole
        shapes, locals_ = shapes_of(module.entry.parameters), shapes_of(self.other.entry.parameters)
        arrays = [float_array(shape, random) for shape in shapes]
        count = self.other.num_devices
        stated = [None] * len(shapes) if self.inputs is None else self.inputs
        columns = [
            split_to_devices(
                layout_of(given, shape, local, count, f"input {n}"),
                array, local, lambda local: float_array(local, random), np.subtract,
            )
            for n, (given, shape, local, array) in enumerate(zip(stated, shapes, locals_, arrays, strict=True))
        ]  # fmt: skip
        rows = [[column[device] for column in columns] for device in range(count)]
        results = execute(self.other, [_nested(self.other, row) for row in rows])
        root = self.other.entry.root.shape
        return self._global_results(arrays), [flat_arrays(result, root) for result in results]

    def _global_results(self, arrays: list[Array]) -> list[Array]:
        if isinstance(self.whole, Partitioned):
            module = self.whole.whole
            return flat_arrays(self.whole.run(*_nested(module, arrays)), module.entry.root.shape)
        (result,) = execute(self.whole, [_nested(self.whole, arrays)])
        return flat_arrays(result, self.whole.entry.root.shape)


def _nested(module: Module, arrays: Sequence[Array]) -> list[Any]:
    rest = iter(arrays)
    return [nest_arrays(rest, parameter.shape) for parameter in module.entry.parameters]


def _prime_parts(axis: Axis) -> Iterator[Axis]:
    """An axis as parts of prime sizes, the outermost first."""
    before, rest, factor = 1, axis.size, 2
    while rest > 1:
        while rest % factor:
            factor += 1
        yield Axis(axis.name, factor, before)
        before, rest = before * factor, rest // factor


def _splits(axes: Sequence[Axis], dims: Dims, local: Dims) -> Iterator[tuple[tuple[Axis, ...], ...]]:
    """The ways to split each dimension by some of the axes, in any order, so that the parts have these extents."""
    if not dims:
        yield ()
        return
    for count in range(len(axes) + 1):
        for chosen in permutations(axes, count):
            if -(-dims[0] // prod(axis.size for axis in chosen)) == local[0] and (count == 0 or dims[0] != local[0]):
                rest = [axis for axis in axes if axis not in chosen]
                yield from ((chosen, *more) for more in _splits(rest, dims[1:], local[1:]))


def _tiles_of(sharding: Sharding, rank: int) -> list[Tile]:
    """The tile of each device."""
    columns = [index_along(sharding.mesh, sharding.dim(number).axes) for number in range(rank)]
    return [tuple(map(int, row)) for row in np.stack(columns, axis=1)]


def _tiles(dims: Dims, local: Dims) -> Iterator[Tile]:
    """The tiles of a global array, without those that are only padding."""
    return np.ndindex(*(-(-extent // size) if size else 1 for extent, size in zip(dims, local, strict=True)))


def _is_padding(tile: Tile, dims: Dims, local: Dims) -> bool:
    """Whether a tile begins beyond the end of the global array, so that a device holds nothing of it."""
    return any(n and n * size >= extent for n, extent, size in zip(tile, dims, local, strict=True))


def _equal_tiles(whole: Array, part: Array, local: Dims) -> set[Tile]:
    """The tiles of a global array that a part equals up to rounding."""
    return {tile for tile in _tiles(whole.shape, local) if _is_near(whole[_slices(tile, whole.shape, local)], part)}


def _slices(tile: Tile, dims: Dims, local: Dims) -> tuple[slice, ...]:
    """The range of a tile in a global array, without padding."""
    return tuple(
        slice(min(n * size, extent), min((n + 1) * size, extent))
        for n, extent, size in zip(tile, dims, local, strict=True)
    )


def _is_near(one: Array, part: Array) -> bool:
    other = part[tuple(slice(extent) for extent in one.shape)]
    if one.dtype.kind in "biu":
        return bool(np.array_equal(one, other))
    wide = np.complex128 if one.dtype.kind == "c" else np.float64
    left, right = one.astype(wide), other.astype(wide)
    size = NEAR.get(min(one.dtype.itemsize, 4), NEAR[2])
    return bool(np.allclose(left, right, rtol=size, atol=size, equal_nan=True))
