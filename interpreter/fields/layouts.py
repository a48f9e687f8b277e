"""Layouts of global arrays on devices, and of the inputs and outputs of one program on the devices of another."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen

from shape_inference import Dims, Shape, refuse
from shape_inference.trees import flatten
from xbuild.core.attributes import Array
from xbuild.core.graph import Computation, Instruction, Module
from xbuild.properties.mesh import Mesh
from xbuild.properties.order import users_of
from xbuild.sharding.hlo_text import shardings
from xbuild.sharding.rules import rule_of
from xbuild.sharding.sharding import Axis, Sharding
from xbuild.sharding.sharding import shard_dims as made
from xbuild.sharding.stated_shardings import RESULTS, sharding_of
from xbuild.text.annotations import read_frontend_text
from xbuild.variance import P

from .draws import shapes_of
from .run import Subject

# ----------------------------------------------------------------------------
# Layouts of global arrays: the part of each device, split from the global array and joined again.

Slices: TypeAlias = tuple[slice | tuple[slice, ...], ...]
"""For each dimension the slice of the global array, or several slices one after the other."""


@frozen(eq=False)
class DeviceLayout:
    """The part of a global array that each device holds in the leading elements of its own array.

    Devices with the same number in `sums` hold terms of one sum; it is None if each device holds the elements. Integers
    are added as numbers, not as words of the fields.
    """

    parts: tuple[Slices, ...]
    sums: tuple[int, ...] | None = None
    has_integers: bool = False

    def part(self, device: int, value: Array) -> Array:
        """The part of a global array that a device holds."""
        for dim, bounds in enumerate(self.parts[device]):
            if isinstance(bounds, slice):
                value = value[(slice(None),) * dim + (bounds,)]
            else:
                places = np.concatenate([np.arange(each.start, each.stop) for each in bounds])
                value = np.take(value, places, dim)
        return value

    def sizes(self, device: int) -> Dims:
        """The extents of the part of a device."""
        return tuple(sum(max(each.stop - each.start, 0) for each in pieces_of(b)) for b in self.parts[device])


def pieces_of(bounds: slice | tuple[slice, ...]) -> tuple[slice, ...]:
    """The slices of a dimension, one after the other."""
    return (bounds,) if isinstance(bounds, slice) else bounds


def replicated_layout(shape: Shape, devices: int) -> DeviceLayout:
    """The layout of an array that every device holds in full."""
    return DeviceLayout((tuple(slice(0, extent) for extent in shape.dims),) * devices)


def layout_of(given: Any, shape: Shape, local: Shape, devices: int, name: str) -> DeviceLayout:
    """The layout that a sharding, pieces or slices for each device state; for None, the one that follows from shapes.

    Raises invalid_attribute if it does not fit the shapes.
    """
    if given is None:
        return _layout_by_shapes(shape, local, devices, name)
    if isinstance(given, Sharding):
        return _layout_by_sharding(given, shape, local, devices, name)
    if isinstance(given, Mapping):
        return _layout_by_pieces(given, shape, local, devices, name)
    rows = [tuple(part) for part in given]
    if len(rows) != devices or any(len(row) != shape.rank for row in rows):
        refuse(
            "invalid_attribute",
            f"{name}: expected {devices} tuples of {shape.rank} slices (a tuple per device, a slice per dimension), "
            f"got {len(rows)} tuples",
        )
    layout = DeviceLayout(
        tuple(tuple(_bounded(bounds, extent) for bounds, extent in zip(row, shape.dims, strict=True)) for row in rows)
    )
    _check_sizes(layout, local, name)
    return layout


def _bounded(bounds: Any, extent: int) -> slice | tuple[slice, ...]:
    """Slices with both ends, for a dimension of an extent."""
    if isinstance(bounds, slice):
        return slice(*bounds.indices(extent)[:2])
    return tuple(slice(*each.indices(extent)[:2]) for each in bounds)


def _layout_by_pieces(given: Mapping[int, Any], shape: Shape, local: Shape, devices: int, name: str) -> DeviceLayout:
    """The layout of a dimension that consists of pieces, of each of which every device holds an equal part."""
    dims = [dim for dim in given if dim not in range(shape.rank)]
    if len(given) != 1 or dims:
        refuse(
            "invalid_attribute",
            f"{name}: expected pieces of one dimension of {shape}, such as {{1: (64, 16, 16)}}, got {dict(given)!r}",
        )
    ((dim, sizes),) = given.items()
    if sum(sizes) != shape.dims[dim] or any(size % devices for size in sizes):
        refuse(
            "invalid_attribute",
            f"{name}: pieces of {', '.join(map(str, sizes))} elements do not fit dimension {dim} of {shape} on "
            f"{devices} devices; their sum is {sum(sizes)}, and each has to be a multiple of {devices}",
        )
    rows = []
    for device in range(devices):
        row: list[slice | tuple[slice, ...]] = [slice(0, extent) for extent in shape.dims]
        ends = list(itertools.accumulate(sizes))
        firsts = [end - size + size // devices * device for end, size in zip(ends, sizes, strict=True)]
        row[dim] = tuple(slice(n, n + size // devices) for n, size in zip(firsts, sizes, strict=True))
        rows.append(tuple(row))
    layout = DeviceLayout(tuple(rows))
    _check_sizes(layout, local, name)
    return layout


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
            f"{name}: a sharding with halos puts some elements on several devices, but the parts that "
            "the devices hold must not overlap",
        )
    padded = sharding.padded(shape.rank)
    parts = []
    for device in range(devices):
        starts = [_part_bounds(padded, dim, extent, device) for dim, extent in enumerate(shape.dims)]
        parts.append(tuple(slice(min(a, n), min(b, n)) for (a, b), n in zip(starts, shape.dims, strict=True)))
    sums = None
    if sharding.unreduced:
        sums = tuple(_sum_group(sharding, device) for device in range(devices))
    layout = DeviceLayout(tuple(parts), sums, shape.dtype.is_integer)
    _check_sizes(layout, local, name)
    return layout


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


def _check_sizes(layout: DeviceLayout, local: Shape, name: str) -> None:
    for device in range(len(layout.parts)):
        sizes = layout.sizes(device)
        if len(sizes) != local.rank or any(size > extent for size, extent in zip(sizes, local.dims, strict=True)):
            refuse(
                "invalid_attribute",
                f"{name}: device {device} should hold an array with dimensions {list(sizes)}, but its array is {local}",
            )


def split_to_devices(layout: DeviceLayout, value: Array, local: Shape, fill: Any, minus: Any) -> list[Array]:
    """The array of each device; elements beyond its part, and all terms of a sum but one, come from `fill`."""
    found = []
    for device in range(len(layout.parts)):
        own = layout.part(device, value)
        if own.shape != local.dims:
            held = np.array(fill(local)).astype(value.dtype)
            held[tuple(slice(0, n) for n in own.shape)] = own
            own = held
        found.append(own)
    if layout.sums is not None:
        _split_into_terms(layout.sums, found, local, fill, np.subtract if layout.has_integers else minus)
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
    parts = [value[tuple(slice(0, n) for n in layout.sizes(device))] for device, value in enumerate(values)]
    if layout.sums is None:
        return parts
    totals: dict[int, Array] = {}
    add = np.add if layout.has_integers else add
    for group, value in zip(layout.sums, parts, strict=True):
        totals[group] = add(totals[group], value) if group in totals else value
    return [totals[group] for group in layout.sums]


# ----------------------------------------------------------------------------
# Layouts of the inputs and outputs of one program on the devices of another.

Layouts: TypeAlias = Sequence[Any] | Mapping[int, Any] | None
"""A layout for each array, or for some by their numbers; None if the shapes determine all."""


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
    """Layouts of the inputs and outputs of one program on the devices of the other; None if both get equal arrays.

    `pieces` has a text for each input whose layout follows from slices in both programs.
    """

    inputs: tuple[DeviceLayout, ...] | None
    outputs: tuple[DeviceLayout, ...] | None
    pieces: tuple[str, ...] = ()


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
    stated = _by_number(inputs, len(one.inputs(0)), "input")
    pieces = _pieces_in_slices(one, other, stated)
    stated = [{pieces[n][0]: pieces[n][1]} if n in pieces else layout for n, layout in enumerate(stated)]
    return ResolvedLayouts(
        _layouts(one.inputs(0), other.inputs(0), stated, other.devices, "input"),
        _layouts(one.outputs(0), other.outputs(0), _by_number(outputs, len(one.outputs(0)), "output"),
                 other.devices, "output"),
        tuple(f"input {n}, {one.inputs(0)[n]}: each device has an equal part of each of {_list_sizes(sizes)} elements "
              f"of dimension {dim}, as both programs slice them" for n, (dim, sizes) in pieces.items()),
    )  # fmt: skip


def with_more(given: Layouts, count: int, more: Sequence[Any]) -> Layouts:
    """Layouts of `count` arrays and of those that follow them."""
    if isinstance(given, Mapping) or given is None:
        stated = {count + n: layout for n, layout in enumerate(more) if layout is not None}
        return {**(given or {}), **stated} if given or stated else given
    return [*given, *more]


def _list_sizes(sizes: Sequence[int]) -> str:
    return f"{', '.join(map(str, sizes[:-1]))} and {sizes[-1]}"


def _by_number(given: Layouts, count: int, name: str) -> list[Any]:
    """A layout or None for each of the arrays."""
    if not isinstance(given, Mapping):
        return [None] * count if given is None else list(given)
    for number in given:
        if number not in range(count):
            refuse(
                "invalid_attribute",
                f"equivalent: a layout is given for {name} {number!r}, but the program has {count} {name}s",
            )
    return [given.get(number) for number in range(count)]


def _check_same_dims(one: Subject, other: Subject, device: int) -> None:
    for name, left, right in (
        ("inputs", one.inputs(device), other.inputs(device)),
        ("outputs", one.outputs(device), other.outputs(device)),
    ):
        if [shape.dims for shape in left] != [shape.dims for shape in right]:
            refuse(
                "invalid_attribute",
                f"equivalent: the {name} of device {device} are {_shapes_text(left)} in one program and "
                f"{_shapes_text(right)} in the other",
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
    whole: list[Shape], local: list[Shape], layout: Sequence[Any], devices: int, name: str
) -> tuple[DeviceLayout, ...]:
    if not len(whole) == len(local) == len(layout):
        refuse(
            "invalid_attribute",
            f"equivalent: one program has {len(whole)} {name}{'s' * (len(whole) != 1)} and the other has "
            f"{len(local)}, but "
            f"{len(layout)} layouts are given",
        )
    rows = enumerate(zip(layout, whole, local, strict=True))
    return tuple(layout_of(stated, a, b, devices, f"{name} {n}") for n, (stated, a, b) in rows)


# ----------------------------------------------------------------------------
# Pieces: a dimension is a concatenation, such as the fused weights of q, k and v, and each device holds a part of each.

Pieces: TypeAlias = tuple[int, tuple[int, ...]]
"""A dimension, and the extents of its pieces."""


def _pieces_in_slices(one: Subject, other: Subject, stated: Sequence[Any]) -> dict[int, Pieces]:
    """The pieces of the inputs without a stated layout that both programs slice at the same places.

    The whole program takes the pieces of a dimension apart again, and so does each device at its parts of them.
    """
    lefts, rights = (subject.modules[0].entry.parameters for subject in (one, other))
    found: dict[int, Pieces] = {}
    if not len(lefts) == len(rights) == len(stated):  # tuples among them
        return found
    for number, (left, right, layout) in enumerate(zip(lefts, rights, stated, strict=True)):
        pieces = _shared_pieces(left, right, one, other) if layout is None else None
        if pieces is not None:
            found[number] = pieces
    return found


def _shared_pieces(left: Instruction, right: Instruction, one: Subject, other: Subject) -> Pieces | None:
    whole, local, devices = left.shape, right.shape, other.devices
    if not isinstance(whole, Shape) or not isinstance(local, Shape) or whole.rank != local.rank:
        return None
    split = [dim for dim in range(whole.rank) if whole.dims[dim] != local.dims[dim]]
    if len(split) != 1 or whole.dims[split[0]] != local.dims[split[0]] * devices:
        return None
    (dim,) = split
    cuts = sorted({0, whole.dims[dim]} | _cuts(one.modules[0].entry, left, dim))
    there = {0, local.dims[dim]} | _cuts(other.modules[0].entry, right, dim)
    if len(cuts) == 2 or any(cut % devices or cut // devices not in there for cut in cuts):
        return None
    return dim, tuple(last - first for first, last in itertools.pairwise(cuts))


def _cuts(entry: Computation, parameter: Instruction, dim: int) -> set[int]:
    """The places at which a program slices a dimension of a parameter, or of what has it as a dimension."""
    users, found = users_of(entry), set[int]()
    seen, stack = {(parameter, dim)}, [(parameter, dim)]
    while stack:
        value, along = stack.pop()
        for user in users.get(value, ()):
            if user.opcode == "slice" and set(user.attributes.strides) <= {1}:
                found |= {user.attributes.start_indices[along], user.attributes.limit_indices[along]}
            for out in _dims_that_follow(user, value, along):
                if (user, out) not in seen:
                    seen.add((user, out))
                    stack.append((user, out))
    return found


def _dims_that_follow(user: Instruction, value: Instruction, dim: int) -> list[int]:
    """The dimensions of a result that are this dimension of an operand, element by element."""
    rule = rule_of(user)
    if rule is None or not isinstance(user.shape, Shape) or len(rule.operands) != len(user.operands):
        return []
    factors = {rule.operands[n][dim] for n, operand in enumerate(user.operands) if operand is value}
    passed = [each for each in factors if len(each) == 1 and rule.factors[each[0]].kind == "pass_through"]
    return [out for out, each in enumerate(rule.results[0]) if each in passed]
