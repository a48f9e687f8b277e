"""Slices that take the piece of a device's number in its group, and groups in the order of their pieces."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from attrs import frozen

from shape_inference import Shape

from ...core.graph import Instruction, Module
from ...properties.device_groups import Groups
from .indices import Numbers, by_device

Ordered: TypeAlias = Groups


@frozen(eq=False)
class Piece:
    """A slice of one dimension into pieces of one size, and the number of the piece that each device takes."""

    instruction: Instruction
    operand: Instruction
    dim: int
    numbers: Numbers
    count: int

    def ordered(self, groups: Groups) -> Ordered | None:
        """The groups with their members in the order of their pieces; None where a group does not take each once."""
        found = []
        for group in groups:
            if len(group) != self.count or sorted(self.numbers[[*group]].tolist()) != [*range(self.count)]:
                return None
            found.append(tuple(sorted(group, key=lambda device: int(self.numbers[device]))))
        return tuple(found)

    def follows(self, groups: Groups) -> bool:
        """Whether each device takes the piece of its place in its group."""
        return self.ordered(groups) == tuple(map(tuple, groups))


def piece_of(instruction: Instruction, devices: int) -> Piece | None:
    """What a dynamic slice takes, if its starts follow from the device alone and it cuts one dimension evenly."""
    if instruction.opcode != "dynamic_slice":
        return None
    operand, *starts = instruction.operands
    before, after = operand.shape, instruction.shape
    if not isinstance(before, Shape) or not isinstance(after, Shape):
        return None
    cut = [dim for dim in range(before.rank) if before.dims[dim] != after.dims[dim]]
    if len(cut) != 1 or after.dims[cut[0]] == 0 or before.dims[cut[0]] % after.dims[cut[0]]:
        return None
    numbers = by_device(starts[cut[0]], devices)
    size = after.dims[cut[0]]
    if numbers is None or (numbers % size).any() or (numbers >= before.dims[cut[0]]).any():
        return None
    return Piece(instruction, operand, cut[0], numbers // size, before.dims[cut[0]] // size)


def groups_of(instruction: Instruction, module: Module) -> Groups | None:
    """The groups of partitions of a collective, where they are ids of partitions; None for any others."""
    attributes = instruction.attributes
    if module.num_replicas != 1 or not (getattr(attributes, "channel_id", None) or 0) > 0:
        return None
    groups = (
        tuple(map(tuple, np.asarray(attributes.replica_groups, object).tolist())) if attributes.replica_groups else ()
    )
    return groups or (tuple(range(module.num_partitions)),)
