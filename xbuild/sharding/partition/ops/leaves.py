"""Constants, iota and ids of devices: what depends on no operand is made in whatever sharding it is used."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import evolve

from shape_inference import Shape, TupleShape, leaves
from shape_inference.types import s32

from .... import ops
from ....core.builder import Value
from ....core.graph import Instruction
from ...axis import Axis
from ...planning.record import constant as constant_of
from ...planning.record import dims_of, own_part, resized, spread
from ...planning.states import padded
from ...regions import target_of
from ...rules.table import sharding_rule
from ...sharding import Sharding
from ...shardy_collectives import moved_pairs
from ..parts.by_factors import by_factors
from ..parts.devices import device_of
from ..parts.effects import alone
from ..parts.frame import Frame, Piece
from ..parts.layouts import Tree, bytes_of, local_dims, stated, whole_on
from ..parts.manual import ENDS, end_of_region
from ..parts.masks import count_of
from ..parts.tables import Cut, local_attributes, special
from ..parts.walk import run_whole, settled
from ..reasons import OtherDevices, WholeOperand

_COUNTING = ("s32", "u32", "s64", "u64", "f32", "f64")
"""Element types in which a part of an iota is its iota in s32, converted."""


@special
def constant(frame: Frame, instruction: Instruction) -> Tree:
    """A constant of one number is made of the extents that are wanted; any other is cut."""
    shape = instruction.shape
    if not isinstance(shape, Shape):
        return run_whole(frame, instruction)
    literal = np.asarray(instruction.attributes.literal)
    made = _splat(frame, literal) if shape.rank and _is_one_number(literal) else None
    return _made(frame, instruction, made)


def _is_one_number(literal: Any) -> bool:
    if literal.size == 0:
        return False
    flat = np.ascontiguousarray(literal).reshape(-1)
    return bool((flat.view(np.uint8).reshape(flat.size, -1) == flat[:1].view(np.uint8)).all())


def _splat(frame: Frame, literal: Any) -> Any:
    number = literal.reshape(-1)[0]

    def made(sharding: Sharding) -> Value:
        return spread(constant_of(frame.builder, number), local_dims(sharding, literal.shape))

    return made


def _made(frame: Frame, instruction: Instruction, maker: Any) -> Piece:
    """A piece that is made where it is used, and whole now only where no maker cuts it."""
    shape = instruction.shape
    assert isinstance(shape, Shape)
    whole = whole_on(frame.mesh, shape.rank)
    if maker is None:
        value = frame.record(instruction.opcode, (), None, dict(instruction.attribute_values()), instruction.name)
        maker = _cutting(frame, value, shape)
        return Piece(shape, instruction, {whole: value}, maker)
    wanted = stated(instruction, frame.mesh)
    home = whole if wanted is None or wanted.unreduced else wanted
    return Piece(shape, instruction, {home: maker(home)}, maker)


def _cutting(frame: Frame, value: Value, shape: Shape) -> Any:
    def made(sharding: Sharding) -> Value:
        found = value
        for number, dim in enumerate(sharding.dims):
            if dim.axes:
                parts = count_of(dim.axes)
                found = own_part(
                    frame.recorder, resized(found, number, padded(shape.dims[number], parts)), number, dim.axes
                )
        return found

    return made


@special
def iota(frame: Frame, instruction: Instruction) -> Tree:
    """An iota of a part begins at the place of the part."""
    shape = instruction.attributes.shape
    return _made(frame, instruction, _counting(frame, instruction) if shape.dtype.name in _COUNTING else None)


def _counting(frame: Frame, instruction: Instruction) -> Any:
    shape, dim = instruction.attributes.shape, instruction.attributes.iota_dimension

    def made(sharding: Sharding) -> Value:
        local = local_dims(sharding, shape.dims)
        axes = sharding.dim(dim).axes
        if not axes:
            return ops.iota(frame.builder, shape=shape.dtype[local], iota_dimension=dim)
        places = ops.iota(frame.builder, shape=s32[local], iota_dimension=dim)
        found = ops.add(places, spread(frame.recorder.place(axes, local[dim]), dims_of(places)))
        return found if shape.dtype is s32 else ops.convert(found, new_element_type=shape.dtype)

    return made


@special
def broadcast(frame: Frame, instruction: Instruction) -> Tree:
    """A number that is broadcast is made of the extents that are wanted; anything else goes by its rule."""
    (operand,) = instruction.operands
    shape = instruction.shape
    assert isinstance(shape, Shape)
    if operand.shape.rank or not shape.rank:  # type: ignore[union-attr]
        return by_factors(frame, instruction, sharding_rule["broadcast"](instruction))
    number = frame.whole(frame.values[operand], WholeOperand(instruction))

    def made(sharding: Sharding) -> Value:
        return spread(number, local_dims(sharding, shape.dims))

    return _made(frame, instruction, made)


@special
def partition_id(frame: Frame, instruction: Instruction) -> Tree:
    """The global program is one of one device; in a manual region each device has its number."""
    if frame.manual:
        return run_whole(frame, instruction)
    value = constant_of(frame.builder, np.uint32(0))
    return frame.piece(value, whole_on(frame.mesh, 0), instruction.shape, instruction)


@special
def bitcast(frame: Frame, instruction: Instruction) -> Tree:
    """A bitcast between layouts runs on whole arrays."""
    return run_whole(frame, instruction)


@special
def custom_call(frame: Frame, instruction: Instruction) -> Tree:
    """A call that marks a sharding gives its operand; one of matrices runs on parts of a batch, any other whole."""
    if target_of(instruction) in ENDS:
        return end_of_region(frame, instruction)
    if target_of(instruction) == "Sharding":
        found = settled(frame, frame.values[instruction.operands[0]], instruction)
        return _moved(frame, found, instruction) if moved_pairs(instruction) else found
    device = device_of(frame, instruction)
    if device is not None and instruction.attributes.custom_call_has_side_effect:
        return alone(frame, instruction, device)
    rule = sharding_rule["custom_call"](instruction) if _is_of_matrices(instruction) else None
    return run_whole(frame, instruction) if rule is None else by_factors(frame, instruction, rule)


def _is_of_matrices(instruction: Instruction) -> bool:
    """Whether a call is one of LAPACK that reads its batch from the extents of its operands."""
    attributes = instruction.attributes
    shapes = [each for value in (*instruction.operands, instruction) for each in leaves(value.shape)]
    is_fixed = all(isinstance(each, Shape) and not each.is_dynamic and each.rank for each in shapes)
    is_typed = str(attributes.api_version) == "API_VERSION_TYPED_FFI"
    return is_typed and is_fixed and target_of(instruction).startswith("lapack_")


@local_attributes
def custom_call_(cut: Cut) -> dict[str, Any]:
    """The result and the layouts of operands, of the extents of a part."""
    attributes, result = cut.instruction.attributes, cut.instruction.attributes.shape
    found: dict[str, Any] = {"shape": _local_result(cut, result)}
    if attributes.operand_layout_constraints:
        pairs = enumerate(attributes.operand_layout_constraints)
        found["operand_layout_constraints"] = tuple(evolve(each, dims=cut.operand_dims(n)) for n, each in pairs)
    return found


def _local_result(cut: Cut, shape: Any) -> Any:
    if isinstance(shape, Shape):
        return evolve(shape, dims=cut.result_dims())
    return TupleShape(evolve(each, dims=cut.result_dims(n)) for n, each in enumerate(shape.elements))


def _moved(frame: Frame, piece: Piece, instruction: Instruction) -> Piece:
    """The array on the devices of another mesh that differs in their order."""
    reason = OtherDevices(instruction)
    value = frame.part(piece, piece.sharding, reason)
    frame.shared.channels[0] += 1
    pairs, channel = moved_pairs(instruction), frame.shared.channels[0]
    value = ops.collective_permute(value, source_target_pairs=pairs, channel_id=channel)
    axes = tuple(Axis(name, size) for name, size in frame.mesh.sizes)
    assert isinstance(piece.shape, Shape)
    frame.note(
        value, axes, bytes_of(piece.shape.dtype[local_dims(piece.sharding, piece.shape.dims)]), instruction, reason
    )
    return frame.piece(value, piece.sharding, piece.shape, instruction)
