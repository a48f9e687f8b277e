"""Reshapes of arrays one dimension of which is shorter than its bound."""

from __future__ import annotations

import numpy as np
import pytest

import xbuild as xb

# What is reshaped, the dimension that is shorter than its bound and its size, and what it is reshaped to.
CASES = [
    ("1,2,<=5,1", 2, 3, "2,<=5", (2, 3)),
    ("2,<=5", 1, 3, "1,2,<=5,1", (1, 2, 3, 1)),
    ("<=5,2", 0, 3, "<=10", (6,)),
    ("<=10", 0, 4, "<=5,2", (2, 2)),
    ("3,<=4,2", 1, 1, "3,<=8", (3, 2)),
]


@pytest.mark.parametrize(("given", "dimension", "size", "wanted", "expected"), CASES)
def test_sizes(given: str, dimension: int, size: int, wanted: str, expected: tuple[int, ...]) -> None:
    plain = given.replace("<=", "")
    text = f"""ENTRY main {{
  p = s32[{plain}] parameter(0)
  c = s32[] constant({size})
  q = s32[{given}] set-dimension-size(p, c), dimensions={{{dimension}}}
  ROOT r = s32[{wanted}] reshape(q)
}}"""
    dims = [int(each) for each in plain.split(",")]
    array = np.arange(np.prod(dims), dtype=np.int32).reshape(dims)
    kept = array.take(range(size), dimension)
    assert np.array_equal(xb.execute(xb.parse_hlo(text), [[array]])[0], kept.reshape(expected))
