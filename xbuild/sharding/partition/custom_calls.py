"""Partitions custom calls: those that state shardings, those on batches of matrices, and ends of manual regions.

Sections:

    CustomCall: by its target
    The ends of manual regions
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from attrs import evolve

from shape_inference import AnyShape, Shape, TupleShape, leaves, refuse

from ... import ops
from ...core.builder import Value
from ...core.graph import Instruction
from ...properties.effects import has_effect, has_side_effect
from ...properties.placement import SHARDING_GROUP, is_same
from ..manual_regions import FULL_TO_SHARD, INTO, OUT_OF, SHARD_TO_FULL, target_of
from ..rules import sharding_rule
from ..sharding import Axis, Sharding, count, merge_parts, shard_dims
from ..shardy_text import shardy_shardings
from ..stated_shardings import moved_pairs
from .devices import device_of, run_on_one_device
from .frame import (
    Frame,
    Piece,
    Tree,
    count_array_bytes,
    local_dims,
    normalize,
    read_shardings,
    reshard_to_annotation,
    run_replicated,
)
from .handler import Handler, Split, handles
from .reasons import INTO_REGION, OTHER_DEVICES, OUT_OF_REGION, Because, Result

# ----------------------------------------------------------------------------
# CustomCall: by its target


@handles("custom_call")
class CustomCall(Handler):
    """A call that states a sharding returns its operand; one on matrices is split by its batch; others are not."""

    def partition(self, frame: Frame, instruction: Instruction) -> Tree:
        target = target_of(instruction)
        if target in ENDS:
            return end_of_region(frame, instruction)
        if target == "Sharding":
            piece = reshard_to_annotation(frame, frame.values[instruction.operands[0]], instruction)
            return _permute_devices(frame, piece, instruction) if moved_pairs(instruction) else piece
        if target == SHARDING_GROUP:
            return ()
        if target == "InspectSharding":
            return frame.values[instruction.operands[0]]
        device = device_of(frame, instruction)
        if device is not None and has_side_effect(instruction):
            return run_on_one_device(frame, instruction, device)
        has_rule = _is_batch_of_matrices(instruction) or (is_same(instruction) and _keeps_extents(instruction))
        rule = sharding_rule["custom_call"](instruction) if has_rule else None
        return run_replicated(frame, instruction) if rule is None else self.partition_by_rule(frame, instruction, rule)

    def needs_equal_parts(self, instruction: Instruction) -> bool:
        """A custom call may do anything with padding."""
        return True

    def local_attributes(self, split: Split) -> dict[str, Any]:
        """The result and the layouts of operands, with the extents of a part."""
        attributes, result = split.instruction.attributes, split.instruction.attributes.shape
        local: dict[str, Any] = {"shape": _local_result(split, result)}
        if attributes.operand_layout_constraints:
            pairs = enumerate(attributes.operand_layout_constraints)
            local["operand_layout_constraints"] = tuple(evolve(each, dims=split.operand_dims(n)) for n, each in pairs)
        return local


def _keeps_extents(instruction: Instruction) -> bool:
    """Whether a call takes and returns one array of the same static extents."""
    shapes = [each.shape for each in (*instruction.operands, instruction)]
    dims = {each.dims for each in shapes if isinstance(each, Shape) and not each.is_dynamic}
    return len(shapes) == 2 and len(dims) == 1


def _is_batch_of_matrices(instruction: Instruction) -> bool:
    """Whether a call is one of LAPACK, which reads its batch from the extents of its operands."""
    attributes = instruction.attributes
    shapes = [each for value in (*instruction.operands, instruction) for each in leaves(value.shape)]
    is_fixed = all(isinstance(each, Shape) and not each.is_dynamic and each.rank for each in shapes)
    is_typed = str(attributes.api_version) == "API_VERSION_TYPED_FFI"
    return is_typed and is_fixed and not has_effect(instruction) and target_of(instruction).startswith("lapack_")


def _local_result(split: Split, shape: Any) -> Any:
    if isinstance(shape, Shape):
        return evolve(shape, dims=split.result_dims())
    return TupleShape(evolve(each, dims=split.result_dims(n)) for n, each in enumerate(shape.elements))


def _permute_devices(frame: Frame, piece: Piece, instruction: Instruction) -> Piece:
    """The array on a mesh that lists the devices in a different order."""
    reason = Because(OTHER_DEVICES, instruction)
    value = frame.reshard(piece, piece.sharding, reason)
    frame.shared.channels[0] += 1
    pairs, channel = moved_pairs(instruction), frame.shared.channels[0]
    value = ops.collective_permute(value, source_target_pairs=pairs, channel_id=channel)
    axes = tuple(Axis(name, size) for name, size in frame.mesh.sizes)
    assert isinstance(piece.shape, Shape)
    frame.note_collective(
        value,
        axes,
        count_array_bytes(piece.shape.dtype[local_dims(piece.sharding, piece.shape.dims)]),
        instruction,
        reason,
    )
    return frame.make_piece(value, piece.sharding, piece.shape, instruction)


# ----------------------------------------------------------------------------
# The ends of manual regions
#
# Inside, the parts of global arrays are arrays of their own.

Axes: TypeAlias = tuple[Axis, ...]
ENDS = (INTO, OUT_OF, FULL_TO_SHARD, SHARD_TO_FULL)


def end_of_region(frame: Frame, instruction: Instruction) -> Tree:
    """The arrays on the other side of an end of a manual region, one for each operand."""
    is_tuple = isinstance(instruction.shape, TupleShape)
    shapes = instruction.shape.elements if isinstance(instruction.shape, TupleShape) else (instruction.shape,)
    into = target_of(instruction) in (INTO, FULL_TO_SHARD)
    before = frame.shared.regions.axes_at(instruction.operands[0]) if instruction.operands else ()
    after = frame.shared.regions.axes_at(instruction)
    manual = tuple(axis for axis in (after if into else before) if axis not in (before if into else after))
    pieces = []
    for number, (operand, shape) in enumerate(zip(instruction.operands, shapes, strict=True)):
        piece = frame.values[operand]
        if not isinstance(shape, Shape):
            pieces.append(piece)
            continue
        target = _global_sharding(frame, instruction, number, shape.rank)
        outer, inner = (operand.shape, shape) if into else (shape, operand.shape)
        _check_end(instruction, number, target, manual, outer, inner)
        stated = _read_stated(frame, instruction, number)
        cross = _enter_region if into else _leave_region
        pieces.append(cross(frame, instruction, piece, target, manual, shape, stated))
    return tuple(pieces) if is_tuple else pieces[0]


def _check_end(
    instruction: Instruction, number: int, sharding: Sharding, manual: Axes, outer: AnyShape, inner: AnyShape
) -> None:
    """Refuse an end whose manual axes do not come first, or do not split the global array into the local ones."""
    assert isinstance(outer, Shape)
    assert isinstance(inner, Shape)
    manual_axes, free = _separate(sharding, manual)
    for dim, (one, other) in enumerate(zip(manual_axes, free, strict=True)):
        if sharding.dim(dim).axes != (*one, *other):
            names = ", ".join(axis.name for axis in one)
            message = (
                f"{instruction.name} shards dimension {dim} of array {number} along the manual axes {names} after "
                "other axes"
            )
            refuse("invalid_operand", f"partition: {message}; list the manual axes first")
    local = local_dims(shard_dims(sharding.mesh, manual_axes), outer.dims)
    if local != inner.dims:
        names = ", ".join(axis.name for axis in manual) or "no axis"
        message = f"{instruction.name} is manual along {names}: array {number}, {outer}, has shards of {[*local]}"
        refuse("dimension_mismatch", f"partition: {message}, expected {inner}")


def _global_sharding(frame: Frame, instruction: Instruction, number: int, rank: int) -> Sharding:
    """The sharding that an end of a region states for a global array."""
    target = target_of(instruction)
    if target in (INTO, OUT_OF):
        notes = instruction.annotations.get("frontend_attributes", {})
        key = "xla.sdy.in_shardings" if target == INTO else "xla.sdy.out_shardings"
        sharding: Any
        if key in notes:
            sharding = shardy_shardings(str(notes[key]), frame.shared.meshes)[number]
        else:  # XLA from jaxlib 0.11 annotates the global arrays instead
            sharding = read_shardings(instruction.operands[number] if target == INTO else instruction, frame.mesh)
            sharding = sharding[number] if isinstance(sharding, tuple) else sharding
        assert isinstance(sharding, Sharding), f"{instruction.name} has no sharding for array {number}"
        return normalize(sharding, rank)
    tree = read_shardings(instruction.operands[0] if target == FULL_TO_SHARD else instruction, frame.mesh)
    assert isinstance(tree, Sharding), f"{instruction.name} has no sharding"
    return tree


def _read_stated(frame: Frame, instruction: Instruction, number: int) -> Sharding | None:
    """The sharding that the value on the other side of an end is annotated with, if any."""
    tree = read_shardings(instruction, frame.mesh)
    sharding = tree[number] if isinstance(tree, tuple) else tree
    assert sharding is None or isinstance(sharding, Sharding)
    return sharding


def _separate(sharding: Sharding, manual: Axes) -> tuple[list[Axes], list[Axes]]:
    """The manual axes of each dimension, and the others."""
    manual_axes = [tuple(a for a in dim.axes if _is_in(a, manual)) for dim in sharding.dims]
    return manual_axes, [tuple(a for a in dim.axes if not _is_in(a, manual)) for dim in sharding.dims]


def _is_in(axis: Axis, manual: Axes) -> bool:
    return any(axis.overlaps(other) for other in manual)


def _keep_fitting(sizes: Sequence[int], free: Sequence[Axes]) -> list[Axes]:
    """The free axes of each dimension, if they split it into equal parts."""
    return [axes if size % count(axes) == 0 else () for size, axes in zip(sizes, free, strict=True)]


def _enter_region(
    frame: Frame, instruction: Instruction, piece: Piece, target: Sharding, manual: Axes, shape: Shape,
    stated: Sharding | None,
) -> Piece:  # fmt: skip
    """A device's part along the manual axes, as an array of its own, sharded along the others by its annotation."""
    manual_axes, free = _separate(target, manual)
    if stated is not None:
        free = [dim.axes for dim in stated.dims]
    free = _keep_fitting(shape.dims, free)
    dims = [merge_parts((*outer, *inner)) for outer, inner in zip(manual_axes, free, strict=True)]
    partial = tuple(axis for axis in target.unreduced if _is_in(axis, manual))
    value = frame.reshard(piece, shard_dims(frame.mesh, dims, partial), Because(INTO_REGION, instruction))
    return frame.reshard_piece(
        frame.make_piece(value, shard_dims(frame.mesh, free), shape, instruction), stated, Result(instruction)
    )


def _leave_region(
    frame: Frame, instruction: Instruction, piece: Piece, target: Sharding, manual: Axes, shape: Shape,
    stated: Sharding | None,
) -> Piece:  # fmt: skip
    """The global array whose parts along the manual axes devices hold."""
    manual_axes, free = _separate(target, manual)
    local = piece.shape
    assert isinstance(local, Shape)
    if not any(free):
        free = [dim.axes for dim in piece.sharding.dims]
    inner = shard_dims(frame.mesh, _keep_fitting(local.dims, free))
    value: Value = frame.reshard(piece, inner, Because(OUT_OF_REGION, instruction))
    dims = [merge_parts((*outer, *dim.axes)) for outer, dim in zip(manual_axes, inner.dims, strict=True)]
    outer_sharding = shard_dims(frame.mesh, dims, tuple(axis for axis in target.unreduced if _is_in(axis, manual)))
    frame.check_part(value, outer_sharding, shape)
    global_piece = frame.make_piece(value, outer_sharding, shape, instruction)
    return frame.reshard_piece(global_piece, stated, Result(instruction))
