"""Bounds on degrees against the degrees that values have: along a line, a value is a quotient of polynomials in one
variable, which rational interpolation finds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xbuild as xb
from interpreter.fields.degrees import _MANY, Degree, Degrees, Family, watched
from interpreter.fields.rules import residues
from interpreter.fields.rules.places import drawing
from interpreter.fields.rules.primes import PLAIN
from interpreter.fields.run import Subject
from shape_inference import XbuildError
from shape_inference.trees import flatten

PRIME = PLAIN.primes[0]
MOST = 40
"""The largest bound that is compared."""


def remainder(one: list[int], other: list[int]) -> tuple[list[int], list[int]]:
    """The quotient and remainder of polynomials, by rising powers."""
    left, quotient = list(one), [0] * max(len(one) - len(other) + 1, 1)
    inverse = pow(other[-1], -1, PRIME)
    while len(left) >= len(other):
        at, factor = len(left) - len(other), left[-1] * inverse % PRIME
        quotient[at] = factor
        for n, coefficient in enumerate(other):
            left[at + n] = (left[at + n] - factor * coefficient) % PRIME
        while left and not left[-1]:
            left.pop()
    return quotient, left


def combined(one: list[int], factor: list[int], other: list[int]) -> list[int]:
    """one - factor * other."""
    found = [0] * max(len(one), len(factor) + len(other) - 1)
    for n, coefficient in enumerate(one):
        found[n] = coefficient
    for i, left in enumerate(factor):
        for j, right in enumerate(other):
            found[i + j] = (found[i + j] - left * right) % PRIME
    while found and not found[-1]:
        found.pop()
    return found


def degree_of(values: list[int]) -> int:
    """The least degree of numerator and denominator together of a quotient with these values at 0, 1, 2, ..."""
    product, through = [1], list[int]()
    for at, value in enumerate(values):  # Newton's interpolation
        here, there = (sum(c * pow(at, n, PRIME) for n, c in enumerate(p)) % PRIME for p in (product, through))
        through = combined(through, [-(value - there) * pow(here, -1, PRIME) % PRIME], product)
        product = combined([0, *product], [at], product)
    rows, least = ((product, list[int]()), (through, [1])), len(values)
    while rows[1][0]:
        (above, before), (below, after) = rows
        least = min(least, len(below) - 1 + len(after) - 1)
        quotient, rest = remainder(above, below)
        rows = (below, after), (rest, combined(before, quotient, after))
    return min(least, len(rows[1][1]) - 1) if not rows[1][0] and through == [] else least


def test_degrees_of_known_quotients() -> None:
    def values(function: Any) -> list[int]:
        return [function(n) % PRIME for n in range(24)]

    assert degree_of(values(lambda n: n**3 + 2 * n + 5)) == 3
    assert degree_of(values(lambda n: (n**2 + 1) * pow(n**3 + n + 7, -1, PRIME))) == 5
    assert degree_of(values(lambda n: 9)) == 0


def measured(program: xb.Computation) -> tuple[int, int]:
    """The largest degree of an element of the result along a line, and its bound."""
    subject = Subject(xb.Module("m", program))
    random = np.random.default_rng(1)
    starts, slopes = ([random.integers(1, 1 << 30, shape.dims) for shape in subject.inputs(0)] for _ in range(2))
    degrees = Degrees(watched([subject.modules[0]]))
    rows = []
    with drawing(0, []):
        for at in range(MOST + 6):
            row = [residues.of_integers(a + at * b) for a, b in zip(starts, slopes, strict=True)]
            observe = degrees.observe if at == 1 else None
            rows.append(np.asarray(residues.halves(subject.run([row], observe, xb.Limits())[0][0])[0]).reshape(-1))
    key = 0, id(program.root)
    bound = max(leaf.total for leaf in flatten(degrees.found[key]))
    return (max(degree_of([int(row[n]) for row in rows]) for n in range(rows[0].size)) if bound <= MOST else 0), bound


def rows(x: Any, axis: int = 0) -> Any:
    """The sum along a dimension, at each place along it."""
    return xb.broadcast_in_dim(xb.reduce(x, 0.0, xb.add, (axis,)), x.shape.dims, [d for d in all_of(x) if d != axis])


def all_of(x: Any) -> range:
    return range(len(x.shape.dims))


def part(x: Any, starts: list[int], limits: list[int]) -> Any:
    """A slice; later dimensions are in full."""
    rest = all_of(x)[len(starts) :]
    return xb.slice(
        x, [*starts, *[0 for _ in rest]], [*limits, *(x.shape.dims[d] for d in rest)], [1 for _ in all_of(x)]
    )


STEPS = {
    "add": lambda x, y, n: x + y,
    "multiply": lambda x, y, n: x * y,
    "divide": lambda x, y, n: x / y,
    "transpose": lambda x, y, n: xb.transpose(x, [*all_of(x)[1:], 0]),
    "merge": lambda x, y, n: xb.reshape(x, (x.shape.size,)),
    "split": lambda x, y, n: xb.reshape(x, (x.shape.size // 2, 2)),
    "slice": lambda x, y, n: part(x, [n % 2], [x.shape.dims[0]]),
    "reverse": lambda x, y, n: xb.rev(x, [n % x.shape.rank]),
    "concatenate": lambda x, y, n: xb.concatenate([x, y], n % x.shape.rank),
    "shift": lambda x, y, n: xb.pad(x, 0.0, [(1, -1, 0), *[(0, 0, 0)] * (x.shape.rank - 1)]),
    "pad": lambda x, y, n: xb.pad(x, 1.0, [(0, 1, 0), *[(0, 0, 0)] * (x.shape.rank - 1)]),
    "sum": lambda x, y, n: xb.reduce(x, 0.0, xb.add, (n % x.shape.rank,)),
    "rows": lambda x, y, n: rows(x, n % x.shape.rank),
    "first": lambda x, y, n: xb.broadcast_in_dim(part(x, [0], [1]), x.shape.dims, all_of(x)),
    "dot": lambda x, y, n: xb.dot_general(x, y, [0], [n % y.shape.rank]),
    "update": lambda x, y, n: xb.dynamic_update_slice(x, y, [np.int32(0)] * x.shape.rank),
}


@st.composite
def programs(draw: Any) -> xb.Computation:
    """A program of a few steps over arrays of a few elements; steps whose shapes do not fit are left out."""
    dims = draw(st.sampled_from([(2, 2), (3, 2), (2, 3), (4,), (2, 1, 2)]))
    steps = draw(st.lists(st.tuples(st.sampled_from([*STEPS]), st.integers(0, 9), st.integers(0, 9)), max_size=7))

    def function(x: Any, y: Any) -> Any:
        values = [x, y]
        for name, first, second in steps:
            one, other = values[-1 - first % min(len(values), 3)], values[second % len(values)]
            try:
                made = STEPS[name](one, other, second)
            except XbuildError:
                continue
            if 0 < made.shape.size <= 12 and made.shape.dims:
                values.append(made)
        return values[-1]

    return xb.computation(xb.f32[dims], xb.f32[dims])(function)


@given(programs())
@settings(max_examples=150, deadline=None)
def test_bounds_hold_along_a_line(program: xb.Computation) -> None:
    degree, bound = measured(program)
    assert degree <= bound


@pytest.mark.parametrize(
    ("function", "most"),
    [
        (lambda x, y: x / rows(x, 1), 2),
        (lambda x, y: xb.dot(x / rows(x, 1), y), 3),
        (lambda x, y: xb.reshape(x / rows(x, 1), (64,)), 2),
    ],
    ids=["quotients of rows", "their product", "reshaped"],
)
def test_elements_have_the_denominators_of_their_row(function: Any, most: int) -> None:
    program = xb.computation(xb.f32[8, 8], xb.f32[8, 8])(function)
    assert measured(program) == (most, most)


@pytest.mark.parametrize("times", [-1, 1])
def test_many_families_are_bounded_from_above(times: int) -> None:
    """As the product of all: what is a factor of the numerators stays one, and is not divided by."""
    degrees = Degrees(frozenset())
    tree = Degree(5, {n: Family(times, 3) for n in range(_MANY + 1)})
    (found,) = flatten(degrees._with_few_families(tree))
    assert len(found.families) <= 1
    assert all(family.times > 0 for family in found.families.values())
    assert found.total >= tree.total
