"""Sorting beyond single cases: whatever the comparator says, a permutation comes, stable and the same on every path."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xbuild as xb
from interpreter import evaluate
from interpreter.kernels.comparators import keys_of
from interpreter.kernels.sorting import order_by_comparator, order_by_keys
from interpreter.rules.region import AppliedComputation

ROWS = st.lists(st.integers(-3, 3), min_size=0, max_size=40)


def compared(a: xb.Value, b: xb.Value, direction: str = "LT") -> xb.Value:
    return xb.ops.compare(a, b, direction=direction)


def random_answers(a: xb.Value, b: xb.Value, i: xb.Value, j: xb.Value) -> xb.Value:
    """An answer without sense, which depends on both sides."""
    mixed = xb.ops.xor(xb.ops.multiply(i, xb.constant(i.builder, literal=np.int32(7919))), j)
    return compared(xb.ops.and_(mixed, xb.constant(i.builder, literal=np.int32(4))), i, "GT")


COMPARATORS = {
    "always": lambda a, b, *rest: compared(a, a, "EQ"),
    "never": lambda a, b, *rest: compared(a, a, "NE"),
    "equal": lambda a, b, *rest: compared(a, b, "EQ"),
    "different": lambda a, b, *rest: compared(a, b, "NE"),
    "at-most": lambda a, b, *rest: compared(a, b, "LE"),
    "senseless": random_answers,
    "branches": lambda a, b, *rest: xb.conditional(compared(a, b, "EQ"), (a, b), (lambda v: v < 0, lambda v: v > 0)),
}


@pytest.mark.parametrize("name", COMPARATORS)
@given(row=ROWS)
@settings(max_examples=25, deadline=None)
def test_every_comparator_gives_a_permutation(name: str, row: list[int]) -> None:
    values, places = np.array(row, np.int32), np.arange(len(row), dtype=np.int32)
    shape = xb.s32[len(row)]
    sort = xb.computation(shape, shape)(lambda *operands: xb.sort(operands, COMPARATORS[name]))
    ordered, order = evaluate(sort, values, places)
    assert sorted(order) == places.tolist()
    assert values[order].tolist() == ordered.tolist()


@given(row=ROWS, second=st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_the_paths_agree(row: list[int], second: Any) -> None:
    """By keys, by the network and row by row: the stable order, which Python's own sort gives."""
    other = [second.randint(-2, 2) for _ in row]
    arrays = [np.array(row, np.int32), np.array(other, np.int16)]
    comparator = xb.computation(xb.s32, xb.s32, xb.s16, xb.s16)(
        lambda a, b, c, d: xb.ops.or_(compared(a, b), xb.ops.and_(compared(a, b, "EQ"), compared(c, d, "GT")))
    )
    keys, region = keys_of(comparator), AppliedComputation.of(comparator)
    assert keys is not None
    expected = sorted(range(len(row)), key=lambda place: (row[place], -other[place]))
    assert order_by_keys(keys, arrays).tolist() == expected
    assert order_by_comparator(region, arrays).tolist() == expected
    alone = AppliedComputation(comparator)
    vars(alone)["lifted"] = None
    assert order_by_comparator(alone, arrays).tolist() == expected


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64])
@pytest.mark.parametrize("direction", ["LT", "GT"])
@pytest.mark.parametrize("size", [5, 64, 65, 5000])
def test_long_rows_are_stable(dtype: Any, direction: str, size: int) -> None:
    values = np.random.default_rng(size).integers(0, min(size, 100), (2, size)).astype(dtype)
    places = np.broadcast_to(np.arange(size), values.shape).copy()
    operands = [xb.primitive_type(each.dtype)[each.shape] for each in (values, places)]
    sort = xb.computation(*operands)(lambda *o: xb.sort(o, lambda a, b, *rest: compared(a, b, direction)))
    keys = values.astype(np.float64) * (1 if direction == "LT" else -1)
    assert evaluate(sort, values, places)[1].tolist() == np.argsort(keys, axis=-1, kind="stable").tolist()


def test_what_is_a_key() -> None:
    def keys(comparator: Any) -> Any:
        found = keys_of(xb.computation(xb.f32, xb.f32, xb.f32, xb.f32)(comparator))
        return found and [(key.operands, key.is_descending, key.is_element) for key in found]

    assert keys(lambda a, b, c, d: compared(a, b)) == [((0,), False, True)]
    assert keys(lambda a, b, c, d: compared(d, c)) == [((1,), True, True)]
    assert keys(lambda a, b, c, d: compared(abs(a), abs(b), "GE")) == [((0,), True, False)]
    assert keys(lambda a, b, c, d: compared(a + c, b + d)) == [((0, 1), False, False)]
    assert keys(lambda a, b, c, d: compared(a, d)) is None
    assert keys(lambda a, b, c, d: compared(a, -b)) is None
    assert keys(lambda a, b, c, d: compared(a * 2.0, b * 3.0)) is None
    assert keys(lambda a, b, c, d: compared(a, b, "EQ")) is None
    assert keys(lambda a, b, c, d: xb.ops.or_(compared(a, b, "LE"), xb.ops.and_(compared(a, b, "EQ"), c < d))) is None
    assert keys(lambda a, b, c, d: xb.ops.or_(compared(a, b), xb.ops.and_(compared(c, d, "EQ"), c < d))) is None


@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.float64, np.uint64])
@pytest.mark.parametrize("k", [0, 1, 7, 300, 1999, 2000])
def test_a_few_of_a_long_row_are_those_of_the_sorted_row(dtype: Any, k: int) -> None:
    rows = np.random.default_rng(k).integers(0, 50, (3, 2000)).astype(dtype)
    best = xb.computation(xb.primitive_type(dtype)[3, 2000])(lambda x: xb.top_k(x, k))
    values, places = evaluate(best, rows)
    order = np.argsort(-rows.astype(np.float64), axis=-1, kind="stable")[:, :k]
    assert places.tolist() == order.tolist()
    assert values.tolist() == np.take_along_axis(rows, order, -1).tolist()
