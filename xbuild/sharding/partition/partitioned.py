"""`Partitioned`: the program of a device, how global arrays go into it and come out, and what it communicates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

from shape_inference import AnyShape, Shape, TupleShape, refuse

from ...core.graph import Module
from ...properties.mesh import Mesh
from ...timelines.machines import Machine
from ..planning.places import index_along
from ..propagation import Propagated
from ..sharding import Sharding
from .parts.holding import Tiling
from .parts.layouts import Tree, local_dims
from .pricing import CommunicationCost, priced
from .reasons import Communication, Story


@frozen(eq=False, repr=False)
class Partitioned:
    """A program for every device of a mesh, made of a global program and its shardings.

    `module` is what each device runs, `in_shardings` and `out_shardings` say how arguments and results are cut (nested
    as they are), `communications` has each collective that was inserted, with its reason. `whole` is the global
    program, with its shardings. `held` says, by the name of an instruction of `module`, of which value of the global
    program it has a part, and how that is cut.
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
        """Why values of the global program have their shardings; None where these were not propagated on the way."""
        return self.story.propagated

    def arguments(self, *arrays: Any, padding: Any = 0) -> list[list[Any]]:
        """The parts of global arrays for each device, in the order of device numbers; `padding` fills their ends.

        Raises: arity_mismatch; dimension_mismatch for an array of another shape than the global program takes.
        """
        if len(arrays) != len(self.shapes):
            refuse("arity_mismatch", f"{self.module.name} takes {len(self.shapes)} arrays, and {len(arrays)} are given")
        given = list(zip(arrays, self.shapes, self.in_shardings, strict=True))
        return [
            [_part(*each, device, padding, f"argument {number}") for number, each in enumerate(given)]
            for device in range(self.mesh.num_devices)
        ]

    def run(self, *arrays: Any, padding: Any = 0, **options: Any) -> Any:
        """The global results for global arrays: the arrays are cut, all devices run, and the parts are joined.

        `options` are those of `xb.execute`. The result is nested as that of `xb.evaluate` of the global program.
        """
        from ...running import execute

        return self.joined(execute(self.module, self.arguments(*arrays, padding=padding), **options))

    def joined(self, results: Sequence[Any]) -> Any:
        """The global results of what the devices give, in the order of device numbers."""
        return _joined(results, self.result, self.out_shardings)

    def costs(self, machine: Machine | str = "h100") -> tuple[CommunicationCost, ...]:
        """What each inserted collective costs: how often it runs, the bytes that a device sends, and the seconds.

        `machine` is a Machine, a name such as v5e, or the path of a machine file; invalid_attribute for any other

        >>> import xbuild as xb
        >>> mesh = xb.Mesh(x=2)
        >>> product = xb.Module("product", xb.computation(xb.f32[512, 512], xb.f32[512, 512])(xb.dot))
        >>> cut = xb.shard.annotated(product, {0: xb.P(None, "x"), 1: xb.P("x", None)}, mesh=mesh)
        >>> (only,) = xb.shard.partition(cut).costs("h100")
        >>> only.runs, only.total_bytes, f"{only.total_seconds * 1e6:.1f} us"
        (1, 1048576, '4.3 us')
        """
        return priced(self.communications, self.module, self.mesh, machine)

    def communication(self, name: str) -> Communication:
        """The inserted collective of this name. Raises undefined_name where none was inserted under it."""
        found = next((each for each in self.communications if each.name == name), None)
        names = ", ".join(each.name for each in self.communications) or "none"
        return found or refuse("undefined_name", f"{self.module.name} has no inserted collective {name!r}: {names}")

    def __repr__(self) -> str:
        return self.module.to_hlo()

    __str__ = __repr__


def _part(array: Any, shape: AnyShape, sharding: Tree, device: int, padding: Any, what: str) -> Any:
    if isinstance(shape, TupleShape):
        several = zip(array, shape.elements, sharding, strict=True)
        return tuple(_part(*each, device, padding, f"{what}[{n}]") for n, each in enumerate(several))
    if not isinstance(shape, Shape):
        return array
    whole = np.asarray(array, shape.dtype.dtype)
    if whole.shape != shape.dims:
        refuse("dimension_mismatch", f"{what} has dimensions {whole.shape}, and {shape.dims} are wanted")
    return part_of(whole, sharding, device, padding)


def part_of(array: Any, sharding: Sharding, device: int, padding: Any = 0) -> Any:
    """A device's part of a global array; along unreduced axes the first device has it, the others zeros."""
    local = local_dims(sharding, array.shape)
    found = np.full(local, padding, array.dtype)
    if index_along(sharding.mesh, sharding.unreduced)[device]:
        return np.zeros(local, array.dtype)
    inside = _range(sharding, array.shape, local, device)
    given = array[inside]
    found[tuple(slice(extent) for extent in given.shape)] = given
    return found


def _range(sharding: Sharding, dims: Sequence[int], local: Sequence[int], device: int) -> tuple[slice, ...]:
    """Where a device's part stands in the global array."""
    found = []
    for number, (extent, size) in enumerate(zip(dims, local, strict=True)):
        start = int(index_along(sharding.mesh, sharding.dim(number).axes)[device]) * size
        found.append(slice(min(start, extent), min(start + size, extent)))
    return tuple(found)


def _joined(results: Sequence[Any], shape: AnyShape, sharding: Tree) -> Any:
    if isinstance(shape, TupleShape):
        several = enumerate(zip(shape.elements, sharding, strict=True))
        return tuple(_joined([each[n] for each in results], *pair) for n, pair in several)
    if not isinstance(shape, Shape):
        return results[0]
    return joined(results, shape, sharding)


def joined(parts: Sequence[Any], shape: Shape, sharding: Sharding) -> Any:
    """The global array whose parts devices hold; along unreduced axes the parts are summed."""
    if not sharding.cut_axes and not sharding.unreduced:
        return parts[0]
    first = np.asarray(parts[0])
    whole = np.zeros(shape.dims, first.dtype)
    used = (*sharding.cut_axes, *sharding.unreduced)
    place, seen = index_along(sharding.mesh, used), set[int]()
    for device, part in enumerate(parts):
        if place[device] in seen:
            continue
        seen.add(int(place[device]))
        inside = _range(sharding, shape.dims, first.shape, device)
        given = np.asarray(part)[tuple(slice(each.stop - each.start) for each in inside)]
        whole[inside] = whole[inside] + given if sharding.unreduced else given
    return whole[()]
