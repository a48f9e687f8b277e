"""Implicit broadcasting: the shapes, which hints fit, what is recorded, and numbers beside values."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xbuild as xb
from interpreter import evaluate
from shape_inference.broadcasting import broadcasting

EXTENTS = st.lists(st.integers(0, 3), max_size=3).map(tuple)


def values(*shapes: xb.Shape) -> list[xb.Value]:
    builder = xb.Builder("b")
    return [xb.parameter(builder, number=n, shape=shape) for n, shape in enumerate(shapes)]


def fits(lhs: xb.Shape, rhs: xb.Shape, broadcast_dimensions: tuple[int, ...]) -> bool:
    try:
        broadcasting(lhs, rhs, broadcast_dimensions)
    except xb.ShapeError as error:
        return error.kind != "dimension_mismatch"
    return True


def opcodes(value: xb.Value) -> list[str]:
    value.builder.build(value)
    assert value.builder.computation is not None
    return [i.opcode for i in value.builder.computation.instructions if i.opcode != "parameter"]


@given(EXTENTS, EXTENTS)
def test_one_rank_is_numpys_broadcasting(lhs: tuple[int, ...], rhs: tuple[int, ...]) -> None:
    rank = min(len(lhs), len(rhs))
    lhs, rhs = lhs[:rank], rhs[:rank]
    try:
        expected = np.broadcast_shapes(lhs, rhs)
    except ValueError:
        with pytest.raises(xb.ShapeError) as caught:
            broadcasting(xb.f32[lhs], xb.f32[rhs])
        assert caught.value.kind == "dimension_mismatch"
    else:
        assert broadcasting(xb.f32[lhs], xb.f32[rhs])[0] == expected


@given(EXTENTS, EXTENTS)
def test_the_hints_are_all_that_fits(large: tuple[int, ...], small: tuple[int, ...]) -> None:
    if not 0 < len(small) < len(large):
        return
    lhs, rhs = xb.f32[large], xb.f32[small]
    with pytest.raises(xb.ShapeError) as caught:
        broadcasting(lhs, rhs)
    assert caught.value.kind == "rank_mismatch"
    places = itertools.combinations(range(len(large)), len(small))
    fitting = [f"broadcast_dimensions={list(each)} fits" for each in places if fits(lhs, rhs, each)]
    assert list(caught.value.hints) == (fitting or ["no broadcast_dimensions would fit"])


@given(EXTENTS, EXTENTS, st.data())
def test_the_recorded_program_gives_what_numpy_gives(
    large: tuple[int, ...], small: tuple[int, ...], data: st.DataObject
) -> None:
    if len(small) > len(large):
        large, small = small, large
    places = data.draw(st.sampled_from(list(itertools.combinations(range(len(large)), len(small)))))
    a = np.arange(np.prod(large), dtype=np.int32).reshape(large)
    b = np.arange(np.prod(small), dtype=np.int32).reshape(small) * 100
    spread = b.reshape([small[places.index(d)] if d in places else 1 for d in range(len(large))])
    lhs, rhs = values(xb.s32[large], xb.s32[small])
    try:
        expected = a - spread
    except ValueError:
        with pytest.raises(xb.ShapeError):
            xb.subtract(lhs, rhs, places)
    else:
        np.testing.assert_array_equal(evaluate(lhs.builder.build(xb.subtract(lhs, rhs, places)), a, b), expected)
        lhs, rhs = values(xb.s32[large], xb.s32[small])
        np.testing.assert_array_equal(evaluate(lhs.builder.build(xb.subtract(rhs, lhs, places)), a, b), -expected)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (lambda x, y: x + x, ["add"]),
        (lambda x, y: x + 1.0, ["constant", "broadcast", "add"]),
        (lambda x, y: xb.add(x, y, [1]), ["broadcast", "add"]),
        (lambda x, y: xb.add(y, x, [1]), ["broadcast", "add"]),
        (lambda x, y: xb.lt(x, 0), ["constant", "broadcast", "compare"]),
        (lambda x, y: xb.clamp(0, x, 6), ["constant", "constant", "clamp"]),
        (lambda x, y: xb.select(xb.ge(x, x), x, 0), ["compare", "constant", "broadcast", "select"]),
        (lambda x, y: x * np.ones((2, 1), np.float32), ["constant", "reshape", "broadcast", "multiply"]),
        (lambda x, y: xb.add(x, x, [0, 1]), ["add"]),
    ],
)
def test_no_more_is_recorded_than_it_takes(record: Callable[..., xb.Value], expected: list[str]) -> None:
    assert opcodes(record(*values(xb.f32[2, 3], xb.f32[3]))) == expected


@pytest.mark.parametrize(
    ("dtype", "number", "expected"),
    [
        (xb.s8, -128, np.int8(-128)),
        (xb.u4, 15, 15),
        (xb.bf16, 257, 256.0),
        (xb.f32, 0.1, np.float32(0.1)),
        (xb.f32, np.float64(0.1), np.float32(0.1)),
        (xb.f32, float("inf"), np.float32("inf")),
        (xb.c64, 2, np.complex64(2)),
        (xb.c64, 2.5j, np.complex64(2.5j)),
        (xb.pred, True, np.bool_(True)),
    ],
)
def test_a_number_takes_the_element_type_of_the_value(dtype: xb.PrimitiveType, number: Any, expected: Any) -> None:
    (x,) = values(dtype[()])
    literal = xb.ne(x, number).instruction.operands[1].attributes.literal
    assert literal.dtype == dtype.dtype
    assert literal == np.asarray(expected).astype(dtype.dtype)


@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        (xb.s32, 2.5),
        (xb.s8, 128),
        (xb.u32, -1),
        (xb.f32, 1j),
        (xb.pred, 1),
        (xb.s32, True),
        (xb.f16, 1e6),
        (xb.f32, 1e39),
        (xb.s64, 2**70),
        (xb.s8, [1, 300]),
        (xb.f8e8m0fnu, 0),
    ],
)
def test_a_number_that_the_type_cannot_hold_is_refused(dtype: xb.PrimitiveType, number: Any) -> None:
    (x,) = values(dtype[2])
    with pytest.raises(xb.ShapeError) as caught:
        xb.maximum(x, number)
    assert caught.value.kind == "element_type_mismatch"
    assert str(number) in str(caught.value)


def test_an_array_keeps_its_own_type() -> None:
    (x,) = values(xb.f32[2])
    with pytest.raises(xb.ShapeError, match="f32 and s32 differ"):
        xb.add(x, np.array([1, 2], np.int32))
    assert xb.add(x, np.ones(2, np.float64)).shape == xb.f64[2]


def test_what_is_no_number_is_refused() -> None:
    (x,) = values(xb.f32[2])
    for other in ("a", None, object(), [[1], [2, 3]]):
        with pytest.raises(xb.BuildError) as caught:
            xb.add(x, other)
        assert caught.value.kind == "invalid_operand"


def test_operands_need_a_builder() -> None:
    with pytest.raises(xb.BuildError) as caught:
        xb.add(1, 2)
    assert caught.value.kind == "no_builder"
