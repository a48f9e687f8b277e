"""What is computed from literals, as a compiler computes it: `tan(2)` in one program is `-2.18504` in the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from attrs import evolve, frozen

from shape_inference import Shape
from xbuild.core.attributes import Array
from xbuild.core.graph import Computation, Instruction, Module, ModuleGroup
from xbuild.core.op import OPS, opcodes
from xbuild.editing.dead import eliminate_dead_code
from xbuild.properties.rewriting import mapped
from xbuild.running import LARGEST, Evaluator

from .rules.literals import digits_of
from .verdict import Equivalence

_COMPUTING = opcodes(lambda op: op.elements == "same_place" and op.needs == "nobody")
"""Ops that a compiler computes, and rounds, if it knows the operands."""
_COMPUTED = _COMPUTING | opcodes(lambda op: op.elements == "moved" and op.needs == "nobody") | {"iota"}
_MOST_APART = 8.0
"""How many units in the last place two computations of one function may be apart."""


@frozen(eq=False)
class FoldedPrograms:
    """Two programs with what is computed from literals as literals, and how many these are."""

    programs: tuple[Module, Module]
    count: int

    def verdict(self, found: Equivalence) -> Equivalence:
        """The verdict on these programs as that on the given ones, in which the literals are further assumptions."""
        assumed = Counter(dict(found.assumed)) + Counter(literals=self.count)
        return evolve(found, assumed=tuple(sorted(assumed.items())))


def with_folded_literals(one: Module | ModuleGroup, other: Module | ModuleGroup) -> FoldedPrograms | None:
    """Both programs with what is computed from literals as literals; None if nothing is, or for several modules.

    A number that is as near to a literal of the other program as another computation of the function would be is that
    literal.
    """
    if isinstance(one, ModuleGroup) or isinstance(other, ModuleGroup):
        return None
    known = [dict(_folded(module)) for module in (one, other)]
    literals = [_floats(module) for module in (other, one)]
    changes = [
        {each: _constant(each, value, near) for each, value in values.items()}
        for values, near in zip(known, literals, strict=True)
    ]
    left, right = (_changed(*pair) for pair in zip((one, other), changes, strict=True))
    count = sum(map(len, changes))
    return FoldedPrograms((left, right), count) if count else None


def _changed(module: Module, changes: Mapping[Instruction, Instruction]) -> Module:
    return eliminate_dead_code(mapped(module, lambda each: changes.get(each, each)))


def _folded(module: Module) -> Iterator[tuple[Instruction, Any]]:
    """The values of what is computed from literals alone, as others use them."""
    evaluator = Evaluator()
    for computation in module.computations:
        values: dict[Instruction, Any] = {}
        folded: dict[Instruction, None] = {}
        for each in computation.instructions:
            value = _value(each, values, evaluator)
            if value is not None:
                values[each] = value
                if (each.opcode in _COMPUTING and _is_real(each)) or not folded.keys().isdisjoint(each.operands):
                    folded[each] = None
        yield from ((each, values[each]) for each in _last(computation, folded))


def _value(instruction: Instruction, values: dict[Instruction, Any], evaluator: Evaluator) -> Any:
    """The value of an instruction behind which are only literals; None if there is more, or if it is not known."""
    if instruction.opcode == "constant":
        literal = instruction.attributes.literal
        return literal if isinstance(literal, np.ndarray | np.generic) else None
    shape, operands = instruction.shape, [values.get(each) for each in instruction.operands]
    is_computed = instruction.opcode in _COMPUTED and isinstance(shape, Shape) and shape.size <= LARGEST
    if not is_computed or any(each is None for each in operands):
        return None
    return evaluator.value(instruction, operands, (0, 0))


def _last(computation: Computation, folded: dict[Instruction, None]) -> Iterator[Instruction]:
    """Those that instructions use which are not among them."""
    used = {operand for each in computation.instructions if each not in folded for operand in each.operands}
    yield from (each for each in folded if each in used or each is computation.root)


def _floats(module: Module) -> Array:
    """The finite floats of the constants of a program, in order, between infinities."""
    constants = [
        np.asarray(each.attributes.literal).astype(np.float64).reshape(-1)
        for computation in module.computations
        for each in computation.instructions
        if each.opcode == "constant" and _is_real(each) and isinstance(each.attributes.literal, np.ndarray | np.generic)
    ]
    every = np.unique(np.concatenate([[], *constants]))
    return np.concatenate([[-np.inf], every[np.isfinite(every)], [np.inf]])


def _constant(instruction: Instruction, value: Any, literals: Array) -> Instruction:
    """A constant with the value of an instruction, or with the literals that are near."""
    if _is_real(instruction):
        wide = np.asarray(value).astype(np.float64)
        at = np.searchsorted(literals, wide).clip(1, literals.size - 1)
        below, above = literals[at - 1], literals[at]
        nearest = np.where(wide - below <= above - wide, below, above)
        near = abs(nearest - wide) <= _MOST_APART * 2.0 ** (1 - digits_of(value.dtype)) * abs(wide)
        value = np.where(near, nearest, wide).astype(value.dtype)
    attributes = OPS["constant"].read({"literal": value})
    return evolve(instruction, opcode="constant", operands=(), attributes=attributes)


def _is_real(instruction: Instruction) -> bool:
    return isinstance(instruction.shape, Shape) and instruction.shape.dtype.is_float
