"""Where a program keeps shardings: the annotation of each instruction, read as records and written from them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import evolve

from shape_inference import Shape, TupleShape, refuse

from ..core.graph import Instruction, Module
from ..properties.mesh import Mesh, mesh_of
from ..text.spelling.notes import Raw
from ..variance.specs import P
from .hlo_text import AnySharding, Parsed, hlo_text, parsed, placed
from .other_texts import by_spec
from .placement import Placement
from .rebuilding import mapped as mapped
from .sharding import Sharding
from .shardy_collectives import as_constraints, on_mesh
from .shardy_text import AnyMesh, shardy_meshes, shardy_shardings
from .tiles import Tiles, common_mesh

SHARDING = "sharding"
SHARDY = "xla.sdy.sharding"
RESULTS = "xbuild.out_shardings"
"""The attribute of a partitioned program's header that says how its results are cut."""


def sharding_of(instruction: Instruction, mesh: Mesh | None = None) -> AnySharding | None:
    """The sharding of a value as the program states it; a tuple for a value that is a tuple; None where none is stated.

    Tiles are cut by the axes of `mesh`, or of a mesh that is inferred from them alone; `on_one_mesh` puts a program on
    a mesh that all of its shardings share. Raises invalid_attribute for an annotation that is no sharding.

    >>> import xbuild as xb
    >>> text = "HloModule m\\nENTRY e {\\n  ROOT p = f32[8] parameter(0), sharding={devices=[2]<=[2]}\\n}"
    >>> sharding_of(xb.parse_hlo(text).entry.root).dim(0)
    DimSharding(axes=(Axis(name='axis_0', size=2, pre_size=1),), is_open=False, priority=0)
    """
    found = _parsed(instruction)
    if found is None:
        return None
    if isinstance(found, tuple):
        return tuple(placed(each.stated, mesh) for each in found)
    whole = placed(found.stated, mesh)
    if isinstance(instruction.shape, TupleShape) and isinstance(whole, Placement | Sharding):
        return (whole,) * sum(1 for _ in _leaves(instruction.shape))
    return whole


def _parsed(instruction: Instruction) -> Parsed | tuple[Parsed, ...] | None:
    text = instruction.annotations.get(SHARDING)
    return None if text is None else _read(str(text))


def _has_group(instruction: Instruction) -> bool:
    found = _parsed(instruction)
    several = found if isinstance(found, tuple) else (found,)
    return any(each is not None and each.group is not None for each in several)


_read = functools.lru_cache(maxsize=1 << 12)(parsed)


def _leaves(shape: Any) -> Iterator[Any]:
    if not isinstance(shape, TupleShape):
        yield shape
        return
    for part in shape.elements:
        yield from _leaves(part)


def mesh_of_shardings(module: Module) -> Mesh | None:
    """The mesh of a program: that of its header, that which its shardings name, or one inferred from their tiles.

    Where no sharding cuts anything it is the first that the header names, and None where there is none. Of meshes that
    differ in the order of their devices alone it is the first. Raises invalid_attribute where two shardings name meshes
    of different axes.
    """
    noted = mesh_of(module)
    if noted is not None:
        return noted
    stated = [each for instruction in _instructions(module) for each in _stated(instruction)]
    stated += [each for sharding in _from_shardy(module).values() for each in _several(sharding)]
    meshes = dict.fromkeys(each.mesh for each in stated if isinstance(each, Sharding) and each.mesh.num_devices > 1)
    first = next(iter(meshes), None)
    other = next((each for each in meshes if first is not None and each.sizes != first.sizes), None)
    if other is not None:
        refuse("invalid_attribute", f"the shardings of {module.name} are on two meshes, {first} and {other}")
    if first is not None:
        return first
    tiles = [each for each in stated if isinstance(each, Tiles)]
    if tiles:
        count = max(max(each.devices) for each in tiles) + 1
        return common_mesh(
            [each for each in tiles if each.is_on_all(count)] or [Tiles((count,), (), (), (*range(count),))]
        )
    named = (each for each in shardy_meshes(module).values() if isinstance(each, Mesh))
    return next(named, None) or next((each.mesh for each in stated if isinstance(each, Sharding)), None)


def _stated(instruction: Instruction) -> Iterator[Any]:
    found = _parsed(instruction)
    yield from (each.stated for each in (found if isinstance(found, tuple) else (found,)) if each is not None)


def _several(sharding: AnySharding) -> tuple[Sharding | Placement, ...]:
    return sharding if isinstance(sharding, tuple) else (sharding,)


def _from_shardy(module: Module) -> dict[Instruction, AnySharding]:
    """What Shardy's attributes say of instructions that have no sharding of HLO."""
    found: dict[Instruction, AnySharding] = {}
    meshes: dict[str, AnyMesh] | None = None
    for instruction in _instructions(module):
        text = instruction.annotations.get("frontend_attributes", {}).get(SHARDY)
        if text is not None and SHARDING not in instruction.annotations:
            meshes = shardy_meshes(module) if meshes is None else meshes
            several = shardy_shardings(str(text), meshes)
            found[instruction] = several if isinstance(instruction.shape, TupleShape) else several[0]
    return found


def _instructions(module: Module) -> Iterator[Instruction]:
    return (each for computation in module.computations for each in computation.instructions)


def on_one_mesh(module: Module, mesh: Mesh | None = None) -> Module:
    """The module with each sharding by the axes of one mesh: `mesh`, or that of `mesh_of_shardings`.

    Shardings in Shardy's attributes become shardings of HLO text, and its collectives constraints. A sharding on a
    single device, or unknown, or of a group (`shard_as`), is kept as it is. Where tiles leave out some devices of the
    mesh, all devices hold the whole array. Raises invalid_attribute where the axes of the mesh do not cut as a sharding
    says.
    """
    mesh = mesh or mesh_of_shardings(module)
    if mesh is None:
        return module
    shardings = _from_shardy(module)
    for instruction, sharding in shardings.items():
        shardings[instruction] = on_mesh(instruction, sharding, mesh)
    for instruction in _instructions(module):
        found = None if _has_group(instruction) else _on_all(instruction, mesh)
        if found is None:
            continue
        if hlo_text(found) != str(instruction.annotations[SHARDING]):
            shardings[instruction] = found
    return as_constraints(with_shardings(module, shardings), mesh)


def _on_all(instruction: Instruction, mesh: Mesh) -> AnySharding | None:
    """What an instruction states; where its tiles are on some devices alone, the whole array on all."""
    found = _parsed(instruction)
    several = found if isinstance(found, tuple) else (found,)
    stated = [None if each is None else each.stated for each in several]
    if all(not isinstance(each, Tiles) or each.is_on_all(mesh.num_devices) for each in stated):
        return sharding_of(instruction, mesh)
    made = tuple(Sharding(mesh) if isinstance(each, Tiles) and not each.is_on_all(mesh.num_devices)
                 else placed(each, mesh) for each in stated if each is not None)  # fmt: skip
    if isinstance(found, tuple):
        return made
    return made * sum(1 for _ in _leaves(instruction.shape)) if isinstance(instruction.shape, TupleShape) else made[0]


def annotated(module: Module, shardings: Mapping[str | int, AnySharding | P], *, mesh: Mesh | None = None) -> Module:
    """The module with these shardings, by the names of instructions or the numbers of parameters.

    A name is looked up in the entry first, then in the other computations. A short form such as `xb.P("x")` is meant on
    `mesh`, or on the mesh of the shardings that the module states. Other annotations are kept.
    Raises: undefined_name for a name that no instruction has; arity_mismatch for a number that no parameter has;
    rank_mismatch where a sharding has more entries than the array has dimensions; invalid_attribute for a short form
    without a mesh; unbound_axis for an axis that the mesh has not.

    >>> import xbuild as xb
    >>> module = xb.Module("doubled", xb.computation(xb.f32[8, 4])(lambda x: x + x))
    >>> found = annotated(module, {0: xb.P("data", None)}, mesh=xb.Mesh(data=2))
    >>> print(xb.shard.hlo_text(sharding_of(found.entry.parameters[0])))
    {mesh['data'=2], [{'data'}, {}]}
    """
    if mesh is None and any(isinstance(each, P) for each in shardings.values()):
        mesh = mesh_of_shardings(module)
    found = {_named(module, name): _placed(name, sharding, mesh) for name, sharding in shardings.items()}
    return with_shardings(module, found)


def _placed(name: str | int, sharding: AnySharding | P, mesh: Mesh | None) -> AnySharding:
    if not isinstance(sharding, P):
        return sharding
    if mesh is None:
        message = f"annotated: {sharding} for {name!r} names axes, and no mesh says how many devices these have"
        refuse("invalid_attribute", message, "mesh=xb.Mesh(data=2), or a sharding made by xb.shard.by_spec(mesh, spec)")
    return by_spec(mesh, sharding)


def _named(module: Module, name: str | int) -> Instruction:
    if isinstance(name, int):
        return _numbered(module, name)
    every = (each for computation in (module.entry, *module.computations) for each in computation.instructions)
    found = next((each for each in every if each.name == name), None)
    return found or refuse("undefined_name", f"module {module.name} has no instruction {name!r}")


def _numbered(module: Module, number: int) -> Instruction:
    parameters = module.entry.parameters
    if not 0 <= number < len(parameters):
        refuse("arity_mismatch", f"module {module.name} has {len(parameters)} parameters, and none is number {number}")
    return parameters[number]


def with_shardings(module: Module, shardings: Mapping[Instruction, AnySharding]) -> Module:
    """The module in which these instructions have these shardings."""

    def revised(instruction: Instruction) -> Instruction:
        if instruction not in shardings:
            return instruction
        text = Raw(_text(instruction, shardings[instruction]))
        return evolve(instruction, annotations={**instruction.annotations, SHARDING: text})

    return mapped(module, revised) if shardings else module


def _text(instruction: Instruction, sharding: AnySharding) -> str:
    shape = instruction.shape
    if not isinstance(sharding, Sharding) or not isinstance(shape, Shape):
        return hlo_text(sharding)
    if len(sharding.dims) > len(shape.dims):
        dims = f"{len(sharding.dims)} entries, and {instruction.name} has {len(shape.dims)} dimensions"
        refuse("rank_mismatch", f"a sharding has {dims}")
    return hlo_text(sharding, len(shape.dims))
