"""Where a program keeps shardings: the annotation of each instruction, read as records and written from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import evolve

from shape_inference import Shape, TupleShape, refuse

from ..core.graph import Computation, Instruction, Module
from ..properties.mesh import Mesh, mesh_of
from ..text.spelling.notes import Raw
from .hlo_text import AnySharding, Parsed, hlo_text, parsed, placed
from .placement import Placement
from .sharding import Sharding
from .tiles import Tiles, common_mesh

SHARDING = "sharding"


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
    return None if text is None else parsed(str(text))


def _leaves(shape: Any) -> Iterator[Any]:
    if not isinstance(shape, TupleShape):
        yield shape
        return
    for part in shape.elements:
        yield from _leaves(part)


def mesh_of_shardings(module: Module) -> Mesh | None:
    """The mesh of a program: that of its header, that which its shardings name, or one inferred from their tiles.

    None where no sharding has one. Raises invalid_attribute where two shardings name different meshes.
    """
    noted = mesh_of(module)
    if noted is not None:
        return noted
    stated = [each for instruction in _instructions(module) for each in _stated(instruction)]
    meshes = {each.mesh: each for each in stated if isinstance(each, Sharding)}
    if len(meshes) > 1:
        one, other, *_ = meshes
        refuse("invalid_attribute", f"the shardings of {module.name} are on two meshes, {one} and {other}")
    if meshes:
        return next(iter(meshes))
    tiles = [each for each in stated if isinstance(each, Tiles)]
    return common_mesh(tiles) if tiles else None


def _stated(instruction: Instruction) -> Iterator[Any]:
    found = _parsed(instruction)
    yield from (each.stated for each in (found if isinstance(found, tuple) else (found,)) if each is not None)


def _instructions(module: Module) -> Iterator[Instruction]:
    return (each for computation in module.computations for each in computation.instructions)


def on_one_mesh(module: Module, mesh: Mesh | None = None) -> Module:
    """The module with each sharding by the axes of one mesh: `mesh`, or that of `mesh_of_shardings`.

    A sharding on a single device, or unknown, is kept as it is. Raises invalid_attribute where the axes of the mesh do
    not cut as a sharding says.
    """
    mesh = mesh or mesh_of_shardings(module)
    if mesh is None:
        return module
    shardings: dict[Instruction, AnySharding] = {}
    for instruction in _instructions(module):
        found = sharding_of(instruction, mesh)
        if found is not None:
            shardings[instruction] = found
    return with_shardings(module, shardings)


def annotated(module: Module, shardings: Mapping[str, AnySharding]) -> Module:
    """The module with these shardings, by the names of instructions; other annotations are kept.

    A name is looked up in the entry first, then in the other computations. Raises undefined_name for a name that no
    instruction has; rank_mismatch where a sharding has more entries than the array has dimensions.
    """
    found = {_named(module, name): sharding for name, sharding in shardings.items()}
    return with_shardings(module, found)


def _named(module: Module, name: str) -> Instruction:
    every = (each for computation in (module.entry, *module.computations) for each in computation.instructions)
    found = next((each for each in every if each.name == name), None)
    return found or refuse("undefined_name", f"module {module.name} has no instruction {name!r}")


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


def mapped(module: Module, change: Callable[[Instruction], Instruction]) -> Module:
    """The module with each instruction changed; what calls or uses a changed one is rebuilt, the rest is shared."""
    done: dict[Computation, Computation] = {}
    every = {each: None for root in (*module.computations, module.entry) for each in root.reachable()}
    for computation in every:
        done[computation] = _mapped(computation, change, done)
    return evolve(module, entry=done[module.entry], computations=tuple(done[each] for each in module.computations))


def _mapped(
    computation: Computation, change: Callable[[Instruction], Instruction], done: Mapping[Computation, Computation]
) -> Computation:
    made: dict[Instruction, Instruction] = {}
    for instruction in computation.instructions:
        now = change(instruction)
        operands = tuple(made[each] for each in now.operands)
        control = tuple(made[each] for each in now.control)
        attributes = _with_callees(now, done) if now.called else now.attributes
        if operands != now.operands or control != now.control or attributes is not now.attributes:
            now = evolve(now, operands=operands, control=control, attributes=attributes)
        made[instruction] = now
    if all(key is now for key, now in made.items()):
        return computation
    return Computation(computation.name, tuple(made.values()), made[computation.root])


def _with_callees(instruction: Instruction, done: Mapping[Computation, Computation]) -> Any:
    changes: dict[str, Any] = {}
    for key in instruction.attributes.calling:
        value = getattr(instruction.attributes, key)
        if isinstance(value, Computation):
            changes[key] = done[value]
        elif isinstance(value, tuple):
            changes[key] = tuple(done[each] for each in value)
    is_same = all(changes[key] == getattr(instruction.attributes, key) for key in changes)
    return instruction.attributes if is_same else evolve(instruction.attributes, **changes)
