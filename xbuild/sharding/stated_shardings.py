"""The shardings that a module states: read from its annotations, brought to one mesh, and written back.

Sections:

    Stated shardings, read as records and written from them
    Modules whose shardings name several meshes of the same devices
    Shardy's collectives in a global program, as constraints on their operands and results
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import evolve

from shape_inference import Shape, TupleShape, refuse
from shape_inference.trees import flatten

from ..core.graph import Computation, Instruction, Module
from ..properties.device_groups import Pairs
from ..properties.mesh import Mesh, mesh_of
from ..properties.placement import (
    AXES,
    COLLECTIVES,
    CONSTRAINT,
    FUNC_RESULT_SHARDING,
    IN_SHARDINGS,
    MANUAL_AXES,
    MESHES,
    OUT_SHARDINGS,
    SHARDY,
    SHARDY_COLLECTIVE,
    target_of,
)
from ..properties.rewriting import mapped
from ..text.annotations import Raw, frontend_text, read_frontend_text
from ..text.meshes import AXIS, axis_parts_in
from ..variance.specs import P
from .hlo_text import (
    AnySharding,
    Parsed,
    TileAssignment,
    axis_on,
    common_mesh,
    express_by_axes,
    hlo_text,
    parsed,
    shardings,
)
from .sharding import Axis, DimSharding, Placement, Sharding, get_axis, merge_parts
from .shardy_text import AnyMesh, by_spec, shardy_mesh_text, shardy_meshes, shardy_shardings, shardy_text

# ----------------------------------------------------------------------------
# Stated shardings, read as records and written from them

SHARDING = "sharding"
RESULTS = "xbuild.out_shardings"
"""The header attribute of a partitioned program that states the shardings of its results."""


def sharding_of(instruction: Instruction, mesh: Mesh | None = None) -> AnySharding | None:
    """The sharding that the program states for a value, if any; a tuple for a tuple.

    Tiles are read by the axes of `mesh`, or of a mesh that is inferred from them; `on_one_mesh` gives all shardings of
    a program the same mesh. Raises invalid_attribute for an annotation that is not a sharding.

    >>> import xbuild as xb
    >>> text = "HloModule m\\nENTRY e {\\n  ROOT p = f32[8] parameter(0), sharding={devices=[2]<=[2]}\\n}"
    >>> sharding_of(xb.parse_hlo(text).entry.root).dim(0)
    DimSharding(axes=(Axis(name='axis_0', size=2, pre_size=1),), is_open=False, priority=0)
    """
    stated = _read_annotation(instruction)
    if stated is None:
        return None
    if isinstance(stated, tuple):
        return tuple(express_by_axes(each.stated, mesh) for each in stated)
    sharding = express_by_axes(stated.stated, mesh)
    if isinstance(instruction.shape, TupleShape) and isinstance(sharding, Placement | Sharding):
        return (sharding,) * len(flatten(instruction.shape))
    return sharding


def with_stated_shardings(
    module: Module, inputs: Sequence[str] | None, outputs: Sequence[str] | None, *, is_global: bool = False
) -> Module:
    """A module that states these shardings, in HLO text, of its parameters and results; None states none.

    A partitioned module states those of its results in the header, a global one at its root.

    >>> import xbuild as xb
    >>> module = xb.parse_hlo("HloModule m, num_partitions=2\\nENTRY e {\\n  ROOT p = f32[4] parameter(0)\\n}")
    >>> stated = with_stated_shardings(module, ["{devices=[2]<=[2]}"], ["{replicated}"])
    >>> stated.annotations["frontend_attributes"]
    '{xbuild.out_shardings="{replicated}"}'
    """
    results = ""
    if outputs:
        results = f"{{{', '.join(outputs)}}}" if isinstance(module.entry.root.shape, TupleShape) else outputs[0]
    texts = dict(zip(module.entry.parameters, inputs or (), strict=inputs is not None))
    if results and is_global:
        texts[module.entry.root] = results
    if texts:

        def annotate(each: Instruction) -> Instruction:
            return evolve(each, annotations={**each.annotations, SHARDING: Raw(texts[each])}) if each in texts else each

        module = mapped(module, annotate)
    if results and not is_global:
        notes = {**read_frontend_text(str(module.annotations.get("frontend_attributes", "{}"))), RESULTS: results}
        module = evolve(module, annotations={**module.annotations, "frontend_attributes": frontend_text(notes)})
    return module


def shardings_in_text(module: Module) -> tuple[list[str] | None, list[str] | None]:
    """The texts of the shardings of parameters and results that a partitioned module states; None if some lack one."""
    inputs = [each.annotations.get(SHARDING) for each in module.entry.parameters]
    stated = read_frontend_text(str(module.annotations.get("frontend_attributes", "{}"))).get(RESULTS)
    outputs = None
    if stated is not None:
        found = shardings(stated)
        outputs = [hlo_text(each) for each in (found if isinstance(found, tuple) else (found,))]
    return None if None in inputs else list(map(str, inputs)), outputs


def _read_annotation(instruction: Instruction) -> Parsed | tuple[Parsed, ...] | None:
    text = instruction.annotations.get(SHARDING)
    return None if text is None else _read(str(text))


def _has_group(instruction: Instruction) -> bool:
    found = _read_annotation(instruction)
    several = found if isinstance(found, tuple) else (found,)
    return any(each is not None and each.group is not None for each in several)


_read = functools.lru_cache(maxsize=1 << 12)(parsed)


def mesh_of_shardings(module: Module) -> Mesh | None:
    """The mesh of a program: the one of its header, the one that its shardings name, or one on which their tiles are.

    Tiles are on a mesh of Shardy that the header names if all of them fit it; otherwise the mesh is inferred from them.
    If no sharding splits anything, it is the first mesh that the header names, or None. Of meshes that differ only in
    the order of their devices, it is the first; of others, it is one that has the axes of all. Raises invalid_attribute
    if no mesh has the axes of two that shardings name.
    """
    module = on_common_mesh(module)
    recorded = mesh_of(module)
    if recorded is not None:
        return recorded
    stated = [each for instruction in _instructions(module) for each in _records_of(instruction)]
    stated += [each for sharding in _read_shardy_attributes(module).values() for each in _as_tuple(sharding)]
    meshes = dict.fromkeys(each.mesh for each in stated if isinstance(each, Sharding) and each.mesh.num_devices > 1)
    first = next(iter(meshes), None)
    if first is not None:
        return first
    tiles = [each for each in stated if isinstance(each, TileAssignment)]
    named = [each for each in shardy_meshes(module).values() if isinstance(each, Mesh)]
    large = [each for each in named if each.num_devices > 1]
    if tiles and (fitting := next((mesh for mesh in large if all(each.on(mesh) for each in tiles)), None)):
        return fitting
    if tiles:
        count = max(max(each.devices) for each in tiles) + 1
        return common_mesh(
            [each for each in tiles if each.is_on_all(count)] or [TileAssignment((count,), (), (), (*range(count),))]
        )
    all_named = (*large, *named, *(each.mesh for each in stated if isinstance(each, Sharding)))
    return next(iter(all_named), None)


def mesh_of_program(module: Module) -> Mesh | None:
    """The mesh of the shardings, else one of all partitions that the module states, on which arrays are replicated."""
    named = mesh_of_shardings(module)
    if (named is None or named.num_devices == 1) and module.num_partitions > 1:
        return Mesh({"axis_0": module.num_partitions})
    return named


def _records_of(instruction: Instruction) -> Iterator[Any]:
    found = _read_annotation(instruction)
    yield from (each.stated for each in (found if isinstance(found, tuple) else (found,)) if each is not None)


def _as_tuple(sharding: AnySharding) -> tuple[Sharding | Placement, ...]:
    return sharding if isinstance(sharding, tuple) else (sharding,)


def _read_shardy_attributes(module: Module) -> dict[Instruction, AnySharding]:
    """The shardings in Shardy's attributes, for instructions without a sharding of HLO."""
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

    Shardings in Shardy's attributes become shardings of HLO text, and its collectives become constraints. A sharding
    on one device, an unknown one, and one of a group (`shard_as`) stay as they are. If tiles omit some devices of the
    mesh, the array is replicated. Raises invalid_attribute if the axes of the mesh cannot express a sharding.
    """
    module = on_common_mesh(module)
    mesh = mesh or mesh_of_shardings(module)
    if mesh is None:
        return module
    shardings = _read_shardy_attributes(module)
    for instruction, sharding in shardings.items():
        shardings[instruction] = on_mesh(instruction, sharding, mesh)
    for instruction in _instructions(module):
        stated = None if _has_group(instruction) else _sharding_on_all_devices(instruction, mesh)
        if stated is not None and hlo_text(stated) != str(instruction.annotations[SHARDING]):
            shardings[instruction] = stated
    return as_constraints(with_shardings(module, shardings), mesh)


def _sharding_on_all_devices(instruction: Instruction, mesh: Mesh) -> AnySharding | None:
    """The sharding that an instruction states; replicated if its tiles are on some devices only."""
    found = _read_annotation(instruction)
    several = found if isinstance(found, tuple) else (found,)
    stated = [None if each is None else each.stated for each in several]
    if all(not isinstance(each, TileAssignment) or each.is_on_all(mesh.num_devices) for each in stated):
        return sharding_of(instruction, mesh)
    made = tuple(Sharding(mesh) if isinstance(each, TileAssignment) and not each.is_on_all(mesh.num_devices)
                 else express_by_axes(each, mesh) for each in stated if each is not None)  # fmt: skip
    if isinstance(found, tuple):
        return made
    return made * len(flatten(instruction.shape)) if isinstance(instruction.shape, TupleShape) else made[0]


def annotated(module: Module, shardings: Mapping[str | int, AnySharding | P], *, mesh: Mesh | None = None) -> Module:
    """The module with these shardings, by the names of instructions or the numbers of parameters.

    A name is looked up in the entry first, then in the other computations. A short form such as `xb.P("x")` refers to
    `mesh`, or to the mesh of the shardings that the module states. Other annotations are kept.
    Raises: undefined_name for a name that no instruction has; arity_mismatch for a number that no parameter has;
    rank_mismatch if a sharding has more entries than the array has dimensions; invalid_attribute for a short form
    without a mesh; unbound_axis for an axis that the mesh does not have.

    >>> import xbuild as xb
    >>> module = xb.Module("doubled", xb.computation(xb.f32[8, 4])(lambda x: x + x))
    >>> found = annotated(module, {0: xb.P("data", None)}, mesh=xb.Mesh(data=2))
    >>> print(xb.shard.hlo_text(sharding_of(found.entry.parameters[0])))
    {mesh['data'=2], [{'data'}, {}]}
    """
    if mesh is None and any(isinstance(each, P) for each in shardings.values()):
        mesh = mesh_of_shardings(module)
    by_name: dict[str, Instruction] = {}
    for computation in (module.entry, *module.computations):
        for instruction in computation.instructions:
            by_name.setdefault(instruction.name, instruction)
    found = {
        _find_instruction(module, by_name, name): _read_short_form(name, sharding, mesh)
        for name, sharding in shardings.items()
    }
    return with_shardings(module, found)


def _read_short_form(name: str | int, sharding: AnySharding | P, mesh: Mesh | None) -> AnySharding:
    if not isinstance(sharding, P):
        return sharding
    if mesh is None:
        message = f"annotated: {sharding} for {name!r} names axes, but no mesh defines their sizes"
        refuse(
            "invalid_attribute",
            message,
            "pass mesh=xb.Mesh(data=2), or a sharding made by xb.shard.by_spec(mesh, spec)",
        )
    return by_spec(mesh, sharding)


def _find_instruction(module: Module, by_name: Mapping[str, Instruction], name: str | int) -> Instruction:
    if isinstance(name, int):
        return _find_parameter(module, name)
    return by_name.get(name) or refuse("undefined_name", f"module {module.name} has no instruction {name!r}")


def _find_parameter(module: Module, number: int) -> Instruction:
    parameters = module.entry.parameters
    if not 0 <= number < len(parameters):
        refuse(
            "arity_mismatch", f"module {module.name} has {len(parameters)} parameters, got parameter number {number}"
        )
    return parameters[number]


def with_shardings(module: Module, shardings: Mapping[Instruction, AnySharding]) -> Module:
    """The module in which these instructions have these shardings."""

    def annotate(instruction: Instruction) -> Instruction:
        if instruction not in shardings:
            return instruction
        text = Raw(_sharding_text(instruction, shardings[instruction]))
        return evolve(instruction, annotations={**instruction.annotations, SHARDING: text})

    return mapped(module, annotate) if shardings else module


def _sharding_text(instruction: Instruction, sharding: AnySharding) -> str:
    shape = instruction.shape
    if not isinstance(sharding, Sharding) or not isinstance(shape, Shape):
        return hlo_text(sharding)
    if len(sharding.dims) > len(shape.dims):
        dims = f"{len(sharding.dims)} entries, but {instruction.name} has {len(shape.dims)} dimensions"
        refuse("rank_mismatch", f"a sharding has {dims}")
    return hlo_text(sharding, len(shape.dims))


# ----------------------------------------------------------------------------
# Modules whose shardings name several meshes of the same devices
#
# The shardings are rewritten for one mesh.

_SHARDINGS = (SHARDY, IN_SHARDINGS, OUT_SHARDINGS)
_AXES = (MANUAL_AXES, AXES)
_NAME = "mesh"

Axes: TypeAlias = "tuple[Axis, ...]"


def on_common_mesh(module: Module) -> Module:
    """The module with all shardings on one mesh; unchanged if they are, or if meshes differ only in device order.

    A mesh without axes has one device: an array on it is replicated on the mesh of the program. Each axis of other
    meshes becomes axes, or parts of axes, of a mesh that splits the devices as finely as all of them. Raises
    invalid_attribute if there is no such mesh.

    >>> import xbuild as xb
    >>> note = 'frontend_attributes={xla.sdy.sharding="#sdy.sharding<@%s, [%s]>"}'
    >>> meshes = 'a = #sdy.mesh<[\\\\"x\\\\"=4]>, b = #sdy.mesh<[\\\\"y\\\\"=2, \\\\"z\\\\"=2]>'
    >>> text = 'HloModule m, num_partitions=4, frontend_attributes={xla.sdy.meshes="{%s}"}\\n' % meshes
    >>> text += 'ENTRY e {\\n  p = f32[8] parameter(0), ' + note % ("a", '{\\\\"x\\\\"}')
    >>> text += '\\n  ROOT n = f32[8] negate(p), ' + note % ("b", '{\\\\"z\\\\"}') + "\\n}"
    >>> print(on_common_mesh(xb.parse(text)).entry.parameters[0].annotations["frontend_attributes"][SHARDY])
    #sdy.sharding<@mesh, [{"y", "z"}]>

    Source: Shardy, sdy.mesh.
    """
    meshes = shardy_meshes(module)
    every = (each for computation in module.computations for each in computation.instructions)
    texts = dict.fromkeys(text for each in every for text in _texts_of(each))
    stated = (sharding for text in texts for sharding in _shardings_in(text, meshes))
    used = dict.fromkeys(each.mesh for each in stated if isinstance(each, Sharding))
    if len({mesh.sizes for mesh in used}) < 2:
        return module
    target = _choose_mesh(module, [mesh for mesh in used if mesh.num_devices > 1] or [*used])
    images = {mesh: _map_axes(mesh, target) for mesh in used}
    notes = read_frontend_text(str(module.annotations.get("frontend_attributes", "{}")))
    notes[MESHES] = f"{{{_NAME} = {shardy_mesh_text(target)}}}"
    changed = mapped(module, lambda each: _rewrite_instruction(each, meshes, images, target))
    return evolve(changed, annotations={**module.annotations, "frontend_attributes": Raw(frontend_text(notes))})


def _notes(instruction: Instruction) -> Mapping[str, str]:
    found: Mapping[str, str] = instruction.annotations.get("frontend_attributes", {})
    return found


def _texts_of(instruction: Instruction) -> Iterator[str]:
    """The texts of the shardings that an instruction states, in Shardy's form or by names in HLO's."""
    notes = _notes(instruction)
    for key in _SHARDINGS:
        if key in notes:
            yield str(notes[key])
    text = str(instruction.annotations.get("sharding", ""))
    if "mesh[" in text:
        yield text


def _shardings_in(text: str, meshes: Mapping[str, AnyMesh]) -> Iterator[Sharding | Placement]:
    if not text.startswith("{"):
        yield from shardy_shardings(text, meshes)
        return
    found = parsed(text)
    several = found if isinstance(found, tuple) else (found,)
    yield from (each.stated for each in several if not isinstance(each.stated, TileAssignment))


def _choose_mesh(module: Module, meshes: list[Mesh]) -> Mesh:
    """A mesh of whose axes all others consist, if possible without splitting an axis."""
    tiles = [_tiles(mesh) for mesh in meshes]
    finest = common_mesh(tiles) if len({mesh.num_devices for mesh in meshes}) == 1 else meshes[0]
    fitting = [mesh for mesh in (*meshes, finest) if all(each.on(mesh) is not None for each in tiles)]
    if not fitting:
        first, other = meshes[:2]
        message = f"the shardings of {module.name} use two meshes, {first} and {other}"
        refuse(
            "invalid_attribute",
            f"{message}, and no single mesh has the axes of both",
            "state all shardings on one mesh",
        )
    return next((mesh for mesh in fitting if all(_uses_whole_axes(each, mesh) for each in tiles)), fitting[0])


def _tiles(mesh: Mesh) -> TileAssignment:
    return TileAssignment(mesh.shape, (), (), mesh.device_ids or tuple(range(mesh.num_devices)))


def _uses_whole_axes(tiles: TileAssignment, mesh: Mesh) -> bool:
    found = tiles.on(mesh)
    return found is not None and all(axis == get_axis(mesh, axis.name) for axis in found.cut_axes)


def _map_axes(mesh: Mesh, target: Mesh) -> dict[str, Axes]:
    """The axes of the target that each axis of a mesh becomes, the outermost first; none for one of size 1."""
    found = _tiles(mesh).on(target) if mesh.num_devices > 1 else None
    dims = found.dims if found is not None else (DimSharding(),) * len(mesh.sizes)
    return {name: dim.axes for (name, _), dim in zip(mesh.sizes, dims, strict=True)}


def _map_axis(axis: Axis, images: Mapping[str, Axes]) -> Axes:
    """The axes that an axis, or a part of one, becomes."""
    found, end = [], 1
    for each in images[axis.name]:
        low, high = max(end, axis.pre_size), min(end * each.size, axis.end)
        if low < high and (high % low or low % end or (end * each.size) % high):
            message = f"axis {axis.name!r} is split into {axis.pre_size} x {axis.size} parts"
            refuse("invalid_attribute", f"{message}, but parts of axis {each.name!r} cannot express this split")
        if low < high:
            found.append(Axis(each.name, high // low, each.pre_size * low // end))
        end *= each.size
    return merge_parts(found)


def _map_sharding(sharding: Sharding | Placement, images: Mapping[Mesh, Mapping[str, Axes]], target: Mesh) -> Any:
    if not isinstance(sharding, Sharding):
        return sharding

    def map_all(axes: Iterable[Axis]) -> Axes:
        return merge_parts(image for axis in axes for image in _map_axis(axis, images[sharding.mesh]))

    dims = tuple(evolve(dim, axes=map_all(dim.axes)) for dim in sharding.dims)
    replicated, unreduced, manual = map_all(sharding.replicated), map_all(sharding.unreduced), map_all(sharding.manual)
    return evolve(sharding, mesh=target, dims=dims, replicated=replicated, unreduced=unreduced, manual=manual)


def _rewrite_instruction(
    instruction: Instruction, meshes: Mapping[str, AnyMesh], images: Mapping[Mesh, Mapping[str, Axes]], target: Mesh
) -> Instruction:
    every = (each for text in _texts_of(instruction) for each in _shardings_in(text, meshes))
    stated = [each for each in every if isinstance(each, Sharding)]
    if not stated:
        return instruction
    notes = dict(_notes(instruction))
    for key in _SHARDINGS:
        if key in notes:
            notes[key] = _rewrite_text(str(notes[key]), meshes, images, target)
    for key in _AXES:
        if key in notes:
            notes[key] = AXIS.sub(lambda found: _rewrite_axis(found[0], stated, images, target), str(notes[key]))
    annotations: dict[str, Any] = {**instruction.annotations}
    if notes:
        annotations["frontend_attributes"] = notes
    if "mesh[" in str(annotations.get("sharding", "")):
        found = parsed(str(annotations["sharding"]))
        several = found if isinstance(found, tuple) else (found,)
        moved = tuple(
            _map_sharding(each.stated, images, target)
            for each in several
            if not isinstance(each.stated, TileAssignment)
        )
        if len(moved) == len(several):
            annotations["sharding"] = Raw(hlo_text(moved if isinstance(found, tuple) else moved[0]))
    return evolve(instruction, annotations=annotations)


def _rewrite_text(text: str, meshes: Mapping[str, AnyMesh], images: Any, target: Mesh) -> str:
    words = [shardy_text(_map_sharding(each, images, target), _NAME) for each in shardy_shardings(text, meshes)]
    if re.match(r"#sdy\.sharding\s*<", text):
        return words[0]
    return f"#sdy.sharding_per_value<[{', '.join(word.removeprefix('#sdy.sharding') for word in words)}]>"


def _rewrite_axis(text: str, stated: list[Sharding], images: Mapping[Mesh, Mapping[str, Axes]], target: Mesh) -> str:
    """The text of the axes that an axis becomes, on the first mesh of the instruction that has it."""
    name = text[1 : text.index('"', 1)]
    mesh = next((each.mesh for each in stated if name in each.mesh.axes), None)
    if mesh is None:
        return text
    found = [image for axis in axes_in(text, mesh) for image in _map_axis(axis, images[mesh])]
    return ", ".join(axis.spelled(target) for axis in merge_parts(found))


# ----------------------------------------------------------------------------
# Shardy's collectives in a global program, as constraints on their operands and results

MOVES = "xbuild.device_moves"
_KINDS = {target: target.removeprefix(SHARDY_COLLECTIVE) for target in (*COLLECTIVES, FUNC_RESULT_SHARDING)}
_REDUCING = ("all_reduce", "reduce_scatter")


def as_constraints(module: Module, mesh: Mesh) -> Module:
    """The module with each collective of Shardy as a constraint: its result has the sharding that it states.

    A collective_permute to a mesh with a different order of devices also states which device sends to which. The
    operand of an all_reduce or reduce_scatter is unreduced along the axes that it names, whatever its annotation says.
    """
    unreduced: dict[Instruction, tuple[Axis, ...]] = {}
    meshes = shardy_meshes(module)
    for computation in module.computations:
        unreduced |= _find_unreduced(computation, mesh)

    def constrain(instruction: Instruction) -> Instruction:
        changed = instruction
        if _kind(instruction):
            changed = evolve(changed, attributes=evolve(changed.attributes, custom_call_target=CONSTRAINT))
            changed = _with_moves(changed, instruction is module.entry.root, mesh, meshes)
        return _with_unreduced(changed, unreduced.get(instruction, ()), mesh)

    is_needed = any(_kind(each) for computation in module.computations for each in computation.instructions)
    return mapped(module, constrain) if is_needed else module


def on_mesh(instruction: Instruction, sharding: AnySharding, mesh: Mesh) -> AnySharding:
    """A sharding of Shardy's on the mesh of the program.

    A mesh with a different order of devices is allowed only for a collective_permute that the program returns.
    """
    if isinstance(sharding, tuple):
        return tuple(
            one for each in sharding for one in (on_mesh(instruction, each, mesh),) if not isinstance(one, tuple)
        )
    if not isinstance(sharding, Sharding) or sharding.mesh == mesh:
        return sharding
    if sharding.mesh.num_devices == 1:  # every device of the program holds all of the array
        return Sharding(mesh, tuple(evolve(dim, axes=()) for dim in sharding.dims))
    if _kind(instruction) != "collective_permute":
        message = (
            f"{instruction.name} is on {sharding.mesh}, but the program is on {mesh}; only a collective_permute that "
        )
        refuse("invalid_attribute", f"{message}the program returns may move a value between meshes")
    return evolve(sharding, mesh=mesh)


def moved_pairs(instruction: Instruction) -> Pairs:
    """The pairs of devices of a collective_permute to a mesh with a different order of devices; none for others."""
    text = str(instruction.annotations.get("frontend_attributes", {}).get(MOVES, ""))
    return tuple((int(source), int(target)) for source, target in re.findall(r"(?<!\d)(\d{1,9}+)>(\d{1,9}+)", text))


def _with_moves(instruction: Instruction, is_root: bool, mesh: Mesh, meshes: Mapping[str, AnyMesh]) -> Instruction:
    """A collective_permute to a mesh with a different order of devices, annotated with the pairs of devices."""
    notes = instruction.annotations.get("frontend_attributes", {})
    (stated,) = shardy_shardings(str(notes.get(SHARDY, "")), meshes)
    if not isinstance(stated, Sharding) or stated.mesh == mesh:
        return instruction
    if not is_root:
        refuse("invalid_attribute", f"{instruction.name} is used on {stated.mesh}, but the program is on {mesh}")
    order, other = (each.device_ids or range(mesh.num_devices) for each in (mesh, stated.mesh))
    text = ",".join(f"{source}>{target}" for source, target in zip(order, other, strict=True))
    return evolve(instruction, annotations={**instruction.annotations, "frontend_attributes": {**notes, MOVES: text}})


def _kind(instruction: Instruction) -> str:
    """The collective of Shardy that a custom call is; empty for other instructions."""
    return _KINDS.get(target_of(instruction), "")


def _find_unreduced(computation: Computation, mesh: Mesh) -> dict[Instruction, tuple[Axis, ...]]:
    """The axes along which operands of collectives are partial sums, from the last collective to the first."""
    found: dict[Instruction, tuple[Axis, ...]] = {}
    for instruction in reversed(computation.instructions):
        kind = _kind(instruction)
        if kind:
            own = tuple(_axes(instruction, mesh)) if kind in _REDUCING and _is_sum(instruction) else ()
            later = tuple(axis for axis in found.get(instruction, ()) if axis not in own)
            (operand,) = instruction.operands
            found[operand] = tuple(dict.fromkeys((*found.get(operand, ()), *own, *later)))
    return found


def _is_sum(instruction: Instruction) -> bool:
    """Whether a collective adds; another reduction combines the results of the op that produces its operand."""
    text = str(instruction.annotations.get("frontend_attributes", {}).get(AXES, ""))
    other = next((word for word in ("max", "min") if text.startswith(word)), "")
    if other and instruction.operands[0].opcode == "parameter":
        message = (
            f"{instruction.name} takes the {other} of {instruction.operands[0].name}, but a sharding can "
            "express only sums"
        )
        refuse("invalid_attribute", message, "use xb.shard.all_reduce, which supports every reduction")
    return not other


def _axes(instruction: Instruction, mesh: Mesh) -> Iterator[Axis]:
    yield from axes_in(str(instruction.annotations.get("frontend_attributes", {}).get(AXES, "")), mesh)


def axes_in(text: str, mesh: Mesh) -> Iterator[Axis]:
    """The axes, and parts of axes, that a text of Shardy names."""
    return (axis_on(mesh, part) for part in axis_parts_in(text))


def _with_unreduced(instruction: Instruction, axes: tuple[Axis, ...], mesh: Mesh) -> Instruction:
    shape = instruction.shape
    if not axes or not isinstance(shape, Shape):
        return instruction
    text = instruction.annotations.get("sharding")
    stated = Sharding(mesh) if text is None else shardings(str(text), mesh)
    if not isinstance(stated, Sharding):
        return instruction
    more = tuple(axis for axis in axes if not any(axis.overlaps(each) for each in stated.unreduced))
    changed = evolve(stated, unreduced=(*stated.unreduced, *more))
    return evolve(instruction, annotations={**instruction.annotations, "sharding": Raw(hlo_text(changed, shape.rank))})
