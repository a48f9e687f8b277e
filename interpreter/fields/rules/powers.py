"""Powers of a generator of the squares of a field, and discrete logarithms by tables."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from xbuild.core.attributes import Array

from .tables import Undecidable

MOST_LOGARITHMS = 1 << 13
"""Of how many numbers at once discrete logarithms are taken."""
_DIGIT = 8
_BASE = 4
"""The base of the tables: a square, so that its powers are all squares of the field."""


@lru_cache(maxsize=64)
def _digit_powers(prime: int, base: int, place: int) -> Array:
    """The powers of a base by each digit at a place."""
    step = pow(base, 1 << (_DIGIT * place), prime)
    found = [1]
    for _ in range((1 << _DIGIT) - 1):
        found.append(found[-1] * step % prime)
    return np.array(found, np.uint64)


def power(exponents: Array, prime: int, scale: int) -> Array:
    """The generator of a prime raised to numbers of the level below."""
    base = pow(_BASE, scale, prime)
    found = np.ones(exponents.shape, np.uint64)
    for place in range(4):
        digits = (exponents >> np.uint64(_DIGIT * place)) & np.uint64((1 << _DIGIT) - 1)
        found = found * _digit_powers(prime, base, place)[digits] % np.uint64(prime)
    return found


_STEPS = 1 << 19
"""How many powers a table of discrete logarithms has."""


@lru_cache(maxsize=8)
def _table(prime: int) -> tuple[Array, Array]:
    """The first powers of the base, sorted, and their exponents."""
    powers = np.ones(1, np.uint64)
    while len(powers) < _STEPS:
        step = pow(_BASE, len(powers), prime)
        powers = np.concatenate([powers, powers * np.uint64(step) % np.uint64(prime)])
    order = np.argsort(powers)
    return powers[order], order.astype(np.uint64)


def logarithm(values: Array, prime: int, scale: int) -> Array:
    """The numbers of the level below that the generator is raised to for values, or for what has their square."""
    order = prime // 2
    distinct, places = np.unique(values.reshape(-1), return_inverse=True)
    if len(distinct) > MOST_LOGARITHMS:
        raise Undecidable(f"logarithms of more than {MOST_LOGARITHMS} numbers")
    found = _of_squares(distinct * distinct % np.uint64(prime), prime)
    # base^found is the square of values, and the generator is base^scale
    factor = np.uint64(pow(2 * scale, -1, order))
    return (found * factor % np.uint64(order))[places].reshape(values.shape)


_AT_ONCE = 1 << 15
"""How many numbers are looked up in the table at once."""


@lru_cache(maxsize=8)
def _giant_steps(prime: int) -> Array:
    """By what numbers are multiplied after each number of giant steps."""
    step = pow(_BASE, -_STEPS, prime)
    found = [1]
    for _ in range(prime // 2 // _STEPS):
        found.append(found[-1] * step % prime)
    return np.array(found, np.uint64)


def _of_squares(values: Array, prime: int) -> Array:
    """The exponents of the base for squares: giant steps down to the powers of the table, several at once."""
    powers, exponents = _table(prime)
    steps, word = _giant_steps(prime), np.uint64(prime)
    found, left, done = np.zeros(len(values), np.uint64), np.arange(len(values)), 0
    while len(left) and done < len(steps):
        several = steps[done : done + max(_AT_ONCE // len(left), 1)]
        rest = values[left, None] * several % word
        at = np.minimum(np.searchsorted(powers, rest), _STEPS - 1)
        is_hit = powers[at] == rest
        rows, giants = np.nonzero(is_hit)
        found[left[rows]] = exponents[at[rows, giants]] + ((giants + done) * _STEPS).astype(np.uint64)
        left, done = left[~is_hit.any(1)], done + len(several)
    return found
