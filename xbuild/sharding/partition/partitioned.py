"""`Partitioned`: the program of a device, how global arrays go in and come out, its tiles, and its communication cost.

Sections:

    Tiling: how a global array is split into tiles, and which devices hold which
    CommunicationCost: what the inserted collectives cost on a machine
    Partitioned: the program of a device, and how global arrays go into it and come out
    tiling: how a value of a program is split into tiles
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

from shape_inference import AnyShape, Shape, TupleShape, refuse
from shape_inference.trees import flatten

from ...core.graph import Computation, Instruction, Module
from ...costs import cost
from ...costs.collectives import DeviceCounts, axes_of_mesh, collective_cost
from ...properties.mesh import Mesh
from ...properties.patterns import additive_zero
from ...timelines.durations import collective_time
from ...timelines.machines import Machine
from ...timelines.machines import machine as named_machine
from ..propagation import Propagated, propagate
from ..sharding import Sharding, index_along
from .frame import Piece, Shared, Tree, local_dims
from .reasons import Communication, Story

# ----------------------------------------------------------------------------
# Tiling: how a global array is split into tiles, and which devices hold which

IntArray = np.ndarray[Any, np.dtype[np.int64]]


@frozen
class Tiling:
    """How an array of the global program is split into tiles, and which devices hold which.

    `value` is its name there, `shape` its shape; `sharding` has an entry for each dimension.
    """

    value: str
    shape: Shape
    sharding: Sharding

    @property
    def tiles(self) -> tuple[int, ...]:
        """The number of tiles along each dimension."""
        return tuple(self.sharding.dim(number).parts for number in range(self.shape.rank))

    @property
    def local(self) -> tuple[int, ...]:
        """The extents of a tile, with the padding of the last ones."""
        return local_dims(self.sharding.padded(self.shape.rank), self.shape.dims)

    @property
    def place(self) -> IntArray:
        """A row for each device: the number of its tile along each dimension."""
        mesh, rank = self.sharding.mesh, self.shape.rank
        columns = [index_along(mesh, self.sharding.dim(number).axes) for number in range(rank)]
        return np.stack(columns, axis=1) if columns else np.zeros((mesh.num_devices, 0), np.int64)

    @property
    def part(self) -> IntArray:
        """For each device, the number of its partial sum; 0 for all if the value is not in partial sums."""
        return index_along(self.sharding.mesh, self.sharding.unreduced)

    @property
    def holders(self) -> dict[tuple[int, ...], list[int]]:
        """The devices that hold each tile, by the number of the tile along each dimension."""
        holders: dict[tuple[int, ...], list[int]] = {tile: [] for tile in np.ndindex(self.tiles)}
        for device, tile in enumerate(map(tuple, self.place.tolist())):
            holders[tile].append(device)
        return holders

    def ranges(self, tile: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        """The first element of a tile along each dimension, and one past the last, without padding."""
        pairs = zip(tile, self.local, self.shape.dims, strict=True)
        return tuple((min(n * size, extent), min((n + 1) * size, extent)) for n, size, extent in pairs)


def find_held(shared: Shared) -> Mapping[str, Tiling]:
    """The tilings of the global arrays whose tiles instructions hold, by the names of these instructions."""
    found: dict[str, Tiling] = {}
    for frame in shared.frames:
        for tree in frame.values.values():
            for name, held in _tilings_in(tree):
                found.setdefault(name, held)
    for name, (piece, sharding) in shared.resharded.items():
        if isinstance(piece.shape, Shape):
            found.setdefault(name, Tiling(piece.origin.name, piece.shape, sharding))
    return found


def _tilings_in(tree: Tree) -> Iterator[tuple[str, Tiling]]:
    """The names of the values of a tree of pieces, with a tiling for each sharding that a piece was resharded to."""
    for piece in flatten(tree):
        if isinstance(piece, Piece) and isinstance(piece.shape, Shape):
            for sharding, value in piece.versions.items():
                yield value.name, Tiling(piece.origin.name, piece.shape, sharding)


# ----------------------------------------------------------------------------
# CommunicationCost: what the inserted collectives cost on a machine


@frozen
class CommunicationCost:
    """An inserted collective on a machine: `runs` executions, each of `seconds` by the fastest algorithm.

    `is_known` is False inside a loop whose trip count is unknown, which counts as one trip, and in branches other than
    the one with the most FLOPs, whose collectives have no runs.
    """

    communication: Communication
    runs: int
    is_known: bool
    seconds: float
    algorithm: str

    @property
    def total_bytes(self) -> int:
        """The bytes that a device sends in all executions."""
        return self.communication.bytes * self.runs

    @property
    def total_seconds(self) -> float:
        """The seconds of all executions in sequence, without overlap."""
        return self.seconds * self.runs

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data for JSON."""
        return {
            **self.communication.to_dict(), "runs": self.runs, "runs_known": self.is_known, "seconds": self.seconds,
            "total_bytes": self.total_bytes, "total_seconds": self.total_seconds, "algorithm": self.algorithm,
        }  # fmt: skip


def price(
    communications: tuple[Communication, ...], module: Module, mesh: Mesh, machine: Machine | str
) -> tuple[CommunicationCost, ...]:
    """The cost of each inserted collective of a partitioned program, in the order of the program."""
    where, grid, axes = _machine(machine), DeviceCounts(1, mesh.num_devices, False), axes_of_mesh(mesh)
    named = {each.name: each for computation in module.computations for each in computation.instructions}
    counted = {row.instruction: row for row in cost(module, mesh=mesh).rows if row.collective is not None}
    found = []
    for each in communications:
        instruction = named[each.name]
        row = counted.get(instruction)
        runs, is_known = (0, False) if row is None else (row.times, row.is_known)
        taken = collective_time(collective_cost(instruction, grid, axes), where, dict(mesh.sizes), _groups(instruction))
        found.append(CommunicationCost(each, runs, is_known, taken.seconds, taken.algorithm))
    return tuple(found)


def _machine(machine: Machine | str) -> Machine:
    found = named_machine(machine) if isinstance(machine, str) else machine
    if not isinstance(found, Machine):
        raise TypeError(
            f"costs: machine is {machine!r}; expected the name of a machine, such as 'h100', or xb.Machine(flops=...)"
        )
    return found


def _groups(instruction: Instruction) -> Any:
    attributes = instruction.attributes
    return getattr(attributes, "source_target_pairs", None) or getattr(attributes, "replica_groups", None) or ()


# ----------------------------------------------------------------------------
# Partitioned: the program of a device, and how global arrays go into it and come out


@frozen(eq=False, repr=False)
class Partitioned:
    """The program that every device of a mesh runs, made from a global program and its shardings.

    `module` is what each device runs; `in_shardings` and `out_shardings` are the shardings of arguments and results,
    nested as these are; `communications` lists the inserted collectives with their reasons. `whole` is the global
    program with its shardings. `held` maps the name of an instruction of `module` to the value of the global program of
    which it holds a part, and how that is split.
    """

    module: Module
    mesh: Mesh
    in_shardings: tuple[Tree, ...]
    out_shardings: Tree
    shapes: tuple[AnyShape, ...]
    result: AnyShape
    communications: tuple[Communication, ...]
    whole: Module
    story: Story
    held: Mapping[str, Tiling] = field(factory=dict)

    @property
    def propagated(self) -> Propagated | None:
        """Why values of the global program have their shardings; None if these were not propagated."""
        return self.story.propagated

    def arguments(self, *arrays: Any, padding: Any = 0) -> list[list[Any]]:
        """Each device's parts of global arrays, in the order of device numbers; `padding` fills their ends.

        Raises: arity_mismatch; dimension_mismatch for an array whose shape is not the one that the program takes.
        """
        if len(arrays) != len(self.shapes):
            refuse("arity_mismatch", f"{self.module.name} takes {len(self.shapes)} arrays, got {len(arrays)}")
        inputs = list(zip(arrays, self.shapes, self.in_shardings, strict=True))
        return [
            [_slice_part(*each, device, padding, f"argument {number}") for number, each in enumerate(inputs)]
            for device in range(self.mesh.num_devices)
        ]

    def run(self, *arrays: Any, padding: Any = 0, **options: Any) -> Any:
        """The global results for global arrays: the arrays are split, all devices run, and the parts are joined.

        `options` are those of `xb.execute`. The result is nested as that of `xb.evaluate` for the global program.
        """
        from ...running import execute

        return self.joined(execute(self.module, self.arguments(*arrays, padding=padding), **options))

    def joined(self, results: Sequence[Any]) -> Any:
        """The global results, from the results of the devices in the order of their numbers."""
        return _join(results, self.result, self.out_shardings)

    def costs(self, machine: Machine | str = "h100") -> tuple[CommunicationCost, ...]:
        """What each inserted collective costs: how often it runs, the bytes that a device sends, and the seconds.

        `machine` is a Machine, a name such as v5e, or the path of a machine file; else invalid_attribute is raised.

        >>> import xbuild as xb
        >>> mesh = xb.Mesh(x=2)
        >>> product = xb.Module("product", xb.computation(xb.f32[512, 512], xb.f32[512, 512])(xb.dot))
        >>> cut = xb.shard.annotated(product, {0: xb.P(None, "x"), 1: xb.P("x", None)}, mesh=mesh)
        >>> (only,) = xb.shard.partition(cut).costs("h100")
        >>> only.runs, only.total_bytes, f"{only.total_seconds * 1e6:.1f} us"
        (1, 1048576, '4.3 us')
        """
        return price(self.communications, self.module, self.mesh, machine)

    def communication(self, name: str) -> Communication:
        """The inserted collective of this name. Raises undefined_name if there is none."""
        found = next((each for each in self.communications if each.name == name), None)
        names = ", ".join(each.name for each in self.communications) or "none"
        return found or refuse(
            "undefined_name",
            f"{self.module.name} has no inserted collective {name!r}; the partitioner inserted {names}",
        )

    def __repr__(self) -> str:
        return self.module.to_hlo()

    __str__ = __repr__


def _slice_part(array: Any, shape: AnyShape, sharding: Tree, device: int, padding: Any, what: str) -> Any:
    if isinstance(shape, TupleShape):
        several = zip(array, shape.elements, sharding, strict=True)
        return tuple(_slice_part(*each, device, padding, f"{what}[{n}]") for n, each in enumerate(several))
    if not isinstance(shape, Shape):
        return array
    global_array = np.asarray(array, shape.dtype.dtype)
    if global_array.shape != shape.dims:
        refuse("dimension_mismatch", f"{what} has dimensions {global_array.shape}; expected {shape.dims}")
    return part_of(global_array, sharding, device, padding)


def part_of(array: Any, sharding: Sharding, device: int, padding: Any = 0) -> Any:
    """A device's part of a global array; along unreduced axes, the first device has it and the others have zeros."""
    local = local_dims(sharding, array.shape)
    part = np.full(local, padding, array.dtype)
    if index_along(sharding.mesh, sharding.unreduced)[device]:
        return np.full(local, additive_zero(Shape(array.dtype, ()).dtype))
    elements = array[_find_range(sharding, array.shape, local, device)]
    part[tuple(slice(extent) for extent in elements.shape)] = elements
    return part


def _find_range(sharding: Sharding, dims: Sequence[int], local: Sequence[int], device: int) -> tuple[slice, ...]:
    """The range of a device's part in the global array."""
    ranges = []
    for number, (extent, size) in enumerate(zip(dims, local, strict=True)):
        start = int(index_along(sharding.mesh, sharding.dim(number).axes)[device]) * size
        ranges.append(slice(min(start, extent), min(start + size, extent)))
    return tuple(ranges)


def _join(results: Sequence[Any], shape: AnyShape, sharding: Tree) -> Any:
    if isinstance(shape, TupleShape):
        several = enumerate(zip(shape.elements, sharding, strict=True))
        return tuple(_join([each[n] for each in results], *pair) for n, pair in several)
    if not isinstance(shape, Shape):
        return results[0]
    return join_parts(results, shape, sharding)


def join_parts(parts: Sequence[Any], shape: Shape, sharding: Sharding) -> Any:
    """The global array whose parts devices hold; along unreduced axes, the parts are added."""
    if not sharding.cut_axes and not sharding.unreduced:
        return parts[0]
    first = np.asarray(parts[0])
    global_array = np.full(shape.dims, additive_zero(shape.dtype))
    used = (*sharding.cut_axes, *sharding.unreduced)
    place, seen = index_along(sharding.mesh, used), set[int]()
    for device, part in enumerate(parts):
        if place[device] in seen:
            continue
        seen.add(int(place[device]))
        inside = _find_range(sharding, shape.dims, first.shape, device)
        given = np.asarray(part)[tuple(slice(each.stop - each.start) for each in inside)]
        global_array[inside] = global_array[inside] + given if sharding.unreduced else given
    return global_array[()]


# ----------------------------------------------------------------------------
# tiling: how a value of a program is split into tiles


def tiling(found: Partitioned | Propagated | Module | Computation, name: str, *, leaf: int = 0) -> Tiling:
    """How a value is split into tiles, and which devices hold which; `xb.viz` draws it.

    For a propagated program (any other is propagated first), `name` is a value of the global program, and `leaf`
    numbers the arrays of a tuple. For a `Partitioned`, it is an instruction of the program that each device runs.
    Raises undefined_name for a name that no value has, or whose value is not a part of one global array;
    invalid_operand for a value that is not on the axes of the mesh; and what `propagate` raises.

    >>> import xbuild as xb
    >>> text = "HloModule m\\nENTRY e {\\n  ROOT a = f32[5,4] parameter(0), sharding={mesh['x'=2], [{'x'}, {}]}\\n}"
    >>> found = tiling(xb.parse_hlo(text), "a")
    >>> found.holders, found.local, found.ranges((1, 0))
    ({(0, 0): [0], (1, 0): [1]}, (3, 4), ((3, 5), (0, 4)))
    """
    if isinstance(found, Partitioned):
        return found.held.get(name) or refuse(
            "undefined_name", f"{name!r} holds no part of a value of the global program"
        )
    propagated = found if isinstance(found, Propagated) else propagate(found)
    propagated.cause(name, leaf)  # refuses an unknown name or leaf
    sharding, shape = propagated.sharding(name), propagated.shape(name, leaf)
    one = sharding[leaf] if isinstance(sharding, tuple) else sharding
    if not isinstance(one, Sharding) or not isinstance(shape, Shape):
        refuse("invalid_operand", f"{name} is not placed on the axes of the mesh, so it has no tiles")
    return Tiling(name, shape.plain(), one)
