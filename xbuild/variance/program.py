"""The program of a region: typed with its casts to read, without them to run; global arrays in and out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from attrs import evolve, frozen

from shape_inference import AnyShape, Shape, TupleShape, refuse

from ..core.graph import Computation, Module
from ..properties.mesh import MESH, Mesh
from .exits import checked
from .region import Region
from .rules.flows import zeros_in
from .rules.site import shown
from .rules.walk import Typed, Walk
from .specs import P, Specs, per_leaf, types_of
from .writing import Cast, Writer, casts_in, lowered, names_in


@frozen(eq=False, repr=False)
class Program:
    """What every device of a mesh runs; `typed` has casts as instructions, `module` has none, and is what runs.

    `casts` lists all casts of the program, with the reason where one was inserted.
    """

    name: str
    mesh: Mesh
    in_specs: tuple[Specs, ...]
    out_specs: Specs
    typed: Module
    types: Typed

    @property
    def module(self) -> Module:
        """The program as any other module: what check, run and viz take."""
        return evolve(self.typed, entry=lowered(self.typed.entry), computations=())

    @property
    def casts(self) -> list[Cast]:
        return casts_in(self.typed.entry)

    @property
    def result(self) -> str:
        """The shape of the result on a device, with its type."""
        return shown(self.typed.entry.root.shape, self.types.root, self.mesh)

    def region(self) -> Region:
        """A region for programs that are made of this one: its channels come after those of this one."""
        walk = Walk(self.mesh, self.typed.num_replicas, self.typed.num_partitions, frees_constants=True)
        computations = self.typed.entry.reachable()
        used = [getattr(i.attributes, "channel_id", None) or 0 for c in computations for i in c.instructions]
        is_partitioned = self.typed.num_partitions == self.mesh.num_devices
        return Region(self.mesh, walk, uses_partitions=is_partitioned, channels=max(used, default=0))

    def arguments(self, *arrays: Any) -> list[list[Any]]:
        """The parts of global arrays for each device; along an unreduced axis the first has all, the others zeros.

        Raises: arity_mismatch; dimension_mismatch where an array has another shape than the program was made for.
        """
        if len(arrays) != len(self.in_specs):
            refuse("arity_mismatch", f"{self.name} takes {len(self.in_specs)} arrays, and {len(arrays)} are given")
        shapes = [parameter.shape for parameter in self.typed.entry.parameters]
        given = list(zip(self.in_specs, arrays, shapes, strict=True))
        return [
            [self._part(device, *each, f"argument {n}") for n, each in enumerate(given)]
            for device in range(self.mesh.num_devices)
        ]

    def _part(self, device: int, specs: Specs, array: Any, shape: AnyShape, what: str) -> Any:
        if isinstance(specs, P):
            assert isinstance(shape, Shape)
            return part_of(self.mesh, specs, np.asarray(array, shape.dtype.dtype), shape, device, what)
        assert isinstance(shape, TupleShape)
        parts = enumerate(zip(specs, array, shape.elements, strict=True))
        return tuple(self._part(device, *each, f"{what}[{n}]") for n, each in parts)

    def joined(self, results: Sequence[Any]) -> Any:
        """The global arrays whose parts the devices hold; along an unreduced axis the parts are summed."""
        return joined(self.mesh, self.out_specs, results)

    def run(self, *arrays: Any, **options: Any) -> Any:
        """The global results for global arrays; `options` are those of `interpreter.execute`."""
        from ..running import execute

        return self.joined(execute(self.module, self.arguments(*arrays), **options))

    __call__ = run

    def __repr__(self) -> str:
        return self.typed.to_hlo(style="typed")

    __str__ = __repr__


def part_of(mesh: Mesh, spec: P, array: Any, shape: Shape, device: int, what: str) -> Any:
    """The part of a global array that a device holds."""
    whole = spec.whole(mesh, shape, what).dims
    if array.shape != whole:
        refuse(
            "dimension_mismatch", f"{what} has dimensions {array.shape}, and {whole} are wanted for {spec} on {mesh}"
        )
    place = mesh.coordinates(device)
    found = array[tuple(_ranges(mesh, spec, shape.dims, place))]
    is_first = all(place[axis] == 0 for axis in spec.unreduced)
    return np.ascontiguousarray(found).reshape(shape.dims) if is_first else np.zeros_like(found)


def _ranges(mesh: Mesh, spec: P, dims: Sequence[int], place: dict[str, int]) -> Iterator[slice]:
    """For each dimension that is named, the elements of a device."""
    for cut, extent in zip(spec.cuts, dims, strict=False):
        number = 0
        for axis in cut:
            number = number * mesh.size(axis) + place[axis]
        yield slice(number * extent, (number + 1) * extent)


def joined(mesh: Mesh, specs: Specs, results: Sequence[Any]) -> Any:
    if not isinstance(specs, P):
        return tuple(joined(mesh, spec, [each[n] for each in results]) for n, spec in enumerate(specs))
    parts = [np.asarray(each) for each in results]
    first = parts[0]
    shape = [extent * mesh.size(cut) for extent, cut in zip(first.shape, _padded(specs, first.ndim), strict=True)]
    whole = np.zeros(shape, first.dtype)
    for device, part in enumerate(parts):
        place = mesh.coordinates(device)
        if any(place[axis] for axis in mesh.axes if axis not in specs.mentioned | specs.unreduced):
            continue
        where = tuple(_ranges(mesh, specs, first.shape, place))
        whole[where] = part if not specs.unreduced else whole[where] + part
    return whole


def _padded(spec: P, rank: int) -> list[tuple[str, ...]]:
    return [*spec.cuts, *[()] * (rank - len(spec.cuts))]


def made(region: Region, computation: Computation, in_specs: tuple[Specs, ...], out_specs: Specs) -> Program:
    """The program of a computation that was recorded in a region, with the exit checked."""
    typed = region.walk.computation(computation, region.parameters)
    specs = per_leaf(out_specs, computation.root.shape, "out_specs")
    types = evolve(typed, root=checked(region.mesh, specs, computation.root.shape, typed.root))
    return Program(computation.name, region.mesh, in_specs, specs, module_of(region, types), types)


def retyped(program: Program, computation: Computation, in_specs: tuple[Specs, ...], out_specs: Specs) -> Program:
    """A computation that was made of a program, a derivative of it say, as a program on the same mesh.

    Constants and zeros in it are of whatever type is wanted of them.
    """
    region = program.region()
    region.parameters = tuple(map(types_of, in_specs))
    typed = region.walk.computation(computation, region.parameters)
    specs = per_leaf(out_specs, computation.root.shape, "out_specs")
    root = checked(region.mesh, specs, computation.root.shape, typed.root, zeros_in(computation.root))
    types = evolve(typed, root=root)
    return Program(computation.name, region.mesh, in_specs, specs, module_of(region, types), types)


def module_of(region: Region, typed: Typed) -> Module:
    """The typed module, which carries its mesh."""
    entry = Writer(region.mesh, names_in(typed.computation)).written(typed)
    notes = MappingProxyType({"frontend_attributes": f'{{{MESH}="{region.mesh.spelled()}"}}'})
    walk = region.walk
    return Module(
        entry.name, entry, num_replicas=walk.num_replicas, num_partitions=walk.num_partitions, annotations=notes
    )
