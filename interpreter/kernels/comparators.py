"""Recognition of comparators that compare by keys: `f(a) < f(b)`, or `g(a) < g(b)` if `f(a) == f(b)`, and so on."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from shape_inference.elided import ElidedArray
from xbuild.core.graph import Computation, Instruction
from xbuild.core.memos import remembered

from ..rules.region import is_elementwise

_DESCENDING = {"LT": False, "LE": False, "GT": True, "GE": True}
_STRICT = ("LT", "GT")


@frozen(eq=False)
class Key:
    """A sort key: a function `of` one element of each of `operands`; `is_total` selects the total order of floats."""

    of: Computation
    operands: tuple[int, ...]
    is_descending: bool
    is_total: bool

    @property
    def is_element(self) -> bool:
        """Whether the key is the element of its operand itself."""
        return self.of.root.opcode == "parameter"


@remembered
def keeps_numbers(of: Computation) -> bool:
    """Whether a function of one float returns each number but NaN, -0 and numbers that compare equal to 0 unchanged.

    JAX sorts by such a function, which replaces every NaN by one NaN, and -0 by 0.
    """
    value = of.root
    while value.opcode == "select" and _is_replacement(*value.operands[:2]):
        value = value.operands[2]
    return value.opcode == "parameter"


def _is_replacement(test: Instruction, number: Instruction) -> bool:
    """Whether a test selects only NaNs of a parameter, or only its zeros where the number is 0."""
    if test.opcode != "compare" or test.attributes.type == "TOTALORDER" or test.operands[0].opcode != "parameter":
        return False
    tested, other = test.operands
    if test.attributes.direction == "NE":
        return other is tested
    return test.attributes.direction == "EQ" and _is_zero(other) and _is_zero(number)


def _is_zero(value: Instruction) -> bool:
    if value.opcode != "constant" or isinstance(value.attributes.literal, ElidedArray):
        return False
    return not any(value.attributes.literal.tobytes())


@remembered
def keys_of(comparator: Computation) -> tuple[Key, ...] | None:
    """The keys that a comparator compares lexicographically; None if the comparator is of another form."""
    return _keys(comparator, comparator.root)


def _keys(comparator: Computation, test: Instruction) -> tuple[Key, ...] | None:
    if test.opcode == "compare":
        key = _key(comparator, test)
        return None if key is None else (key,)
    for first, tie, rest in _chains(test):
        head = _key(comparator, first) if first.opcode == "compare" else None
        if head is not None and first.attributes.direction in _STRICT and _same_pair(first, tie):
            tail = _keys(comparator, rest)
            return None if tail is None else (head, *tail)
    return None


def _chains(test: Instruction) -> Iterator[tuple[Instruction, Instruction, Instruction]]:
    """The decompositions of a test into `first or (tie and rest)` or `rest if tie else first`."""
    if test.opcode == "or":
        for first, other in (test.operands, test.operands[::-1]):
            if other.opcode == "and":
                yield first, other.operands[0], other.operands[1]
                yield first, other.operands[1], other.operands[0]
    if test.opcode == "select" and test.operands[0].opcode == "compare":
        tie, on_true, on_false = test.operands
        if tie.attributes.direction == "EQ":
            yield on_false, tie, on_true


def _same_pair(first: Instruction, tie: Instruction) -> bool:
    """Whether `tie` tests the two operands of `first` for equality, in the same order of floats."""
    if tie.opcode != "compare" or tie.attributes.direction != "EQ" or tie.attributes.type != first.attributes.type:
        return False
    (a, b), (c, d) = first.operands, tie.operands
    return (_alike(a, c, 0) and _alike(b, d, 0)) or (_alike(a, d, 0) and _alike(b, c, 0))


def _key(comparator: Computation, test: Instruction) -> Key | None:
    """The key of a comparison whose sides apply one function to the first and to the second parameters of the pairs."""
    left, right = test.operands
    descending = _DESCENDING.get(test.attributes.direction)
    if descending is None:
        return None
    for first, second, is_descending in ((left, right, descending), (right, left, not descending)):
        if _alike(first, second, 1):
            of = _part(comparator, first)
            numbers = [p.attributes.number for p in of.parameters]
            if numbers and all(number % 2 == 0 for number in numbers) and is_elementwise(of):
                operands = tuple(number // 2 for number in numbers)
                return Key(of, operands, is_descending, test.attributes.type == "TOTALORDER")
    return None


def _alike(a: Instruction, b: Instruction, step: int) -> bool:
    """Whether two instructions compute the same function, with the parameter numbers of the second higher by `step`."""
    stack, seen = [(a, b)], set()
    while stack:
        a, b = pair = stack.pop()
        if pair in seen:
            continue
        seen.add(pair)
        if not _alike_alone(a, b, step):
            return False
        stack += zip(a.operands, b.operands, strict=True)
    return True


def _same_bytes(a: Instruction, b: Instruction) -> bool:
    pair = a.attributes.literal, b.attributes.literal
    return not any(isinstance(each, ElidedArray) for each in pair) and bool(pair[0].tobytes() == pair[1].tobytes())


def _alike_alone(a: Instruction, b: Instruction, step: int) -> bool:
    if a.opcode != b.opcode or len(a.operands) != len(b.operands) or a.shape != b.shape:
        return False
    if a.opcode == "parameter":
        return bool(a.attributes.number + step == b.attributes.number)
    if a.opcode == "constant":
        return a.attributes.literal is b.attributes.literal or _same_bytes(a, b)
    return bool(a.attributes == b.attributes)


def _part(comparator: Computation, root: Instruction) -> Computation:
    """The part of a comparator that computes `root`, as a computation."""
    stack, needed = [root], set()
    while stack:
        instruction = stack.pop()
        if instruction not in needed:
            needed.add(instruction)
            stack += instruction.operands
    return Computation("key", (i for i in comparator.instructions if i in needed), root)
