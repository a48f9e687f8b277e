"""Detection of values that a program's variance types declare equal along mesh axes and that differ between devices."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from attrs import define, field

from shape_inference import XbuildError
from xbuild.core.graph import Instruction, Module
from xbuild.properties.mesh import Mesh, mesh_of
from xbuild.properties.variances import Variance, flat, type_of

from .table import Spotted


@define(eq=False)
class Comparison:
    """The values that each device has computed so far at each place, each value with its digest."""

    _seen: dict[Any, dict[int, list[tuple[bytes, Any]]]] = field(factory=dict)

    def spotted(self, place: Any, device: int, module: Module, instruction: Instruction, value: Any) -> list[Spotted]:
        """Findings for leaves that differ from other devices' values at this place although declared equal."""
        stated = equal_along(module, instruction)
        if stated is None:
            return []
        mesh, types = stated
        leaves = list(_leaves(value))
        if len(leaves) != len(types):  # the check before the run tells it
            return []
        seen = self._seen.setdefault(place, {})
        seen[device] = own = [(_digest(leaf), leaf) for leaf in leaves]
        found = []
        for leaf, (variance, mine) in enumerate(zip(types, own, strict=True)):
            for other in _alike(mesh, variance, device):
                if other in seen and seen[other][leaf][0] != mine[0]:
                    found.append(_breach(mesh, variance, leaf, device, mine[1], other, seen[other][leaf][1]))
                    break
        if len(seen) == mesh.num_devices:
            del self._seen[place]
        return found


def _breach(mesh: Mesh, stated: Variance, leaf: int, device: int, mine: Any, other: int, theirs: Any) -> Spotted:
    a, b = mesh.coordinates(device), mesh.coordinates(other)
    axes = ", ".join(axis for axis in mesh.axes if a[axis] != b[axis])
    text = stated.text(mesh) or "invarying"
    what = f"stated to be {text}: one value along {axes}, and device {other} has another"
    values = ((f"on device {device}", mine), (f"on device {other}", theirs))
    return Spotted("variance_broken", what, values=values, part=leaf)


@functools.lru_cache(maxsize=4096)
def equal_along(module: Module, instruction: Instruction) -> tuple[Mesh, list[Variance]] | None:
    """The mesh and the variance types of the leaves of a value, if any type declares devices to hold equal values."""
    try:
        mesh, given = mesh_of(module), type_of(instruction)
    except XbuildError:  # the check before the run tells it
        return None
    if mesh is None or given is None or mesh.num_devices != module.num_devices:
        return None
    types = flat(given)
    return (mesh, types) if any(not _everywhere(mesh, each) for each in types) else None


def _everywhere(mesh: Mesh, variance: Variance) -> bool:
    return variance.varying | variance.unreduced >= {*mesh.axes}


def _alike(mesh: Mesh, variance: Variance, device: int) -> Iterator[int]:
    """The other devices whose value is declared equal to that of this device."""
    place = mesh.coordinates(device)
    kept = [axis for axis in mesh.axes if axis in variance.varying | variance.unreduced]
    for other in range(mesh.num_devices):
        there = mesh.coordinates(other)
        if other != device and all(there[axis] == place[axis] for axis in kept):
            yield other


def _digest(value: Any) -> bytes:
    array = np.asarray(value)
    return hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).digest()


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for each in value:
            yield from _leaves(each)
    else:
        yield value
