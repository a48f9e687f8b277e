"""How global arrays lie on devices: the part of each device, cut from the global array and put together again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen

from shape_inference import Dims, Shape, refuse
from xbuild.core.attributes import Array
from xbuild.properties.mesh import Mesh
from xbuild.sharding.axis import Axis
from xbuild.sharding.sharding import Sharding
from xbuild.sharding.sharding import cut as made
from xbuild.variance import P

Slices: TypeAlias = tuple[slice, ...]


@frozen(eq=False)
class Layout:
    """The part of a global array that each device holds, in the leading elements of its own array.

    Devices with the same number in `sums` hold terms of one sum; it is None where each device holds the elements.
    """

    parts: tuple[Slices, ...]
    sums: tuple[int, ...] | None = None

    def where(self, device: int, place: Dims) -> Dims:
        """The place in the global array of an element of a device."""
        return tuple(part.start + at for part, at in zip(self.parts[device], place, strict=True))


def whole(shape: Shape, devices: int) -> Layout:
    """The layout of an array that every device holds."""
    return Layout((tuple(slice(0, extent) for extent in shape.dims),) * devices)


def layout_of(given: Any, shape: Shape, local: Shape, devices: int, name: str) -> Layout:
    """The layout that a sharding says, or that slices for each device are; of None the one that shapes leave.

    Raises invalid_attribute where it does not fit the shapes.
    """
    if given is None:
        return _by_shapes(shape, local, devices, name)
    if isinstance(given, Sharding):
        return _by_sharding(given, shape, local, devices, name)
    rows = [tuple(part) for part in given]
    if len(rows) != devices or any(len(row) != shape.rank for row in rows):
        refuse(
            "invalid_attribute",
            f"{name}: {len(rows)} tuples of slices, and one is wanted for each of {devices} devices, with a slice for "
            f"each of {shape.rank} dimensions",
        )
    parts = tuple(
        tuple(slice(*each.indices(extent)[:2]) for each, extent in zip(row, shape.dims, strict=True)) for row in rows
    )
    _check(parts, local, name)
    return Layout(parts)


def of_specs(mesh: Mesh, specs: Any) -> list[Sharding]:
    """The shardings of the specs of a region of a mesh, in order."""
    if not isinstance(specs, P):
        return [each for spec in specs for each in of_specs(mesh, spec)]
    dims = [[Axis(name, mesh.size(name)) for name in entry] for entry in specs.cuts]
    return [made(mesh, dims, [Axis(name, mesh.size(name)) for name in sorted(specs.unreduced)])]


def _by_shapes(shape: Shape, local: Shape, devices: int, name: str) -> Layout:
    if shape.dims == local.dims:
        return whole(shape, devices)
    cut = [n for n, (extent, part) in enumerate(zip(shape.dims, local.dims, strict=False)) if extent != part]
    if shape.rank == local.rank and len(cut) == 1 and shape.dims[cut[0]] == local.dims[cut[0]] * devices:
        (dim,) = cut
        size = local.dims[dim]
        rows = [[slice(0, extent) for extent in shape.dims] for _ in range(devices)]
        for device, row in enumerate(rows):
            row[dim] = slice(device * size, (device + 1) * size)
        return Layout(tuple(map(tuple, rows)))
    return refuse(
        "invalid_attribute",
        f"{name} is {shape} in one program and {local} on each of {devices} devices of the other, and that leaves open "
        "which part each device holds",
        "inputs=[...] and outputs=[...] take a sharding, or slices for each device, for each array",
    )


def _by_sharding(sharding: Sharding, shape: Shape, local: Shape, devices: int, name: str) -> Layout:
    if sharding.mesh.num_devices != devices:
        refuse(
            "invalid_attribute",
            f"{name}: the mesh of its sharding has {sharding.mesh.num_devices} devices, and the program has {devices}",
        )
    if sharding.halo_sizes:
        refuse("invalid_attribute", f"{name}: a sharding with halos lays elements on several devices, and has no parts")
    padded = sharding.padded(shape.rank)
    parts = []
    for device in range(devices):
        starts = [_span(padded, dim, extent, device) for dim, extent in enumerate(shape.dims)]
        parts.append(tuple(slice(min(a, n), min(b, n)) for (a, b), n in zip(starts, shape.dims, strict=True)))
    _check(parts, local, name)
    sums = None
    if sharding.unreduced:
        sums = tuple(_group(sharding, device) for device in range(devices))
    return Layout(tuple(parts), sums)


def _span(sharding: Sharding, dim: int, extent: int, device: int) -> tuple[int, int]:
    """Where the part of a device begins and ends in a dimension."""
    cut = sharding.dim(dim)
    number = _number(sharding, cut.axes, device)
    if sharding.offsets and cut.parts > 1:
        before = sum(sharding.dim(n).parts + 1 for n in range(dim) if sharding.dim(n).parts > 1)
        return sharding.offsets[before + number], sharding.offsets[before + number + 1]
    size = -(-extent // cut.parts)
    return number * size, (number + 1) * size


def _number(sharding: Sharding, axes: Sequence[Axis], device: int) -> int:
    """The number of a device along several axes, the first of which counts most."""
    found = 0
    coordinates = sharding.mesh.coordinates(device)
    for axis in axes:
        rest = sharding.mesh.size(axis.name) // axis.end
        found = found * axis.size + coordinates[axis.name] // rest % axis.size
    return found


def _group(sharding: Sharding, device: int) -> int:
    """A number for the devices that hold terms of one sum: the device whose place along these axes is 0."""
    mesh, place = sharding.mesh, dict(sharding.mesh.coordinates(device))
    for axis in sharding.unreduced:
        rest = mesh.size(axis.name) // axis.end
        place[axis.name] -= place[axis.name] // rest % axis.size * rest
    return mesh.device(**place)


def _check(parts: Sequence[Slices], local: Shape, name: str) -> None:
    for device, part in enumerate(parts):
        sizes = tuple(max(each.stop - each.start, 0) for each in part)
        if len(sizes) != local.rank or any(size > extent for size, extent in zip(sizes, local.dims, strict=True)):
            refuse("invalid_attribute", f"{name}: device {device} is to hold {list(sizes)} elements, and its array is "
                   f"{local}")  # fmt: skip


def cut(layout: Layout, value: Array, local: Shape, fill: Any, minus: Any) -> list[Array]:
    """The array of each device; what is beyond its part, and all terms of a sum but one, are what `fill` draws."""
    found = []
    for part in layout.parts:
        own = value[part]
        held = np.array(fill(local)).astype(value.dtype) if own.shape != local.dims else np.array(own)
        held[tuple(slice(0, n) for n in own.shape)] = own
        found.append(held)
    if layout.sums is not None:
        _as_terms(layout.sums, found, local, fill, minus)
    return found


def _as_terms(sums: tuple[int, ...], found: list[Array], local: Shape, fill: Any, minus: Any) -> None:
    """Make the arrays of each group, which are alike, random terms whose sum is what they were."""
    for first in sorted(set(sums)):
        rest = found[first]
        for device, group in enumerate(sums):
            if group == first and device != first:
                found[device] = np.asarray(fill(local)).astype(rest.dtype)
                rest = minus(rest, found[device])
        found[first] = rest


def held(layout: Layout, values: Sequence[Array], add: Any) -> list[Array]:
    """The part that each device holds, in its array; of terms their sum."""
    sizes = [[max(each.stop - each.start, 0) for each in part] for part in layout.parts]
    parts = [value[tuple(slice(0, n) for n in size)] for value, size in zip(values, sizes, strict=True)]
    if layout.sums is None:
        return parts
    totals: dict[int, Array] = {}
    for group, value in zip(layout.sums, parts, strict=True):
        totals[group] = add(totals[group], value) if group in totals else value
    return [totals[group] for group in layout.sums]
