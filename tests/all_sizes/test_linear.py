"""Integer constraints: a proof that there is no solution holds for all integers; sizes compute as ints do."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xbuild.all_sizes.linear import LinearSum, has_no_solution, named, quotient
from xbuild.all_sizes.sizes import Exploration, Size

X, Y, Z = named("x"), named("y"), named("z")

small = st.integers(-4, 4)
expressions = st.builds(lambda a, b, c, k: X * a + Y * b + Z * c + k, small, small, small, st.integers(-6, 6))
with_quotients = st.builds(
    lambda e, f, d, a: e + quotient(f, d) * a, expressions, expressions, st.integers(1, 4), small
)

PLACES = [dict(zip("xyz", values, strict=True)) for values in product(range(-4, 5), repeat=3)]
BOX = [each for name in (X, Y, Z) for each in (name + 4, -name + 4)]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(expressions, with_quotients), max_size=4), st.lists(expressions, max_size=2))
def test_what_is_proved_to_have_no_solution_has_none(
    inequalities: list[LinearSum], equalities: list[LinearSum]
) -> None:
    if has_no_solution([*BOX, *inequalities], equalities):
        for values in PLACES:
            holds = all(each.evaluate(values) >= 0 for each in inequalities)
            assert not (holds and all(each.evaluate(values) == 0 for each in equalities)), values


@pytest.mark.parametrize(
    ("inequalities", "equalities"),
    [
        ([X - 1, -X], []),
        ([], [X * 2 - Y * 2 - 1]),
        ([X * 3 - Y * 3 + 2, Y * 3 - X * 3 - 1], []),
        ([], [X - quotient(X, 2) * 2 - 2]),
        ([Y - X], [quotient(X, 3) - quotient(Y, 3) - 1]),
        ([], [X * 6 + Y * 10 + Z * 15 - 1, X, Y]),
        ([X * 2 - 1, -X * 2 + 1], []),
    ],
)
def test_these_have_no_solution(inequalities: list[LinearSum], equalities: list[LinearSum]) -> None:
    assert has_no_solution(inequalities, equalities)


@pytest.mark.parametrize(
    ("inequalities", "equalities"),
    [([X, -X], []), ([], [X * 6 + Y * 10 + Z * 15 - 1]), ([], [X - quotient(X, 2) * 2 - 1]), ([], [])],
)
def test_these_have_solutions(inequalities: list[LinearSum], equalities: list[LinearSum]) -> None:
    assert not has_no_solution(inequalities, equalities)


def _number(steps: list[tuple[str, int]], n: Any, d: Any) -> Any:
    """A number that depends on n and d by some steps."""
    at = d
    for step, amount in steps:
        if step == "add":
            at = at + amount
        elif step == "from n":
            at = n - at
        elif step == "times":
            at = at * amount
        elif step == "half":
            at = at // (abs(amount) + 1)
        elif step == "rest":
            at = at % (abs(amount) + 2)
        elif step == "around":
            at = (d + amount % 2) % n
        elif step == "least":
            at = min(at, amount)
        elif step == "if":
            at = at + 1 if d > amount else at - n
        elif step == "size":
            at = abs(at)
    return at


STEPS = st.sampled_from(["add", "from n", "times", "half", "rest", "around", "least", "if", "size"])


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(STEPS, st.integers(-5, 5)), max_size=5))
def test_sizes_compute_as_ints_do(steps: list[tuple[str, int]]) -> None:
    """Each pair of a size and a device is on exactly one path, and there the number is that of ints."""
    exploration = Exploration((named("n") - 2, named("d"), named("n") - named("d") - 1))
    paths = exploration.paths(lambda: _number(steps, Size(named("n"), exploration), Size(named("d"), exploration)))
    for n in range(2, 9):
        for d in range(n):
            values = {"n": n, "d": d}
            there = [path for path in paths if all(each.evaluate(values) >= 0 for each in path.constraints)]
            assert len(there) == 1
            result = there[0].result
            found = result._linear.evaluate(values) if isinstance(result, Size) else result
            assert found == _number(steps, n, d)
