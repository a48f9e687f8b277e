"""`partition`: from a module with shardings to the module that every device of the mesh runs."""

from __future__ import annotations

from collections.abc import Sequence
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
from ..shardy_text import shardy_meshes
from ..stored import SHARDING, mapped, mesh_of_shardings, on_one_mesh
from ..tiles import tiled_text
from .partitioned import Partitioned
from .parts.agreement import EVERY_DECISION, NOTHING, PARAMETERS, agreeing, is_undecided
from .parts.frame import Frame, PartBuilder, Shared
from .parts.layouts import Tree, leaves_of
from .parts.manual import last_channel, manual_bodies
from .parts.trees import as_annotated, asked, local_shape, pieces_of
from .parts.walk import put_together, walked
from .reasons import Output, Story


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
        return _agreed(given.module, given.mesh, Story(lambda: given))
    mesh = mesh or mesh_of_shardings(module)
    if mesh is None:
        refuse("invalid_attribute", f"partition: no sharding of {module.name} names a mesh", "mesh=xb.Mesh(x=2)")
    _check(module)
    module = on_one_mesh(module, mesh)
    if not propagate:
        return _agreed(module, mesh, Story(lambda: None))
    return _agreed(propagated(module, mesh=mesh).module, mesh, Story(lambda: propagated(module, mesh=mesh)))


def _agreed(module: Module, mesh: Mesh, story: Story) -> Partitioned:
    """The program of a device with as many numbers made one on all devices as the check asks for."""
    _check(module)
    for agreement in (NOTHING, PARAMETERS, EVERY_DECISION):
        with no_collection():
            found = _partitioned(module, mesh, agreement, story)
        if agreement == EVERY_DECISION or not is_undecided(found.module):
            break
    return found


def _check(module: Module) -> None:
    if module.num_replicas > 1:
        refuse("invalid_attribute", f"partition: {module.name} has {module.num_replicas} replicas, and 1 is wanted")
    for computation in {*module.computations} - manual_bodies(module):
        for instruction in computation.instructions:
            _check_instruction(instruction)


def _check_instruction(instruction: Instruction) -> None:
    """Refuse what leaves the program, and collectives between the partitions that are still to be made."""
    needs, told = OPS[instruction.opcode].properties.needs, f"partition: {instruction.name} is a {instruction.opcode}"
    if needs in ("peer", "host"):
        refuse("invalid_operand", f"{told}, which every device of the mesh would do; it belongs to one")
    if needs == "group" and (getattr(instruction.attributes, "channel_id", None) or 0) > 0:
        refuse("invalid_operand", f"{told} with a channel, which is one between devices; the program is still global")


def _partitioned(module: Module, mesh: Mesh, agreement: int, story: Story) -> Partitioned:
    channels = [last_channel(manual_bodies(module))]
    shared = Shared(mesh, agreement, channels, meshes=shardy_meshes(module), story=story)
    frame = Frame(shared, _builder(module))
    entered = [_entered(frame, parameter) for parameter in module.entry.parameters]
    tree = walked(frame, module.entry)
    out = as_annotated(mesh, module.entry.root, tree)
    frame.builder.part_of = module.entry.root
    entry = frame.builder.build(put_together(frame, tree, out, Output(module.entry.root)))
    notes = MappingProxyType({"frontend_attributes": f'{{{MESH}="{mesh.spelled()}"}}'})
    found = Module(module.name, entry, num_partitions=mesh.num_devices, annotations=notes)
    shapes = tuple(each.shape for each in module.entry.parameters)
    return Partitioned(
        _promised(found, entered), mesh, tuple(entered), out, shapes, module.entry.root.shape,
        tuple(shared.communications), module, story,
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
    """The module whose parameters say which devices hold equal parts."""
    texts = {
        parameter: _text(tree)
        for parameter, tree in zip(module.entry.parameters, entered, strict=True)
        if not any(each.unreduced for each in leaves_of(tree))  # which XLA does not read
    }

    def told(instruction: Instruction) -> Instruction:
        if instruction not in texts:
            return instruction
        return evolve(instruction, annotations={**instruction.annotations, SHARDING: Raw(texts[instruction])})

    return mapped(module, told)


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
    frame.values[parameter] = agreeing(frame, pieces)
    return shardings
