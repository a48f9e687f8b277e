"""Other readings of literals: computed as a compiler computes them, and large negative ones as minus infinity.

`tan(2)` in one program is `-2.18504` in the other, and -1e9 in a mask of one is minus infinity in the other.
"""

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
LARGE_MASK = 1e4
"""Literals of minus this number and less may stand for minus infinity."""


@frozen(eq=False)
class ReadPrograms:
    """Two programs with other literals, and how many of each class of assumptions they are."""

    programs: tuple[Module, Module]
    counts: Mapping[str, int]

    def verdict(self, found: Equivalence) -> Equivalence:
        """The verdict on these programs as that on the given ones, with the literals as further assumptions."""
        assumed = Counter(dict(found.assumed)) + Counter(self.counts)
        return evolve(found, assumed=tuple(sorted(assumed.items())))


def other_readings(one: Module | ModuleGroup, other: Module | ModuleGroup) -> Iterator[ReadPrograms]:
    """Both programs with literals as they are computed, then also with infinite masks; none for several modules."""
    if isinstance(one, ModuleGroup) or isinstance(other, ModuleGroup):
        return
    (left, right), count = _with_folded_literals(one, other)
    if count:
        yield ReadPrograms((left, right), {"literals": count})
    masks = [dict(_masks(module)) for module in (left, right)]
    if any(masks):
        changed = _changed(left, masks[0]), _changed(right, masks[1])
        yield ReadPrograms(changed, {"literals": count, "masks": sum(map(len, masks))})


def _with_folded_literals(one: Module, other: Module) -> tuple[tuple[Module, Module], int]:
    """Both programs with what is computed from literals as literals, and how many these are.

    A number that is as near to a literal of the other program as another computation of the function would be is that
    literal.
    """
    known = [dict(_folded(module)) for module in (one, other)]
    literals = [_floats(module) for module in (other, one)]
    changes = [
        {each: _constant(each, _near(each, value, near)) for each, value in values.items()}
        for values, near in zip(known, literals, strict=True)
    ]
    return (_changed(one, changes[0]), _changed(other, changes[1])), sum(map(len, changes))


def _masks(module: Module) -> Iterator[tuple[Instruction, Instruction]]:
    """The constants that are large and negative, and minus infinity in their place."""
    for each in _constants(module):
        literal = np.asarray(each.attributes.literal)
        wide = literal.astype(np.float64)
        masked = np.where(np.isfinite(wide) & (wide <= -LARGE_MASK), -np.inf, wide).astype(literal.dtype)
        if literal.size and bool((np.isneginf(masked.astype(np.float64)) & np.isfinite(wide)).any()):
            yield each, _constant(each, masked)


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


def _constants(module: Module) -> Iterator[Instruction]:
    """The constants of a program that are floats, with their elements."""
    for computation in module.computations:
        for each in computation.instructions:
            is_constant = each.opcode == "constant" and _is_real(each)
            if is_constant and isinstance(each.attributes.literal, np.ndarray | np.generic):
                yield each


def _floats(module: Module) -> Array:
    """The finite floats of the constants of a program, in order, between infinities."""
    constants = [np.asarray(each.attributes.literal).astype(np.float64).reshape(-1) for each in _constants(module)]
    every = np.unique(np.concatenate([[], *constants]))
    return np.concatenate([[-np.inf], every[np.isfinite(every)], [np.inf]])


def _near(instruction: Instruction, value: Any, literals: Array) -> Any:
    """The value of an instruction, or the literals that are near."""
    if not _is_real(instruction):
        return value
    wide = np.asarray(value).astype(np.float64)
    at = np.searchsorted(literals, wide).clip(1, literals.size - 1)
    steps = _MOST_APART * 2.0 ** (1 - digits_of(value.dtype)) * abs(wide)
    for nearest in (literals[at - 1], literals[at]):
        with np.errstate(invalid="ignore"):
            wide = np.where(np.isfinite(nearest) & (abs(nearest - wide) <= steps), nearest, wide)
    return wide.astype(value.dtype)


def _constant(instruction: Instruction, value: Any) -> Instruction:
    """A constant with this value in the place of an instruction."""
    attributes = OPS["constant"].read({"literal": value})
    return evolve(instruction, opcode="constant", operands=(), attributes=attributes)


def _is_real(instruction: Instruction) -> bool:
    return isinstance(instruction.shape, Shape) and instruction.shape.dtype.is_float
