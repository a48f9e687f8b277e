"""The probability of a wrong verdict on arithmetic, and how many draws a verdict needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil, log2

from .degrees import Degrees

ERROR = -60
"""The logarithm of the probability with which different arithmetic may be called equal, at most."""
LEAST, MOST = 3, 24
"""Of how many random inputs a verdict is made."""
BOUNDING = 1
"""The draw at which degrees are bounded: not the first, at which most programs that differ do so."""
CHOOSING = 8
"""Of how many at least where the order of numbers or integers take part, of which each draw shows one case."""


def log2_error(several: Sequence[Degrees], bits: float) -> float:
    """The logarithm of the probability of one draw: a root or two arguments of a random function coincide."""
    variables: Counter[str] = Counter()
    operands: Counter[str] = Counter()
    for degrees in several:
        variables.update(degrees.random)
        operands |= degrees.operands
    chances = [(2 * max(each.most for each in several)) ** 2]
    chances += [count * count // 2 * (2 * max(operands[name], 1)) ** 2 for name, count in variables.items()]
    return log2(sum(chances)) - bits


def draws_wanted(several: Sequence[Degrees], bits: float) -> int:
    """How many draws reach the bound; more than `MOST` where the fields are too small."""
    error = log2_error(several, bits)
    return ceil(ERROR / error) + 1 if error < -1 else MOST + 1
