"""The parsed form of one instruction: opcode, operands, written shape and attributes, from which it is recorded."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from attrs import Factory, define

from shape_inference import AnyShape, Shape, TupleShape, compatible, refuse
from shape_inference.types import of_one_width

from ...core.graph import NOTHING, Instruction


@define
class ParsedInstruction:
    """The parsed text of an instruction: `shape` has no layout; `inside` is the content of brackets if no operands."""

    shape: AnyShape | None
    operands: tuple[Instruction, ...] = ()
    inside: Any = None
    written: dict[str, Any] = Factory(dict)
    notes: dict[str, Any] = Factory(dict)
    control: tuple[Instruction, ...] = ()
    counts: tuple[int, int] = (1, 1)

    @property
    def annotations(self) -> Mapping[str, Any]:
        return self.notes or NOTHING

    def result(self) -> AnyShape:
        if self.shape is None:
            refuse("missing_shape", "the shape of the result has to be written")
        return self.shape

    def array(self) -> Shape:
        """The written shape of the result, which must be an array."""
        shape = self.result()
        if not isinstance(shape, Shape):
            refuse("shape_mismatch", f"the result is an array, and {shape} is written")
        return shape

    def element(self, index: int, count: int) -> AnyShape:
        """The written shape of an element of the result, which must be a tuple of `count` elements."""
        shape = self.result()
        if not isinstance(shape, TupleShape) or len(shape) != count:
            refuse("shape_mismatch", f"the result is a tuple of {count}, and {shape} is written")
        return shape.elements[index]

    def sized(self, inferred: AnyShape) -> AnyShape:
        """The shape of set-dimension-size, which XLA writes as static if the size is a constant equal to the bound."""
        size = self.operands[1]
        if not isinstance(inferred, Shape) or not isinstance(self.shape, Shape) or size.opcode != "constant":
            return inferred
        dim = self.written["dimensions"]
        if size.attributes.literal != inferred.dims[dim]:
            return inferred
        bounds = (*inferred.dynamic[:dim], False, *inferred.dynamic[dim + 1 :])
        plain = Shape(inferred.dtype, inferred.dims, bounds if any(bounds) else ())
        return plain if compatible(plain, self.shape) else inferred

    def check_are_bits(self, opcode: str, inferred: AnyShape, bits: Container[str]) -> None:
        """Refuse a written type other than the inferred one, except for random bits and ops on random bits."""
        if opcode == "outfeed" or (opcode == "all_reduce_start" and self.shape == TupleShape((inferred, inferred))):
            return  # as older texts have it; nothing but its done uses the result
        if opcode in ("send", "recv") and isinstance(inferred, TupleShape) and self._is_context(inferred):
            return
        if opcode in ("async_start", "async_update") and self._is_bound_later(inferred):
            return
        is_of_bits = opcode == "rng_bit_generator" or any(each.name in bits for each in self.operands)
        if self.shape is None or not is_of_bits or not of_one_width(inferred, self.shape):
            refuse("shape_mismatch", f"the result is {inferred}, and {self.shape} is written")

    def _is_context(self, inferred: TupleShape) -> bool:
        """Whether a transfer's context is written with another word in its middle, or as what is passed alone."""
        written, (passed, _, token) = self.shape, inferred.elements
        if isinstance(written, TupleShape) and len(written) == 3:
            return written.elements[0] == passed and written.elements[2] == token
        return written == passed

    def _is_bound_later(self, inferred: AnyShape) -> bool:
        """Whether the result of an async op is written as (), since only its done says where it is."""
        if not isinstance(self.shape, TupleShape) or not isinstance(inferred, TupleShape):
            return False
        written, found = self.shape.elements, inferred.elements
        return (
            len(written) == len(found)
            and (*written[:1], TupleShape()) == written[:2]
            and all(a == b for n, (a, b) in enumerate(zip(written, found, strict=True)) if n != 1)
        )

    def operand(self) -> Shape | None:
        """The shape of the first operand, or None if it is no array."""
        shape = self.operands[0].shape if self.operands else None
        return shape if isinstance(shape, Shape) else None

    def members(self) -> int:
        """The number of devices in each group: that of the first group, or all devices without groups."""
        groups, channel = self.written.get("replica_groups"), self.written.get("channel_id")
        replicas, partitions = self.counts
        named = len(groups.groups[0]) if groups is not None and groups.groups else None
        if self.written.get("use_global_device_ids"):
            return named or replicas * partitions
        return (named or replicas) * (1 if channel is None else partitions)

    def exchanged(self) -> int:
        """The number of devices in each group of an all-to-all, whose ids are partitions if it has a channel."""
        groups = self.written.get("replica_groups")
        if groups is not None and groups.groups:
            return len(groups.groups[0])
        return self.counts[self.written.get("channel_id") is not None]


def stands_for(shape: AnyShape, operand: Instruction, bits: Container[str]) -> bool:
    """Whether the shape written before an operand is its shape; for random bits, of any type of the same width."""
    return compatible(shape, operand.shape) or (operand.name in bits and of_one_width(shape, operand.shape))
