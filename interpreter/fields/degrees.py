"""Degrees of values, and the probability of a wrong verdict that follows from them.

Each value is a quotient of polynomials in the inputs and in the values of random functions.

Sections:

    Degrees of quotients of polynomials, and of nested tuples of them
    Bounds on degrees
    The probability of a wrong verdict, and the number of draws that a verdict needs
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from math import ceil, log2, prod
from typing import Any, TypeAlias

import numpy as np
from attrs import define, field, frozen

from shape_inference import Shape
from shape_inference import leaves as arrays_of
from shape_inference.trees import flatten
from xbuild.core.graph import Instruction, Module
from xbuild.core.memos import remembered
from xbuild.core.op import opcodes
from xbuild.properties.effects import LOOPS, MEETS, PLAIN_CALLS
from xbuild.properties.sites import reached

from ..compiler.lines import Path
from .rules.evaluation import is_float, touches_floats
from .rules.functions import NAMES
from .rules.lapack import ROUTINES, SOLVES
from .rules.opaque import is_opaque
from .rules.places import known

# ----------------------------------------------------------------------------
# Degrees of quotients of polynomials, and of nested tuples of them

_MANY = 64
"""From so many denominators on they count as one."""


@frozen
class Degree:
    """The degree of the numerators of an array over a common denominator.

    That is a product of polynomials: of each how often it counts, and its degree. One that counts negatively is a
    factor of all numerators.
    """

    numerator: int = 0
    denominators: Mapping[Any, tuple[int, int]] = field(factory=dict)

    @property
    def total(self) -> int:
        """The degree of numerators and denominator together."""
        return self.numerator + sum(abs(count) * weight for count, weight in self.denominators.values())


Tree: TypeAlias = Degree | tuple["Tree", ...]
"""The degree of an array, or those of the elements of a tuple; a tuple may have one for all its elements."""


def joined(trees: Iterable[Tree]) -> Degree:
    """The degree of sums, and of arrays that have elements of several: all over the denominators of any."""
    each = [leaf for tree in trees for leaf in flatten(tree)]
    weights = {key: weight for degree in each for key, (_, weight) in degree.denominators.items()}
    counts = {key: max(_count(degree, key) for degree in each) for key in weights}
    missing = (sum((counts[key] - _count(degree, key)) * weights[key] for key in counts) for degree in each)
    numerator = max((d.numerator + more for d, more in zip(each, missing, strict=True)), default=0)
    return _few(Degree(numerator, {key: (count, weights[key]) for key, count in counts.items() if count}))


def _count(degree: Degree, key: Any) -> int:
    return degree.denominators.get(key, (0, 0))[0]


def joined_trees(one: Tree, other: Tree) -> Tree:
    """The degrees of the elements of what is one of two values."""
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return tuple(joined_trees(*pair) for pair in zip(one, other, strict=True))
    return joined([one, other])


def multiplied(degrees: Iterable[Degree]) -> Degree:
    """The degree of products."""
    each = list(degrees)
    common: dict[Any, tuple[int, int]] = {}
    for degree in each:
        for key, (count, weight) in degree.denominators.items():
            common[key] = common.get(key, (0, 0))[0] + count, weight
    common = {key: found for key, found in common.items() if found[0]}
    return _few(Degree(sum(degree.numerator for degree in each), common))


def inverted(degree: Degree, size: int, key: Any) -> Degree:
    """The degree of inverses of `size` elements, over the product of their numerators."""
    turned = {key: (-count, weight) for key, (count, weight) in degree.denominators.items()}
    if not degree.numerator or not size:
        return Degree(0, turned)
    return Degree((size - 1) * degree.numerator, turned | {key: (1, size * degree.numerator)})


def repeated(degree: Degree, count: int) -> Degree:
    """The degree of products of `count` factors."""
    powers = {key: (times * count, weight) for key, (times, weight) in degree.denominators.items()}
    return Degree(degree.numerator * count, powers)


def _few(degree: Degree) -> Degree:
    """The same degree with fewer denominators, if there are many."""
    if len(degree.denominators) <= _MANY:
        return degree
    above = sum(-count * weight for count, weight in degree.denominators.values() if count < 0)
    below = sum(count * weight for count, weight in degree.denominators.values() if count > 0)
    return Degree(degree.numerator + above, {object(): (1, below)})


# ----------------------------------------------------------------------------
# Bounds on degrees
#
# Each value is a quotient of polynomials in the inputs and in the values of random functions.

Key: TypeAlias = tuple[int, ...]
"""A device, and the ids of the instructions of a call path."""

MOST_NUMBERS = 1 << 14
"""The largest array whose numbers are looked at."""
MOST_EXPONENTS = 64
"""The largest array whose numbers are kept as exponents."""

RANDOM = frozenset({
    *NAMES, "tan", "power", "remainder", "atan2", "exponential_minus_one", "log_plus_one", "cholesky",
    "triangular_solve", "fft", "rng", "bitcast_convert", "stochastic_convert",
})  # fmt: skip
"""Ops whose values are those of a random function, a new variable for each."""

OF_EXPONENTIALS = frozenset({"logistic", "tanh", "cosh", "sinh"})
"""Functions that are quotients of exponentials."""
_PRODUCTS = frozenset({"multiply", "dot", "convolution", "ragged_dot", "scaled_dot"})
_STATISTICS = frozenset({"batch_norm_training", "batch_norm_inference", "batch_norm_grad"})
_MULTIPLYING = frozenset({"multiply", "divide", "power", *OF_EXPONENTIALS})
_FUNCTION = {"sqrt": "rsqrt", "log_plus_one": "log", "exponential_minus_one": "exponential", "tan": "sine"}
_REPEATING = ("broadcast", "reshape", "transpose", "convert", "negate", "copy", "exponential", "rsqrt", "sqrt")
_PASSING = frozenset({"copy", "opt_barrier", "domain"})
_FROM_ELSEWHERE = opcodes(lambda op: op.half == "done")
_FOLDS = opcodes(lambda op: op.calls in ("elements", "reducer"))


def watched(modules: Iterable[Module]) -> frozenset[Instruction]:
    """The divisors and exponents of programs, at whose numbers their degrees look."""
    found = {computation for module in modules for computation in reached(module.entry)}
    return frozenset(
        i.operands[1] for computation in found for i in computation.instructions if i.opcode in ("divide", "power")
    )


@define(eq=False)
class Degrees:
    """The degrees of all values of all devices, as they are observed.

    `most` is the largest; `random` counts the variables of each random function, which are elements of its results;
    `operands` has the largest degree of what each is applied to. What comes from another device by a channel, or from a
    start, counts as the largest so far. At the numbers of `watched` instructions it is looked. `by_laws`: whether
    functions that are quotients of exponentials are read so.
    """

    watched: frozenset[Instruction]
    by_laws: bool = False
    found: dict[Key, Tree] = field(factory=dict)
    calls: dict[Any, Tree] = field(factory=dict)
    met: dict[Any, Degree] = field(factory=dict)
    exponents: dict[Key, tuple[float, float]] = field(factory=dict)
    numbers: dict[Key, tuple[int, int]] = field(factory=dict)
    devices: set[int] = field(factory=set)
    most: int = 1
    random: Counter[str] = field(factory=Counter)
    operands: Counter[str] = field(factory=Counter)

    def observe(self, device: int, path: Path, trips: tuple[int, ...], value: Any) -> None:
        """Take the value of an instruction, after those of its operands."""
        instruction = path[-1].instruction
        key = (device, *(id(place.instruction) for place in path))
        self.devices.add(device)
        if not is_float(instruction.shape):
            self.found[key] = Degree()
            return
        degree = self._degree(instruction, path, key, trips)
        if instruction in self.watched:
            self._note(key, np.asarray(value))
        self.found[key] = degree
        self.most = max(self.most, *(leaf.total for leaf in flatten(degree)))

    def _note(self, key: Key, value: Any) -> None:
        """Keep which numbers an array has, and of few known ones the least and the largest, which may be exponents."""
        if value.dtype != np.uint64 or not 0 < value.size <= MOST_NUMBERS:
            return
        numbers = np.unique(value)
        self.numbers[key] = len(numbers), hash(numbers.tobytes())
        if value.size <= MOST_EXPONENTS:
            reals = known(value)
            if np.isfinite(reals).all():
                self.exponents[key] = float(reals.min()), float(reals.max())

    def _trees(self, outer: Key, operands: Iterable[Instruction]) -> list[Tree]:
        return [self.found.get((*outer, id(operand)), Degree(self.most)) for operand in operands]

    def _degree(self, instruction: Instruction, path: Path, key: Key, trips: tuple[int, ...]) -> Tree:
        outer, opcode = key[:-1], instruction.opcode
        if opcode == "parameter":
            return self._parameter(instruction, path, outer, trips)
        trees = self._trees(outer, instruction.operands)
        if opcode == "tuple":
            return tuple(trees)
        if opcode == "get_tuple_element":
            return trees[0][instruction.attributes.index] if isinstance(trees[0], tuple) else trees[0]
        if opcode in _PASSING and len(trees) == 1:
            return trees[0]
        operands = [joined([tree]) for tree in trees]
        if opcode in MEETS:
            return self._folded(instruction, [self._on_all_devices(instruction, outer, trips)])
        if opcode in _FROM_ELSEWHERE:
            return Degree(self.most)
        if is_random(instruction):
            return self._random(instruction, operands, (key, trips))
        if instruction.called and opcode not in _FOLDS:
            return self._called(instruction, trees, key)
        return self._plain(instruction, operands, (key, trips))

    def _on_all_devices(self, instruction: Instruction, outer: Key, trips: tuple[int, ...]) -> Degree:
        """The degree of the operands of a collective on any device that is known; computed once for all of these."""
        place = *outer[1:], id(instruction), trips, len(self.devices)
        if place not in self.met:
            pairs = ((d, operand) for d in self.devices for operand in instruction.operands)
            trees = [self.found.get((d, *outer[1:], id(operand))) for d, operand in pairs]
            if None in trees:  # devices run several programs
                return Degree(self.most)
            self.met[place] = joined(tree for tree in trees if tree is not None)
        return self.met[place]

    def _plain(self, instruction: Instruction, operands: list[Degree], key: Any) -> Degree:
        opcode = instruction.opcode
        if opcode in _PRODUCTS:
            return multiplied(operands)
        if opcode == "divide":
            return multiplied([operands[0], self._inverse(instruction, operands[1], key)])
        if opcode == "sqrt":
            self._drawn(instruction, operands)
            return inverted(Degree(1), distinct(instruction.operands[0]), key)
        if opcode in _STATISTICS:
            found = repeated(multiplied([*operands, Degree(1)]), 3)
            self._draw("rsqrt", _size(instruction.operands[1]), found)
            return found
        return self._folded(instruction, operands)

    def _inverse(self, instruction: Instruction, divisor: Degree, key: Any) -> Degree:
        """The degree of inverses; those of the same numbers have one denominator, wherever they are computed."""
        by = instruction.operands[1]
        noted = self.numbers.get((*key[0][:-1], id(by)))
        if noted is not None:
            return inverted(divisor, *noted)
        return inverted(divisor, distinct(by) * (1 + _is_complex(instruction)), key)

    def _folded(self, instruction: Instruction, operands: list[Degree]) -> Degree:
        """The degree of a fold: by sums and choices the largest, else as if all elements were multiplied."""
        inside = [each for called in instruction.called for each in called.instructions]
        count = max(map(_size, instruction.operands), default=1) * max(len(self.devices), 1)
        found = joined(operands)
        if instruction.opcode in _FOLDS | MEETS and any(map(_multiplies, instruction.called)):
            found = repeated(joined([*operands, Degree(1)]), 1 + count * len(inside))
        for each in inside:
            if each.opcode in RANDOM or each.opcode == "sqrt":
                self._draw(each.opcode, count, found)
        return found

    def _random(self, instruction: Instruction, operands: list[Degree], key: Any) -> Degree:
        self._drawn(instruction, operands)
        if instruction.opcode == "tan":
            self._draw("cosine", distinct(instruction.operands[0]), joined(operands))
        if instruction.opcode == "tan" or (self.by_laws and instruction.opcode in OF_EXPONENTIALS):
            return joined([inverted(Degree(1), distinct(instruction.operands[0]), key), Degree()])
        if instruction.opcode != "power":
            return Degree(1)
        low, high = self.exponents.get((*key[0][:-1], id(instruction.operands[1])), (0.0, 0.0))
        terms = [repeated(operands[0], max(int(high), 0)), Degree(2 + operands[0].total)]
        if low != int(low) or high != int(high):  # with a square root, which is an inverse
            terms.append(multiplied([*terms[:1], inverted(Degree(1), _size(instruction), object())]))
        if low < 0:
            terms.append(inverted(repeated(operands[0], int(-low) + 1), _size(instruction), object()))
        return joined(terms)

    def _drawn(self, instruction: Instruction, operands: list[Degree]) -> None:
        """Count the variables of a random function: one for each element of the operand that may be distinct."""
        count = distinct(instruction.operands[0]) if len(instruction.operands) == 1 else _size(instruction)
        count = 1 if is_opaque(instruction) else count  # of all elements of the operands together
        self._draw(instruction.opcode, count, joined(operands))

    def _draw(self, opcode: str, count: int, operand: Degree) -> None:
        name = _FUNCTION.get(opcode, opcode)
        self.random[name] += count
        self.operands[name] = max(self.operands[name], operand.total)

    def _parameter(self, instruction: Instruction, path: Path, outer: Key, trips: tuple[int, ...]) -> Tree:
        if len(path) == 1:
            return Degree(1)
        caller, number = path[-2], int(instruction.attributes.number)
        operands = self._trees(outer[:-1], caller.instruction.operands)
        if caller.branch is not None:
            return operands[int(caller.branch) + 1]
        if caller.instruction.opcode in PLAIN_CALLS and number < len(operands):
            return operands[number]
        if caller.instruction.opcode == "while":
            before = None if trips[-1] == 1 else self._root(caller.instruction.attributes.body, outer)
            return before or operands[0]
        if caller.instruction.opcode in LOOPS:
            operands += [each for one in caller.instruction.called if (each := self._root(one, outer)) is not None]
        return joined(operands)

    def _root(self, computation: Any, outer: Key) -> Tree | None:
        return self.found.get((*outer, id(computation.root)))

    def _called(self, instruction: Instruction, operands: list[Tree], key: Key) -> Tree:
        if instruction.opcode == "scan":  # its outputs are of every trip
            return Degree(self.most)
        same = key[:-1], instruction.called, instruction.operands
        roots = [found for callee in instruction.called if (found := self._root(callee, key)) is not None]
        if not roots:  # the walk took the result of an earlier call
            return self.calls.get(same, Degree(self.most))
        if instruction.opcode == "while":
            tree = self.found.get((*key, id(instruction.attributes.condition.parameters[0])), operands[0])
        else:
            tree = reduce(joined_trees, roots)
        self.calls[same] = tree
        return tree


def _size(instruction: Instruction) -> int:
    return max((prod(leaf.dims) for leaf in arrays_of(instruction.shape) if isinstance(leaf, Shape)), default=1)


def distinct(instruction: Instruction) -> int:
    """How many different elements an array has at most, by the broadcasts that it is made by."""
    size = _size(instruction)
    while instruction.opcode in _REPEATING:
        instruction = instruction.operands[0]
        size = min(size, _size(instruction))
    return size


def is_random(instruction: Instruction) -> bool:
    """Whether the values of an instruction are those of a random function."""
    if instruction.opcode == "custom_call":
        return instruction.attributes.custom_call_target in ROUTINES | SOLVES or is_opaque(instruction)
    is_size = instruction.opcode == "abs" and _is_complex(instruction.operands[0])
    return instruction.opcode in RANDOM or is_size


def _is_complex(instruction: Instruction) -> bool:
    return isinstance(instruction.shape, Shape) and instruction.shape.dtype.kind == "complex"


@remembered
def _multiplies(computation: Any) -> bool:
    """Whether a computation of elements does more than add and choose."""
    return any(
        (i.opcode in _MULTIPLYING and touches_floats(i)) or any(map(_multiplies, i.called))
        for i in computation.instructions
    )


# ----------------------------------------------------------------------------
# The probability of a wrong verdict, and the number of draws that a verdict needs.

ERROR = -60
"""The logarithm of the largest probability with which different arithmetic may be called equal."""
LEAST, MOST = 3, 24
"""The least and the greatest number of random inputs of a verdict."""
BOUNDING = 1
"""The draw at which degrees are bounded: not the first, at which most programs that differ do so."""
CHOOSING = 8
"""The least number of draws if the order of numbers or integers matter, of which each draw shows one case."""


def log2_error(several: Sequence[Degrees], bits: float, primes: int = 2) -> float:
    """The logarithm of the probability of one draw: a root or two arguments of a random function coincide.

    `bits` are those of the `primes` by which the numbers are compared.
    """
    variables: Counter[str] = Counter()
    operands: Counter[str] = Counter()
    for degrees in several:
        variables.update(degrees.random)
        operands |= degrees.operands
    chances = [(2 * max(degrees.most for degrees in several)) ** primes]
    chances += [count * count // 2 * (2 * max(operands[name], 1)) ** primes for name, count in variables.items()]
    return log2(sum(chances)) - bits


def draws_needed(several: Sequence[Degrees], bits: float) -> int:
    """The number of draws that reaches the bound; more than `MOST` if the fields are too small."""
    error = log2_error(several, bits)
    return ceil(ERROR / error) + 1 if error < -1 else MOST + 1
