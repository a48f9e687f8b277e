"""The open acceptance cases of the TPU functions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.families.a import failure

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "data" / "acceptance.json").read_text())["cases"]
MINE = [case for case in CASES if case["family"] == "A"]


@pytest.mark.parametrize("case", MINE, ids=lambda case: case["id"])
def test_case(case: dict[str, Any]) -> None:
    assert failure(case) is None


WRONG = [
    {"op": "no_such_op", "expect": {"outputs": {}}},
    {"op": "cross_replica_sum", "attrs": {"group_assignment": [[0, 1]]}, "expect": {"outputs": {"y": [[3.0], [4.0]]}}},
    {"op": "cross_replica_sum", "attrs": {"group_assignment": [[0, 1]]}, "expect": {"error": "missing_replica"}},
    {"op": "cross_replica_sum", "attrs": {"group_assignment": [[0, 0]]}, "expect": {"error": "missing_replica"}},
]


@pytest.mark.parametrize("case", WRONG)
def test_a_case_that_is_wrong_fails(case: dict[str, Any]) -> None:
    whole = {"id": "A", "family": "A", "dtype": "f32", "devices": 2, "inputs": {"x": [[1.0], [2.0]]}, **case}
    assert failure(whole)
