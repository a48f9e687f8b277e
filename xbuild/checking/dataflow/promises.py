"""What annotations state about equal values: taken as promises, and declared types verified.

Sections:

    Promises: parameters and infeeds equal on several devices, loops with equal trip counts
    Declared types on a mesh, verified by the replication analysis

A run does not enforce promises, and the check for deadlock does not rely on them; a strict run verifies those of
parameters.

Source: XLA's hlo_replication_analysis.cc and hlo_sharding.h.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shape_inference import AnyShape, TupleShape, XbuildError
from shape_inference.trees import flatten, unflatten

from ...core.graph import Instruction, Module, ModuleGroup
from ...properties.mesh import Mesh, mesh_of
from ...properties.sites import Site
from ...properties.trip_counts import noted_trips
from ...properties.variances import Type, Variance, declared, read_type, type_of
from ..model.describe import finding
from ..model.program import DeviceClass, Extent, GridProgram, grid_of
from ..model.verdict import Finding
from .analysis import Reading
from .replication import Agreement, Labels, Recording, ReplicationAnalysis, make_recording, record_labels, varies

if TYPE_CHECKING:
    from ...sharding.hlo_text import Stated


# ----------------------------------------------------------------------------
# Promises: parameters and infeeds equal on several devices, loops with equal trip counts


def has_known_trips(loop: Instruction) -> bool:
    """Whether XLA has annotated the trip count of a loop."""
    return noted_trips(loop) is not None


def read_promise(analysis: ReplicationAnalysis, instruction: Instruction, mesh: Mesh | None = None) -> Reading | None:
    """The reading of a parameter or an infeed that annotations promise; None where there is no promise.

    `sharding` says which partitions of one replica hold equal leaves, `parameter_replication` which leaves are equal on
    all replicas, and a type on a mesh along which axes a leaf is equal.
    """
    stated = None if mesh is None else type_of(instruction)
    if mesh is not None and stated is not None and has_nesting_of(stated, instruction.shape):
        labels = [_labels_on_mesh(analysis, mesh, leaf) for leaf in flatten(stated)]
        return unflatten(instruction.shape, map(Agreement, labels))
    notes = instruction.annotations
    count = len(flatten(instruction.shape))
    shardings = _parse_sharding(str(notes["sharding"]), count) if "sharding" in notes else None
    flags = str(notes.get("parameter_replication", "")).strip("{} ").split(",")
    if shardings is None and len(flags) != count:
        return None
    labels = [
        _labels(analysis, shardings[n] if shardings else None, len(flags) == count and flags[n].strip() == "true")
        for n in range(count)
    ]
    return unflatten(instruction.shape, map(Agreement, labels))


def share_equal_arguments(program: Module | ModuleGroup, arguments: list[list[Any]]) -> list[list[Any]]:
    """The arguments of each device, where devices that are promised one value get that of the first of them.

    Only a single module makes promises. A mesh of another number of devices, or one that cannot be read, makes none.
    """
    if not isinstance(program, Module) or len(arguments) != program.num_devices:
        return arguments
    try:
        mesh = mesh_of(program)
    except XbuildError:
        mesh = None
    if mesh is not None and mesh.num_devices != len(arguments):
        mesh = None
    rows = [[*row] for row in arguments]
    analysis: ReplicationAnalysis | None = None
    for number, parameter in enumerate(program.entry.parameters):
        if not parameter.annotations:
            continue
        analysis = analysis or ReplicationAnalysis(varies, tuple(range(len(rows))), *grid_of(program))
        promise = read_promise(analysis, parameter, mesh)
        if promise is not None:
            for row, shared in zip(rows, _share_leaves(promise, [row[number] for row in arguments]), strict=True):
                row[number] = shared
    return rows


def _share_leaves(promise: Reading, values: Sequence[Any]) -> Iterator[Any]:
    """The value of each device, where each leaf is that of the first device with the same label."""
    columns = [flatten(value) for value in values]
    for n, agreement in enumerate(flatten(promise)):
        first: dict[int, Any] = {}
        for label, column in zip(agreement.labels, columns, strict=True):
            column[n] = first.setdefault(label, column[n])
    for value, column in zip(values, columns, strict=True):
        yield unflatten(value, column)


def has_nesting_of(stated: Type, shape: AnyShape) -> bool:
    """Whether a type is nested as a shape is."""
    if not isinstance(shape, TupleShape):
        return not isinstance(stated, tuple)
    return (
        isinstance(stated, tuple)
        and len(stated) == len(shape.elements)
        and all(map(has_nesting_of, stated, shape.elements))
    )


def _labels_on_mesh(analysis: ReplicationAnalysis, mesh: Mesh, stated: Variance) -> Labels:
    """The labels of a type on a mesh: devices agree that differ only along axes where the value is equal."""
    kept = [axis for axis in mesh.axes if axis in stated.varying | stated.unreduced]
    places = [mesh.coordinates(device) if device < mesh.num_devices else {} for device in analysis.devices]
    return analysis.partitions.group_by(
        tuple(place.get(axis, -1 - n) for axis in kept) for n, place in enumerate(places)
    )


def _parse_sharding(text: str, count: int) -> list[Stated] | None:
    """What a sharding says of each leaf; None where it has another number of leaves, or is no sharding."""
    from ...sharding.hlo_text import parsed  # few programs state shardings

    try:
        found = parsed(text)
    except XbuildError:
        return None
    several = [each.stated for each in found] if isinstance(found, tuple) else [found.stated] * count
    return several if len(several) == count else None


def _labels(analysis: ReplicationAnalysis, sharding: Stated | None, is_replicated: bool) -> Labels:
    parts = tiles_of(sharding, analysis.num_partitions)
    return analysis.partitions.group_by(
        (0 if is_replicated else replica, parts[partition]) for replica, partition in analysis.ids.ids
    )


def tiles_of(sharding: Stated | None, count: int) -> Sequence[int]:
    """The number of the tile that each of `count` partitions holds; a tile for each where the sharding does not say."""
    if sharding is None:
        return range(count)
    from ...sharding.hlo_text import Parsed, TileAssignment, parsed, tiled_text
    from ...sharding.sharding import Placement, Sharding

    if isinstance(sharding, Sharding) and sharding.mesh.num_devices == count:
        found = parsed(tiled_text(sharding, len(sharding.dims)))
        assert isinstance(found, Parsed)
        return tiles_of(found.stated, count)
    if isinstance(sharding, Placement) and sharding.kind == "replicated":
        return [0] * count
    if not isinstance(sharding, TileAssignment) or not sharding.is_on_all(count):
        return range(count)
    dims = (*sharding.dims, *sharding.subgroups)
    held = np.arange(count).reshape(dims)
    for axis, kind in enumerate(sharding.kinds, len(sharding.dims)):
        if kind == "replicated":
            held = np.broadcast_to(held.take([0], axis), dims)
    numbers = dict(zip(sharding.devices, held.ravel().tolist(), strict=True))
    return [numbers[each] for each in range(count)]


# ----------------------------------------------------------------------------
# Declared types on a mesh, verified by the replication analysis
#
# Types that shard_map writes hold by construction; those of an edited program, or one read from text, may not.


def declared_types(program: GridProgram) -> list[Finding]:
    """A finding for each declared type that does not follow from the program; none for a program without a mesh."""
    return [fault for device_class in program.classes for fault in _check_class(device_class, program.grid)]


def _check_class(device_class: DeviceClass, grid: Extent) -> Iterator[Finding]:
    try:
        mesh = mesh_of(device_class.module)
    except XbuildError as error:
        yield Finding("variance_broken", error.message, devices=device_class.devices)
        return
    if mesh is None:
        return
    if mesh.num_devices != device_class.module.num_devices:
        counts = (
            f"the mesh {mesh} has {mesh.num_devices} devices, but the program has {device_class.module.num_devices}"
        )
        yield _finding(device_class, device_class.module.entry.root, counts)
        return
    walk = make_recording(
        device_class.devices, grid, promised=functools.partial(read_promise, mesh=mesh), is_joined=False
    )
    one = functools.lru_cache(maxsize=None)(functools.partial(_axes_of_one, mesh, device_class.devices))
    for instruction, labels in _labels_of_all(walk, device_class).items():
        if fault := _find_breach(mesh, instruction, [one(leaf) for leaf in labels]):
            yield _finding(device_class, instruction, fault)


def _labels_of_all(walk: Recording, device_class: DeviceClass) -> dict[Instruction, list[Labels]]:
    """The labels of all instructions, for parameters that are as declared."""
    given = [
        walk.fill_shape(walk.nowhere, p.shape) if (found := walk.promised(walk, p)) is None else found
        for p in device_class.module.entry.parameters
    ]
    return dict(record_labels(walk, device_class.module, given))


def _axes_of_one(mesh: Mesh, devices: Sequence[int], labels: Labels) -> frozenset[str]:
    """The axes along which all devices hold one value."""
    numbers = dict(zip(devices, labels, strict=True))
    return frozenset(axis for axis in mesh.axes if _is_equal_along(mesh, axis, numbers))


def _find_breach(mesh: Mesh, instruction: Instruction, ones: Sequence[frozenset[str]]) -> str | None:
    """The fault of a declared type, if it has one; `ones` has, for each leaf, the axes along which it is one value."""
    text = declared(instruction)
    if text is None:
        return None
    named = f"{instruction.name} is declared as {text}"
    try:
        stated = read_type(text)
    except XbuildError:
        stated = None
    if stated is None or not has_nesting_of(stated, instruction.shape):
        return f"{named}, which does not fit its shape"
    lacking = {
        axis
        for leaf, found in zip(flatten(stated), ones, strict=True)
        for axis in {*mesh.axes} - found - leaf.varying - leaf.unreduced
    }
    unknown = {axis for leaf in flatten(stated) for axis in leaf.axes} - {*mesh.axes}
    if unknown:
        return f"{named}, but the mesh {mesh} has no axis {', '.join(sorted(unknown))}"
    if not lacking:
        return None
    axes = ", ".join(mesh.ordered(lacking))
    return f"{named}, one value along {axes}, but it is computed from values that may differ along {axes}"


def _is_equal_along(mesh: Mesh, axis: str, labels: dict[int, int]) -> bool:
    """Whether devices that differ along an axis alone hold equal values."""
    return all(len({labels[device] for device in group if device in labels}) <= 1 for group in mesh.groups(axis))


def _finding(device_class: DeviceClass, instruction: Instruction, fault: str) -> Finding:
    return finding(
        "variance_broken",
        fault,
        (device_class.devices, Site((), instruction)),
        cause_text=(
            "a type that declares one value along an axis is a promise, and a compiler may omit collectives "
            "because of it"
        ),
        repair_text=(
            "xb.shard_map infers correct types; xb.mesh.psum and similar collectives combine different values into one"
        ),
    )
