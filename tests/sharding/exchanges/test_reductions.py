"""Reductions by any computation along cut dimensions, greatest elements, LAPACK batches, and arrays in loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from xbuild.sharding.partition.parts.folding import folding

from .support import Function, checked, computation_of, line, numbers, opcodes, sent

COUNTS = (1, 2, 3, 4, 7, 8)


def _greatest(*dims: int, least: float = -np.inf) -> Function:
    """The greatest number, NaN before all, and its first place, as JAX computes them."""

    def better(a: Any, i: Any, b: Any, j: Any) -> Any:
        is_more = xb.ops.or_(xb.gt(a, b), xb.ne(a, a))
        is_first = xb.ops.or_(is_more, xb.ops.and_(xb.eq(a, b), xb.lt(i, j)))
        return xb.select(is_more, a, b), xb.select(is_first, i, j)

    def made(x: Any) -> Any:
        places = xb.ops.iota(x.builder, shape=xb.s32[x.shape.dims], iota_dimension=dims[0])
        inits = (xb.constant(x.builder, np.array(least, x.shape.dtype.dtype)), xb.constant(x.builder, np.int32(0)))
        found = xb.ops.reduce((x, places), inits, to_apply=better, dimensions=dims)
        return xb.ops.get_tuple_element(found, index=0), xb.ops.get_tuple_element(found, index=1)

    return made


@pytest.mark.parametrize("count", COUNTS)
def test_the_place_of_the_greatest_number_takes_one_result_of_each_device(count: int) -> None:
    for extent in (16, 13, 3):
        given = numbers(extent, 2)
        if extent == 13:
            given[5, 0] = given[9, 0] = np.nan
        found = checked(_greatest(0), [given], [xb.P("x", None)], line(count))
        assert sent(found) <= (count - 1) * 2 * 2 * 4
        assert extent < 16 or opcodes(found) <= {"all_gather"}


@pytest.mark.parametrize("mesh", [xb.Mesh(x=2, y=3), xb.Mesh(x=4, y=2)])
def test_the_place_of_the_greatest_of_several_dimensions(mesh: xb.Mesh) -> None:
    for specs in (xb.P("x", "y"), xb.P(("y", "x"), None), xb.P(None, "x")):
        checked(_greatest(0, 1), [numbers(9, 8)], [specs], mesh)
        checked(_greatest(1), [numbers(9, 8)], [specs], mesh)


def _folded(by: Any, start: float) -> Function:
    def made(x: Any) -> Any:
        init = xb.constant(x.builder, np.array(start, x.shape.dtype.dtype))
        return xb.ops.reduce((x,), (init,), to_apply=by, dimensions=(0,))

    return made


COMPUTATIONS: dict[str, tuple[Any, float, bool, bool]] = {
    "largest size": (lambda a, b: xb.maximum(xb.abs(a), xb.abs(b)), 0, True, True),
    "largest that is a number on one side": (lambda a, b: xb.select(xb.gt(a, b), a, b), -np.inf, False, False),
    "difference": (lambda a, b: a - b, 0, False, False),
    "mean": (lambda a, b: (a + b) * 0.5, 0, False, True),
    "last": (lambda a, b: b + 0.0 * a, 0, False, False),
    "sum with a start": (lambda a, b: a + b + 0.0, 3, False, True),
    "sum from nothing": (lambda a, b: a + b + 0.0, 0, True, True),
}


@pytest.mark.parametrize("name", COMPUTATIONS)
@pytest.mark.parametrize("count", [2, 3, 8])
def test_computations_that_may_be_applied_to_parts_are(name: str, count: int) -> None:
    by, start, is_apart, is_unordered = COMPUTATIONS[name]
    found = folding(computation_of(_folded(by, start), [numbers(13)]).root)
    assert (found.is_apart, found.is_unordered) == (is_apart, is_unordered)
    partitioned = checked(_folded(by, start), [numbers(13, 2)], [xb.P("x", None)], line(count), out=xb.P(None))
    if is_apart:
        assert sent(partitioned) == (count - 1) * 8


def _chosen(k: int, *, largest: bool = True) -> Function:
    def made(x: Any) -> Any:
        found = xb.ops.topk(x, k=k, largest=largest)
        return xb.ops.get_tuple_element(found, index=0), xb.ops.get_tuple_element(found, index=1)

    return made


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("k", [1, 3, 9])
def test_the_greatest_elements_are_chosen_among_those_of_each_device(count: int, k: int) -> None:
    for extent, largest in ((24, True), (24, False), (13, True)):
        for given in (numbers(2, extent), numbers(extent, dtype=np.int32)):
            specs = xb.P(*[None] * (given.ndim - 1), "x")
            found = checked(_chosen(k, largest=largest), [given], [specs], line(count))
            if count > 1 and extent % count == 0 and k == 1 and given.ndim == 2:
                assert sent(found) == (count - 1) * 2 * 2 * 4


def _looked_up(dim: int, trips: int) -> Function:
    def made(x: Any) -> Any:
        sizes = [1 if n == dim else extent for n, extent in enumerate(x.shape.dims)]
        zero = xb.constant(x.builder, np.zeros(sizes, x.shape.dtype.dtype))

        def body(state: Any) -> Any:
            number, given, total = state
            nothing = xb.constant(number.builder, np.int32(0))
            starts = [number if n == dim else nothing for n in range(len(sizes))]
            return number + 1, given, total + xb.ops.dynamic_slice(given, starts, dynamic_slice_sizes=sizes)

        state = xb.ops.tuple_((xb.constant(x.builder, np.int32(0)), x, zero))
        found = xb.ops.while_(state, condition=lambda state: xb.lt(state[0], np.int32(trips)), body=body)
        return xb.ops.get_tuple_element(found, index=2)

    return made


def test_what_a_loop_chooses_from_is_gathered_once() -> None:
    found = checked(_looked_up(0, 16), [numbers(16, 4)], [xb.P("x", None)], line(4), out=xb.P(None, None))
    assert opcodes(found) == {"all_gather"}
    assert sent(found) == 3 * 4 * 4 * 4


def test_what_a_loop_chooses_from_once_stays_cut() -> None:
    found = checked(_looked_up(0, 1), [numbers(16, 4)], [xb.P("x", None)], line(4), out=xb.P(None, None))
    assert sent(found) == 2 * 3 * 4


def test_loops_in_loops_choose_too() -> None:
    inner = _looked_up(1, 3)

    def made(x: Any) -> Any:
        def body(state: Any) -> Any:
            number, given, total = state
            return number + 1, given, total + inner(given)

        zero = xb.constant(x.builder, np.zeros((x.shape.dims[0], 1), np.float32))
        state = xb.ops.tuple_((xb.constant(x.builder, np.int32(0)), x, zero))
        found = xb.ops.while_(state, condition=lambda state: xb.lt(state[0], np.int32(4)), body=body)
        return xb.ops.get_tuple_element(found, index=2)

    found = checked(made, [numbers(4, 6)], [xb.P(None, "x")], line(2), out=xb.P(None, None))
    assert opcodes(found) == {"all_gather"}
    assert sent(found) == 4 * 3 * 4
