"""Exponentials and logarithms by their laws: powers of a generator, with exponents in the fields one level below.

A program is evaluated once in each level of a tower of fields (`primes.TOWER`). Where the evaluation one level below
has had the argument x of an exponential, this one has g^x, so that exp(a + b) is exp(a) exp(b); where the evaluation
one level above has had the argument of a logarithm, this one has its discrete logarithm. On the lowest level
exponentials are random functions, on the highest logarithms are. Choices are made on the lowest level, for all.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

import numpy as np
from attrs import define, field

from xbuild.core.attributes import Array
from xbuild.core.context import assigned

from . import residues
from .powers import logarithm, power
from .primes import Pair, current, over
from .residues import Word
from .tables import Undecidable

LAWFUL = frozenset({"exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "tanh", "cosh",
                    "sinh"})  # fmt: skip
"""Ops that are read by the laws of exponentials and logarithms."""
LAWFUL_BY_SIGNS = LAWFUL | {"power", "asinh", "acosh", "atanh"}
"""Likewise, where signs count."""
_DIFFER = "choices that depend on exponentials"


@define(eq=False)
class OrderChoices:
    """What is chosen by the order of numbers, in the order of evaluation: recorded once, then repeated.

    `proposed` are the choices by the numbers of this evaluation, where `proposes`.
    """

    made: list[Array] = field(factory=list)
    at: int | None = None
    proposes: bool = False
    proposed: list[Array] = field(factory=list)

    def taken(self, dims: tuple[int, ...], choose: Callable[[], Any]) -> Array:
        """The next choice, of an array of these dimensions."""
        if self.at is None:
            self.made.append(np.asarray(choose()))
            return self.made[-1]
        if self.at == len(self.made) or self.made[self.at].shape != dims:
            raise Undecidable(_DIFFER)
        if self.proposes:
            self.proposed.append(np.asarray(choose()))
        self.at += 1
        return self.made[self.at - 1]

    def repeated(self, *, proposes: bool) -> OrderChoices:
        """The same choices, to be made again from the first on."""
        return OrderChoices(self.made, 0, proposes)

    def check_ended(self) -> None:
        """Undecidable where a repetition has left out choices."""
        if self.at not in (None, len(self.made)):
            raise Undecidable(_DIFFER)


Calls = dict[str, list[Word]]
"""The arguments of exponentials and of logarithms, in the order of evaluation."""


@define(eq=False)
class TowerLevel:
    """The evaluation of a program on one level: the arguments it has, and those on the levels below and above.

    `scales`: for both primes what the base of powers is raised to, for the generator. `by_signs`: whether the squares
    by the first prime are the positive numbers, so that roots, signs and sizes obey their laws; then only the residues
    by that prime count.
    """

    scales: tuple[int, int]
    choices: OrderChoices
    below: Calls | None = None
    above: Calls | None = None
    upper: Pair | None = None
    by_signs: bool = False
    own: Calls = field(factory=lambda: {"exponential": [], "log": []})

    def argument(self, name: str, operand: Word) -> Word | None:
        """Note an argument of a function; gives the one that it has on the level from which its value comes."""
        place = len(self.own[name])
        self.own[name].append(operand)
        source = self.below if name == "exponential" else self.above
        if source is None:
            return None
        if place >= len(source[name]) or source[name][place].shape != operand.shape:
            raise Undecidable(_DIFFER)
        return source[name][place]


_level: ContextVar[TowerLevel | None] = ContextVar("xbuild_level", default=None)
level: Callable[[], TowerLevel | None] = _level.get


def evaluating(given: TowerLevel) -> AbstractContextManager[TowerLevel | None]:
    """Inside, exponentials, logarithms and choices are those of an evaluation on a level."""
    return assigned(_level, given)


def by_signs() -> bool:
    """Whether the squares by the first prime are the positive numbers."""
    found = level()
    return found is not None and found.by_signs


def chosen(dims: tuple[int, ...], choose: Callable[[], Any]) -> Array:
    """A choice by the order of numbers, which is the same on all levels."""
    found = level()
    return np.asarray(choose()) if found is None else found.choices.taken(dims, choose)


def by_law(name: str, operand: Word, otherwise: Word) -> Word:
    """The values of exponentials or logarithms; `otherwise` where the operand is no number, or no level has one."""
    here = level()
    if here is None or name not in here.own:
        return otherwise
    argument = here.argument(name, operand)
    if argument is None:
        return _of_positive(operand, otherwise) if name == "log" and here.below is not None else otherwise
    if name == "exponential":
        found = residues.packed(*_each(power, argument, current(), here.scales))
        return np.where(residues.is_special(operand) | residues.is_special(argument), otherwise, found)
    assert here.upper is not None
    is_open = residues.is_special(operand) | residues.is_special(argument) | (operand == 0) | _has_zero(argument)
    plain = np.where(is_open, np.uint64(1 | 1 << 31), argument)
    found = np.where(is_open, otherwise, residues.packed(*_each(logarithm, plain, here.upper, here.scales)))
    return _of_positive(argument, found, here.upper)


def _each(rule: Callable[..., Array], words: Word, pair: Pair, scales: tuple[int, int]) -> list[Array]:
    """A rule applied to the residues, with both primes; where signs count, with the first, and 1 by the other."""
    if by_signs():
        first = rule(residues.halves(words)[0], pair.primes[0], scales[0])
        return [first, np.ones_like(first)]
    return [rule(*each) for each in zip(residues.halves(words), pair.primes, scales, strict=True)]


def _of_positive(argument: Word, values: Word, pair: Pair | None = None) -> Word:
    """The values of a function at positive arguments, where signs count; NaN at others."""
    if not by_signs():
        return values
    return np.where(is_negative(argument, pair), residues.UNDEFINED, values)


def is_negative(words: Word, pair: Pair | None = None) -> Array:
    """Which numbers are no squares by the first prime."""
    with over(pair or current()):
        prime = current().primes[0]
        symbol, _ = residues.halves(residues.power(words, (prime // 2, 0)))
    found: Array = (symbol == prime - 1) & ~residues.is_special(words)
    return found


def root(words: Word) -> Word:
    """The positive square roots of positive numbers, and NaN for negative ones."""
    one, other = current().primes
    found = residues.power(words, ((one + 1) // 4, (other + 1) // 4))
    return _of_positive(words, found)


def cube_root(words: Word) -> Word:
    """The cube roots, of which there is one by each prime."""
    one, other = current().primes
    return residues.power(words, ((2 * one - 1) // 3, (2 * other - 1) // 3))


def _has_zero(words: Word) -> Array:
    first, second = residues.halves(words)
    found: Array = (first == 0) | ((second == 0) & (not by_signs()))
    return found
