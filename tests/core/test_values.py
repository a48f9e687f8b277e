"""Values in Python statements and NumPy functions: each records an op, tells a known fact, or is refused."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xbuild as xb

SHAPES: dict[str, Any] = {
    "x": xb.f32[3], "y": xb.f32[3], "n": xb.s32[()], "i": xb.s32[3], "u": xb.u8[3], "p": xb.pred[3], "q": xb.pred[3],
    "b": xb.bf16[3], "c": xb.c64[3], "m": xb.f32[2, 3], "t": xb.TupleShape((xb.f32[3], xb.s32[()])),
    "d": xb.parse_shape("f32[<=4]"), "k": xb.token,
}  # fmt: skip
ONES = np.ones(3, np.float32)


def names() -> dict[str, Any]:
    """What an expression may speak of: a value of each kind, and the modules."""
    builder = xb.Builder("b")
    values = {
        name: xb.parameter(builder, number=number, shape=shape, name=name)
        for number, (name, shape) in enumerate(SHAPES.items())
    }
    modules = {"xb": xb, "np": np, "math": math, "copy": copy, "pickle": pickle, "ml_dtypes": ml_dtypes}
    return {**values, **modules, "ONES": ONES, "builder": builder}


def recorded(builder: xb.Builder) -> list[xb.Instruction]:
    return builder._instructions[len(SHAPES) :]


# What records: an expression of Python, and the opcodes beside constants and broadcasts; a comparison by its direction.
RECORDS = {
    "x == y": "EQ", "x != y": "NE", "x == 0": "EQ", "0 == x": "EQ", "x != 0.5": "NE", "0.5 != x": "NE",
    "x == x": "EQ", "n == 3": "EQ", "p == True": "EQ", "c == 1j": "EQ", "u != 255": "NE", "x == float('nan')": "EQ",
    "x == ONES": "EQ", "ONES == x": "EQ", "ONES != x": "NE", "x == [1.0, 2.0, 3.0]": "EQ", "(1, 2, 3) != x": "NE",
    "np.float32(2) == x": "EQ", "np.float64(2) == x": "EQ", "x == np.float64(2)": "EQ",
    "ml_dtypes.bfloat16(2) == b": "EQ", "b != ml_dtypes.bfloat16(2)": "NE", "np.int32(2) != n": "NE",
    "np.float32(2) < x": "LT", "np.float64(2) >= x": "GE", "ONES <= x": "LE", "ONES > x": "GT", "0 < x": "GT",
    "ONES + x": "add", "ONES - x": "subtract", "ONES * x": "multiply", "ONES / x": "divide", "ONES % x": "remainder",
    "ONES ** x": "power", "np.ones((2, 3), np.float32) @ x": "dot", "np.float32(2) * x": "multiply",
    "np.float64(2) * x": "multiply", "[1.0, 2.0, 3.0] * x": "multiply", "np.bool_(True) & p": "and",
    "np.array([True, False, True]) | p": "or", "np.array([True, False, True]) ^ p": "xor", "np.add(x, 1)": "add",
    "ml_dtypes.bfloat16(2) * b": "multiply", "np.equal(x, y)": "EQ", "np.left_shift(i, 2)": "shift_left",
    "n << 2": "shift_left", "1 << n": "shift_left", "n >> 2": "shift_right_arithmetic",
    "64 >> n": "shift_right_arithmetic", "u >> 1": "shift_right_logical", "64 >> u": "shift_right_logical",
    "np.int32(64) >> n": "shift_right_arithmetic", "np.array([1, 2, 3], np.uint8) >> u": "shift_right_logical",
    "u // 3": "divide", "i // 3": "remainder divide sign sign NE NE and subtract select",
    "-7 // n": "remainder divide sign sign NE NE and subtract select",
    "x // 2": "remainder EQ subtract select divide NE sign sign NE and subtract select round_nearest_afz",
    "np.array([1, 2, 3], np.uint8) // u": "divide", "(0 < x) & (x < 1)": "GT LT and", "~(x == y)": "EQ not",
    "sum([x, y])": "add add", "math.prod([x, y])": "multiply multiply", "+x": "", "list(t)": "get_tuple_element " * 2,
    "[*reversed(t)]": "get_tuple_element " * 2, "dict(zip('ab', t))": "get_tuple_element " * 2,
    "x[n]": "dynamic_slice reshape", "pow(x, 2)": "power", "abs(x)": "abs", "m[1] == x": "slice reshape EQ",
    "xb.select(x == 0, x, 1.0)": "EQ select",
}  # fmt: skip
# What Python is told of a value, and records nothing.
KNOWN = {
    "len(t)": 2, "len(x)": 3, "len(m)": 2, "f'{x}'": "%x: f32[3]", "f'{x!s:>12}'": "  %x: f32[3]",
    "str(n)": "%n: s32[]", "'%s' % x": "%x: f32[3]", "x is x": True, "x is None": False, "{x: 1, y: 2}[y]": 2,
    "len({x, y, x})": 2, "x in {x}": True, "{x} == {y}": False, "hash(x) == hash(x)": True,
    "isinstance(x, xb.Value)": True, "copy.copy(x) is x": True, "copy.deepcopy([x, (y,)])[1][0] is y": True,
    "callable(x)": False, "copy.deepcopy(x.instruction) is x.instruction": True,
    "next(each is y for each in [y])": True,
}  # fmt: skip
REFUSED = {
    # comparisons with what is no operand
    "x == None": ("invalid_operand", "None", "`x is None`"),
    "x != None": ("invalid_operand", "None", "`x is None`"),
    "None == x": ("invalid_operand", "None", "`x is None`"),
    "x < None": ("invalid_operand", "None", "`x is None`"),
    "x == 'a'": ("invalid_operand", "'a'", "numbers and arrays"),
    "b'a' != x": ("invalid_operand", "b'a'", "numbers and arrays"),
    "x == object": ("invalid_operand", "object", "`x is y`"),
    "x == xb.f32[3]": ("invalid_operand", "f32[3]", "x.shape"),
    "x == xb.f32": ("invalid_operand", "f32", "x.shape.dtype"),
    "x == [x, y]": ("invalid_operand", "%y: f32[3]", "xb.concatenate"),
    "x + None": ("invalid_operand", "None"),
    "x << 'a'": ("invalid_operand", "'a'"),
    "t == t": ("not_array", "(f32[3], s32[])"),
    "k != k": ("not_array", "token[]"),
    "x == n": ("element_type_mismatch", "f32", "s32"),
    "x == True": ("element_type_mismatch", "True", "f32"),
    "u == 256": ("element_type_mismatch", "256", "u8"),
    # a truth value
    "bool(x)": ("not_concrete", "truth value", "f32[3]  %x", "xb.select", "xb.conditional"),
    "x and y": ("not_concrete", "truth value", "&, |, ~"),
    "x or y": ("not_concrete", "truth value", "&, |, ~"),
    "not x": ("not_concrete", "truth value", "&, |, ~"),
    "1 if n else 2": ("not_concrete", "truth value", "xb.select"),
    "0 < x < 1": ("not_concrete", "truth value", "(a < x) & (x < b)"),
    "x == y == 1": ("not_concrete", "truth value", "(a < x) & (x < b)"),
    "min(x, y)": ("not_concrete", "truth value", "xb.minimum"),
    "max([x, y])": ("not_concrete", "truth value", "xb.maximum"),
    "sorted([x, y])": ("not_concrete", "truth value"),
    "any([x, y])": ("not_concrete", "truth value"),
    "x in [y]": ("not_concrete", "truth value", "`in`", "`x is y`"),
    "[y, x].index(x)": ("not_concrete", "truth value", "index", "`x is y`"),
    "[y, x].remove(x)": ("not_concrete", "truth value", "remove", "`x is y`"),
    "[x] == [y]": ("not_concrete", "truth value", "`x is y`"),
    "x in ONES": ("not_concrete", "numpy.asarray"),
    "1 in x": ("not_concrete", "truth value", "(x == item).any()"),
    "x in t": ("not_concrete", "truth value"),
    # elements one by one
    "iter(x)": ("not_tuple", "f32[3]", "xb.reduce", "xb.scan"),
    "sum(x)": ("not_tuple", "f32[3]", "as does xb.reduce(x, 0, xb.add)"),
    "min(x)": ("not_tuple", "f32[3]", "x.min()"),
    "all(p)": ("not_tuple", "pred[3]", "x.all()"),
    "sorted(x)": ("not_tuple", "f32[3]"),
    "list(reversed(x))": ("not_tuple", "f32[3]", "xb.rev"),
    "(lambda a, *b: a)(*x)": ("not_tuple", "f32[3]"),
    "len(n)": ("rank_too_small", "s32[]"),
    "len(k)": ("rank_too_small", "token[]"),
    "len(d)": ("not_concrete", "f32[<=4]", "xb.get_dimension_size"),
    # numbers
    "int(n)": ("not_concrete", "an int", "s32[]  %n", "xb.convert"),
    "float(n)": ("not_concrete", "a number", "xb.convert"),
    "complex(n)": ("not_concrete", "a number", "xb.complex"),
    "range(n)": ("not_concrete", "an int", "xb.while_"),
    "[1, 2][n]": ("not_concrete", "an int", "xb.dynamic_slice"),
    "x[1:n]": ("invalid_attribute", "slice 1:%n", "expected ints", "xb.dynamic_slice"),
    "hex(n)": ("not_concrete", "an int"),
    "xb.f32[n]": ("not_tuple", "s32[]  %n"),
    "xb.f32[3, n]": ("not_concrete", "an int", "x.shape.dims"),
    "round(x)": ("not_concrete", "xb.round_nearest_even"),
    "round(x, 2)": ("not_concrete", "xb.round_nearest_even"),
    "math.floor(x)": ("not_concrete", "xb.floor(x)"),
    "math.ceil(x)": ("not_concrete", "xb.ceil(x)"),
    "math.trunc(x)": ("not_concrete", "xb.convert"),
    "math.exp(x)": ("not_concrete", "a number", "xb.exp"),
    "math.isnan(n)": ("not_concrete", "a number"),
    "divmod(x, y)": ("invalid_operand", "x // y", "xb.remainder"),
    "divmod(7, n)": ("invalid_operand", "x // y"),
    "pow(n, 2, 5)": ("invalid_operand", "modulus", "xb.remainder"),
    "+t": ("not_array", "(f32[3], s32[])"),
    "c // c": ("element_type_unsupported", "c64[3]"),
    "p // p": ("element_type_unsupported", "pred[3]"),
    "f'{x:.3f}'": ("not_concrete", "'.3f'", "x!s:>20"),
    "format(n, 'd')": ("not_concrete", "'d'"),
    # NumPy
    "np.exp(x)": ("not_concrete", "numpy.exp", "use xb.exp instead"),
    "np.arctan2(x, y)": ("not_concrete", "xb.atan2"),
    "np.isnan(x)": ("not_concrete", "x != x"),
    "np.maximum(x, 0)": ("not_concrete", "use xb.maximum instead"),
    "np.add.reduce(x)": ("not_concrete", "numpy.add.reduce", "xb.reduce"),
    "np.add(ONES, x, out=ONES.copy())": ("not_concrete", "y = array + x"),
    "np.add(ONES, x, where=ONES > 0)": ("not_concrete", "numpy.add"),
    "ONES.copy().__iadd__(x)": ("not_concrete", "y = array + x"),
    "np.sum(x)": ("not_concrete", "numpy.sum", "x.sum(axis=...)"),
    "np.max(x)": ("not_concrete", "x.max(axis=...)"),
    "np.where(p, x, y)": ("not_concrete", "xb.select"),
    "np.concatenate([x, y])": ("not_concrete", "xb.concatenate"),
    "np.linalg.det(x)": ("not_concrete", "evaluate"),
    "np.array(x)": ("not_concrete", "an array", "x is already a value"),
    "np.asarray([x, y])": ("not_concrete", "an array", "evaluate"),
    "np.array([x, y], object)": ("not_concrete", "an array"),
    "ONES[n]": ("not_concrete", "an array"),
    "xb.constant(builder, x)": ("invalid_operand", "%x"),
    "xb.ops.constant(builder, literal=x)": ("invalid_attribute", "literal=%x"),
    "xb.compare(x, y, x)": ("invalid_attribute", "direction=%x", "'EQ'"),
    "xb.reshape(x, n)": ("invalid_attribute", "new_sizes=%n"),
    "xb.iota(builder, xb.s32[3], n)": ("invalid_attribute", "iota_dimension=%n", "expected an int"),
    # what never changes, copies
    "x.__setitem__(0, 1)": ("immutable", "xb.dynamic_update_slice", "xb.scatter"),
    "x.__delitem__(0)": ("immutable", "xb.slice"),
    "setattr(x, 'name', 'z')": ("immutable", "x.name = ...", "name="),
    "setattr(x, 'instruction', y.instruction)": ("immutable", "x.instruction"),
    "setattr(x, 'other', 1)": ("immutable", "x.other"),
    "delattr(x, 'builder')": ("immutable",),
    "pickle.dumps(x)": ("not_copied", "Value 'x'", "xb.parse_hlo"),
    "pickle.dumps([x.instruction])": ("not_copied", "Instruction 'x'", "to_hlo"),
    "copy.copy(builder)": ("not_copied", "Builder 'b'", "build()"),
    "copy.deepcopy(builder)": ("not_copied", "Builder 'b'"),
    "pickle.dumps(builder)": ("not_copied", "Builder 'b'"),
}  # fmt: skip


def opcodes(builder: xb.Builder) -> list[str]:
    return [
        each.attributes.direction if each.opcode == "compare" else each.opcode
        for each in recorded(builder)
        if each.opcode not in ("constant", "broadcast")
    ]


@pytest.mark.parametrize("expression", RECORDS)
def test_what_records(expression: str) -> None:
    space = names()
    eval(expression, space)
    assert opcodes(space["builder"]) == RECORDS[expression].split()


@pytest.mark.parametrize("expression", KNOWN)
def test_what_is_known(expression: str) -> None:
    space = names()
    assert eval(expression, space) == KNOWN[expression]
    assert recorded(space["builder"]) == []


@pytest.mark.parametrize("expression", REFUSED)
def test_what_is_refused_with_a_way_out(expression: str) -> None:
    kind, *facts = REFUSED[expression]
    with pytest.raises(xb.XbuildError) as caught:
        eval(compile(expression, __file__, "eval"), names())
    text = str(caught.value)
    assert caught.value.kind == kind
    assert text.splitlines()[0].endswith(f"[{kind}]")
    assert "test_values.py:1 in <module>" in text
    assert [fact for fact in facts if fact not in text] == []
    if kind in ("not_concrete", "not_tuple", "immutable", "invalid_operand", "not_copied"):
        assert isinstance(caught.value, TypeError), "Python's protocols expect one"


@pytest.mark.parametrize("expression", ["x(1)", "bytes(n)", "'%d' % n", "x.foo"])
def test_what_python_refuses_by_itself(expression: str) -> None:
    with pytest.raises((TypeError, AttributeError), match="Value"):
        eval(expression, names())


def test_statements() -> None:
    space = names()
    x, y = space["x"], space["y"]
    total = x
    total += y
    total -= 1
    total *= ONES
    assert opcodes(space["builder"]) == ["add", "subtract", "multiply"]
    assert x.instruction.opcode == "parameter"
    with pytest.raises(xb.ValueUseError, match=r"xb\.dynamic_update_slice"):
        x[0] += 1
    with pytest.raises(xb.ValueUseError, match="truth value"):
        assert x == y
    with pytest.raises(xb.ValueUseError, match="not_tuple"):
        _, _, _ = x
    with pytest.raises(TypeError, match="context manager"), x:
        pass


def test_a_match_statement_asks_for_a_truth_value() -> None:
    def matched(x: Any) -> bool:
        match x:
            case 0:
                return True
        return False

    with pytest.raises(xb.ValueUseError, match="truth value"):
        matched(names()["x"])
