"""Reductions by any computation along cut dimensions, greatest elements, LAPACK batches, and arrays in loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from xbuild.sharding.partition.reduction import classify_folding

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


F, N = np.float32, np.int32
INFINITE = F(-np.inf)
LEAST = N(-(2**31))


def _limited(a: Any, b: Any) -> Any:
    """The greatest below 1000, the sum above: not associative there alone."""
    return xb.select(xb.maximum(a, b) > N(1000), a + b, xb.maximum(a, b))


def _first_greatest(a: Any, i: Any, b: Any, j: Any) -> Any:
    is_more = xb.ops.or_(xb.gt(a, b), xb.ne(a, a))
    is_first = xb.ops.or_(is_more, xb.ops.and_(xb.eq(a, b), xb.lt(i, j)))
    return xb.select(is_more, a, b), xb.select(is_first, i, j)


def _later_of_ties(a: Any, i: Any, b: Any, j: Any) -> Any:
    """Two comparisons that do not agree on ties."""
    is_more = xb.ops.or_(xb.gt(a, b), xb.ops.and_(xb.eq(a, b), xb.gt(i, j)))
    return xb.select(is_more, a, b), xb.select(xb.gt(a, b), i, j)


def _in(dtype: Any, opcode: Any) -> Any:
    """An op in another type."""
    return lambda a, b: xb.convert(opcode(xb.convert(a, dtype), xb.convert(b, dtype)), a.shape.dtype)


REDUCERS: dict[str, tuple[Any, list[Any], bool, bool]] = {
    "limited": (_limited, [N(3)], False, True),
    "limited, above": (lambda a, b: xb.select(a + b > N(10**6), a, a + b), [N(0)], False, False),
    "first greatest": (_first_greatest, [INFINITE, N(0)], True, False),  # of two NaN the first
    "first greatest integer": (_first_greatest, [LEAST, N(0)], True, True),
    "later of ties": (_later_of_ties, [LEAST, N(0)], False, False),
    "sum and greatest": (lambda a, b, c, d: (a + c, xb.maximum(b, d)), [F(0), INFINITE], True, True),
    "sum and first greatest": (
        lambda s, a, i, t, b, j: (s + t, *_first_greatest(a, i, b, j)), [N(0), LEAST, N(0)], True, True),
    "limited and greatest": (lambda a, b, c, d: (_limited(a, c), xb.maximum(b, d)), [N(0), N(0)], False, True),
    "swapped": (lambda a, b, c, d: (d, c), [F(0), F(0)], False, False),
    "the second": (lambda a, b: b, [F(0)], False, False),
    "sum in f64": (_in(xb.f64, xb.add), [F(0)], True, True),
    "sum in bf16": (_in(xb.bf16, xb.add), [F(0)], True, True),
    "sum in s64": (_in(xb.s64, xb.add), [N(0)], True, True),
    "sum of integers in f64": (_in(xb.f64, xb.add), [N(0)], False, True),  # which is cut off, and does not wrap
    "greatest of integers in f32": (_in(xb.f32, xb.maximum), [N(0)], False, True),
    "all": (lambda a, b: xb.ops.and_(a, b), [np.True_], True, True),
    "odd": (lambda a, b: xb.ops.xor(a, b), [np.False_], True, True),
    "follows": (lambda a, b: xb.ops.or_(xb.ops.not_(a), b), [np.False_], False, False),
    "at most five": (lambda a, b: xb.minimum(xb.maximum(a, b), F(5)), [INFINITE], True, True),
    "sum to five": (lambda a, b: xb.minimum(a + b, F(5)), [F(0)], False, True),
    "greatest above ten": (
        lambda a, b: xb.select(a > F(10), xb.maximum(a, b), xb.minimum(a, b)), [F(0)], False, False),
    "lines": (lambda a, b, c, d: (a * c, b * c + d), [F(1), F(0)], False, False),
    "sizes": (lambda a, b: xb.abs(a) + xb.abs(b), [F(0)], True, True),
    "sizes of integers": (lambda a, b: xb.abs(a) + xb.abs(b), [N(0)], False, True),
    "sum from one": (lambda a, b: a + b, [N(1)], False, True),
    "by a call": (lambda a, b: xb.call((a, b), lambda x, y: x + y), [N(0)], True, True),
}  # fmt: skip


def _reduced(by: Any, inits: list[Any]) -> Function:
    def made(*operands: Any) -> Any:
        starts = [xb.constant(operands[0].builder, each) for each in inits]
        found = xb.ops.reduce(operands, starts, to_apply=by, dimensions=(0,))
        return found if len(inits) == 1 else tuple(xb.ops.get_tuple_element(found, index=n) for n in range(len(inits)))

    return made


@pytest.mark.parametrize("name", REDUCERS)
def test_reducers_are_known_by_their_structure(name: str) -> None:
    by, inits, is_associative, is_commutative = REDUCERS[name]
    operands = [np.zeros(13, np.asarray(each).dtype) for each in inits]
    root = computation_of(_reduced(by, inits), operands).root
    reduce = root if len(inits) == 1 else root.operands[0].operands[0]
    found = classify_folding(reduce)
    assert (found.is_associative, found.is_commutative) == (is_associative, is_commutative)


@pytest.mark.parametrize("name", ["limited", "limited, above", "sum of integers in f64", "first greatest integer"])
@pytest.mark.parametrize("count", [2, 4])
def test_reducers_of_large_numbers_give_what_one_device_gives(name: str, count: int) -> None:
    by, inits, _, _ = REDUCERS[name]
    big = np.int32([2000, -3, 500, 1500, 7, -9, 4000, 250, 1, 999, 2**31 - 1, -(2**31), 2**30])
    operands = [big, *[np.arange(13, dtype=np.int32)] * (len(inits) - 1)]
    checked(_reduced(by, inits), operands, [xb.P("x")] * len(inits), line(count), out=xb.P())


@pytest.mark.parametrize("name", COMPUTATIONS)
@pytest.mark.parametrize("count", [2, 3, 8])
def test_computations_that_may_be_applied_to_parts_are(name: str, count: int) -> None:
    by, start, is_associative, is_commutative = COMPUTATIONS[name]
    found = classify_folding(computation_of(_folded(by, start), [numbers(13)]).root)
    assert (found.is_associative, found.is_commutative) == (is_associative, is_commutative)
    partitioned = checked(_folded(by, start), [numbers(13, 2)], [xb.P("x", None)], line(count), out=xb.P(None))
    if is_associative:
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
