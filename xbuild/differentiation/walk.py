"""The walk back through a computation: each instruction propagates the cotangent of its result to its operands."""

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
from ..variance.derivatives import transpose_of
from . import trees
from .branches import Masks, SidesOfZero, find_branches, find_sides_of_zero
from .recorder import DerivativeRecorder
from .rules import FACTORS, SIDES, VISITED, Pullback, explain_error, full, refuse_missing_rule


@define(eq=False)
class CotangentWalk:
    """A walk back through instructions that a recorder holds, from the cotangents of results to those of operands.

    What a visit records counts as the derivative of the visited instruction, or of `origin` if that is set.
    """

    context: Any
    recorder: DerivativeRecorder
    active: Mapping[Instruction, Any]
    origin: Instruction | None = None
    _cotangents: dict[Instruction, Any] = field(factory=dict, init=False)
    _odd_cotangents: dict[Instruction, Any] = field(factory=dict, init=False)  # of even values, from odd products
    _values_beside_zero: dict[Instruction, Value] = field(factory=dict, init=False)
    _memory: dict[Any, Any] = field(factory=dict, init=False)
    _masks: Masks | None = field(default=None, init=False)
    _sides: SidesOfZero = field(factory=lambda: SidesOfZero({}), init=False)

    def pull_back(self, computation: Computation, seed: Any) -> tuple[Any, ...]:
        """The cotangents of the parameters, each a tree with None for leaves without one."""
        self._masks = Masks(find_branches(computation), self.recorder.value)
        self._sides = find_sides_of_zero(computation)
        cotangents = self.walk(ordered(computation), [(computation.root, seed)])
        return tuple([cotangents.get(p) for p in computation.parameters])

    def walk(
        self, instructions: Sequence[Instruction], seeds: Iterable[tuple[Instruction, Any]]
    ) -> dict[Instruction, Any]:
        """Walk back over instructions from the cotangents of some; returns the cotangents that no instruction took."""
        for seeded, seed in seeds:
            self._accumulate(seeded, seed, self._cotangents)
        for instruction in reversed(instructions):
            if instruction.opcode != "parameter":
                self._visit(instruction)
        return self._cotangents

    def _visit(self, instruction: Instruction) -> None:
        self._propagate(instruction, self._cotangents)
        if instruction in self._sides.even:
            self._propagate(instruction, self._odd_cotangents)

    def _propagate(self, instruction: Instruction, cotangents: dict[Instruction, Any]) -> None:
        """Apply the rule of an instruction and add the results to the cotangents of its operands."""
        cotangent = cotangents.pop(instruction, None)
        runs_anyway = VISITED.get(instruction.opcode)
        if not trees.has_any(cotangent) and not (runs_anyway and runs_anyway(self.context, instruction)):
            return
        is_in_odd = cotangents is self._odd_cotangents or instruction in self._sides.odd
        operands = [self.active[operand] for operand in instruction.operands]
        with self.recorder.deriving(self.origin or instruction):
            sides = self._sides.of_odd if is_in_odd else self._sides.of
            parts = self._operand_cotangents(instruction, cotangent, operands, sides)
            if self._masks is not None:
                pairs = zip(instruction.operands, parts, strict=True)
                parts = [self._masks.mask_cotangent(instruction, operand, part) for operand, part in pairs]
        for operand, varies, part in zip(instruction.operands, operands, parts, strict=True):
            if part is not None and trees.has_any(varies):
                is_even = is_in_odd and operand in self._sides.even
                self._accumulate(operand, part, self._odd_cotangents if is_even else self._cotangents)

    def _operand_cotangents(
        self, instruction: Instruction, cotangent: Any, operands: list[Any], sides: Mapping[Instruction, int]
    ) -> Sequence[Any]:
        """The cotangents of the operands, by the instruction's rule."""
        if instruction.opcode == "get_tuple_element":  # one element at a time: a tuple may be very long
            self._accumulate_element(instruction, cotangent)
            return (None,)
        self._memory[SIDES] = sides
        factors = self._sides.factors_beside_zero(instruction, self.recorder.value, self._values_beside_zero)
        memory = {**self._memory, FACTORS: factors} if factors else self._memory
        return apply_rule(self.context, self.recorder, instruction, cotangent, operands, memory)

    def _accumulate_element(self, element: Instruction, cotangent: Any) -> None:
        (operand,), index = element.operands, element.attributes.index
        if trees.has_any(self.active[operand][index]):
            with self.recorder.deriving(self.origin or element):
                slots = self._cotangents.setdefault(operand, _empty_slots(operand.shape))
                slots[index] = self._sum(slots[index], cotangent, self.active[operand][index], element.shape)

    def _accumulate(self, instruction: Instruction, cotangent: Any, cotangents: dict[Instruction, Any]) -> None:
        """Add a cotangent to the one that an instruction has in `cotangents`."""
        before = cotangents.get(instruction)
        with self.recorder.deriving(self.origin or instruction):
            total = self._sum(before, cotangent, self.active[instruction], instruction.shape)
        if total is not None:
            cotangents[instruction] = total

    def _sum(self, before: Any, cotangent: Any, varies: Any, shape: Any) -> Any:
        """The sum of two trees of cotangents at the varying leaves."""
        if cotangent is None or varies is False or isinstance(varies, trees.Bits):
            return before
        if isinstance(shape, TupleShape):
            slots = _empty_slots(shape) if before is None else before
            for n, part in enumerate(cotangent):
                slots[n] = self._sum(slots[n], part, varies[n], shape.elements[n])
            return slots
        fitted = self._match_type(cotangent, shape)
        return fitted if before is None else ops.add(before, fitted)

    def _match_type(self, cotangent: Value, shape: Shape) -> Value:
        """The cotangent in the element type of its value; for a real value, its real part."""
        actual: Any = cotangent.shape
        assert actual.dims == shape.dims, (cotangent, shape, self.recorder.origin)
        if actual.dtype.kind == "complex" and shape.dtype.kind == "float":
            cotangent = ops.real(cotangent)
        elif actual.dtype.kind == "float" and shape.dtype.kind == "complex":
            cotangent = ops.convert(cotangent, new_element_type=f64 if shape.dtype is c128 else f32)
            cotangent = ops.complex(cotangent, full(self.recorder, 0, cotangent.shape))
        if cotangent.shape.dtype is not shape.dtype:  # type: ignore[union-attr]
            cotangent = ops.convert(cotangent, new_element_type=shape.dtype)
        return cotangent


def _empty_slots(shape: Any) -> Any:
    """A slot for each element of a tuple, to be filled in place."""
    if isinstance(shape, TupleShape):
        return [_empty_slots(element) for element in shape.elements]
    return None


def apply_rule(
    context: Any,
    recorder: DerivativeRecorder,
    instruction: Instruction,
    cotangent: Any,
    varies: Sequence[Any],
    memory: dict[Any, Any],
    latest: Callable[[Instruction], Instruction] = lambda instruction: instruction,
) -> Sequence[Any]:
    """The cotangents of an instruction's operands, by its rule; `latest` maps instructions to their current version."""
    rule = _find_rule(context, instruction)

    factors = memory.get(FACTORS, {})

    def value(operand: Instruction) -> Value:
        return factors[operand] if operand in factors else recorder.value(latest(operand))

    back = Pullback(
        cotangent, value(instruction), tuple(map(trees.has_any, varies)), instruction, varies, context, memory
    )
    arguments = OPS[instruction.opcode].unflatten(tuple(map(value, instruction.operands)), instruction.segments)
    try:
        cotangents: Sequence[Any] = rule(back, *arguments, **instruction.attribute_values())
    except XbuildError as error:
        raise explain_error(error, instruction) from None
    assert len(cotangents) == len(instruction.operands), (instruction, cotangents)
    return cotangents


def _find_rule(context: Any, instruction: Instruction) -> Callable[..., Any]:
    """The rule of an op; for a collective or cast on a mesh, its transpose by the types of its operands."""
    typed = transpose_of(instruction, context.region) if context.region is not None else None
    if typed is not None:
        return typed
    try:
        rule: Callable[..., Any] = context.rules[instruction.opcode]
    except MissingRule:
        refuse_missing_rule(instruction)
    return rule
