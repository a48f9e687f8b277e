"""The walk against the order of a computation: each instruction hands the cotangent of its result to its operands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from attrs import define, field

from shape_inference import Shape, TupleShape, c128, f32, f64
from shape_inference.rules import MissingRule, XbuildError

from .. import ops
from ..core.builder import Value
from ..core.graph import Computation, Instruction
from ..core.op import OPS
from ..properties.order import ordered
from ..variance.transposes import transpose_of
from . import trees
from .recorder import Recorder
from .refusals import dressed, no_rule
from .rules import VISITED, Pullback, full


@define(eq=False)
class Walk:
    """Instructions that a recorder holds, walked from the cotangents of results to those of what they come from.

    What is recorded is the derivative of the instruction that is visited, or of `origin` where that is given.
    """

    context: Any
    recorder: Recorder
    active: Mapping[Instruction, Any]
    origin: Instruction | None = None
    _cotangents: dict[Instruction, Any] = field(factory=dict, init=False)
    _memory: dict[Any, Any] = field(factory=dict, init=False)

    def back(self, computation: Computation, seed: Any) -> tuple[Any, ...]:
        """The cotangents of the parameters, a tree each with None where there is none."""
        found = self.over(ordered(computation), [(computation.root, seed)])
        return tuple([found.get(p) for p in computation.parameters])

    def over(
        self, instructions: Sequence[Instruction], seeds: Iterable[tuple[Instruction, Any]]
    ) -> dict[Instruction, Any]:
        """The cotangents that are left after a walk over instructions, from those of some of them."""
        for instruction, seed in seeds:
            self._take(instruction, seed)
        for each in reversed(instructions):
            if each.opcode != "parameter":
                self._visit(each)
        return self._cotangents

    def _visit(self, each: Instruction) -> None:
        cotangent = self._cotangents.pop(each, None)
        if not trees.any_of(cotangent) and not (each.opcode in VISITED and VISITED[each.opcode](self.context, each)):
            return
        operands = [self.active[operand] for operand in each.operands]
        with self.recorder.deriving(self.origin or each):
            found = self._rule(each, cotangent, operands)
        for operand, varies, part in zip(each.operands, operands, found, strict=True):
            if part is not None and trees.any_of(varies):
                self._take(operand, part)

    def _rule(self, each: Instruction, cotangent: Any, operands: list[Any]) -> Sequence[Any]:
        """What the rule of an instruction gives: a cotangent for each operand."""
        if each.opcode == "get_tuple_element":  # of a tuple of very many each element is entered alone
            self._enter(each, cotangent)
            return (None,)
        return pulled(self.context, self.recorder, each, cotangent, operands, self._memory)

    def _enter(self, element: Instruction, cotangent: Any) -> None:
        (operand,), index = element.operands, element.attributes.index
        if trees.any_of(self.active[operand][index]):
            with self.recorder.deriving(self.origin or element):
                slots = self._cotangents.setdefault(operand, _slots(operand.shape))
                slots[index] = self._sum(slots[index], cotangent, self.active[operand][index], element.shape)

    def _take(self, instruction: Instruction, cotangent: Any) -> None:
        """Add a cotangent to those that an instruction has."""
        before = self._cotangents.get(instruction)
        with self.recorder.deriving(self.origin or instruction):
            total = self._sum(before, cotangent, self.active[instruction], instruction.shape)
        if total is not None:
            self._cotangents[instruction] = total

    def _sum(self, before: Any, cotangent: Any, varies: Any, shape: Any) -> Any:
        """The sum of two trees of cotangents, at the leaves that vary."""
        if cotangent is None or varies is False:
            return before
        if isinstance(shape, TupleShape):
            slots = _slots(shape) if before is None else before
            for n, part in enumerate(cotangent):
                slots[n] = self._sum(slots[n], part, varies[n], shape.elements[n])
            return slots
        fitted = self._fitted(cotangent, shape)
        return fitted if before is None else ops.add(before, fitted)

    def _fitted(self, cotangent: Value, shape: Shape) -> Value:
        """The cotangent in the element type of what it is the cotangent of; of a real value the real part."""
        given: Any = cotangent.shape
        assert given.dims == shape.dims, (cotangent, shape, self.recorder.origin)
        if given.dtype.kind == "complex" and shape.dtype.kind == "float":
            cotangent = ops.real(cotangent)
        elif given.dtype.kind == "float" and shape.dtype.kind == "complex":
            cotangent = ops.convert(cotangent, new_element_type=f64 if shape.dtype is c128 else f32)
            cotangent = ops.complex(cotangent, full(self.recorder, 0, cotangent.shape))
        if cotangent.shape.dtype is not shape.dtype:  # type: ignore[union-attr]
            cotangent = ops.convert(cotangent, new_element_type=shape.dtype)
        return cotangent


def _slots(shape: Any) -> Any:
    """A place for each element of a tuple, filled in place."""
    if isinstance(shape, TupleShape):
        return [_slots(each) for each in shape.elements]
    return None


def pulled(
    context: Any,
    recorder: Recorder,
    each: Instruction,
    cotangent: Any,
    varies: Sequence[Any],
    memory: dict[Any, Any],
    now: Callable[[Instruction], Instruction] = lambda each: each,
) -> Sequence[Any]:
    """What the rule of an instruction gives for the cotangent of its result; `now` is what instructions have become."""
    rule = _rule_of(context, each)

    def value(instruction: Instruction) -> Value:
        return recorder.value(now(instruction))

    back = Pullback(cotangent, value(each), tuple(map(trees.any_of, varies)), each, varies, context, memory)
    arguments = OPS[each.opcode].unflatten(tuple(map(value, each.operands)), each.segments)
    try:
        found: Sequence[Any] = rule(back, *arguments, **each.attribute_values())
    except XbuildError as error:
        raise dressed(error, each) from None
    assert len(found) == len(each.operands), (each, found)
    return found


def _rule_of(context: Any, instruction: Instruction) -> Callable[..., Any]:
    """The rule of an op; on a mesh, of a collective or a cast, its transpose by the types of its operands."""
    typed = transpose_of(instruction, context.region) if context.region is not None else None
    if typed is not None:
        return typed
    try:
        rule: Callable[..., Any] = context.rules[instruction.opcode]
    except MissingRule:
        no_rule(instruction)
    return rule
