"""Cases of the ops that act on each element alone: every kind of type, every corner."""

from __future__ import annotations

import cmath
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import xbuild as xb
from shape_inference import primitive_type

from .case import Case, Refusal

INF, NAN = math.inf, math.nan
Numbers = Sequence[Any]


def array(dtype: str, values: Any) -> np.ndarray[Any, Any]:
    """Numbers in an element type, wrapped or rounded as NumPy does."""
    wanted = primitive_type(dtype)
    wide = {"signed": np.int64, "unsigned": np.uint64}.get(wanted.kind)
    with np.errstate(all="ignore"):
        return np.asarray(values, wide).astype(wanted.dtype)


def _case(op: str, dtype: str, operands: Sequence[Numbers], result: Numbers, tolerance: int = 0, **more: Any) -> Case:
    """A case of operands of one type, and of a result of this type where `gives` names no other."""
    call, gives = getattr(xb.ops, op), more.pop("gives", dtype)
    source = re.findall(r"Source: (.*)\.", call.__doc__)[0]
    name = more.pop("note", "")
    return Case(
        "-".join(filter(None, (op.strip("_"), *more.get("attributes", {}).values(), dtype, name))),
        call,
        tuple(array(dtype, values) for values in operands),
        array(gives, result),
        tolerance=tolerance,
        source=source,
        **more,
    )


def _logistic(x: Any) -> Any:
    return 1 / (1 + cmath.exp(-x)) if isinstance(x, complex) else 1 / (1 + math.exp(-x))


def _less_one(x: complex) -> complex:
    return cmath.exp(x) - 1


INSIDE, BEYOND, ABOVE = (-0.9375, -0.5, 0.25, 0.75), (-3.0, -0.5, 0.125, 2.5), (0.125, 1.0, 2.5, 100.0)
TURNED = (0.5 + 0.25j, -1.5 + 2.0j, 2.0 - 0.75j)
# op: the function of Python's math, where it is taken, the function of cmath
ELEMENTARY: dict[str, tuple[Callable[[float], float], Numbers, Callable[[complex], complex] | None]] = {
    "acos": (math.acos, INSIDE, cmath.acos),
    "acosh": (math.acosh, (1.0, 1.5, 3.0, 10.0), cmath.acosh),
    "asin": (math.asin, INSIDE, cmath.asin),
    "asinh": (math.asinh, BEYOND, cmath.asinh),
    "atanh": (math.atanh, INSIDE, cmath.atanh),
    "cbrt": (lambda x: math.copysign(abs(x) ** (1 / 3), x), (-3.0, -0.5, 0.25, 2.5), None),
    "cosh": (math.cosh, BEYOND, cmath.cosh),
    "cosine": (math.cos, BEYOND, cmath.cos),
    "erf": (math.erf, (*BEYOND, 1.0, 1e-5, 3.5), None),
    "exponential": (math.exp, BEYOND, cmath.exp),
    "exponential_minus_one": (math.expm1, BEYOND, _less_one),
    "log": (math.log, ABOVE, cmath.log),
    "log_plus_one": (math.log1p, (-0.9375, 0.25, 2.5, 100.0), lambda z: cmath.log(1 + z)),
    "logistic": (_logistic, BEYOND, _logistic),
    "rsqrt": (lambda x: 1 / math.sqrt(x), ABOVE, lambda z: 1 / cmath.sqrt(z)),
    "sine": (math.sin, BEYOND, cmath.sin),
    "sinh": (math.sinh, BEYOND, cmath.sinh),
    "sqrt": (math.sqrt, ABOVE, cmath.sqrt),
    "tan": (math.tan, BEYOND, cmath.tan),
    "tanh": (math.tanh, BEYOND, cmath.tanh),
}
ULPS = {"f8e4m3": 1, "bf16": 1, "f16": 1, "f32": 8, "f64": 8, "c64": 32, "c128": 32}
NOT_ON_CPU = {"acos", "acosh", "asin", "asinh", "atanh", "cosh", "sinh"}


def _elementary() -> Iterator[Case]:
    for op, (real, where, turned) in ELEMENTARY.items():
        for dtype, tolerance in ULPS.items():
            function, points = (turned, TURNED) if dtype[0] == "c" else (real, where)
            if function is not None:
                taken = array(dtype, points).astype(complex if dtype[0] == "c" else float).tolist()
                values = [function(x) for x in taken]
                yield _case(op, dtype, [points], values, tolerance, oracle=op not in NOT_ON_CPU, note="values")


FINITE = [True, False, False, True]
HALVES = [0.5, 1.5, 2.5, -0.5, -2.5, 0.49999997, 8388609.0, -0.0, INF, NAN]
# op, type, operand, result, what else the case states
UNARY: list[tuple[Any, ...]] = [
    ("abs", "s8", [-3, -128, 5], [3, -128, 5]),
    ("abs", "s4", [-3, -8, 7], [3, -8, 7]),
    ("abs", "f32", [-1.5, -0.0, -INF, NAN], [1.5, 0.0, INF, NAN]),
    ("abs", "bf16", [-1.5, -0.0], [1.5, 0.0]),
    ("abs", "c64", [3 + 4j, 1e30 + 1e30j], [5.0, 1.4142135e30], {"gives": "f32", "tolerance": 2}),
    ("ceil", "f32", [1.2, -0.5, -0.0, INF, NAN], [2.0, -0.0, -0.0, INF, NAN]),
    ("ceil", "f8e5m2", [1.25, -0.5], [2.0, -0.0]),
    ("cbrt", "f32", [27.0, -8.0, -0.0], [3.0, -2.0, -0.0], {"tolerance": 1}),
    ("copy", "f32", [-0.0, NAN, 1.5], [-0.0, NAN, 1.5]),
    ("count_leading_zeros", "s8", [0, 1, -1, 64], [8, 7, 0, 1]),
    ("count_leading_zeros", "u16", [0, 1, 65535, 255], [16, 15, 0, 8]),
    ("count_leading_zeros", "s32", [0, 1, -7, 65536], [32, 31, 0, 15]),
    ("count_leading_zeros", "u64", [0, 1, 2**63, 2**53 - 1], [64, 63, 0, 11]),
    ("count_leading_zeros", "u4", [0, 1, 15], [4, 3, 0]),
    ("erf", "f32", [0.0, -0.0, INF, -INF, NAN, 6.5], [0.0, -0.0, 1.0, -1.0, NAN, 1.0]),
    ("exponential", "f32", [0.0, -INF, INF, NAN, 89.0], [1.0, 0.0, INF, NAN, INF]),
    ("exponential_minus_one", "f32", [1e-20, -INF, -0.0], [1e-20, -1.0, -0.0]),
    ("floor", "f32", [1.8, -0.5, -0.0, -INF], [1.0, -1.0, -0.0, -INF]),
    ("imag", "c64", [1 + 2j, 3.0], [2.0, 0.0], {"gives": "f32"}),
    ("imag", "f32", [1.0, NAN], [0.0, 0.0]),
    ("imag", "f8e8m0fnu", [1.0, 2.0], [NAN, NAN]),  # it has no zero
    ("is_finite", "f32", [1.0, INF, NAN, -0.0], FINITE, {"gives": "pred"}),
    ("is_finite", "f8e5m2", [1.0, -INF, NAN, -0.0], FINITE, {"gives": "pred"}),
    ("log", "f32", [1.0, 0.0, -0.0, -1.0, INF], [0.0, -INF, -INF, NAN, INF]),
    ("log_plus_one", "f32", [1e-20, -1.0, -2.0], [1e-20, -INF, NAN]),
    ("log_plus_one", "c64", [1e-10 + 0j], [1e-10 + 0j], {"tolerance": 2}),
    ("logistic", "f32", [0.0, 200.0, -200.0, NAN, -INF], [0.5, 1.0, 0.0, NAN, 0.0]),
    ("logistic", "c64", [-200.0 + 1j, 200.0 + 1j], [0.0, 1.0], {"oracle": False}),
    ("negate", "s8", [5, -128, 0], [-5, -128, 0]),
    ("negate", "u8", [1, 0, 255], [255, 0, 1]),
    ("negate", "u4", [1, 0, 15], [15, 0, 1]),
    ("negate", "f32", [0.0, -INF, 1.5], [-0.0, INF, -1.5]),
    ("negate", "c64", [1 - 2j], [-1 + 2j]),
    ("not_", "pred", [True, False], [False, True]),
    ("not_", "s32", [0, -1, 5], [-1, 0, -6]),
    ("not_", "u8", [0, 255, 5], [255, 0, 250]),
    ("not_", "u4", [0, 15, 5], [15, 0, 10]),
    ("popcnt", "s8", [0, -1, 7, -128], [0, 8, 3, 1]),
    ("popcnt", "u64", [0, 2**64 - 1, 2**40], [0, 64, 1]),
    ("popcnt", "s4", [0, -1, 7, -8], [0, 4, 3, 1], {"oracle": False}),  # XLA counts in 8 bits
    ("real", "c128", [1 + 2j, 3.0], [1.0, 3.0], {"gives": "f64"}),
    ("real", "f32", [1.0, NAN], [1.0, NAN]),
    ("round_nearest_afz", "f32", HALVES, [1.0, 2.0, 3.0, -1.0, -3.0, 0.0, 8388609.0, -0.0, INF, NAN]),
    ("round_nearest_even", "f32", HALVES, [0.0, 2.0, 2.0, -0.0, -2.0, 0.0, 8388609.0, -0.0, INF, NAN]),
    ("round_nearest_afz", "bf16", [0.5, -2.5], [1.0, -3.0]),
    ("rsqrt", "f32", [4.0, 0.0, -0.0, -1.0, INF], [0.5, INF, -INF, NAN, 0.0]),
    ("sign", "s32", [-7, 0, 9], [-1, 0, 1]),
    ("sign", "f32", [-2.0, -0.0, 0.0, 5.0, NAN], [-1.0, -0.0, 0.0, 1.0, NAN]),
    (
        "sign",
        "c64",
        [3 + 4j, 0.0, complex(INF, -1), complex(-2, INF), complex(INF, INF), complex(NAN, 1)],
        [0.6 + 0.8j, 0.0, complex(NAN, -0.0), complex(-0.0, NAN), complex(NAN, NAN), complex(NAN, NAN)],
        {"tolerance": 2},
    ),
    ("sqrt", "f32", [4.0, -0.0, -1.0, INF], [2.0, -0.0, NAN, INF]),
    ("sqrt", "c64", [-4 + 0j], [2j]),
    ("tanh", "f32", [0.0, -0.0, INF, -INF, NAN], [0.0, -0.0, 1.0, -1.0, NAN]),
]

BOTH = [False, False, True, True], [False, True, False, True]
DIVIDED = [7, -7, 7, -7, 5, -128, 0], [2, 2, -2, -2, 0, -1, 0]
SHIFTED = [1, -1, -128, 64, -1], [3, 1, 7, 8, -1]
ZEROS = [0.0, -0.0, -0.0, 1.0, NAN, 1.0], [-0.0, 0.0, -0.0, NAN, 1.0, 2.0]
PI = math.pi
SIDES = [0.0, -0.0, 0.0, -0.0, 0.0, -0.0], [0.0, 0.0, -0.0, -0.0, -1.0, -1.0]
POWERS = [NAN, 1.0, -1.0, -0.0, -8.0, 2.0], [0.0, NAN, INF, -1.0, 1 / 3, 0.5]
TO_COMPLEX = {"gives": "c64"}
# op, type, lhs, rhs, result, what else the case states
BINARY: list[tuple[Any, ...]] = [
    ("add", "pred", *BOTH, [False, True, True, True]),
    ("add", "s8", [127, -100, 3], [1, -100, 4], [-128, 56, 7]),
    ("add", "u4", [15, 7], [1, 7], [0, 14]),
    ("add", "s32", [2**31 - 1, 5], [1, 6], [-(2**31), 11]),
    ("add", "bf16", [256.0, 1.0, 3.39e38], [1.0, 2.0, 3.39e38], [256.0, 3.0, INF]),
    ("add", "f8e4m3fn", [1.0, 448.0], [0.5, 448.0], [1.5, NAN]),
    ("add", "f8e8m0fnu", [1.0, 4.0], [1.0, 1.0], [2.0, 4.0]),
    ("add", "f32", [1.5, INF, -0.0], [2.5, -INF, 0.0], [4.0, NAN, 0.0]),
    ("add", "c64", [1 + 2j], [3 - 1j], [4 + 1j]),
    ("and_", "pred", *BOTH, [False, False, False, True]),
    ("and_", "s32", [12, -1], [10, 5], [8, 5]),
    ("atan2", "f32", *SIDES, [0.0, -0.0, PI, -PI, PI, -PI], {"tolerance": 2}),
    ("atan2", "f64", [1.0, INF, INF], [0.0, INF, -INF], [PI / 2, PI / 4, 0.75 * PI], {"tolerance": 2}),
    ("atan2", "c128", [1 + 1j], [2.0], [cmath.atan(0.5 + 0.5j)], {"tolerance": 8}),
    ("complex", "f32", [1.0, INF, 0.0], [2.0, NAN, -0.0], [1 + 2j, complex(INF, NAN), complex(0.0, -0.0)], TO_COMPLEX),
    ("divide", "s8", *DIVIDED, [3, -3, -3, 3, -1, -128, -1]),
    ("divide", "s4", [7, -7, -8, 5], [2, 2, -1, 0], [3, -3, -8, -1]),
    ("divide", "u8", [7, 255, 0], [2, 0, 0], [3, 255, 255]),
    ("divide", "s64", [-(2**63), 7, 1], [-1, -2, 0], [-(2**63), -3, -1]),
    ("divide", "f32", [1.0, -1.0, 0.0, 7.0], [0.0, 0.0, 0.0, 2.0], [INF, -INF, NAN, 3.5]),
    ("divide", "c64", [1 + 1j, 4 + 2j], [0.0, 1 + 1j], [complex(INF, INF), 3 - 1j], {"tolerance": 2}),
    ("divide", "c128", [1 + 1j], [complex(INF, INF)], [0.0]),
    ("maximum", "pred", *BOTH, [False, True, True, True]),
    ("maximum", "u8", [1, 255], [2, 3], [2, 255]),
    ("maximum", "f32", *ZEROS, [0.0, 0.0, -0.0, NAN, NAN, 2.0]),
    ("maximum", "bf16", *ZEROS, [0.0, 0.0, -0.0, NAN, NAN, 2.0]),
    # XLA:CPU compares the real parts alone here.
    ("maximum", "c64", [1 + 2j, 1 + 2j], [1 + 3j, 2 + 0j], [1 + 3j, 2 + 0j], {"oracle": False}),
    ("minimum", "pred", *BOTH, [False, False, False, True]),
    ("minimum", "s8", [1, -128], [2, 3], [1, -128]),
    ("minimum", "f32", *ZEROS, [-0.0, -0.0, -0.0, NAN, NAN, 1.0]),
    ("mulhi", "s8", [100, -1, -128], [100, 1, -128], [39, -1, 64], {"oracle": False}),
    ("mulhi", "u32", [2**32 - 1, 2**16], [2**32 - 1, 2**16], [2**32 - 2, 1], {"oracle": False}),
    ("mulhi", "s64", [-(2**63), 2**62, -1], [-(2**63), 4, 1], [2**62, 1, -1], {"oracle": False}),
    ("multiply", "pred", *BOTH, [False, False, False, True]),
    ("multiply", "s8", [100, -128], [100, -1], [16, -128]),
    ("multiply", "f16", [256.0, 2.0], [256.0, 3.0], [INF, 6.0]),
    ("multiply", "c64", [1 + 2j], [3 - 1j], [5 + 5j]),
    ("or_", "u8", [12, 255], [10, 5], [14, 255]),
    ("or_", "pred", *BOTH, [False, True, True, True]),
    ("power", "s32", [2, 2, 0, 3, 1, -1, -1, 5], [31, 32, 0, 4, -5, -3, -4, -1], [-(2**31), 0, 1, 81, 1, -1, 1, 0]),
    ("power", "u8", [3, 2, 0], [5, 8, 0], [243, 0, 1]),
    ("power", "f32", *POWERS, [1.0, 1.0, 1.0, -INF, NAN, 2**0.5], {"tolerance": 2}),
    ("power", "c64", [1 + 2j], [2.0], [-3 + 4j], {"tolerance": 32}),
    ("remainder", "s8", *DIVIDED, [1, -1, 1, -1, 5, 0, 0]),
    ("remainder", "u32", [7, 5], [4, 0], [3, 5]),
    ("remainder", "f32", [-5.5, 3.0, INF, 1.0, -0.0], [2.0, INF, 2.0, 0.0, 2.0], [-1.5, 3.0, NAN, NAN, -0.0]),
    ("shift_left", "s8", *SHIFTED, [8, -2, 0, 0, 0]),
    ("shift_left", "u64", [1, 1, 3], [63, 64, 1], [2**63, 0, 6]),
    ("shift_right_arithmetic", "s8", *SHIFTED, [0, -1, -1, 0, -1]),
    ("shift_right_arithmetic", "u8", [255, 128, 64], [7, 200, 3], [255, 255, 8]),
    ("shift_right_logical", "s8", *SHIFTED, [0, 127, 1, 0, 0]),
    ("shift_right_logical", "s4", [-8, -1, 7], [3, 1, -1], [1, 7, 0]),
    ("subtract", "u8", [0, 3], [1, 1], [255, 2]),
    ("subtract", "f32", [INF, 1.0], [INF, 0.25], [NAN, 0.75]),
    ("xor", "pred", *BOTH, [False, True, True, False]),
    ("xor", "s32", [12, -1], [10, 5], [6, -6]),
]  # fmt: skip

ORDERED = [-NAN, -INF, -1.0, -0.0, 0.0, 1.0, INF, NAN]
EQUALS = {"EQ": [1, 0, 0], "NE": [0, 1, 1], "LT": [0, 1, 0], "LE": [1, 1, 0], "GT": [0, 0, 1], "GE": [1, 0, 1]}


def _comparisons() -> Iterator[Case]:
    def compare(dtype: str, direction: str, lhs: Numbers, rhs: Numbers, result: Numbers, **more: Any) -> Case:
        attributes = {"direction": direction, **({"type": more.pop("type")} if "type" in more else {})}
        return _case("compare", dtype, [lhs, rhs], result, gives="pred", attributes=attributes, **more)

    for direction, result in EQUALS.items():
        for dtype in ("s8", "u32", "s4", "bf16", "f64"):
            yield compare(dtype, direction, [2, 1, 3], [2, 2, 2], result)
        yield compare("pred", direction, [True, False, True], [True, True, False], result)
        unordered = [direction == "NE"] * 2
        yield compare(
            "f32", direction, [0.0, NAN, 1.0], [-0.0, NAN, NAN], [direction in ("EQ", "LE", "GE"), *unordered]
        )
    for dtype in ("f32", "bf16", "f8e5m2"):
        yield compare(dtype, "LT", ORDERED[:-1], ORDERED[1:], [True] * 7, type="TOTALORDER")
        yield compare(dtype, "EQ", ORDERED, ORDERED, [True] * 8, type="TOTALORDER")
    yield compare("c64", "EQ", [1 + 2j, 1 + 2j], [1 + 2j, 1 + 3j], [True, False])
    yield compare("c64", "LT", [1 + 2j, 1 + 9j, 2 + 0j], [1 + 3j, 2 + 0j, 1 + 9j], [True, True, False])


def _on(name: str, call: Callable[..., xb.Value], arguments: Numbers, result: Any, source: str, **more: Any) -> Case:
    return Case(name, call, tuple(map(np.asarray, arguments)), np.asarray(result), source=source, **more)


def _mixed(op: Callable[..., xb.Value], operands: Sequence[tuple[str, Numbers]], gives: str, result: Numbers) -> Case:
    """Floats of several precisions, which real XLA takes in inference and refuses to run."""
    name = "-".join([op.__name__, *(dtype for dtype, _ in operands)])
    arguments = [array(*operand) for operand in operands]
    return _on(name, op, arguments, array(gives, result), "xla/service/shape_inference.cc", oracle=False)


SELECT, CLAMP = "Operation Semantics, Select", "Operation Semantics, Clamp"
BROADCASTING = "Operation Semantics, Element-wise binary arithmetic operations"
ARMS = np.array([1, 2, 3, 4], np.int32), np.array([100, 200, 300, 400], np.int32)
CHOICE = np.array([True, False, False, True])
KEPT = array("f32", [[-0.0, NAN], [NAN, 1.0]])
ROW, TABLE = np.array([1, 2, 3], np.int32), np.array([[1, 2, 3], [4, 5, 6]], np.int32)
DEEP = TABLE[:, None]
BOUNDED = [[0.0, NAN, 0.0, 5.0], [7.0, 1.0, NAN, 3.0], [6.0, 2.0, 6.0, 1.0]]


def _along(*dimensions: int) -> dict[str, Any]:
    return {"broadcast_dimensions": list(dimensions)}


CASES: list[Case] = [
    *_elementary(),
    *(_case(op, dtype, [x], y, **(more[0] if more else {})) for op, dtype, x, y, *more in UNARY),
    *(_case(op, dtype, [a, b], y, **(more[0] if more else {})) for op, dtype, a, b, y, *more in BINARY),
    *_comparisons(),
    _case("clamp", "f32", BOUNDED, [6.0, NAN, NAN, 1.0]),
    _case("clamp", "s8", [[-1, 0, 0], [-5, 127, 3], [6, 6, 6]], [-1, 6, 3]),
    _case("clamp", "bf16", [[0.0], [1.5], [1.0]], [1.0]),
    _on("clamp-scalars", xb.ops.clamp, [np.int32(0), ROW, np.int32(2)], array("s32", [1, 2, 2]), CLAMP),
    _on("clamp-numbers", lambda x: xb.clamp(0, x, 6), [array("s32", [-1, 5, 9])], array("s32", [0, 5, 6]), CLAMP),
    _on("select-array", xb.ops.select, [CHOICE, *ARMS], array("s32", [1, 200, 300, 4]), SELECT),
    _on("select-scalar", xb.ops.select, [True, *ARMS], ARMS[0], SELECT),
    _on("select-nan", xb.ops.select, [CHOICE[:2], *KEPT], array("f32", [-0.0, 1.0]), SELECT),
    _on("select-numbers", lambda p, x: xb.select(p, x, 0), [CHOICE, ARMS[0]], array("s32", [1, 0, 0, 4]), SELECT),
    _mixed(xb.ops.add, [("f32", [1.0, 2.5]), ("bf16", [0.00390625, 1.0])], "f32", [1.00390625, 3.5]),
    _mixed(xb.ops.add, [("f16", [1.0]), ("bf16", [256.0])], "bf16", [256.0]),
    _mixed(xb.ops.clamp, [("f32", [0.0]), ("f16", [7.0]), ("f32", [6.0])], "f16", [6.0]),
    _mixed(xb.ops.select, [("pred", [True, False]), ("f32", [1.0, 2.0]), ("f16", [3.0, 4.0])], "f32", [1.0, 4.0]),
    _on("broadcast-scalar", lambda x: 10 - x * 2, [TABLE], 10 - TABLE * 2, BROADCASTING),
    _on("broadcast-degenerate", xb.add, [TABLE[:, :1], TABLE[:1]], TABLE[:, :1] + TABLE[:1], BROADCASTING),
    _on("broadcast-row", xb.add, [TABLE, ROW], TABLE + ROW, BROADCASTING, attributes=_along(1)),
    _on("broadcast-column", xb.add, [ROW[:2], TABLE], TABLE + ROW[:2, None], BROADCASTING, attributes=_along(0)),
    _on("broadcast-both", xb.add, [DEEP, ROW], DEEP + ROW[:, None], BROADCASTING, attributes=_along(1)),
]

UNKNOWN = {"direction": "LESS"}
COMPARED = {"direction": "LT", "type": "FLOAT"}
REFUSALS: list[Refusal] = [
    Refusal("abs-unsigned", xb.ops.abs, ("u32[2]",), "element_type_unsupported", ("u32",)),
    Refusal("abs-tuple", xb.ops.abs, ("(f32[2], f32[2])",), "not_array", ("(f32[2], f32[2])",)),
    Refusal("cbrt-complex", xb.ops.cbrt, ("c64[2]",), "element_type_unsupported", ("c64",)),
    Refusal("negate-pred", xb.ops.negate, ("pred[2]",), "element_type_unsupported", ("pred",)),
    Refusal("clz-float", xb.ops.count_leading_zeros, ("f32[3]",), "element_type_unsupported", ("f32",)),
    Refusal("is-finite-complex", xb.ops.is_finite, ("c64[2]",), "element_type_unsupported", ("c64",)),
    Refusal("subtract-pred", xb.ops.subtract, ("pred[2]", "pred[2]"), "element_type_unsupported", ("pred",)),
    Refusal("remainder-complex", xb.ops.remainder, ("c64[2]", "c64[2]"), "element_type_unsupported", ("c64",)),
    Refusal("shift-float", xb.ops.shift_left, ("f32[2]", "f32[2]"), "element_type_unsupported", ("f32",)),
    Refusal("complex-integers", xb.ops.complex, ("s32[2]", "s32[2]"), "element_type_unsupported", ("s32",)),
    Refusal("complex-mixed", xb.ops.complex, ("f32[2]", "f64[2]"), "element_type_mismatch", ("f32", "f64")),
    Refusal("add-integers", xb.add, ("s32[2]", "s64[2]"), "element_type_mismatch", ("s32", "s64")),
    Refusal("add-complex", xb.add, ("c64[2]", "f32[2]"), "element_type_mismatch", ("c64", "f32")),
    Refusal("add-token", xb.add, ("token[]", "token[]"), "not_array", ("token",)),
    Refusal("add-strict", xb.ops.add, ("f32[2]", "f32[1]"), "dimension_mismatch", ("f32[2]", "f32[1]", "0")),
    Refusal("add-ranks", xb.add, ("f32[2,3]", "f32[3]"), "rank_mismatch", ("f32[3]", "broadcast_dimensions")),
    Refusal("add-extents", xb.add, ("f32[2,3]", "f32[3,2]"), "dimension_mismatch", ("2", "3")),
    Refusal("add-no-fit", xb.add, ("f32[2,3]", "f32[3]"), "dimension_mismatch", ("2", "3"), _along(0)),
    Refusal("add-negative", xb.add, ("f32[2,3]", "f32[3]"), "dimension_out_of_range", ("-1", "0..1"), _along(-1)),
    Refusal("add-order", xb.add, ("f32[2,3,4]", "f32[4,2]"), "bad_order", ("[2, 0]",), _along(2, 0)),
    Refusal("add-twice", xb.add, ("f32[3,3,4]", "f32[3,3]"), "duplicate_dimension", ("[1, 1]",), _along(1, 1)),
    Refusal("add-length", xb.add, ("f32[2,3]", "f32[3]"), "attribute_length_mismatch", ("2", "1"), _along(0, 1)),
    Refusal("add-permuted", xb.add, ("f32[3,3]", "f32[3,3]"), "invalid_attribute", ("[1, 0]",), _along(1, 0)),
    Refusal("add-kind", lambda x: x + 2.5, ("s32[2]",), "element_type_mismatch", ("2.5", "s32")),
    Refusal("add-range", lambda x: x + 300, ("s8[2]",), "element_type_mismatch", ("300", "s8", "-128..127")),
    Refusal("add-sign", lambda x: x + -1, ("u32[2]",), "element_type_mismatch", ("-1", "u32")),
    Refusal("add-complex-number", lambda x: x + 1j, ("f32[2]",), "element_type_mismatch", ("1j", "f32")),
    Refusal("and-number", lambda x: x & 1, ("pred[2]",), "element_type_mismatch", ("1", "pred")),
    Refusal("compare-extents", xb.gt, ("f32[2]", "f32[3]"), "dimension_mismatch", ("f32[2]", "f32[3]")),
    Refusal("compare-type", xb.ops.compare, ("s32[2]", "s32[2]"), "invalid_attribute", ("FLOAT", "SIGNED"), COMPARED),
    Refusal("compare-direction", xb.ops.compare, ("s32[2]", "s32[2]"), "invalid_attribute", ("LESS",), UNKNOWN),
    Refusal("clamp-ranks", xb.clamp, ("f32[2]", "f32[2,3]", "f32[2]"), "rank_mismatch", ("f32[2]", "f32[2,3]")),
    Refusal("clamp-types", xb.clamp, ("s32[]", "f32[2]", "s32[]"), "element_type_mismatch", ("s32", "f32")),
    Refusal("select-pred", xb.select, ("s32[2]", "f32[2]", "f32[2]"), "element_type_mismatch", ("s32", "pred")),
    Refusal("select-arms", xb.select, ("pred[2]", "f32[2]", "s32[2]"), "element_type_mismatch", ("f32", "s32")),
    Refusal("select-ranks", xb.select, ("pred[2]", "f32[2,3]", "f32[2,3]"), "rank_mismatch", ("pred[2]", "f32[2,3]")),
    Refusal("select-tuples", xb.select, ("pred[2]", "(f32[2])", "(f32[2])"), "non_scalar", ("pred[2]",)),
]  # fmt: skip


DYNAMIC = "HloModule, dynamic dimensions: real XLA cuts to the dynamic size, and one of size 1 meets every other"
COUNT, TENS = np.arange(1, 6, dtype=np.float32), 10 * np.arange(1, 6, dtype=np.float32)


def cut(x: xb.Value, size: int) -> xb.Value:
    return xb.set_dimension_size(x, xb.constant(x.builder, literal=np.int32(size)), 0)


def measured(value: xb.Value) -> xb.Value:
    """The real size of a dynamic vector, and the sum of its elements."""
    return xb.tuple_(xb.get_dimension_size(value, 0), xb.reduce(value, 0.0, xb.add, 0))


def sized(
    name: str, call: Callable[[xb.Value, xb.Value], xb.Value], size: int, total: float, oracle: bool = True
) -> Case:
    """An op of 1, 2, 3, 4, 5 and 10, 20, 30, 40, 50, of which some are cut."""
    return Case(
        f"dynamic-{name}",
        lambda x, y: measured(call(x, y)),
        (COUNT, TENS),
        (np.int32(size), np.float32(total)),
        source=DYNAMIC,
        oracle=oracle,
    )


def chosen(x: xb.Value, y: xb.Value) -> xb.Value:
    which = xb.constant(x.builder, literal=np.array([False, True, False, True, True]))
    return xb.select(which, cut(x, 3), y)


CASES += [
    *(
        sized(f"{size}-{order}", lambda x, y, n=size, o=order: xb.ops.add(*((cut(x, n), y)[::o])), size, total)
        for size, total in ((0, 0), (1, 11), (3, 66), (5, 165))
        for order in (1, -1)
    ),
    *(
        sized(f"{a}-and-{b}", lambda x, y, a=a, b=b: xb.ops.add(cut(x, a), cut(y, b)), size, total)
        for a, b, size, total in ((3, 4, 3, 66), (4, 3, 3, 66), (1, 4, 4, 104), (4, 1, 4, 50), (1, 1, 1, 11))
    ),
    sized("maximum", lambda x, y: xb.ops.maximum(cut(x, 3), y), 3, 60),
    sized("select", chosen, 3, 42),
    sized("map", lambda x, y: xb.map((cut(x, 3), y), lambda a, b: a + b), 3, 66),
    sized("clamp-by-cut", lambda x, y: xb.ops.clamp(cut(x, 3), y, y), 5, 150),
    sized("clamp-of-cut", lambda x, y: xb.ops.clamp(x, cut(y, 3), x), 3, 6),
    sized("clamp-beyond", lambda x, y: xb.ops.clamp(cut(y, 2), x, y), 5, 42, oracle=False),
    sized("power", lambda x, y: xb.ops.power(y, cut(x, 2)), 2, 410),
]
