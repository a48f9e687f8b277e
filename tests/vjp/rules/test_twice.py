"""The programs of cotangents differentiated again, and tangents, which are transposes of cotangents."""

from __future__ import annotations

import pytest

from ..numeric import Case, check, check_tangents
from . import test_contraction, test_indexing, test_matrices, test_ordering, test_windows

FAMILIES = (test_contraction, test_indexing, test_matrices, test_ordering, test_windows)
EACH = 3  # one case of so many is differentiated twice here, all in the campaign
ONCE = {"scatter multiply with a zero rows again": "where a factor of several is zero, the second derivative is NaN"}
ALL = [case for family in FAMILIES for case in family.CASES]
CASES = [case for case in ALL if case.name not in ONCE]


@pytest.mark.parametrize("case", CASES[::EACH], ids=str)
def test_second_derivatives_are_those_of_numeric_ones(case: Case) -> None:
    check(case, times=2)


@pytest.mark.parametrize("name", ONCE)
def test_a_second_derivative_that_is_not_known_is_nan(name: str) -> None:
    (case,) = [each for family in FAMILIES for each in family.CASES if each.name == name]
    with pytest.raises(AssertionError, match="nan location mismatch"):
        check(case, times=2)


@pytest.mark.parametrize("case", ALL, ids=str)
def test_tangents_are_the_transposes_of_cotangents(case: Case) -> None:
    check_tangents(case)
