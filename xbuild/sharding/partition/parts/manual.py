"""The ends of manual regions: parts of global arrays become arrays of their own, and global arrays again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from shape_inference import AnyShape, Shape, TupleShape, refuse

from ....core.builder import Value
from ....core.graph import Instruction
from ...axis import Axis, count, merged
from ...regions import FULL_TO_SHARD, INTO, OUT_OF, SHARD_TO_FULL, target_of
from ...sharding import Sharding, cut
from ...shardy_text import shardy_shardings
from ..reasons import IntoShard, OutOfShard, Result
from .frame import Frame, Piece
from .layouts import Tree, closed, local_dims, stated

Axes: TypeAlias = tuple[Axis, ...]
ENDS = (INTO, OUT_OF, FULL_TO_SHARD, SHARD_TO_FULL)


def end_of_region(frame: Frame, instruction: Instruction) -> Tree:
    """The arrays that stand behind an end of a manual region, one for each operand."""
    several = isinstance(instruction.shape, TupleShape)
    shapes = instruction.shape.elements if isinstance(instruction.shape, TupleShape) else (instruction.shape,)
    into = target_of(instruction) in (INTO, FULL_TO_SHARD)
    before = frame.shared.regions.of(instruction.operands[0]) if instruction.operands else ()
    after = frame.shared.regions.of(instruction)
    manual = tuple(axis for axis in (after if into else before) if axis not in (before if into else after))
    pieces = []
    for number, (operand, shape) in enumerate(zip(instruction.operands, shapes, strict=True)):
        piece = frame.values[operand]
        if not isinstance(shape, Shape):
            pieces.append(piece)
            continue
        target = _global_sharding(frame, instruction, number, shape.rank)
        outer, inner = (operand.shape, shape) if into else (shape, operand.shape)
        _check(instruction, number, target, manual, outer, inner)
        wanted = _wanted(frame, instruction, number)
        end = _into if into else _out_of
        pieces.append(end(frame, instruction, piece, target, manual, shape, wanted))
    return tuple(pieces) if several else pieces[0]


def _check(
    instruction: Instruction, number: int, sharding: Sharding, manual: Axes, outer: AnyShape, inner: AnyShape
) -> None:
    """Refuse an end whose manual axes do not come first, or do not cut the global array into those inside."""
    assert isinstance(outer, Shape)
    assert isinstance(inner, Shape)
    ours, free = _split(sharding, manual)
    for dim, (one, other) in enumerate(zip(ours, free, strict=True)):
        if sharding.dim(dim).axes != (*one, *other):
            names = ", ".join(axis.name for axis in one)
            message = f"{instruction.name} cuts dimension {dim} of array {number} by {names} after other axes"
            refuse("invalid_operand", f"partition: {message}; axes that are manual come first")
    wanted = local_dims(cut(sharding.mesh, ours), outer.dims)
    if wanted != inner.dims:
        names = ", ".join(axis.name for axis in manual) or "no axis"
        message = f"{instruction.name} is manual along {names}: array {number} of {outer} has parts of {[*wanted]}"
        refuse("dimension_mismatch", f"partition: {message}, and {inner} is written")


def _global_sharding(frame: Frame, instruction: Instruction, number: int, rank: int) -> Sharding:
    """How an end of a region says that a global array is cut."""
    target = target_of(instruction)
    if target in (INTO, OUT_OF):
        notes = instruction.annotations.get("frontend_attributes", {})
        key = "xla.sdy.in_shardings" if target == INTO else "xla.sdy.out_shardings"
        found = shardy_shardings(str(notes.get(key, "")), frame.shared.meshes)[number]
        assert isinstance(found, Sharding)
        return closed(found, rank)
    tree = stated(instruction.operands[0] if target == FULL_TO_SHARD else instruction, frame.mesh)
    assert isinstance(tree, Sharding), f"{instruction.name} has no sharding"
    return tree


def _wanted(frame: Frame, instruction: Instruction, number: int) -> Sharding | None:
    """How the value behind an end is annotated; None where it is not."""
    tree = stated(instruction, frame.mesh)
    found = tree[number] if isinstance(tree, tuple) else tree
    assert found is None or isinstance(found, Sharding)
    return found


def _split(sharding: Sharding, manual: Axes) -> tuple[list[Axes], list[Axes]]:
    """The manual axes of each dimension, and the others."""
    ours = [tuple(a for a in dim.axes if _is_in(a, manual)) for dim in sharding.dims]
    return ours, [tuple(a for a in dim.axes if not _is_in(a, manual)) for dim in sharding.dims]


def _is_in(axis: Axis, manual: Axes) -> bool:
    return any(axis.overlaps(other) for other in manual)


def _fitting(sizes: Sequence[int], free: Sequence[Axes]) -> list[Axes]:
    """The free axes of the dimensions that they cut into equal parts."""
    return [axes if size % count(axes) == 0 else () for size, axes in zip(sizes, free, strict=True)]


def _into(
    frame: Frame, instruction: Instruction, piece: Piece, target: Sharding, manual: Axes, shape: Shape,
    wanted: Sharding | None,
) -> Piece:  # fmt: skip
    """The part of an array along the manual axes, an array of its own, cut along the others as it is wanted there."""
    ours, free = _split(target, manual)
    if wanted is not None:
        free = [dim.axes for dim in wanted.dims]
    free = _fitting(shape.dims, free)
    dims = [merged((*outer, *inner)) for outer, inner in zip(ours, free, strict=True)]
    partial = tuple(axis for axis in target.unreduced if _is_in(axis, manual))
    value = frame.part(piece, cut(frame.mesh, dims, partial), IntoShard(instruction))
    return frame.settled(frame.piece(value, cut(frame.mesh, free), shape, instruction), wanted, Result(instruction))


def _out_of(
    frame: Frame, instruction: Instruction, piece: Piece, target: Sharding, manual: Axes, shape: Shape,
    wanted: Sharding | None,
) -> Piece:  # fmt: skip
    """The global array that the parts along the manual axes are."""
    ours, free = _split(target, manual)
    local = piece.shape
    assert isinstance(local, Shape)
    if not any(free):
        free = [dim.axes for dim in piece.sharding.dims]
    inner = cut(frame.mesh, _fitting(local.dims, free))
    value: Value = frame.part(piece, inner, OutOfShard(instruction))
    dims = [merged((*outer, *dim.axes)) for outer, dim in zip(ours, inner.dims, strict=True)]
    found = cut(frame.mesh, dims, tuple(axis for axis in target.unreduced if _is_in(axis, manual)))
    frame.checked(value, found, shape)
    whole = frame.piece(value, found, shape, instruction)
    return frame.settled(whole, wanted, Result(instruction))
