"""Instructions of one computation put into another, with values of that one in the place of some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from attrs import evolve

from shape_inference import TupleShape

from ... import ops
from ...core.builder import Value
from ...core.graph import Instruction
from ..recorder import Recorder


class Copies:
    """What stands in a builder for instructions of another computation: a value, or a tree of values for a tuple."""

    def __init__(self, builder: Recorder, given: dict[Instruction, Any]) -> None:
        self.builder, self.found = builder, given

    def take(self, instructions: Iterable[Instruction], rename: Callable[[str], str] | None = None) -> None:
        """Copy instructions, but those that something stands for already."""
        for each in instructions:
            if each in self.found:
                continue
            if each.opcode == "get_tuple_element" and isinstance(self.found.get(each.operands[0]), tuple):
                self.found[each] = self.found[each.operands[0]][each.attributes.index]
                continue
            self.found[each] = self._copy(each, rename)

    def _copy(self, each: Instruction, rename: Callable[[str], str] | None) -> Value:
        operands = tuple([self.value(operand).instruction for operand in each.operands])
        control = tuple([self.value(before).instruction for before in each.control if before in self.found])
        if each.opcode == "get_tuple_element" and operands[0].opcode == "tuple":
            return self.builder.value(operands[0].operands[each.attributes.index])
        name = rename(each.name) if rename is not None else each.name
        made = evolve(each, operands=operands, control=control, name=name)
        return self.builder.append(made)

    def value(self, instruction: Instruction) -> Value:
        """The one value that stands for an instruction; of a tree a tuple is made."""
        found = self.found[instruction]
        if isinstance(found, tuple):
            found = self.found[instruction] = packed(self.builder, found)
        return found  # type: ignore[no-any-return]


def packed(builder: Recorder, tree: Any) -> Value:
    """A tree of values as one value."""
    if isinstance(tree, tuple | list):
        return ops.tuple_(tuple([packed(builder, each) for each in tree]), builder=builder)
    assert isinstance(tree, Value)
    return tree


def elements(value: Value) -> Any:
    """A value as the tree of its leaves, which are taken out of it."""
    if not isinstance(value.shape, TupleShape):
        return value
    return tuple([elements(ops.get_tuple_element(value, index=n)) for n in range(len(value.shape))])
