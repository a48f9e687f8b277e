"""What leaves the program: feeds and calls with effects, on the device that they are placed on, or on each its part."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from shape_inference import AnyShape, Shape, TupleShape, refuse

from .... import ops
from ....core.builder import Value
from ....core.graph import Computation, Instruction
from ....core.op import OPS
from ...planning.record import constant, spread
from ..reasons import OnDevice, WholeOperand
from .devices import device_of, from_device
from .frame import Frame
from .layouts import Tree, mapped
from .trees import asked, local_shape, pieces_of
from .whole import taken_apart, whole_value


def has_effect(instruction: Instruction) -> bool:
    """Whether an instruction runs though nothing takes its value."""
    if instruction.opcode == "custom_call":
        return bool(instruction.attributes.custom_call_has_side_effect)
    properties = OPS[instruction.opcode].properties
    return properties.depends_on in ("random_state", "outside") or properties.needs in ("peer", "host")


def leaves_program(frame: Frame, instruction: Instruction) -> Tree:
    """A feed on the device that it is placed on; an infeed that is cut gives each device its part.

    Raises invalid_operand for one that says neither, and for transfers between devices.
    """
    device = device_of(frame, instruction)
    if device is not None and OPS[instruction.opcode].properties.half == "none":
        return alone(frame, instruction, device)
    if instruction.opcode == "infeed" and "sharding" in instruction.annotations:
        return _fed(frame, instruction)
    return refuse_unplaced(instruction)


def refuse_unplaced(instruction: Instruction) -> NoReturn:
    """Refuse a feed or a transfer that says neither on which device nor in which parts it is."""
    told = f"partition: {instruction.name} is a {instruction.opcode}, which every device of the mesh would do"
    refuse("invalid_operand", f"{told}; it belongs to one", "place it: sharding={maximal device=0}")


def _fed(frame: Frame, instruction: Instruction) -> Tree:
    """An infeed of each device's part."""
    shardings = asked(frame.mesh, instruction)
    (token,) = (whole_value(frame, frame.values[each], WholeOperand(instruction)) for each in instruction.operands)
    attributes = {**instruction.attribute_values(), "shape": local_shape(instruction.attributes.shape, shardings[0])}
    value = frame.record("infeed", [token], instruction.segments, attributes, instruction.name)
    return pieces_of(frame, value, instruction.shape, shardings, instruction)


def alone(frame: Frame, instruction: Instruction, device: int) -> Tree:
    """A branch by the number of the device: the instruction on one, zeros on the others, which take what it gives."""
    why = OnDevice(instruction, device)
    given = ops.tuple_(tuple(whole_value(frame, frame.values[each], why) for each in instruction.operands),
                       builder=frame.builder)  # fmt: skip
    number = frame.recorder.number([int(each != device) for each in range(frame.mesh.num_devices)])
    branches = (_done(frame, instruction), _left(frame, instruction))
    value = ops.conditional(number, [given, given], branch_computations=branches)
    tree = taken_apart(frame, value, instruction)
    return mapped(lambda piece: from_device(frame, piece, device, why), tree)


def _done(frame: Frame, instruction: Instruction) -> Computation:
    builder = frame.builder.sub_builder(f"{instruction.name}.here")
    given = _parameter(builder, instruction)
    values = [ops.get_tuple_element(given, index=number) for number in range(len(instruction.operands))]
    value = builder.record(OPS[instruction.opcode], tuple(values), instruction.segments,
                           dict(instruction.attribute_values()), instruction.name)  # fmt: skip
    return builder.build(value)


def _left(frame: Frame, instruction: Instruction) -> Computation:
    builder = frame.builder.sub_builder(f"{instruction.name}.elsewhere")
    given = _parameter(builder, instruction)
    tokens = [n for n, each in enumerate(instruction.operands) if not isinstance(each.shape, Shape | TupleShape)]
    token = ops.get_tuple_element(given, index=tokens[0]) if tokens else None
    return builder.build(_nothing(builder, instruction.shape, token))


def _parameter(builder: Any, instruction: Instruction) -> Value:
    return ops.parameter(builder, number=0, shape=TupleShape(each.shape for each in instruction.operands))


def _nothing(builder: Any, shape: AnyShape, token: Value | None) -> Value:
    """A value of a shape that stands for none: zeros, and the token as it came."""
    if isinstance(shape, TupleShape):
        return ops.tuple_(tuple(_nothing(builder, each, token) for each in shape.elements), builder=builder)
    if isinstance(shape, Shape):
        return spread(constant(builder, np.zeros((), shape.dtype.dtype)), shape.dims)
    return token if token is not None else ops.after_all((), builder=builder)
