"""`partition`: from a module with shardings to the module that every device of the mesh runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from attrs import evolve

from shape_inference import refuse

from ... import ops
from ...core.graph import Instruction, Module
from ...core.op import OPS
from ...process.gc_pause import no_collection
from ...properties.mesh import MESH, Mesh
from ...text.spelling.notes import Raw
from ..propagation import Propagated
from ..propagation import propagate as propagated
from ..propagation.flattening import running_in
from ..regions import check_is_global, regions, target_of
from ..shardy_text import shardy_meshes
from ..stored import RESULTS, SHARDING, mapped, mesh_of_shardings, on_one_mesh
from ..tiles import tiled_text
from .partitioned import Partitioned
from .parts.agreement import EVERY_DECISION, NOTHING, PARAMETERS, agreeing, is_undecided
from .parts.devices import device_of, from_device, numbered
from .parts.effects import refuse_unplaced
from .parts.frame import Frame, PartBuilder, Shared, is_of_the_global
from .parts.holding import held_by
from .parts.layouts import Tree, leaves_of
from .parts.layouts import mapped as mapped_tree
from .parts.trees import as_annotated, asked, local_shape, pieces_of
from .parts.walk import put_together, walked
from .reasons import OnDevice, Output, Story


def partition(module: Module | Propagated, *, propagate: bool = True, mesh: Mesh | None = None) -> Partitioned:
    """The program that every device of a mesh runs on its parts of the arrays of a global program.

    The shardings are those that instructions are annotated with; with `propagate` the others follow from them, without
    it a value is cut as is cheapest for the instruction that makes it. `mesh` is for programs whose shardings name
    none. Of a `Propagated` its shardings are taken. Extents that do not divide are padded at the end.
    Raises: invalid_attribute where no sharding names a mesh, or where the module has several replicas; invalid_operand
    for transfers, infeeds and collectives between devices.

    >>> import numpy as np, xbuild as xb
    >>> from xbuild.sharding.partition import partition
    >>> from xbuild.sharding.stored import annotated
    >>> from xbuild.sharding.sharding import cut
    >>> from xbuild.sharding.axis import whole
    >>> mesh = xb.Mesh(x=2)
    >>> product = xb.computation(xb.f32[4, 6], xb.f32[6, 2])(xb.dot)
    >>> module = xb.Module("product", product)
    >>> found = partition(annotated(module, {"parameter.1": cut(mesh, [[], [whole(mesh, "x")]])}), propagate=False)
    >>> found.run(np.ones((4, 6), np.float32), np.ones((6, 2), np.float32))[0]
    array([6., 6.], dtype=float32)

    Source: XLA, SPMD partitioner; Shardy.
    """
    if isinstance(module, Propagated):
        given = module
        return _agreed(_checked(given.module, given.mesh), given.mesh, Story(lambda: given))
    mesh = mesh or mesh_of_shardings(module)
    if mesh is None:
        refuse("invalid_attribute", f"partition: no sharding of {module.name} names a mesh",
               "say on which devices it runs: mesh=xb.Mesh(x=2)")  # fmt: skip
    module = on_one_mesh(module, mesh)
    module = _checked(module, mesh)
    causes = propagated(module, mesh=mesh) if propagate else None
    return _agreed(module if causes is None else causes.module, mesh, Story(lambda: causes))


def _checked(module: Module, mesh: Mesh) -> Module:
    """The module as it is partitioned."""
    _check(module, mesh)
    return _plain_reducers(module)


def _agreed(module: Module, mesh: Mesh, story: Story) -> Partitioned:
    """The program of a device with as many numbers made one on all devices as the check asks for."""
    for agreement in (NOTHING, PARAMETERS, EVERY_DECISION):
        with no_collection():
            found = _partitioned(module, mesh, agreement, story)
        if agreement == EVERY_DECISION or not is_undecided(found.module):
            break
    return found


def _check(module: Module, mesh: Mesh) -> None:
    if module.num_replicas > 1:
        refuse("invalid_attribute", f"partition: {module.name} has {module.num_replicas} replicas, and 1 is wanted")
    check_is_global(module, mesh, "partition")
    manual = regions(module, mesh)
    for computation in module.entry.reachable():
        for instruction in computation.instructions:
            if not manual.of(instruction):
                _check_feed(instruction)


def _check_feed(instruction: Instruction) -> None:
    """Refuse feeds that do not say on which device they are."""
    if OPS[instruction.opcode].properties.needs in ("peer", "host") and SHARDING not in instruction.annotations:
        refuse_unplaced(instruction)


def _channel(instruction: Instruction) -> int:
    return getattr(instruction.attributes, "channel_id", None) or 0


def _plain_reducers(module: Module) -> Module:
    """The module in which computations that are applied to elements mark no shardings."""
    whole = running_in(module.entry)
    reducers = {each for root in module.computations for each in root.reachable()} - whole
    inside = {each for computation in reducers for each in computation.instructions if target_of(each) == "Sharding"}
    return mapped(module, lambda each: None if each in inside else each) if inside else module


def _partitioned(module: Module, mesh: Mesh, agreement: int, story: Story) -> Partitioned:
    every = (each for computation in module.entry.reachable() for each in computation.instructions)
    shared = Shared(mesh, agreement, [max(map(_channel, every), default=0)], meshes=shardy_meshes(module),
                    numbered=numbered(module), regions=regions(module, mesh), story=story)  # fmt: skip
    frame = Frame(shared, _builder(module))
    entered = [_entered(frame, parameter) for parameter in module.entry.parameters]
    tree = walked(frame, module.entry)
    out = as_annotated(mesh, module.entry.root, tree)
    frame.builder.part_of = module.entry.root
    entry = frame.builder.build(put_together(frame, tree, out, Output(module.entry.root)))
    notes = f'{{{MESH}="{mesh.spelled()}",{RESULTS}="{_text(out)}"}}'
    annotations = MappingProxyType({"frontend_attributes": notes})
    found = Module(module.name, entry, num_partitions=mesh.num_devices, annotations=annotations)
    shapes = tuple(each.shape for each in module.entry.parameters)
    return Partitioned(
        _promised(found, entered), mesh, tuple(entered), out, shapes, module.entry.root.shape,
        tuple(shared.communications), module, story, held_by(shared),
    )  # fmt: skip


def _builder(module: Module) -> PartBuilder:
    """A builder that takes no name of another computation of the module."""
    builder = PartBuilder(f"{module.entry.name.removesuffix('_spmd')}_spmd")
    others = [each for each in module.computations if each is not module.entry]
    names = [each.name for computation in others for each in computation.instructions]
    builder.reserve(names, [each.name for each in others])
    builder.count_from(_last_number(module))
    return builder


def _last_number(module: Module) -> int:
    """The greatest number at the end of a name, so that new names go on from there."""
    names = (each.name.rpartition(".")[2] for computation in module.computations for each in computation.instructions)
    return max((int(each) for each in names if each.isdecimal() and len(each) < 10), default=0)


def _promised(module: Module, entered: Sequence[Tree]) -> Module:
    """The module whose parameters say which devices hold equal parts; what else stated shardings does so no more."""
    texts = {
        parameter: _text(tree)
        for parameter, tree in zip(module.entry.parameters, entered, strict=True)
        if not any(each.unreduced for each in leaves_of(tree))  # which XLA does not read
    }

    def told(instruction: Instruction) -> Instruction:
        if instruction not in texts:
            return _without_shardings(instruction)
        return evolve(instruction, annotations={**instruction.annotations, SHARDING: Raw(texts[instruction])})

    return mapped(module, told)


def _without_shardings(instruction: Instruction) -> Instruction:
    """An instruction of a computation that is kept as it was, such as a reducer, without its shardings."""
    kept = {key: each for key, each in instruction.annotations.items() if key != SHARDING}
    notes = kept.get("frontend_attributes", {})
    if isinstance(notes, Mapping) and any(map(is_of_the_global, notes)):
        kept["frontend_attributes"] = {key: each for key, each in notes.items() if not is_of_the_global(key)}
        kept = {key: each for key, each in kept.items() if each}
    return instruction if kept == instruction.annotations else evolve(instruction, annotations=kept)


def _text(shardings: Tree) -> str:
    if isinstance(shardings, tuple):
        return f"{{{', '.join(tiled_text(each, len(each.dims)) for each in leaves_of(shardings))}}}"
    return tiled_text(shardings, len(shardings.dims))


def _entered(frame: Frame, parameter: Instruction) -> Tree:
    """Record the parameter of a device, and give the shardings of its arrays."""
    shardings = asked(frame.mesh, parameter)
    frame.builder.part_of = parameter
    shape = local_shape(parameter.shape, shardings)
    value = ops.parameter(frame.builder, number=parameter.attributes.number, shape=shape, name=parameter.name)
    pieces = pieces_of(frame, value, parameter.shape, shardings, parameter)
    device = device_of(frame, parameter)
    if device is not None:
        reason = OnDevice(parameter, device)
        pieces = mapped_tree(lambda piece: from_device(frame, piece, device, reason), pieces)
    frame.values[parameter] = agreeing(frame, pieces)
    return shardings
