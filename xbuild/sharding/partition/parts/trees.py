"""Values of tuples as trees of pieces: shapes of parts, pieces of a value, shardings of all leaves."""

from __future__ import annotations

from shape_inference import AnyShape, Shape, TupleShape

from .... import ops
from ....core.builder import Value
from ....core.graph import Instruction
from ....properties.mesh import Mesh
from .frame import Frame
from .layouts import Tree, local_dims, mapped, stated, whole_on


def local_shape(shape: AnyShape, shardings: Tree) -> AnyShape:
    """The shape of a device's part of a value."""
    if isinstance(shape, TupleShape):
        return TupleShape(local_shape(*each) for each in zip(shape.elements, shardings, strict=True))
    return shape.dtype[local_dims(shardings, shape.dims)] if isinstance(shape, Shape) else shape


def pieces_of(frame: Frame, value: Value, shape: AnyShape, shardings: Tree, origin: Instruction) -> Tree:
    """The pieces of a value whose parts devices hold in these shardings."""
    if isinstance(shape, TupleShape) and isinstance(shardings, tuple):
        return tuple(
            pieces_of(frame, ops.get_tuple_element(value, index=number), *each, origin)
            for number, each in enumerate(zip(shape.elements, shardings, strict=True))
        )
    return frame.piece(value, shardings, shape, origin)


def wholes(mesh: Mesh, shape: AnyShape) -> Tree:
    """A sharding for each array that leaves it whole."""
    if isinstance(shape, TupleShape):
        return tuple(wholes(mesh, each) for each in shape.elements)
    return whole_on(mesh, shape.rank if isinstance(shape, Shape) else 0)


def asked(mesh: Mesh, instruction: Instruction) -> Tree:
    """What a value is annotated with; whole where it is not."""
    return mapped(_either, stated(instruction, mesh), wholes(mesh, instruction.shape))


def as_annotated(mesh: Mesh, instruction: Instruction, tree: Tree) -> Tree:
    """The shardings that an instruction is annotated with, or those in which the pieces are made."""
    return mapped(lambda wanted, piece: _either(wanted, piece.sharding), stated(instruction, mesh), tree)


def _either(wanted: object, other: object) -> object:
    return other if wanted is None else wanted
