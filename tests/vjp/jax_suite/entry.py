"""A function of JAX with arguments drawn by chance, as the suite compares it."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen

Array = np.ndarray[Any, Any]
Draw: TypeAlias = Callable[[np.random.Generator], Any]


@frozen(eq=False)
class Entry:
    """A name, a function, and how each argument is drawn, or what it is.

    `here` is the same function of values of xbuild, where it is of ops that JAX does not lower to.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    here: Callable[..., Any] | None = None

    def values(self) -> list[Any]:
        """The arguments, the same in every run."""
        chance = np.random.default_rng(zlib.crc32(self.name.encode()))
        return [each(chance) if callable(each) else np.asarray(each) for each in self.arguments]


def entry(name: str, function: Callable[..., Any], *arguments: Any) -> Entry:
    return Entry(name, function, arguments)


def both(name: str, here: Callable[..., Any], function: Callable[..., Any], *arguments: Any) -> Entry:
    return Entry(name, function, arguments, here)


def normal(*dims: int) -> Draw:
    return lambda chance: chance.normal(size=dims)


def within(low: float, high: float, *dims: int) -> Draw:
    return lambda chance: chance.uniform(low, high, size=dims)


def positive(*dims: int) -> Draw:
    return within(0.4, 2.5, *dims)


def cplx(*dims: int) -> Draw:
    return lambda chance: chance.normal(size=dims) + 1j * chance.normal(size=dims)


def ties(*dims: int) -> Draw:
    """Small whole numbers as floats, many of them equal."""
    return lambda chance: chance.integers(-1, 2, size=dims).astype(np.float64)


def tree(**parts: Draw) -> Draw:
    """A dict of arrays."""
    return lambda chance: {name: part(chance) for name, part in parts.items()}


def layers(count: int, **parts: Draw) -> Draw:
    """A list of dicts of arrays."""
    return lambda chance: [tree(**parts)(chance) for _ in range(count)]
