"""Values on a single device (`maximal`): what reads the number of its device, and how the others get what it holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from attrs import evolve

from shape_inference import PrimitiveType, Shape

from .... import ops
from ....core.builder import Value
from ....core.graph import Computation, Instruction, Module
from ...placement import Placement
from ...planning.record import combiner, constant, spread
from ...regions import target_of
from ...stored import sharding_of
from ..reasons import OnDevice, Reason
from .frame import Frame, Piece
from .layouts import Tree, bytes_of, leaves_of, mapped, whole_on
from .masks import neutral
from .whole import run_whole


def device_of(frame: Frame, instruction: Instruction) -> int | None:
    """The one device that an instruction is placed on; None where it is on several."""
    if "sharding" not in instruction.annotations:
        return None
    found = sharding_of(instruction, frame.mesh)
    places = {each.device if isinstance(each, Placement) else None for each in leaves_of(found)}
    return places.pop() if len(places) == 1 else None


def reads_number(frame: Frame, instruction: Instruction) -> bool:
    """Whether a value depends on the number of the device that computes it."""
    is_own = instruction.opcode == "partition_id" or any(each in frame.shared.numbered for each in instruction.called)
    return is_own or any(each in frame.numbered for each in instruction.operands)


def numbered(module: Module) -> frozenset[Computation]:
    """The computations that read the number of the device, themselves or in what they call."""
    return frozenset(
        computation
        for computation in {each for root in (module.entry, *module.computations) for each in root.reachable()}
        if any(each.opcode == "partition_id" for inner in computation.reachable() for each in inner.instructions)
    )


def on_device(frame: Frame, instruction: Instruction, device: int) -> Tree:
    """What one device computes of the number that it has, handed on to all devices.

    Each device computes it of its own number, and that of the device that the instruction is placed on is taken.
    """
    own = evolve(frame, values=dict(frame.values))
    above = _above(instruction, frame.numbered)
    for each in frame.values:
        if each in above:
            own.values[each] = _whole(own, each)
    reason = OnDevice(instruction, device)
    return mapped(lambda piece: from_device(frame, piece, device, reason), _whole(own, instruction))


def _whole(frame: Frame, instruction: Instruction) -> Tree:
    if target_of(instruction) == "Sharding":
        return frame.values[instruction.operands[0]]
    return run_whole(frame, instruction, is_settled=False)


def _above(instruction: Instruction, known: Iterable[Instruction]) -> set[Instruction]:
    """What an instruction depends on by way of these instructions alone."""
    found: set[Instruction] = set()
    waiting = [instruction]
    while waiting:
        new = [each for each in waiting.pop().operands if each in known and each not in found]
        found.update(new)
        waiting += new
    return found


def from_device(frame: Frame, piece: Piece, device: int, reason: Reason) -> Piece:
    """The array that a device holds, on all devices."""
    if not isinstance(piece.shape, Shape) or frame.mesh.num_devices == 1:
        return piece
    value = handed_on(frame, frame.whole(piece, reason), piece, device, reason)
    return frame.piece(value, whole_on(frame.mesh, piece.shape.rank), piece.shape, piece.origin)


def handed_on(frame: Frame, value: Value, piece: Piece, device: int, reason: Reason) -> Value:
    """The value of a device on all devices: the sum with zeros of the others, which leaves every bit as it is."""
    assert isinstance(piece.shape, Shape)
    dtype = piece.shape.dtype
    number = frame.recorder.number([int(each == device) for each in range(frame.mesh.num_devices)])
    is_here = ops.compare(number, constant(frame.builder, np.int32(1)), direction="EQ")
    channel = frame.recorder.channel()
    if neutral("add", dtype) is None:
        others = [each for each in range(frame.mesh.num_devices) if each != device]
        value = ops.collective_broadcast(value, replica_groups=[(device, *others)], channel_id=channel)
    else:
        dims = piece.shape.dims
        value = ops.select(spread(is_here, dims), value, spread(constant(frame.builder, _nothing(dtype)), dims))
        value = ops.all_reduce(
            [value], to_apply=combiner(value), replica_groups=[range(frame.mesh.num_devices)], channel_id=channel,
            use_global_device_ids=True,
        )  # fmt: skip
    frame.note(value, frame.axes, bytes_of(piece.shape), piece.origin, reason)
    return value


def _nothing(dtype: PrimitiveType) -> Any:
    """What a sum leaves every number as it is with, -0 among floats."""
    zero = np.zeros((), dtype.dtype)
    return np.negative(zero) if dtype.kind in ("float", "complex") else zero
