"""Recording: numbers as operands, literals, and the operators of values."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate
from tests.core.recording import refused, value
from tests.support.compare import assert_same


class TestLiterals:
    """Numbers and arrays as operands take the element type of the value beside them."""

    @pytest.mark.parametrize("kind", [xb.f32, xb.bf16, xb.f8e4m3fn, xb.s8, xb.u4, xb.c64], ids=str)
    def test_a_number_becomes_a_constant_of_the_type(self, kind: xb.PrimitiveType) -> None:
        x = value(xb.Builder("b"), shape=kind[2, 3])
        for y in (xb.add(x, 1), xb.add(1, x), x + 1, 1 + x):
            assert y.shape == kind[2, 3]
        constant = x.builder.build().instructions[1]
        assert constant.opcode == "constant"
        assert constant.shape.plain() == kind[()]

    def test_a_bool_beside_pred(self) -> None:
        x = value(xb.Builder("b"), shape=xb.pred[3])
        assert xb.and_(x, True).shape == xb.pred[3]

    def test_an_array_keeps_its_dtype(self) -> None:
        x = value(xb.Builder("b"))
        assert xb.add(x, np.array([1, 2, 3], np.float32)).shape == xb.f32[3]
        refused("element_type_mismatch", lambda: xb.add(x, np.array([1, 2, 3], np.int32)))

    def test_an_array_on_the_left_of_an_operator(self) -> None:
        x = value(xb.Builder("b"))
        y = np.array([1, 2, 3], np.float32) - x
        assert isinstance(y, xb.Value)
        assert evaluate(x.builder.build(y), np.ones(3, np.float32)).tolist() == [0, 1, 2]

    def test_a_fraction_beside_integers_is_refused(self) -> None:
        x = value(xb.Builder("b"), shape=xb.s32[3])
        with pytest.raises(xb.XbuildError, match=r"1\.5"):
            x + 1.5

    def test_a_number_that_does_not_fit_is_refused(self) -> None:
        x = value(xb.Builder("b"), shape=xb.s8[3])
        with pytest.raises(xb.XbuildError, match="300"):
            x + 300

    def test_an_array_that_changes_later_changes_no_program(self) -> None:
        array = np.zeros(3, np.float32)
        x = value(xb.Builder("b"))
        computation = x.builder.build(x + array)
        array[:] = 7
        assert evaluate(computation, np.ones(3, np.float32)).tolist() == [1, 1, 1]

    @pytest.mark.parametrize("wrong", ["text", None, {1}, [1, "a"]], ids=repr)
    def test_other_things_are_no_operands(self, wrong: object) -> None:
        x = value(xb.Builder("b"))
        error = refused("invalid_operand", lambda: xb.add(x, wrong))
        assert "add" in str(error)


BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "%": operator.mod,
    "**": operator.pow, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "<": operator.lt, "<=": operator.le, ">": operator.gt,    ">=": operator.ge,
}  # fmt: skip
# What NumPy's operator gives is what ours gives, on numbers where XLA's and NumPy's rules do not part.
ARGUMENTS = {
    "float": (np.array([1.5, 2.0, 4.0], np.float32), np.array([0.5, 4.0, 3.0], np.float32)),
    "int": (np.array([6, 7, 8], np.int32), np.array([2, 3, 5], np.int32)),
    "bool": (np.array([True, True, False]), np.array([True, False, False])),
}
APPLIES = {
    "float": ["+", "-", "*", "/", "%", "**", "<", "<=", ">", ">="],
    "int": ["+", "-", "*", "%", "**", "&", "|", "^", "<", "<=", ">", ">="],
    "bool": ["&", "|", "^", "<", "<=", ">", ">="],
}
CALLS = [(kind, symbol) for kind, symbols in APPLIES.items() for symbol in symbols]


class TestOperators:
    def both(self, kind: str) -> tuple[xb.Value, xb.Value]:
        builder = xb.Builder("b")
        dtype = ARGUMENTS[kind][0].dtype
        return value(builder, 0, xb.primitive_type(dtype)[3]), value(builder, 1, xb.primitive_type(dtype)[3])

    @pytest.mark.parametrize(("kind", "symbol"), CALLS)
    def test_values_on_both_sides(self, kind: str, symbol: str) -> None:
        x, y = self.both(kind)
        left, right = ARGUMENTS[kind]
        result = evaluate(x.builder.build(BINARY[symbol](x, y)), left, right)
        assert_same(result, BINARY[symbol](left, right), 1)

    @pytest.mark.parametrize(("kind", "symbol"), CALLS)
    def test_a_number_on_the_right(self, kind: str, symbol: str) -> None:
        x, _ = self.both(kind)
        left, right = ARGUMENTS[kind]
        number = right[0].item()
        result = evaluate(x.builder.build(BINARY[symbol](x, number)), left, right)
        assert_same(result, BINARY[symbol](left, right[0]), 1)

    @pytest.mark.parametrize(("kind", "symbol"), CALLS)
    def test_a_number_on_the_left(self, kind: str, symbol: str) -> None:
        _, y = self.both(kind)
        left, right = ARGUMENTS[kind]
        number = left[0].item()
        result = evaluate(y.builder.build(BINARY[symbol](number, y)), left, right)
        assert_same(result, BINARY[symbol](left[0], right), 1)

    def test_unary(self) -> None:
        x, _ = self.both("float")
        assert [(-x).instruction.opcode, abs(x).instruction.opcode] == ["negate", "abs"]
        p, _ = self.both("bool")
        assert (~p).instruction.opcode == "not"

    def test_matmul(self) -> None:
        builder = xb.Builder("b")
        x, y = value(builder, 0, xb.f32[2, 3]), value(builder, 1, xb.f32[3, 4])
        assert (x @ y).shape == xb.f32[2, 4]

    def test_matmul_with_an_array(self) -> None:
        x = value(xb.Builder("b"), 0, xb.f32[2, 3])
        assert (x @ np.ones((3, 4), np.float32)).shape == xb.f32[2, 4]
        assert (np.ones((5, 2), np.float32) @ x).shape == xb.f32[5, 3]

    @pytest.mark.parametrize(
        "index",
        [
            0,
            -1,
            slice(1, 3),
            slice(None, 2),
            (1, 2),
            (slice(None), 1),
            (..., 0),
            (slice(0, 2), slice(1, 4)),
        ],
        ids=str,
    )
    def test_index(self, index: Any) -> None:
        array = np.arange(12, dtype=np.int32).reshape(3, 4)
        x = value(xb.Builder("b"), 0, xb.s32[3, 4])
        result = evaluate(x.builder.build(x[index]), array)
        np.testing.assert_array_equal(result, array[index], strict=True)

    @pytest.mark.parametrize("index", [3, -4, (0, 4), (0, 0, 0), (None, 0, 0, 0), 1.0], ids=str)
    def test_an_index_out_of_range_is_refused(self, index: Any) -> None:
        x = value(xb.Builder("b"), 0, xb.s32[3, 4])
        with pytest.raises(xb.XbuildError):
            x[index]

    def test_equality_records_and_keys_are_by_identity(self) -> None:
        x, y = self.both("float")
        assert [(x == y).instruction.attributes.direction, (x != y).instruction.attributes.direction] == ["EQ", "NE"]
        assert len({x, y}) == 2
        assert (x == 1.0).shape == xb.pred[3]

    def test_a_value_has_no_truth(self) -> None:
        x, y = self.both("float")
        with pytest.raises(TypeError, match="select"):
            bool(x < y)

    def test_a_tuple_unpacks_and_an_array_does_not(self) -> None:
        x, y = self.both("float")
        first, second = xb.tuple_(x, y)
        assert [first.shape, second.shape] == [x.shape, y.shape]
        with pytest.raises(TypeError, match="not a tuple"):
            iter(x)

    def test_operators_broadcast_as_add_does(self) -> None:
        builder = xb.Builder("b")
        x, y = value(builder, 0, xb.f32[2, 3]), value(builder, 1, xb.f32[()])
        assert (x + y).shape == (y - x).shape == xb.f32[2, 3]
        refused("rank_mismatch", lambda: x + value(builder, 2, xb.f32[3]))
