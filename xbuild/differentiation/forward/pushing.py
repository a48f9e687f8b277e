"""The walk along the order of a computation: each instruction is recorded again, and then the tangent of its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import define, evolve, field

from shape_inference import TupleShape
from shape_inference.rules import RuleTable

from ...core.builder import Value
from ...core.graph import Computation, Instruction
from ...properties.order import ordered
from .. import trees
from ..recorder import Recorder
from ..regions.copying import packed
from ..rules import ZERO, full
from .on_meshes import is_linear, same_on_tangents
from .transposition import transposed

pushes = RuleTable("jvp")
"""opcode -> rule(push, instruction, tangents): value and tangents, where these are not found by transposition."""


@define(eq=False)
class Push:
    """Instructions of a computation on their way into a recorder, each with the tree of tangents of its result."""

    context: Any
    recorder: Recorder
    values: dict[Instruction, Any] = field(factory=dict, init=False)
    tangents: dict[Instruction, Any] = field(factory=dict, init=False)
    memory: dict[Any, Any] = field(factory=dict, init=False)

    def over(self, computation: Computation, parameters: Sequence[Any], tangents: Sequence[Any]) -> tuple[Value, Any]:
        """The result and its tangents, for parameters (values, or trees of them) and theirs."""
        for parameter, value, tangent in zip(computation.parameters, parameters, tangents, strict=True):
            self.values[parameter], self.tangents[parameter] = value, tangent
        for each in ordered(computation):
            if each.opcode != "parameter":
                self._step(each)
        return self.value(computation.root), self.tangents[computation.root]

    def value(self, instruction: Instruction) -> Value:
        found = self.values[instruction]
        if isinstance(found, tuple):
            found = self.values[instruction] = packed(self.recorder, found)
        return found  # type: ignore[no-any-return]

    def operands(self, each: Instruction) -> list[Value]:
        """The operands as they are recorded."""
        return [self.value(operand) for operand in each.operands]

    def copied(self, each: Instruction) -> Value:
        """The instruction itself, on the operands that are recorded."""
        operands = tuple([value.instruction for value in self.operands(each)])
        control = tuple([self.value(before).instruction for before in each.control])
        if operands != each.operands or control != each.control:
            each = evolve(each, operands=operands, control=control)
        return self.recorder.append(each)

    def _step(self, each: Instruction) -> None:
        tangents = [self.tangents[operand] for operand in each.operands]
        if each.opcode == "get_tuple_element":
            self._element(each, tangents[0])
        elif each.opcode in pushes and (any(map(trees.any_of, tangents)) or each.opcode in ALWAYS):
            with self.recorder.deriving(each):
                self.values[each], self.tangents[each] = pushes[each.opcode](self, each, tangents)
        else:
            value = self.values[each] = self.copied(each)
            self.tangents[each] = None
            if each.opcode in ZERO or not any(map(trees.any_of, tangents)):
                return
            if is_linear(self.context, each):
                self.tangents[each] = same_on_tangents(self.context, self.recorder, value.instruction, tangents)
            else:
                self.tangents[each] = transposed(self.context, self.recorder, value.instruction, tangents)

    def _element(self, each: Instruction, tangent: Any) -> None:
        whole, index = self.values[each.operands[0]], each.attributes.index
        self.values[each] = whole[index] if isinstance(whole, tuple) else self.copied(each)
        self.tangents[each] = tangent[index] if tangent is not None else None


ALWAYS = frozenset({"recv", "recv_done", "send", "send_done"})
"""Opcodes that are asked even where no operand has a tangent."""


def pushed(
    context: Any, recorder: Recorder, region: Computation, parameters: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Value, Any]:
    """The result of a computation and its tangents, recorded here."""
    return Push(context, recorder).over(region, parameters, tangents)


def leaves_in(varies: Any, tangent: Any) -> list[Any]:
    """The tangents at the leaves that vary, None where there is none."""
    if isinstance(varies, tuple):
        parts = tangent if tangent is not None else [None] * len(varies)
        return [leaf for each, part in zip(varies, parts, strict=True) for leaf in leaves_in(each, part)]
    return [tangent] if varies else []


def shapes_in(varies: Any, shape: Any) -> list[Any]:
    """The shapes of the leaves that vary."""
    if isinstance(shape, TupleShape):
        return [leaf for each, part in zip(varies, shape.elements, strict=True) for leaf in shapes_in(each, part)]
    return [shape.plain()] if varies else []


def dense(recorder: Recorder, varies: Any, tangent: Any, shape: Any) -> list[Value]:
    """The tangents at the leaves that vary, zeros where there is none."""
    pairs = zip(leaves_in(varies, tangent), shapes_in(varies, shape), strict=True)
    return [value if value is not None else full(recorder, 0, each) for value, each in pairs]


def tree_of(varies: Any, leaves: Sequence[Any]) -> Any:
    """The tree of tangents from those of the leaves that vary."""
    given = iter(leaves)
    return trees.mapped(lambda leaf: next(given) if leaf else None, varies)
