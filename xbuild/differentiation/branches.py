"""Branches of selects: values computed for one side only, so that a side which is not taken adds no cotangent.

If a select drops a value, its cotangent is 0, but rules multiply that by slopes which may be infinite or NaN there,
such as those of `where(x > 0, log(x), 0)` at 0. So a cotangent that leaves a branch is set to 0 wherever the other side
is taken. Comparisons with 0 decide to which side of a kink 0 belongs; an odd function has the same slope on both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any

from attrs import define, field, frozen

from shape_inference import Shape

from .. import ops
from ..core.builder import Value
from ..core.graph import Computation, Instruction
from ..core.memos import remembered
from ..core.op import opcodes
from ..properties.order import ordered
from ..properties.patterns import number_in
from .arrays import broadcast_to, sign_on_side
from .rules import ZERO, full

_LINEAR = {
    "add", "bitcast", "bitcast_convert", "clamp", "complex", "convert", "copy", "imag", "maximum", "minimum", "negate",
    "real", "reduce_precision", "select", "subtract",
}  # fmt: skip
"""Ops whose rules only select a cotangent or multiply it by finite numbers."""

_ELEMENTWISE = opcodes(lambda op: op.elements == "same_place")


_SIDED = ("GE", "LT", "GT", "LE")


@frozen(eq=False)
class SidesOfZero:
    """The side of 0 (1 or -1) on which the slopes of each value at 0 are taken.

    `odd` are products of a multiple of sign(x), or of another odd value, with a function of abs(x) of the same x.
    `jumps` are these multiples and values, which are 0 at 0 and nonzero next to it. `even` are the functions of abs(x)
    that odd products use; those in `shared` have other uses as well. In an odd product, which has the same slope on
    both sides, the sides are those of `of_odd`, where 0 means either side.
    """

    of: Mapping[Instruction, int]
    odd: Set[Instruction] = frozenset()
    jumps: Mapping[Instruction, Instruction] = field(factory=dict)
    even: Set[Instruction] = frozenset()
    shared: Set[Instruction] = frozenset()
    of_odd: Mapping[Instruction, int] = field(factory=dict)

    def factors_beside_zero(
        self, product: Instruction, value: Callable[[Instruction], Value], known: dict[Instruction, Value]
    ) -> dict[Instruction, Value]:
        """The factors of an odd product next to 0, and for a quotient its result; `known` caches them."""
        if product not in self.odd:
            return {}
        factors = {
            operand: self._beside(operand, value, known) for operand in product.operands if operand in self.jumps
        }
        if product.opcode == "divide":  # its rule uses the result
            factors[product] = self._beside(product, value, known)
        return factors

    def _beside(
        self, jump: Instruction, value: Callable[[Instruction], Value], known: dict[Instruction, Value]
    ) -> Value:
        """A value that jumps at 0, computed with the sign of the side to which 0 belongs."""
        if jump not in known:
            if jump.opcode == "sign":
                known[jump] = sign_on_side(value(jump), self.of_odd[self.jumps[jump]])
            else:
                operands = [self._beside(o, value, known) if o in self.jumps else value(o) for o in jump.operands]
                known[jump] = getattr(ops, jump.opcode)(*operands, **jump.attribute_values())
        return known[jump]


@remembered
def find_sides_of_zero(computation: Computation) -> SidesOfZero:
    """Find the values whose slopes at 0 are those of one side.

    If a computation compares a value with 0, then 0 counts as positive for x >= 0 and x < 0, and as negative for the
    other comparisons; what is computed from the absolute value is meant for that side. An odd product such as
    sign(x) * f(abs(x)) has the same slope on both sides, which is its slope at 0.
    """
    compared = {
        _part_key(instruction.operands[0]): 1 if instruction.attributes.direction in ("GE", "LT") else -1
        for instruction in computation.instructions
        if instruction.opcode == "compare"
        and instruction.attributes.direction in _SIDED
        and number_in(instruction.operands[1]) == 0
    }
    sides = {
        instruction: compared[_part_key(instruction)]
        for instruction in computation.instructions
        if _part_key(instruction) in compared
    }
    if not any(instruction.opcode == "sign" for instruction in computation.instructions):
        return SidesOfZero(sides)
    parities = _Parities.of(computation)
    return SidesOfZero(
        sides,
        parities.odd.keys(),
        {instruction: x for instruction, (x, kind) in parities.known.items() if kind in ("step", "odd")},
        *parities.even_in(computation),
        dict.fromkeys(parities.odd.values(), 0) | sides,
    )


def _part_key(instruction: Instruction) -> Any:
    """A key that is the same for instructions that take the same part of a complex number."""
    if instruction.opcode in ("real", "imag"):
        return instruction.opcode, instruction.operands[0]
    return instruction


@define(eq=False)
class _Parities:
    """Which values are odd or even in a number x whose sign and absolute value a computation uses.

    A value may be a step (a multiple of sign(x)), even (a function of abs(x)), flat (without slope), or odd (a step
    times an even value). A value that depends on x in any other way, or on two such numbers, is none of these.
    """

    known: dict[Instruction, tuple[Instruction, str]] = field(factory=dict)
    odd: dict[Instruction, Instruction] = field(factory=dict)  # products with an even value -> x

    @classmethod
    def of(cls, computation: Computation) -> _Parities:
        """Find the parities of a computation's values."""
        instructions = ordered(computation)
        signs = {
            instruction.operands[0]
            for instruction in instructions
            if instruction.opcode == "sign" and _is_real(instruction)
        }
        bits = {x: 1 << n for n, x in enumerate(signs)}
        reached: dict[Instruction, int] = {}
        self = cls()
        for instruction in instructions:
            dependencies = 0
            for operand in instruction.operands:
                dependencies |= reached[operand]
            reached[instruction] = dependencies | bits.get(instruction, 0)
            kinds = [self.known.get(operand) for operand in instruction.operands]
            numbers = {x for x, _ in filter(None, kinds)}
            x = instruction.operands[0] if instruction.operands else None
            if instruction.opcode in ("abs", "sign") and x in signs:
                self.known[instruction] = x, "even" if instruction.opcode == "abs" else "step"
            elif instruction.opcode == "compare" and x in signs and x is instruction.operands[1]:  # a test for NaN
                self.known[instruction] = x, "flat"
            elif len(numbers) == 1 and instruction.opcode in _ELEMENTWISE:
                (x,) = numbers
                is_known = all(
                    kind or not reached[o] & bits[x] for o, kind in zip(instruction.operands, kinds, strict=True)
                )
                parities = [
                    kind[1] if kind else "zero" if number_in(operand) == 0 else ""
                    for operand, kind in zip(instruction.operands, kinds, strict=True)
                ]
                parity = _combine_parities(instruction.opcode, parities) if is_known else ""
                if parity:
                    self.known[instruction] = x, "flat" if parity == "even" and not _is_real(instruction) else parity
                if parity == "odd" and "even" in [kind[1] for kind in kinds if kind]:
                    self.odd[instruction] = x
        return self

    def even_in(self, computation: Computation) -> tuple[set[Instruction], set[Instruction]]:
        """The even values that odd products use, and those of them with other uses."""
        used, shared = set[Instruction](), {computation.root}
        for instruction in reversed(ordered(computation)):
            if instruction.opcode in ZERO:
                continue
            for operand in instruction.operands:
                if self._is_even(operand):
                    if instruction in self.odd:
                        used.add(operand)
                    elif self._is_even(instruction) and self.known[instruction][0] is self.known[operand][0]:
                        used.update([operand] if instruction in used else [])
                        shared.update([operand] if instruction in shared or instruction not in used else [])
                    else:
                        shared.add(operand)
        return used, used & shared

    def _is_even(self, instruction: Instruction) -> bool:
        return instruction in self.known and self.known[instruction][1] == "even"


def _combine_parities(opcode: str, kinds: list[str]) -> str:
    """The parity of a result from those of its operands ("" or "zero": does not depend on x); "" if it has none."""
    if opcode in ("add", "subtract", "select"):
        chosen = {*(kinds[1:] if opcode == "select" else kinds)} - {"zero"}
        if chosen and chosen <= {"odd", "step"} and (opcode != "select" or kinds[0] in ("flat", "")):
            return "odd" if "odd" in chosen else "step"
    kinds = ["" if kind == "zero" else kind for kind in kinds]
    if set(kinds) <= {"flat", ""}:
        return "flat"
    kinds = ["" if kind == "flat" else kind for kind in kinds]
    if set(kinds) <= {"even", ""}:
        return "even"
    if opcode in ("negate", "convert", "copy"):
        return kinds[0]
    if opcode == "multiply" or (opcode == "divide" and kinds[1] in ("even", "")):
        first, second = sorted(kinds, key=("step", "odd", "even", "").index)
        if second == "":
            return first
        return "odd" if second == "even" else ""
    return ""


def _is_real(instruction: Instruction) -> bool:
    return isinstance(instruction.shape, Shape) and instruction.shape.dtype.kind == "float"


@frozen(eq=False)
class Branch:
    """A side of a select, needed where the select takes it and where `outer`, the select's own condition, holds."""

    select: Instruction
    side: int
    outer: Condition | None
    number: int


Condition = tuple[Branch, ...]
"""A value is needed where one of these branches is; they are ordered by number."""


@define(eq=False)
class SelectedBranches:
    """The condition under which each instruction is needed, if selects restrict it, and the `singular` branches.

    A branch is singular if a rule inside multiplies the cotangent by a number that may be infinite or NaN.
    """

    of: dict[Instruction, Condition] = field(factory=dict)
    singular: set[Branch] = field(factory=set)


@remembered
def find_branches(computation: Computation) -> SelectedBranches:
    """Find the branches from which the cotangents of each instruction come, if they come from nowhere else."""
    self = SelectedBranches()
    if not any(instruction.opcode == "select" for instruction in computation.instructions):
        return self
    users: dict[Instruction, list[Condition | None]] = {computation.root: [None]}
    sides: dict[tuple[Instruction, int], Branch] = {}
    for instruction in reversed(ordered(computation)):
        if instruction not in users:
            continue
        around = _join_conditions(users.pop(instruction), sides) if instruction.opcode in _ELEMENTWISE else None
        if around is not None and any(_dims_of(branch.select) != _dims_of(instruction) for branch in around):
            around = None
        if around is not None:
            self.of[instruction] = around
            if _may_be_infinite(instruction):
                self.singular.update(_with_outer(around))
        if instruction.opcode in ZERO:  # no cotangent goes through it
            continue
        for number, operand in enumerate(instruction.operands):
            inner = around
            if instruction.opcode == "select" and not number:
                continue
            if instruction.opcode == "select" and instruction.operands.count(operand) == 1:
                inner = (sides.setdefault((instruction, number), Branch(instruction, number, around, len(sides))),)
            users.setdefault(operand, []).append(inner)
    return self


def _join_conditions(
    conditions: list[Condition | None], sides: Mapping[tuple[Instruction, int], Branch]
) -> Condition | None:
    """The condition that at least one of several holds; None means always."""
    branches: set[Branch] = set()
    stack = list(dict.fromkeys(conditions))
    while stack:
        condition = stack.pop()
        if condition is None:
            return None
        for branch in condition:
            if sides.get((branch.select, 3 - branch.side)) in branches:  # both sides of a select
                stack.append(branch.outer)
            branches.add(branch)
    outermost = [branch for branch in branches if branch.outer is None or not branches.issuperset(branch.outer)]
    return tuple(sorted(outermost, key=lambda branch: branch.number))


def _with_outer(condition: Condition) -> Iterator[Branch]:
    """The branches of a condition and the branches around them."""
    for branch in condition:
        yield branch
        if branch.outer is not None:
            yield from _with_outer(branch.outer)


def _may_be_infinite(instruction: Instruction) -> bool:
    """Whether the slope of an op may be infinite or NaN, also at operands that are."""
    if instruction.opcode in _LINEAR or instruction.opcode in ZERO:
        return False
    if instruction.opcode == "multiply":
        return all(number_in(operand) is None for operand in instruction.operands)
    if instruction.opcode == "divide":
        number = number_in(instruction.operands[1])
        return number is None or number == 0
    return True


def _dims_of(instruction: Instruction) -> Any:
    return instruction.shape.dims if isinstance(instruction.shape, Shape) else None


@define(eq=False)
class Masks:
    """Sets cotangents to 0 where they leave a branch that is not taken; `value` returns the value of an instruction."""

    branches: SelectedBranches
    value: Callable[[Instruction], Value]
    _known: dict[Any, Value] = field(factory=dict, init=False)

    def mask_cotangent(self, instruction: Instruction, operand: Instruction, part: Any) -> Any:
        """The cotangent from an instruction to an operand, set to 0 where it leaves a branch that is not taken."""
        condition, stays = self.branches.of.get(instruction), self.branches.of.get(operand)
        if condition is None or condition == stays or self.branches.singular.isdisjoint(condition):
            return part
        if not isinstance(part, Value) or _dims_of(operand) != _dims_of(instruction):
            return part
        zeros = full(part.builder, 0, part.shape)
        if len(condition) == 1 and condition[0].outer in (None, stays):
            (branch,) = condition
            sides = (part, zeros) if branch.side == 1 else (zeros, part)
            return ops.select(self._predicate(branch.select), *sides)
        return ops.select(self._condition_mask(condition, stays), part, zeros)

    def _condition_mask(self, condition: Condition, stays: Condition | None) -> Value:
        """A mask of where a condition holds, given that `stays` does."""
        key = condition, stays
        if key not in self._known:
            first, *others = [self._branch_mask(branch, stays) for branch in condition]
            for mask in others:
                first = ops.or_(first, mask)
            self._known[key] = first
        return self._known[key]

    def _branch_mask(self, branch: Branch, stays: Condition | None) -> Value:
        mask = broadcast_to(self._predicate(branch.select), _dims_of(branch.select))
        mask = mask if branch.side == 1 else ops.not_(mask)
        if branch.outer in (None, stays):
            return mask
        assert branch.outer is not None
        return ops.and_(mask, self._condition_mask(branch.outer, stays))

    def _predicate(self, select: Instruction) -> Value:
        if select not in self._known:
            self._known[select] = first_side_mask(select, *map(self.value, select.operands))
        return self._known[select]


def first_side_mask(select: Instruction, pred: Value, on_true: Value, on_false: Value) -> Value:
    """A mask of where the cotangent of a select goes to its first side.

    Expansions of functions of a complex number write a part as `select(imag(z) == 0, 0, ...)` where infinity times 0
    would be NaN. On that axis the other side carries the derivative wherever both sides have the same value.
    """
    compare = pred.instruction
    if compare.opcode != "compare" or compare.attributes.direction not in ("EQ", "NE"):
        return pred
    if not any(map(_is_part_of_complex, compare.operands)) or all(number_in(o) != 0 for o in compare.operands):
        return pred
    dims = _dims_of(select)
    if compare.attributes.direction == "EQ":
        return ops.and_(broadcast_to(pred, dims), ops.compare(on_true, on_false, direction="NE"))
    return ops.or_(broadcast_to(pred, dims), ops.compare(on_true, on_false, direction="EQ"))


def _is_part_of_complex(instruction: Instruction) -> bool:
    if instruction.opcode not in ("real", "imag"):
        return False
    shape = instruction.operands[0].shape
    return isinstance(shape, Shape) and shape.dtype.kind == "complex"
