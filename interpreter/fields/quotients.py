"""Degrees of quotients of polynomials, and of nested tuples of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from attrs import field, frozen

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


def leaves(tree: Tree) -> Iterator[Degree]:
    """The degrees of all arrays of a value."""
    if isinstance(tree, Degree):
        yield tree
    else:
        for each in tree:
            yield from leaves(each)


def joined(trees: Iterable[Tree]) -> Degree:
    """The degree of sums, and of arrays that have elements of several: all over the denominators of any."""
    each = [leaf for tree in trees for leaf in leaves(tree)]
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
    turned = {each: (-count, weight) for each, (count, weight) in degree.denominators.items()}
    if not degree.numerator or not size:
        return Degree(0, turned)
    return Degree((size - 1) * degree.numerator, turned | {key: (1, size * degree.numerator)})


def repeated(degree: Degree, count: int) -> Degree:
    """The degree of products of `count` factors."""
    powers = {key: (times * count, weight) for key, (times, weight) in degree.denominators.items()}
    return Degree(degree.numerator * count, powers)


def _few(degree: Degree) -> Degree:
    """The same with fewer denominators, where there are many."""
    if len(degree.denominators) <= _MANY:
        return degree
    above = sum(-count * weight for count, weight in degree.denominators.values() if count < 0)
    below = sum(count * weight for count, weight in degree.denominators.values() if count > 0)
    return Degree(degree.numerator + above, {object(): (1, below)})
