"""Bounds on degrees: each value is a quotient of polynomials in the inputs and in the values of random functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import prod
from typing import Any

import numpy as np
from attrs import define, field, frozen

from shape_inference import Shape, leaves
from xbuild.core.graph import Instruction
from xbuild.core.op import opcodes
from xbuild.properties.effects import LOOPS, PLAIN_CALLS

from ..rules.lines import Path
from .rules.evaluation import is_float, touches_floats
from .rules.functions import NAMES
from .rules.places import known

_MANY = 24
"""From so many denominators on they count as one."""


@frozen
class Degree:
    """The degree of the numerators of an array, and of its denominators: how often each counts, and its degree."""

    numerator: int = 0
    denominators: Mapping[Any, tuple[int, int]] = field(factory=dict)

    @property
    def total(self) -> int:
        return self.numerator + self.below

    @property
    def below(self) -> int:
        return sum(count * weight for count, weight in self.denominators.values())


def joined(degrees: Iterable[Degree]) -> Degree:
    """The degree of sums, and of arrays that have elements of several: all over the denominators of any."""
    each = list(degrees)
    common: dict[Any, tuple[int, int]] = {}
    for degree in each:
        for key, (count, weight) in degree.denominators.items():
            common[key] = max(common.get(key, (0, 0))[0], count), weight
    below = sum(count * weight for count, weight in common.values())
    return _few(Degree(max((d.numerator + below - d.below for d in each), default=0), common))


def multiplied(degrees: Iterable[Degree]) -> Degree:
    """The degree of products."""
    each = list(degrees)
    common: dict[Any, tuple[int, int]] = {}
    for degree in each:
        for key, (count, weight) in degree.denominators.items():
            common[key] = common.get(key, (0, 0))[0] + count, weight
    return _few(Degree(sum(degree.numerator for degree in each), common))


def inverted(degree: Degree, size: int, key: Any) -> Degree:
    """The degree of inverses of `size` elements, whose numerators become denominators."""
    return Degree(degree.below, {key: (1, size * degree.numerator)} if degree.numerator else {})


def repeated(degree: Degree, count: int) -> Degree:
    """The degree of products of `count` factors."""
    powers = {key: (times * count, weight) for key, (times, weight) in degree.denominators.items()}
    return Degree(degree.numerator * count, powers)


def _few(degree: Degree) -> Degree:
    if len(degree.denominators) <= _MANY:
        return degree
    return Degree(degree.numerator, {object(): (1, degree.below)})


RANDOM = frozenset({*NAMES, "power", "bitcast_convert", "remainder", "atan2", "cholesky", "triangular_solve", "fft", "rng",
                    "exponential_minus_one", "log_plus_one"})  # fmt: skip
"""Ops whose values are those of a random function, a new variable for each."""

_PRODUCTS = frozenset({"multiply", "dot", "convolution", "ragged_dot", "scaled_dot"})
_STATISTICS = frozenset({"batch_norm_training", "batch_norm_inference", "batch_norm_grad"})
_FUNCTION = {"sqrt": "rsqrt", "log_plus_one": "log", "exponential_minus_one": "exponential"}
_REPEATING = ("broadcast", "reshape", "transpose", "convert", "negate", "copy", "exponential", "rsqrt", "sqrt")
_FOLDS = opcodes(lambda op: op.calls in ("elements", "reducer"))


@define(eq=False)
class Degrees:
    """The degrees of all values of one device, as they are observed.

    `most` is the largest; `random` counts the variables of each random function, which are elements of its results.

    What comes from another device counts as the largest so far.
    """

    devices: int = 1
    found: dict[tuple[int, ...], Degree] = field(factory=dict)
    exponents: dict[tuple[int, ...], int] = field(factory=dict)
    most: int = 1
    random: Counter[str] = field(factory=Counter)

    def observe(self, path: Path, trips: tuple[int, ...], value: Any) -> None:
        """Take the value of an instruction, after those of its operands."""
        instruction = path[-1].instruction
        key = tuple(id(place.instruction) for place in path)
        if not is_float(instruction.shape):
            self.found[key] = Degree()
            return
        degree = self._degree(instruction, path, key, trips)
        if instruction.opcode in ("constant", "convert", "broadcast") and np.size(value) <= 64:
            self._note_exponent(key, value)
        self.found[key] = degree
        self.most = max(self.most, degree.total)

    def _note_exponent(self, key: tuple[int, ...], value: Any) -> None:
        if isinstance(value, np.ndarray) and value.dtype == np.uint64:
            reals = known(value)
            if np.isfinite(reals).all():
                self.exponents[key] = int(np.abs(reals).max(initial=0))

    def _degree(self, instruction: Instruction, path: Path, key: tuple[int, ...], trips: tuple[int, ...]) -> Degree:
        outer, opcode = key[:-1], instruction.opcode
        if opcode == "parameter":
            return self._parameter(instruction, path, outer)
        operands = [self.found.get((*outer, id(each)), Degree(1)) for each in instruction.operands]
        if opcode in RANDOM:
            return self._random(instruction, operands, outer)
        if instruction.called and opcode not in _FOLDS:
            return self._called(instruction, operands, key)
        return self._plain(instruction, operands, (key, trips))

    def _plain(self, instruction: Instruction, operands: list[Degree], key: Any) -> Degree:
        opcode = instruction.opcode
        if opcode in _PRODUCTS:
            return multiplied(operands)
        if opcode == "divide":
            count = distinct(instruction.operands[1]) * self.devices
            return multiplied([operands[0], inverted(operands[1], count, key)])
        if opcode == "sqrt":
            self._drawn(instruction)
            return multiplied([*operands, Degree(1)])
        if opcode in _STATISTICS:
            self.random["rsqrt"] += _size(instruction.operands[1])
            return repeated(multiplied([*operands, Degree(1)]), 3)
        if opcode in ("recv_done", "all_reduce_done", "all_gather_done", "collective_permute_done", "async_done"):
            return Degree(self.most)
        if opcode in _FOLDS and any(map(_multiplies, instruction.called)):
            return repeated(joined(operands), max(map(_size, instruction.operands)) + self.devices)
        return joined(operands)

    def _random(self, instruction: Instruction, operands: list[Degree], outer: tuple[int, ...]) -> Degree:
        self._drawn(instruction)
        if instruction.opcode != "power":
            return Degree(1)
        exponent = self.exponents.get((*outer, id(instruction.operands[1])), 1)
        raised = repeated(operands[0], max(exponent, 1))
        inverse = inverted(raised, _size(instruction) * self.devices, object())
        return joined([raised, inverse, Degree(2 + operands[0].total)])

    def _drawn(self, instruction: Instruction) -> None:
        """Count the variables of a random function: one for each element of the operand that may be distinct."""
        count = distinct(instruction.operands[0]) if len(instruction.operands) == 1 else _size(instruction)
        self.random[_FUNCTION.get(instruction.opcode, instruction.opcode)] += count

    def _parameter(self, instruction: Instruction, path: Path, outer: tuple[int, ...]) -> Degree:
        if len(path) == 1:
            return Degree(1)
        caller, number = path[-2], int(instruction.attributes.number)
        before = outer[:-1]
        given = [self.found.get((*before, id(each)), Degree(1)) for each in caller.instruction.operands]
        if caller.branch is not None:
            return given[int(caller.branch) + 1]
        if caller.instruction.opcode in PLAIN_CALLS and number < len(given):
            return given[number]
        if caller.instruction.opcode in LOOPS:
            given += [
                each for each in (self._root(one, outer) for one in caller.instruction.called) if each is not None
            ]
        return joined(given)

    def _root(self, computation: Any, outer: tuple[int, ...]) -> Degree | None:
        return self.found.get((*outer, id(computation.root)))

    def _called(self, instruction: Instruction, operands: list[Degree], key: tuple[int, ...]) -> Degree:
        roots = [found for each in instruction.called if (found := self._root(each, key)) is not None]
        return joined([*roots, *(operands if instruction.opcode in LOOPS else ())])


def _size(instruction: Instruction) -> int:
    return max((prod(leaf.dims) for leaf in leaves(instruction.shape) if isinstance(leaf, Shape)), default=1)


def distinct(instruction: Instruction) -> int:
    """How many different elements an array has at most, by the broadcasts that it is made by."""
    size = _size(instruction)
    while instruction.opcode in _REPEATING:
        instruction = instruction.operands[0]
        size = min(size, _size(instruction))
    return size


def _multiplies(computation: Any) -> bool:
    """Whether a computation of elements does more than add and choose."""
    return any(
        (i.opcode in ("multiply", "divide", "power") and touches_floats(i)) or any(map(_multiplies, i.called))
        for i in computation.instructions
    )
