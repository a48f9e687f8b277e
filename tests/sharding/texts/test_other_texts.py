"""Shardings in the dialect's text and in short form; what one of the forms cannot say is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import xbuild as xb
from shape_inference import XbuildError

shard = xb.shard
GRID = shard.grid([2, 3, 2])


@given(st.permutations([0, 1, 2]), st.integers(0, 3), st.integers(0, 3))
def test_forms_say_the_same(order: list[int], first: int, second: int) -> None:
    lists = [order[:first], order[first : first + second]]
    found = shard.sharding(GRID, lists)
    assert shard.dialect_sharding(shard.dialect_text(found, "g"), GRID) == found
    assert shard.by_spec(GRID, shard.spec_of(found)) == found
    assert shard.shardings(shard.hlo_text(found)) == found
    (again,) = shard.shardy_shardings(shard.shardy_text(found, "g"), {"g": GRID})
    assert again == found


def test_halos_and_offsets_are_kept() -> None:
    for more in ({"halo_sizes": [1, 2]}, {"sharded_dims_offsets": [0, 1, 5, 6]}):
        found = shard.sharding(GRID, [[], [1]], **more)
        assert shard.dialect_sharding(shard.dialect_text(found), GRID) == found


OPEN = shard.shardings("{mesh['x'=4], [{'x', ?}]}")
PART = shard.shardings("{mesh['x'=4], [{'x':(1)2}]}")
SUM = shard.shardings("{mesh['x'=4], [{}], unreduced={'x'}}")
HALO = shard.sharding(GRID, [[0]], halo_sizes=[1, 1])
REFUSED: list[tuple[Callable[[Any], Any], Any, str]] = [
    (shard.dialect_text, OPEN, "open"),
    (shard.dialect_text, PART, "parts of axes"),
    (shard.dialect_text, SUM, "unreduced"),
    (shard.spec_of, OPEN, "open"),
    (shard.spec_of, PART, "parts of axes"),
    (shard.spec_of, HALO, "halos"),
    (shard.hlo_text, HALO, "halo"),
    (shard.shardy_text, HALO, "halo"),
    (lambda text: shard.dialect_sharding(text, GRID), "shard.sharding @g halo_sizes = [1]", "split_axes"),
    (lambda text: shard.dialect_sharding(text, GRID), "shard.sharding @g split_axes = [[0]] more", "end"),
    (lambda spec: shard.by_spec(GRID, spec), xb.P(reduced={"0"}), "reduced"),
]


@pytest.mark.parametrize(("function", "given", "named"), REFUSED)
def test_what_a_form_has_not_is_refused(function: Callable[[Any], Any], given: Any, named: str) -> None:
    with pytest.raises(XbuildError, match=named) as caught:
        function(given)
    assert caught.value.kind == "invalid_attribute"
