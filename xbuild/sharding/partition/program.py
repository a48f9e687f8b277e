"""Partitions a program: finds its mesh and shardings, then records what each device runs, instruction by instruction.

Sections:

    partition: from a global program to that of a device
    walk: records the program of a device, instruction by instruction
    Collectives that a program states
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from attrs import evolve

from shape_inference import Shape, leaves, refuse
from shape_inference.trees import flatten, map_leaves

from ... import ops
from ...core.builder import Value
from ...core.graph import Computation, Instruction, Module
from ...core.op import OPS
from ...process.limits import no_collection
from ...process.progress import during, over
from ...properties.effects import reaches_outside
from ...properties.mesh import MESH, Mesh
from ...properties.order import live_instructions, ordered
from ...properties.rewriting import mapped
from ...text.annotations import Raw
from ..hlo_text import tiled_text
from ..manual_regions import check_is_global, is_between, regions, target_of
from ..propagation import Propagated
from ..propagation import propagate as propagate_shardings
from ..propagation.flow import running_in
from ..propagation.propagating import global_program
from ..shardy_text import shardy_meshes
from ..stated_shardings import RESULTS, SHARDING, mesh_of_program, on_one_mesh
from .devices import (
    EVERY_DECISION,
    NOTHING,
    PARAMETERS,
    check_inside,
    compute_on_device,
    depends_on_device,
    device_of,
    find_device_dependent,
    is_left_to_data,
    refuse_unplaced,
    run_effect_on_its_device,
    run_feed,
    share_from_device,
    take_parameters_from_first,
)
from .frame import (
    Frame,
    PartBuilder,
    Shared,
    Tree,
    is_global_annotation,
    local_dims,
    local_shape,
    make_pieces,
    read_shardings,
    run_replicated,
    stated_or_own_shardings,
    stated_or_replicated_shardings,
)
from .handler import handler_of
from .partitioned import Partitioned, find_held
from .reasons import ON_DEVICE, OUTPUT, WHOLE_OPERAND, Because, Story

# ----------------------------------------------------------------------------
# partition: from a global program to that of a device


def partition(module: Module | Propagated, *, propagate: bool = True, mesh: Mesh | None = None) -> Partitioned:
    """The program that every device of a mesh runs on its parts of a global program's arrays.

    The shardings are those that instructions are annotated with. If `propagate` is set, the others follow from these;
    otherwise a value is sharded in the cheapest way for the instruction that produces it. `mesh` is for programs whose
    shardings name none. A `Propagated` keeps its shardings. Extents that do not divide are padded at the end.
    Raises: invalid_attribute if no sharding names a mesh, or if the module has several replicas; invalid_operand for
    transfers, for feeds without a device, and for collectives between devices.

    >>> import numpy as np, xbuild as xb
    >>> from xbuild.sharding.partition import partition
    >>> from xbuild.sharding.stated_shardings import annotated
    >>> from xbuild.sharding.sharding import shard_dims
    >>> from xbuild.sharding.sharding import get_axis
    >>> mesh = xb.Mesh(x=2)
    >>> product = xb.computation(xb.f32[4, 6], xb.f32[6, 2])(xb.dot)
    >>> module = xb.Module("product", product)
    >>> columns = shard_dims(mesh, [[], [get_axis(mesh, "x")]])
    >>> found = partition(annotated(module, {"parameter.1": columns}), propagate=False)
    >>> found.run(np.ones((4, 6), np.float32), np.ones((6, 2), np.float32))[0]
    array([6., 6.], dtype=float32)

    Source: XLA, SPMD partitioner; Shardy.
    """
    if isinstance(module, Propagated):
        propagated = module
        prepared = _prepare(propagated.module, propagated.mesh)
        return _partition_until_decided(prepared, propagated.mesh, Story(lambda: propagated))
    module = global_program(module, "partition")
    mesh = mesh or mesh_of_program(module)
    if mesh is None:
        refuse(
            "invalid_attribute",
            f"partition: no sharding in {module.name} names a mesh, and the program has only one partition",
            "pass the mesh of the program: mesh=xb.Mesh(x=2)",
        )
    module = on_one_mesh(module, mesh)
    module = _prepare(module, mesh)
    causes = propagate_shardings(module, mesh=mesh) if propagate else None
    return _partition_until_decided(module if causes is None else causes.module, mesh, Story(lambda: causes))


def _prepare(module: Module, mesh: Mesh) -> Module:
    """The module, checked and without sharding marks in reducers."""
    _check_module(module, mesh)
    return _drop_marks_in_reducers(module)


def _partition_until_decided(module: Module, mesh: Mesh, story: Story) -> Partitioned:
    """The program of a device, with more scalars made equal on all devices until the check can decide."""
    for agreement in (NOTHING, PARAMETERS, EVERY_DECISION):
        with no_collection(), during("partitioning the program"):
            partitioned = _partition_once(module, mesh, agreement, story)
        if agreement == EVERY_DECISION or not is_left_to_data(partitioned.module):
            break
    return partitioned


def _check_module(module: Module, mesh: Mesh) -> None:
    if module.num_replicas > 1:
        refuse("invalid_attribute", f"partition: {module.name} has {module.num_replicas} replicas, expected 1")
    check_is_global(module, mesh, "partition")
    manual = regions(module, mesh)
    for computation in module.entry.reachable():
        for instruction in computation.instructions:
            if not manual.axes_at(instruction):
                _check_feed(instruction)
            if instruction.called and not handler_of(instruction).is_walked:
                check_inside(instruction, mesh)


def _check_feed(instruction: Instruction) -> None:
    """Refuse feeds that do not state their device."""
    if OPS[instruction.opcode].properties.needs in ("peer", "host") and SHARDING not in instruction.annotations:
        refuse_unplaced(instruction)


def _channel(instruction: Instruction) -> int:
    return getattr(instruction.attributes, "channel_id", None) or 0


def _drop_marks_in_reducers(module: Module) -> Module:
    """The module without sharding marks in computations that are applied to elements."""
    walked = running_in(module.entry)
    reducers = {each for root in module.computations for each in root.reachable()} - walked
    inside = {each for computation in reducers for each in computation.instructions if target_of(each) == "Sharding"}
    return mapped(module, lambda each: None if each in inside else each) if inside else module


def _partition_once(module: Module, mesh: Mesh, agreement: int, story: Story) -> Partitioned:
    every = (each for computation in module.entry.reachable() for each in computation.instructions)
    shared = Shared(
        mesh, agreement, [max(map(_channel, every), default=0)], meshes=shardy_meshes(module),
        device_dependent=find_device_dependent(module), regions=regions(module, mesh), story=story,
    )  # fmt: skip
    frame = Frame(shared, _make_builder(module))
    in_shardings = [_record_parameter(frame, parameter) for parameter in module.entry.parameters]
    tree = walk(frame, module.entry)
    out = stated_or_own_shardings(mesh, module.entry.root, tree)
    frame.builder.part_of = module.entry.root
    entry = frame.builder.build(assemble(frame, tree, out, Because(OUTPUT, module.entry.root)))
    notes = f'{{{MESH}="{mesh.spelled()}",{RESULTS}="{_write_shardings(out)}"}}'
    annotations = MappingProxyType({"frontend_attributes": notes})
    spmd = Module(module.name, entry, num_partitions=mesh.num_devices, annotations=annotations)
    shapes = tuple(each.shape for each in module.entry.parameters)
    return Partitioned(
        _annotate_parameters(spmd, in_shardings), mesh, tuple(in_shardings), out, shapes, module.entry.root.shape,
        tuple(shared.communications), module, story, find_held(shared),
    )  # fmt: skip


def _make_builder(module: Module) -> PartBuilder:
    """A builder that uses no name of the module's other computations."""
    builder = PartBuilder(f"{module.entry.name.removesuffix('_spmd')}_spmd")
    others = [each for each in module.computations if each is not module.entry]
    names = [each.name for computation in others for each in computation.instructions]
    builder.reserve(names, [each.name for each in others])
    builder.count_from(_last_number(module))
    return builder


def _last_number(module: Module) -> int:
    """The greatest number at the end of a name, after which new names are numbered."""
    names = (each.name.rpartition(".")[2] for computation in module.computations for each in computation.instructions)
    return max((int(each) for each in names if each.isdecimal() and len(each) < 10), default=0)


def _annotate_parameters(module: Module, in_shardings: Sequence[Tree]) -> Module:
    """The module whose parameters, and nothing else, are annotated with shardings: they say which parts are equal."""
    texts = {
        parameter: _write_shardings(shardings)
        for parameter, shardings in zip(module.entry.parameters, in_shardings, strict=True)
        if not any(each.unreduced for each in flatten(shardings))  # XLA does not read unreduced axes
    }

    def annotate(instruction: Instruction) -> Instruction:
        if instruction not in texts:
            return _drop_shardings(instruction)
        return evolve(instruction, annotations={**instruction.annotations, SHARDING: Raw(texts[instruction])})

    return mapped(module, annotate)


def _drop_shardings(instruction: Instruction) -> Instruction:
    """An instruction of a computation that is not partitioned, such as a reducer, without its shardings."""
    kept = {key: each for key, each in instruction.annotations.items() if key != SHARDING}
    notes = kept.get("frontend_attributes", {})
    if isinstance(notes, Mapping) and any(map(is_global_annotation, notes)):
        kept["frontend_attributes"] = {key: each for key, each in notes.items() if not is_global_annotation(key)}
        kept = {key: each for key, each in kept.items() if each}
    return instruction if kept == instruction.annotations else evolve(instruction, annotations=kept)


def _write_shardings(shardings: Tree) -> str:
    if isinstance(shardings, tuple):
        return f"{{{', '.join(tiled_text(each, len(each.dims)) for each in flatten(shardings))}}}"
    return tiled_text(shardings, len(shardings.dims))


def _record_parameter(frame: Frame, parameter: Instruction) -> Tree:
    """Record the parameter of a device; the shardings of its arrays."""
    shardings = stated_or_replicated_shardings(frame.mesh, parameter)
    frame.builder.part_of = parameter
    shape = local_shape(parameter.shape, shardings)
    value = ops.parameter(frame.builder, number=parameter.attributes.number, shape=shape, name=parameter.name)
    pieces = make_pieces(frame, value, parameter.shape, shardings, parameter)
    device = device_of(frame, parameter)
    if device is not None:
        reason = Because(ON_DEVICE, parameter, device=device)
        pieces = map_leaves(lambda piece: share_from_device(frame, piece, device, reason), pieces)
    frame.values[parameter] = take_parameters_from_first(frame, pieces)
    return shardings


# ----------------------------------------------------------------------------
# walk: records the program of a device, instruction by instruction


def walk(frame: Frame, computation: Computation) -> Tree:
    """Record the instructions that the root needs and those with effects; the device's parts of the root's value."""
    needed, regions = needed_instructions(computation), frame.shared.regions
    for instruction in over(ordered(computation), "partitioning the program", "instructions"):
        if instruction in needed and instruction not in frame.values:
            frame.manual = regions.axes_at(instruction)
            with frame.within(instruction):
                frame.values[instruction] = _partition_in_order(frame, instruction)
    frame.manual = regions.axes_at(computation.root)
    return frame.values[computation.root]


def _partition_in_order(frame: Frame, instruction: Instruction) -> Tree:
    """A device's parts of one instruction's value; its effects keep their control edges to earlier effects."""
    if not reaches_outside(instruction):
        return partition_instruction(frame, instruction)
    builder = frame.builder
    before = builder.size
    tree = partition_instruction(frame, instruction)
    made = builder.effects[instruction] = [each for each in builder.recorded_since(before) if reaches_outside(each)]
    control = [effect for each in instruction.control for effect in builder.effects.get(each, ())]
    for effect in made if control else ():
        object.__setattr__(effect, "control", tuple(dict.fromkeys([*effect.control, *control])))
    return tree


def needed_instructions(computation: Computation) -> set[Instruction]:
    """The instructions on which the root depends, or an effect outside the devices of the mesh."""
    return live_instructions(computation.instructions, computation.root, is_kept=reaches_outside)


def partition_instruction(frame: Frame, instruction: Instruction) -> Tree:
    """A device's parts of one instruction's value."""
    if depends_on_device(frame, instruction):
        device = device_of(frame, instruction)
        if device is not None:
            run = run_effect_on_its_device if reaches_outside(instruction) else compute_on_device
            return run(frame, instruction, device)
        frame.device_dependent.add(instruction)
    if OPS[instruction.opcode].properties.needs in ("peer", "host") and not frame.manual:
        return run_feed(frame, instruction)
    if not frame.manual and is_between(instruction, frame.mesh):
        return run_on_parts(frame, instruction)
    return handler_of(instruction).partition(frame, instruction)


def assemble(frame: Frame, tree: Tree, shardings: Tree, reason: Tree) -> Value:
    """One value made of pieces, resharded to these shardings; None keeps the sharding in which a piece was produced.

    The elements of a tuple are resharded for one reason, or each for its own.
    """
    if isinstance(tree, tuple):
        reasons = reason if isinstance(reason, tuple) else (reason,) * len(tree)
        parts = [assemble(frame, *each) for each in zip(tree, shardings, reasons, strict=True)]
        return ops.tuple_(tuple(parts), builder=frame.builder)
    if shardings is None or not isinstance(tree.shape, Shape):
        return frame.materialize(tree)
    return frame.reshard(tree, shardings, reason)


# ----------------------------------------------------------------------------
# Collectives that a program states
#
# They run on parts whose shardings are stated; those in manual regions have handlers like all ops.


def run_on_parts(frame: Frame, instruction: Instruction) -> Tree:
    """A collective outside manual regions: it runs on the parts that devices hold, as in Shardy.

    Raises invalid_operand if the result does not have the extents of a part by its sharding.
    """
    if OPS[instruction.opcode].properties.half != "none":
        return run_replicated(frame, instruction)
    pieces = [frame.values[each] for each in instruction.operands]
    operands = [frame.reshard(each, each.sharding, Because(WHOLE_OPERAND, instruction)) for each in pieces]
    attributes = dict(instruction.attribute_values())
    value = frame.record(instruction.opcode, operands, instruction.segments, attributes, instruction.name)
    results = []
    shapes, stated = list(leaves(instruction.shape)), list(flatten(read_shardings(instruction, frame.mesh)))
    for number, (shape, sharding) in enumerate(zip(shapes, stated, strict=True)):
        assert isinstance(shape, Shape)
        target = pieces[number].sharding if sharding is None else sharding
        part = value if len(shapes) == 1 else ops.get_tuple_element(value, index=number)
        if part.shape.dims != (local := local_dims(target, shape.dims)):  # type: ignore[union-attr]
            message = (
                f"partition: {instruction.name} produces {part.shape} on each device, but its sharding requires {local}"
            )
            refuse("invalid_operand", message)
        results.append(frame.make_piece(part, target, shape, instruction))
    return results[0] if isinstance(instruction.shape, Shape) else tuple(results)
