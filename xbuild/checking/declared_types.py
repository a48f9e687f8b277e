"""Declared types on a mesh, verified by the replication analysis.

Types that shard_map has written hold by construction; those of an edited program, or one read from text, need not.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from shape_inference import XbuildError

from ..core.graph import Instruction
from ..properties.mesh import Mesh, mesh_of
from ..properties.sites import Site
from ..properties.variances import declared, flat, read_type
from .dataflow.agreement import Labels
from .dataflow.promises import fits, promised
from .dataflow.recording import Recording, recorded, recording
from .model.describe import finding
from .model.program import DeviceClass, Extent, Program
from .model.verdict import Finding


def declared_types(program: Program) -> list[Finding]:
    """A finding for each declared type that does not follow from the program; none for a program without a mesh."""
    return [fault for each in program.classes for fault in _of(each, program.grid)]


def _of(each: DeviceClass, grid: Extent) -> Iterator[Finding]:
    try:
        mesh = mesh_of(each.module)
    except XbuildError as error:
        yield Finding("variance_broken", error.message, devices=each.devices)
        return
    if mesh is None:
        return
    if mesh.num_devices != each.module.num_devices:
        counts = f"the mesh {mesh} has {mesh.num_devices} devices, and the program {each.module.num_devices}"
        yield _finding(each, each.module.entry.root, counts)
        return
    walk = recording(each.devices, grid, promised=functools.partial(promised, mesh=mesh), is_joined=False)
    one = functools.lru_cache(maxsize=None)(functools.partial(_axes_of_one, mesh, each.devices))
    for instruction, labels in _recorded(walk, each).items():
        if told := _breach(mesh, instruction, [one(leaf) for leaf in labels]):
            yield _finding(each, instruction, told)


def _recorded(walk: Recording, each: DeviceClass) -> dict[Instruction, list[Labels]]:
    """The labels of all instructions, for parameters that are as declared."""
    given = [
        walk.spread(walk.nowhere, p.shape) if (found := walk.promised(walk, p)) is None else found
        for p in each.module.entry.parameters
    ]
    return dict(recorded(walk, each.module, given))


def _axes_of_one(mesh: Mesh, devices: Sequence[int], labels: Labels) -> frozenset[str]:
    """The axes along which all devices hold one value."""
    numbers = dict(zip(devices, labels, strict=True))
    return frozenset(axis for axis in mesh.axes if _is_one(mesh, axis, numbers))


def _breach(mesh: Mesh, instruction: Instruction, ones: Sequence[frozenset[str]]) -> str | None:
    """The fault of a declared type, if it has one; `ones` has, for each leaf, the axes along which it is one value."""
    text = declared(instruction)
    if text is None:
        return None
    named = f"{instruction.name} is stated to be {text}"
    try:
        stated = read_type(text)
    except XbuildError:
        stated = None
    if stated is None or not fits(stated, instruction.shape):
        return f"{named}, and that is no type of its shape"
    lacking = {
        axis
        for leaf, found in zip(flat(stated), ones, strict=True)
        for axis in {*mesh.axes} - found - leaf.varying - leaf.unreduced
    }
    unknown = {axis for leaf in flat(stated) for axis in leaf.axes} - {*mesh.axes}
    if unknown:
        return f"{named}, and the mesh {mesh} has no axis {', '.join(sorted(unknown))}"
    if not lacking:
        return None
    axes = ", ".join(mesh.ordered(lacking))
    return f"{named}, one value along {axes}, and what it is computed from may differ along them"


def _is_one(mesh: Mesh, axis: str, labels: dict[int, int]) -> bool:
    """Whether devices that differ along an axis alone hold equal values."""
    return all(len({labels[device] for device in group if device in labels}) <= 1 for group in mesh.groups(axis))


def _finding(each: DeviceClass, instruction: Instruction, told: str) -> Finding:
    return finding(
        "variance_broken",
        told,
        (each.devices, Site((), instruction)),
        cause_text="a type that states one value along an axis is a promise, by which collectives are left out",
        repair_text="xb.shard_map writes types that hold; xb.mesh.psum and its like make one value of several",
    )
