"""Decides what runs on one device only, how the others get its results, and which scalars all take from the first.

Sections:

    Values that depend on the number of their device
    Effects: feeds, and calls with effects
    Sharing a value of one device with all
    Scalars that decide loops and branches
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np
from attrs import evolve

from shape_inference import AnyShape, Shape, TupleShape, refuse
from shape_inference.trees import flatten, map_leaves

from ... import ops
from ...checking import check
from ...core.builder import Value
from ...core.graph import Computation, Instruction, Module
from ...core.op import OPS
from ...properties.effects import communicates_itself, has_side_effect, op_and_name, reaches_outside, spelling
from ...properties.mesh import Mesh
from ...properties.patterns import additive_zero, neutral_element
from ..manual_regions import target_of
from ..resharding_ops import combiner, constant, spread, zero
from ..sharding import Placement
from ..stated_shardings import sharding_of
from .frame import (
    Frame,
    Piece,
    Tree,
    count_array_bytes,
    local_shape,
    make_pieces,
    replicate_tree,
    replicated_sharding,
    run_replicated,
    split_into_pieces,
    stated_or_replicated_shardings,
)
from .reasons import AGREED, ON_DEVICE, WHOLE_OPERAND, Because, Reason

# ----------------------------------------------------------------------------
# Values that depend on the number of their device


def device_of(frame: Frame, instruction: Instruction) -> int | None:
    """The one device on which an instruction is placed; None if there are several."""
    return placed_on(instruction, frame.mesh)


def placed_on(instruction: Instruction, mesh: Mesh) -> int | None:
    """The one device of a mesh on which an instruction is placed; None if there are several."""
    if "sharding" not in instruction.annotations:
        return None
    found = sharding_of(instruction, mesh)
    places = {each.device if isinstance(each, Placement) else None for each in flatten(found)}
    return places.pop() if len(places) == 1 else None


def depends_on_device(frame: Frame, instruction: Instruction) -> bool:
    """Whether a value depends on the number of the device that computes it."""
    called = any(each in frame.shared.device_dependent for each in instruction.called)
    return (
        instruction.opcode == "partition_id"
        or called
        or any(each in frame.device_dependent for each in instruction.operands)
    )


def find_device_dependent(module: Module) -> frozenset[Computation]:
    """The computations that read the number of the device, themselves or in a callee."""
    return frozenset(
        computation
        for computation in {each for root in (module.entry, *module.computations) for each in root.reachable()}
        if any(each.opcode == "partition_id" for inner in computation.reachable() for each in inner.instructions)
    )


def compute_on_device(frame: Frame, instruction: Instruction, device: int) -> Tree:
    """A value that one device computes from its number, shared with all devices.

    Each device computes it from its own number; all take the result of the device on which the instruction is placed.
    """
    own = recompute_on_each_device(frame, instruction)
    reason = Because(ON_DEVICE, instruction, device=device)
    return map_leaves(
        lambda piece: share_from_device(frame, piece, device, reason), _run_on_own_number(own, instruction)
    )


def recompute_on_each_device(frame: Frame, instruction: Instruction) -> Frame:
    """A frame in which each device computes what an instruction depends on from its own number.

    Instructions with effects are not repeated: their values stay as they are.
    """
    own = evolve(frame, values=dict(frame.values))
    above = _find_dependencies(instruction, frame.device_dependent)
    for each in frame.values:
        if each in above and not reaches_outside(each):
            own.values[each] = _run_on_own_number(own, each)
    return own


def _run_on_own_number(frame: Frame, instruction: Instruction) -> Tree:
    if target_of(instruction) == "Sharding":
        return frame.values[instruction.operands[0]]
    return run_replicated(frame, instruction, is_final=False)


def _find_dependencies(instruction: Instruction, known: Iterable[Instruction]) -> set[Instruction]:
    """The instructions among `known` that an instruction depends on through such instructions only."""
    found: set[Instruction] = set()
    waiting = [instruction]
    while waiting:
        new = [each for each in waiting.pop().operands if each in known and each not in found]
        found.update(new)
        waiting += new
    return found


# ----------------------------------------------------------------------------
# Effects: feeds, and calls with effects
#
# Each runs on the device on which it is placed, or on every device for its part.


def run_feed(frame: Frame, instruction: Instruction) -> Tree:
    """A feed on the device on which it is placed; an infeed with a sharding gives each device its part.

    Raises invalid_operand for a feed that states neither, and for transfers between devices.
    """
    device = device_of(frame, instruction)
    if device is not None and OPS[instruction.opcode].properties.half == "none":
        return run_on_one_device(frame, instruction, device)
    if instruction.opcode == "infeed" and "sharding" in instruction.annotations:
        return _feed_parts(frame, instruction)
    return refuse_unplaced(instruction)


def run_effect_on_its_device(frame: Frame, instruction: Instruction, device: int) -> Tree:
    """Run an instruction with an effect that reads the number of its device, on the device on which it is placed."""
    check_inside(instruction, frame.mesh, device)
    own = recompute_on_each_device(frame, instruction)
    is_unplaced = OPS[instruction.opcode].properties.needs in ("peer", "host") and not frame.manual
    return run_feed(own, instruction) if is_unplaced else run_on_one_device(own, instruction, device)


def check_inside(instruction: Instruction, mesh: Mesh, device: int | None = None) -> None:
    """Refuse effects in the callees of an instruction that belong to a device other than the one that runs it.

    `device` is the device that runs the instruction; None if all devices do. Raises invalid_operand.
    """
    for called in instruction.called if reaches_outside(instruction) else ():
        for each in (inner for computation in called.reachable() for inner in computation.instructions):
            is_feed = OPS[each.opcode].properties.needs in ("peer", "host")
            own = placed_on(each, mesh) if is_feed or has_side_effect(each) else device
            if own != device or (is_feed and device is None):
                runner = "every device" if device is None else f"device {device}"
                what = f"a {spelling(each.opcode)} on {'one device' if own is None else f'device {own}'}"
                refuse(
                    "invalid_operand",
                    f"partition: {each.name} is {what} inside {op_and_name(instruction)}, which {runner} runs "
                    "unchanged",
                    f"move it out of {op_and_name(instruction)}, or into a call, a loop or a branch",
                )


def refuse_unplaced(instruction: Instruction) -> NoReturn:
    """Refuse a feed or a transfer that states neither a device nor a sharding."""
    fault = f"partition: every device of the mesh would run {op_and_name(instruction)}"
    refuse(
        "invalid_operand",
        f"{fault}, but only one device may run it",
        "place it on one device: sharding={maximal device=0}",
    )


def _feed_parts(frame: Frame, instruction: Instruction) -> Tree:
    """An infeed of each device's part."""
    shardings = stated_or_replicated_shardings(frame.mesh, instruction)
    (token,) = (
        replicate_tree(frame, frame.values[each], Because(WHOLE_OPERAND, instruction)) for each in instruction.operands
    )
    attributes = {**instruction.attribute_values(), "shape": local_shape(instruction.attributes.shape, shardings[0])}
    value = frame.record("infeed", [token], instruction.segments, attributes, instruction.name)
    return make_pieces(frame, value, instruction.shape, shardings, instruction)


def run_on_one_device(frame: Frame, instruction: Instruction, device: int) -> Tree:
    """A branch on the number of the device: one runs the instruction, the others make zeros and take its result."""
    why = Because(ON_DEVICE, instruction, device=device)
    operands = ops.tuple_(tuple(replicate_tree(frame, frame.values[each], why) for each in instruction.operands),
                       builder=frame.builder)  # fmt: skip
    number = frame.recorder.number([int(each != device) for each in range(frame.mesh.num_devices)])
    branches = (_branch_here(frame, instruction), _branch_elsewhere(frame, instruction))
    value = ops.conditional(number, [operands, operands], branch_computations=branches)
    tree = split_into_pieces(frame, value, instruction)
    return map_leaves(lambda piece: share_from_device(frame, piece, device, why), tree)


def _branch_here(frame: Frame, instruction: Instruction) -> Computation:
    builder = frame.builder.sub_builder(f"{instruction.name}.here")
    operands = _parameter(builder, instruction)
    values = [ops.get_tuple_element(operands, index=number) for number in range(len(instruction.operands))]
    value = builder.record(OPS[instruction.opcode], tuple(values), instruction.segments,
                           dict(instruction.attribute_values()), instruction.name)  # fmt: skip
    return builder.build(value)


def _branch_elsewhere(frame: Frame, instruction: Instruction) -> Computation:
    builder = frame.builder.sub_builder(f"{instruction.name}.elsewhere")
    operands = _parameter(builder, instruction)
    tokens = [n for n, each in enumerate(instruction.operands) if not isinstance(each.shape, Shape | TupleShape)]
    token = ops.get_tuple_element(operands, index=tokens[0]) if tokens else None
    return builder.build(_make_zeros(builder, instruction.shape, token))


def _parameter(builder: Any, instruction: Instruction) -> Value:
    return ops.parameter(builder, number=0, shape=TupleShape(each.shape for each in instruction.operands))


def _make_zeros(builder: Any, shape: AnyShape, token: Value | None) -> Value:
    """A value of a shape that is all zeros; tokens are passed on."""
    if isinstance(shape, TupleShape):
        return ops.tuple_(tuple(_make_zeros(builder, each, token) for each in shape.elements), builder=builder)
    if isinstance(shape, Shape):
        return spread(constant(builder, np.zeros((), shape.dtype.dtype)), shape.dims)
    return token if token is not None else ops.after_all((), builder=builder)


# ----------------------------------------------------------------------------
# Sharing a value of one device with all


def share_from_device(frame: Frame, piece: Piece, device: int, reason: Reason) -> Piece:
    """An array that one device holds, shared with all devices."""
    if not isinstance(piece.shape, Shape) or frame.mesh.num_devices == 1:
        return piece
    value = broadcast_from_device(frame, frame.replicate(piece, reason), piece, device, reason)
    return frame.make_piece(value, replicated_sharding(frame.mesh, piece.shape.rank), piece.shape, piece.origin)


def broadcast_from_device(frame: Frame, value: Value, piece: Piece, device: int, reason: Reason) -> Value:
    """The value of one device, on all devices: a sum with zeros from the others, which leaves every bit as it is."""
    assert isinstance(piece.shape, Shape)
    dtype = piece.shape.dtype
    number = frame.recorder.number([int(each == device) for each in range(frame.mesh.num_devices)])
    is_here = ops.compare(number, constant(frame.builder, np.int32(1)), direction="EQ")
    channel = frame.recorder.channel()
    if neutral_element("add", dtype) is None:
        others = [each for each in range(frame.mesh.num_devices) if each != device]
        value = ops.collective_broadcast(value, replica_groups=[(device, *others)], channel_id=channel)
    else:
        dims = piece.shape.dims
        value = ops.select(spread(is_here, dims), value, spread(constant(frame.builder, additive_zero(dtype)), dims))
        value = ops.all_reduce(
            [value], to_apply=combiner(value), replica_groups=[range(frame.mesh.num_devices)], channel_id=channel,
            use_global_device_ids=True,
        )  # fmt: skip
    frame.note_collective(value, frame.axes, count_array_bytes(piece.shape), piece.origin, reason)
    return value


# ----------------------------------------------------------------------------
# Scalars that decide loops and branches
#
# They are made equal on all devices if nothing else guarantees that they are.

NOTHING, PARAMETERS, EVERY_DECISION = range(3)
"""What is made equal on all devices: nothing; parameters that are scalars; every scalar that decides."""


def take_from_first(frame: Frame, value: Value, piece: Piece, reason: Reason) -> Value:
    """A scalar of the first device, on all devices."""
    axes = frame.axes
    if not axes:
        return value
    is_first = frame.recorder.is_first(axes)
    first = ops.select(is_first, value, zero(value))
    value = ops.all_reduce([first], to_apply=combiner(value), **frame.recorder.global_groups(axes))
    assert isinstance(piece.shape, Shape)
    frame.note_collective(value, axes, count_array_bytes(piece.shape), piece.origin, reason)
    return value


def is_left_to_data(module: Module) -> bool:
    """Whether it depends on data, for the check, if devices communicate inside loops and branches."""
    inside = [each for computation in module.computations if computation is not module.entry
              for each in computation.instructions]  # fmt: skip
    return any(map(communicates_itself, inside)) and check(module).kind != "ok"


def take_parameters_from_first(frame: Frame, tree: Any) -> Any:
    """The pieces of a parameter, in which scalars are made equal on all devices if `agreement` requires it."""
    if isinstance(tree, tuple):
        return tuple(take_parameters_from_first(frame, each) for each in tree)
    if not isinstance(tree.shape, Shape) or tree.shape.rank or frame.shared.agreement < PARAMETERS:
        return tree
    reason = Because(AGREED, tree.origin)
    value = take_from_first(frame, frame.replicate(tree, reason), tree, reason)
    return frame.make_piece(value, replicated_sharding(frame.mesh, 0), tree.shape, tree.origin)
