"""Random arguments of a program on a mesh: devices get one value where the program states that they hold one."""

from __future__ import annotations

from typing import Any

from shape_inference import XbuildError

from ...core.graph import Module, ModuleGroup
from ...properties.mesh import Mesh, mesh_of
from ...properties.variances import Type, Variance, type_of


def agreeing(program: Module | ModuleGroup, arguments: list[list[Any]]) -> list[list[Any]]:
    """The arguments for each device, of which those that are stated to be one value come from one device.

    Of a program that states no mesh, or one that does not fit it, they stay as they are.
    """
    try:
        mesh = mesh_of(program) if isinstance(program, Module) else None
        if not isinstance(program, Module) or mesh is None or mesh.num_devices != len(arguments):
            return arguments
        types = [type_of(parameter) for parameter in program.entry.parameters]
    except XbuildError:
        return arguments
    return [
        [_agreeing(mesh, device, each, [row[n] for row in arguments]) for n, each in enumerate(types)]
        for device in range(len(arguments))
    ]


def _agreeing(mesh: Mesh, device: int, given: Type, values: list[Any]) -> Any:
    """The value of a device, from the first of those that hold the same."""
    if given is None:
        return values[device]
    if isinstance(values[device], tuple):
        kinds = given if isinstance(given, tuple) else (given,) * len(values[device])
        parts = zip(kinds, zip(*values, strict=True), strict=True)
        return tuple([_agreeing(mesh, device, kind, list(part)) for kind, part in parts])
    assert isinstance(given, Variance)
    differing = given.varying | given.unreduced
    place = {axis: at if axis in differing else 0 for axis, at in mesh.coordinates(device).items()}
    return values[mesh.device(**place)]
