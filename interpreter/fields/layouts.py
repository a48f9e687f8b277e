"""Layouts of global arrays on devices, and of the inputs and outputs of one program on the devices of another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen

from shape_inference import Dims, Shape, refuse
from shape_inference.trees import flatten
from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction, Module
from xbuild.properties.mesh import Mesh
from xbuild.sharding.hlo_text import shardings
from xbuild.sharding.sharding import Axis, Sharding
from xbuild.sharding.sharding import shard_dims as made
from xbuild.sharding.stated_shardings import RESULTS, sharding_of
from xbuild.text.annotations import read_frontend_text
from xbuild.variance import P

from .draws import shapes_of
from .run import Subject

# ----------------------------------------------------------------------------
# Layouts of global arrays: the part of each device, split from the global array and joined again.

Slices: TypeAlias = tuple[slice, ...]


@frozen(eq=False)
class DeviceLayout:
    """The part of a global array that each device holds in the leading elements of its own array.

    Devices with the same number in `sums` hold terms of one sum; it is None if each device holds the elements.
    """

    parts: tuple[Slices, ...]
    sums: tuple[int, ...] | None = None

    def where(self, device: int, place: Dims) -> Dims:
        """The place in the global array of an element of a device."""
        return tuple(part.start + at for part, at in zip(self.parts[device], place, strict=True))


def replicated_layout(shape: Shape, devices: int) -> DeviceLayout:
    """The layout of an array that every device holds in full."""
    return DeviceLayout((tuple(slice(0, extent) for extent in shape.dims),) * devices)


def layout_of(given: Any, shape: Shape, local: Shape, devices: int, name: str) -> DeviceLayout:
    """The layout that a sharding or slices for each device state; for None, the one that follows from the shapes.

    Raises invalid_attribute if it does not fit the shapes.
    """
    if given is None:
        return _layout_by_shapes(shape, local, devices, name)
    if isinstance(given, Sharding):
        return _layout_by_sharding(given, shape, local, devices, name)
    rows = [tuple(part) for part in given]
    if len(rows) != devices or any(len(row) != shape.rank for row in rows):
        refuse(
            "invalid_attribute",
            f"{name}: expected {devices} tuples of {shape.rank} slices (a tuple per device, a slice per dimension), "
            f"got {len(rows)} tuples",
        )
    parts = tuple(
        tuple(slice(*bounds.indices(extent)[:2]) for bounds, extent in zip(row, shape.dims, strict=True))
        for row in rows
    )
    _check_sizes(parts, local, name)
    return DeviceLayout(parts)


def shardings_of_specs(mesh: Mesh, specs: Any) -> list[Sharding]:
    """The shardings of the specs of a region of a mesh, in order."""
    if not isinstance(specs, P):
        return [sharding for spec in specs for sharding in shardings_of_specs(mesh, spec)]
    dims = [[Axis(name, mesh.size(name)) for name in entry] for entry in specs.cuts]
    return [made(mesh, dims, [Axis(name, mesh.size(name)) for name in sorted(specs.unreduced)])]


def _layout_by_shapes(shape: Shape, local: Shape, devices: int, name: str) -> DeviceLayout:
    if shape.dims == local.dims:
        return replicated_layout(shape, devices)
    split_dims = [n for n, (extent, part) in enumerate(zip(shape.dims, local.dims, strict=False)) if extent != part]
    if (
        shape.rank == local.rank
        and len(split_dims) == 1
        and shape.dims[split_dims[0]] == local.dims[split_dims[0]] * devices
    ):
        (dim,) = split_dims
        size = local.dims[dim]
        rows = [[slice(0, extent) for extent in shape.dims] for _ in range(devices)]
        for device, row in enumerate(rows):
            row[dim] = slice(device * size, (device + 1) * size)
        return DeviceLayout(tuple(map(tuple, rows)))
    return refuse(
        "invalid_attribute",
        f"{name} is {shape} in one program and {local} on each of {devices} devices in the other; these shapes do "
        "not determine which part each device holds",
        "for every array, pass a sharding, or the slices of each device: inputs=[...] and outputs=[...]",
    )


def _layout_by_sharding(sharding: Sharding, shape: Shape, local: Shape, devices: int, name: str) -> DeviceLayout:
    if sharding.mesh.num_devices != devices:
        refuse(
            "invalid_attribute",
            f"{name}: the mesh of its sharding has {sharding.mesh.num_devices} devices, but the program has {devices}",
        )
    if sharding.halo_sizes:
        refuse(
            "invalid_attribute",
            f"{name}: a sharding with halos puts some elements on several devices, but the parts of the "
            "devices must not overlap",
        )
    padded = sharding.padded(shape.rank)
    parts = []
    for device in range(devices):
        starts = [_part_bounds(padded, dim, extent, device) for dim, extent in enumerate(shape.dims)]
        parts.append(tuple(slice(min(a, n), min(b, n)) for (a, b), n in zip(starts, shape.dims, strict=True)))
    _check_sizes(parts, local, name)
    sums = None
    if sharding.unreduced:
        sums = tuple(_sum_group(sharding, device) for device in range(devices))
    return DeviceLayout(tuple(parts), sums)


def _part_bounds(sharding: Sharding, dim: int, extent: int, device: int) -> tuple[int, int]:
    """The start and end of the part of a device in a dimension."""
    dim_sharding = sharding.dim(dim)
    number = _device_index(sharding, dim_sharding.axes, device)
    if sharding.offsets and dim_sharding.parts > 1:
        before = sum(sharding.dim(n).parts + 1 for n in range(dim) if sharding.dim(n).parts > 1)
        return sharding.offsets[before + number], sharding.offsets[before + number + 1]
    size = -(-extent // dim_sharding.parts)
    return number * size, (number + 1) * size


def _device_index(sharding: Sharding, axes: Sequence[Axis], device: int) -> int:
    """The index of a device along several axes, of which the first is the major one."""
    found = 0
    coordinates = sharding.mesh.coordinates(device)
    for axis in axes:
        rest = sharding.mesh.size(axis.name) // axis.end
        found = found * axis.size + coordinates[axis.name] // rest % axis.size
    return found


def _sum_group(sharding: Sharding, device: int) -> int:
    """A number for the devices that hold terms of one sum: the device whose coordinates on these axes are 0."""
    mesh, place = sharding.mesh, dict(sharding.mesh.coordinates(device))
    for axis in sharding.unreduced:
        rest = mesh.size(axis.name) // axis.end
        place[axis.name] -= place[axis.name] // rest % axis.size * rest
    return mesh.device(**place)


def _check_sizes(parts: Sequence[Slices], local: Shape, name: str) -> None:
    for device, part in enumerate(parts):
        sizes = tuple(max(bounds.stop - bounds.start, 0) for bounds in part)
        if len(sizes) != local.rank or any(size > extent for size, extent in zip(sizes, local.dims, strict=True)):
            refuse(
                "invalid_attribute",
                f"{name}: device {device} should hold an array with dimensions {list(sizes)}, but its array is {local}",
            )


def split_to_devices(layout: DeviceLayout, value: Array, local: Shape, fill: Any, minus: Any) -> list[Array]:
    """The array of each device; elements beyond its part, and all terms of a sum but one, come from `fill`."""
    found = []
    for part in layout.parts:
        own = value[part]
        held = np.array(fill(local)).astype(value.dtype) if own.shape != local.dims else np.array(own)
        held[tuple(slice(0, n) for n in own.shape)] = own
        found.append(held)
    if layout.sums is not None:
        _split_into_terms(layout.sums, found, local, fill, minus)
    return found


def _split_into_terms(sums: tuple[int, ...], found: list[Array], local: Shape, fill: Any, minus: Any) -> None:
    """Replace the equal arrays of each group by random terms that sum to them."""
    for first in sorted(set(sums)):
        rest = found[first]
        for device, group in enumerate(sums):
            if group == first and device != first:
                found[device] = np.asarray(fill(local)).astype(rest.dtype)
                rest = minus(rest, found[device])
        found[first] = rest


def held_parts(layout: DeviceLayout, values: Sequence[Array], add: Any) -> list[Array]:
    """The part that each device holds; for terms, their sum."""
    sizes = [[max(bounds.stop - bounds.start, 0) for bounds in part] for part in layout.parts]
    parts = [value[tuple(slice(0, n) for n in size)] for value, size in zip(values, sizes, strict=True)]
    if layout.sums is None:
        return parts
    totals: dict[int, Array] = {}
    for group, value in zip(layout.sums, parts, strict=True):
        totals[group] = add(totals[group], value) if group in totals else value
    return [totals[group] for group in layout.sums]


# ----------------------------------------------------------------------------
# Layouts of the inputs and outputs of one program on the devices of another.

Layouts: TypeAlias = Sequence[Any] | None


def own_layouts(given: Any, way: str) -> Layouts:
    """The layouts that an object with a module states: its in_shardings and out_shardings, or its specs on a mesh."""
    shardings, specs = getattr(given, f"{way}_shardings", None), getattr(given, f"{way}_specs", None)
    if shardings is not None:
        return flatten(shardings)
    return None if specs is None else shardings_of_specs(given.mesh, specs)


def layouts_in_text(one: Subject, other: Subject) -> tuple[Layouts, Layouts]:
    """The layouts that a partitioned program states in its text, if its arrays are parts of those of the first.

    Parameters have their shardings, the header or the root those of the results.
    """
    module = other.program
    if not isinstance(module, Module) or other.devices == 1 or _has_same_dims(one, other):
        return None, None
    notes = read_frontend_text(str(module.annotations.get("frontend_attributes", "{}")))
    inputs = [_sharding(sharding_of(parameter), parameter) for parameter in module.entry.parameters]
    outputs = shardings(notes[RESULTS]) if RESULTS in notes else sharding_of(module.entry.root)
    return flatten(inputs), None if outputs is None else flatten(_sharding(outputs, module.entry.root))


def _has_same_dims(one: Subject, other: Subject) -> bool:
    """Whether a device of both programs has arrays of the same dimensions."""
    pairs = ((one.inputs(0), other.inputs(0)), (one.outputs(0), other.outputs(0)))
    return all([shape.dims for shape in left] == [shape.dims for shape in right] for left, right in pairs)


def _sharding(found: Any, of: Instruction) -> Any:
    """Shardings for each array of a value; None if each device holds the full array."""
    if isinstance(found, tuple):
        return [sharding if isinstance(sharding, Sharding) else None for sharding in found]
    return [found if isinstance(found, Sharding) else None] * len(shapes_of([of]))


@frozen(eq=False)
class ResolvedLayouts:
    """Layouts of the inputs and outputs of one program on the devices of the other; None if both get equal arrays."""

    inputs: tuple[DeviceLayout, ...] | None
    outputs: tuple[DeviceLayout, ...] | None


def resolve_layouts(one: Subject, other: Subject, inputs: Layouts, outputs: Layouts) -> ResolvedLayouts:
    """The layouts that are stated, or follow from the shapes; invalid_attribute if they do not fit."""
    if one.devices == other.devices and (one.devices > 1 or (inputs is None and outputs is None)):
        for device in range(one.devices):
            _check_same_dims(one, other, device)
        _check_kinds(one, other)
        return ResolvedLayouts(None, None)
    if one.devices != 1:
        refuse(
            "invalid_attribute",
            f"equivalent: the first program has {one.devices} devices and the second has {other.devices}; the first "
            "must have one device, or the same number of devices and the same arrays as the second",
        )
    _check_kinds(one, other)
    return ResolvedLayouts(
        _layouts(one.inputs(0), other.inputs(0), inputs, other.devices, "input"),
        _layouts(one.outputs(0), other.outputs(0), outputs, other.devices, "output"),
    )


def _check_same_dims(one: Subject, other: Subject, device: int) -> None:
    for name, left, right in (
        ("inputs", one.inputs(device), other.inputs(device)),
        ("outputs", one.outputs(device), other.outputs(device)),
    ):
        if [shape.dims for shape in left] != [shape.dims for shape in right]:
            refuse(
                "invalid_attribute",
                f"equivalent: the {name} of device {device} are {_shapes_text(left)} in one program and "
                f"{_shapes_text(right)} in the other; if one of them is a global program, pass it first",
                "use a partitioned program that states its shardings, or pass inputs=[...] and outputs=[...]",
            )


def _check_kinds(one: Subject, other: Subject) -> None:
    """Refuse inputs of different kinds of numbers in the two programs; their widths may differ."""
    for number, (left, right) in enumerate(zip(one.inputs(0), other.inputs(0), strict=False)):
        if left.dtype.kind != right.dtype.kind:
            refuse(
                "invalid_attribute",
                f"equivalent: input {number} is {left} in one program and {right} in the other, so the programs "
                "cannot take the same numbers",
                "convert the value inside one program, so that both parameters have the same element type",
            )


def _shapes_text(shapes: Sequence[Shape]) -> str:
    return f"({', '.join(map(str, shapes))})"


def _layouts(
    whole: list[Shape], local: list[Shape], given: Layouts, devices: int, name: str
) -> tuple[DeviceLayout, ...]:
    layout = [None] * len(whole) if given is None else list(given)
    if not len(whole) == len(local) == len(layout):
        refuse(
            "invalid_attribute",
            f"equivalent: one program has {len(whole)} {name}{'s' * (len(whole) != 1)} and the other has "
            f"{len(local)}, but "
            f"{len(layout)} layouts are given",
        )
    rows = enumerate(zip(layout, whole, local, strict=True))
    return tuple(layout_of(stated, a, b, devices, f"{name} {n}") for n, (stated, a, b) in rows)
