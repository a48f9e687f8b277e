"""The programs of cotangents differentiated again, and tangents, which are transposes of cotangents."""

from __future__ import annotations

import pytest

from . import test_rules_contraction, test_rules_indexing, test_rules_matrices, test_rules_ordering, test_rules_windows
from .numeric import Case, check, check_tangents

FAMILIES = (test_rules_contraction, test_rules_indexing, test_rules_matrices, test_rules_ordering, test_rules_windows)
ONCE = {
    "scatter multiply with a zero rows again": "where factors of one place are zero, only the first derivative is whole"
}
CASES = [case for family in FAMILIES for case in family.CASES if case.name not in ONCE]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_second_derivatives_are_those_of_numeric_ones(case: Case) -> None:
    check(case, times=2)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_tangents_are_the_transposes_of_cotangents(case: Case) -> None:
    check_tangents(case)
