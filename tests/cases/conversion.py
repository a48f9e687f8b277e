"""Cases of the ops that change the element type."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

import xbuild as xb
from shape_inference import primitive_type

from .case import Case, Refusal
from .elementwise import array

INF, NAN = math.inf, math.nan
CONVERT = "Operation Semantics, ConvertElementType; StableHLO, convert"
BITCAST = "Operation Semantics, BitcastConvertType; StableHLO, bitcast_convert"
REDUCE = "Operation Semantics, ReducePrecision; StableHLO, reduce_precision"
STOCHASTIC = "xla_builder.h, StochasticConvertType"


def _to(dtype: str) -> dict[str, Any]:
    return {"new_element_type": primitive_type(dtype)}


def _bits(dtype: str, values: Sequence[int]) -> np.ndarray[Any, Any]:
    of = primitive_type(dtype)
    return np.array(values, f"u{of.dtype.itemsize}").view(of.dtype)


FLOATS = [2.9, -2.9, -0.0, 300.0, -INF, INF, NAN]
# from, to, operand, result
CONVERSIONS: list[tuple[str, str, Any, Any]] = [
    ("f32", "s4", FLOATS, [2, -2, 0, 7, -8, 7, 0]),
    ("f32", "s8", FLOATS, [2, -2, 0, 127, -128, 127, 0]),
    ("f32", "u8", FLOATS, [2, 0, 0, 255, 0, 255, 0]),
    ("f32", "s32", [2147483520.0, 2147483648.0, -2147483648.0, NAN], [2147483520, 2**31 - 1, -(2**31), 0]),
    ("f16", "s64", [2.5, INF, -INF, NAN], [2, 2**63 - 1, -(2**63), 0]),
    ("f64", "u64", [1.8e19, 1.9e19, -1.9, 2.0**53 + 2], [18000000000000000000, 2**64 - 1, 0, 2**53 + 2]),
    ("bf16", "s16", [1.5, 1e6, -1e6], [1, 32767, -32768]),
    ("f8e5m2", "s8", [1.5, 57344.0, NAN], [1, 127, 0]),
    ("s32", "s8", [300, -1, 128], [44, -1, -128]),
    ("s32", "u8", [300, -1], [44, 255]),
    ("s32", "u4", [17, -1], [1, 15]),
    ("s4", "s32", [-8, 7], [-8, 7]),
    ("u64", "s64", [2**64 - 1, 5], [-1, 5]),
    ("s64", "f32", [2**24 + 1, 2**24 + 3], [2.0**24, 2.0**24 + 4]),
    ("s32", "bf16", [257, 259], [256.0, 260.0]),
    ("u8", "f8e4m3fn", [17, 240], [16.0, 240.0]),
    ("f32", "f16", [65519.9, 65520.0, 2.0**-25, 1.5 * 2.0**-25, NAN], [65504.0, INF, 0.0, 2.0**-24, NAN]),
    ("f32", "f8e4m3fn", [449.0, 464.0, 1e9, -0.0], [448.0, 448.0, NAN, -0.0]),
    ("f64", "f32", [1.0 + 2.0**-24, 1e300], [1.0, INF]),
    ("f16", "f64", [0.1, -0.0], [0.0999755859375, -0.0]),
    ("bf16", "f8e5m2", [1.125, 61440.0], [1.0, INF]),
    ("f32", "pred", [0.0, -0.0, NAN, 0.5], [False, False, True, True]),
    ("s32", "pred", [0, 256, -1], [False, True, True]),
    ("pred", "f32", [True, False], [1.0, 0.0]),
    ("pred", "s4", [True, False], [1, 0]),
    ("f32", "c64", [1.5, -0.0], [1.5 + 0j, complex(-0.0, 0.0)]),
    ("c64", "f32", [1.5 + 2j, -3.0], [1.5, -3.0]),
    ("s32", "f32", [0, 1, 2], [0.0, 1.0, 2.0]),
    ("c64", "c128", [1.5 + 2j], [1.5 + 2j]),
    ("c128", "s32", [2.9 + 1j], [2]),
    ("f32", "f32", [-0.0, NAN], [-0.0, NAN]),
]
# The same of types that real XLA reads and prints and does not run.
UNRUN: list[tuple[str, str, Any, Any]] = [
    ("f32", "f6e2m3fn", [1.0625, 1.1875, 7.75, 1e9, -INF, 0.0625, -0.0], [1.0, 1.25, 7.5, 7.5, -7.5, 0.0, -0.0]),
    ("f64", "f6e3m2fn", [1.125, 1.375, 30.0, -1e9, INF, 0.03125, -0.0], [1.0, 1.5, 28.0, -28.0, 28.0, 0.0, -0.0]),
    ("f6e2m3fn", "f32", [0.125, -7.5, 1.875], [0.125, -7.5, 1.875]),
    ("f6e3m2fn", "s8", [28.0, -1.75], [28, -1]),
    ("f6e2m3fn", "f6e3m2fn", [7.5, 1.125], [8.0, 1.0]),
    ("s32", "f6e3m2fn", [27, -100], [28.0, -28.0]),
    ("f6e2m3fn", "pred", [0.125, -0.0], [True, False]),
    ("f6e3m2fn", "f4e2m1fn", [28.0, 0.0625], [6.0, 0.0]),
]
QUIET = "XLA:CPU, convert: NaNs as the processor converts them"
# from, to, the bits of NaNs, the bits that they become
NANS: list[tuple[str, str, list[int], list[int]]] = [
    ("f16", "f32", [0x7C01, 0xFC01, 0x7E05], [0x7FC02000, 0xFFC02000, 0x7FC0A000]),
    ("f16", "f64", [0x7C01, 0xFDFF], [0x7FF8040000000000, 0xFFFFFC0000000000]),
    ("f32", "f16", [0x7F800001, 0xFF802000, 0x7FC0A000, 0x7FFFFFFF], [0x7E00, 0xFE01, 0x7E05, 0x7FFF]),
    ("f64", "f16", [0x7FF0000000000001, 0xFFF8140000000000], [0x7E00, 0xFE05]),
    ("bf16", "f16", [0x7F81, 0xFFC1, 0x7F80], [0x7E08, 0xFE08, 0x7C00]),
    ("f16", "bf16", [0x7C01, 0xFE10], [0x7FC0, 0xFFC0]),
    ("f32", "f64", [0x7F800001, 0xFFC00000], [0x7FF8000020000000, 0xFFF8000000000000]),
    ("f64", "f32", [0x7FF0000020000000, 0xFFF8000000000001], [0x7FC00001, 0xFFC00000]),
    ("f32", "bf16", [0x7F800001, 0xFFFFFFFF], [0x7FC0, 0xFFC0]),
    ("f16", "f8e5m2", [0x7C01, 0xFE00, 0x7C00], [0x7F, 0x7F, 0x7C]),
    ("bf16", "f8e5m2", [0x7FC0, 0xFF81], [0x7F, 0x7F]),
    ("f8e4m3fn", "f8e5m2", [0x7F, 0xFF, 0x38], [0x7F, 0x7F, 0x3C]),
    ("f8e8m0fnu", "f8e5m2", [0xFF], [0x7F]),
    ("f32", "f8e5m2", [0x7F800001, 0xFFC00000], [0x7E, 0xFE]),
    ("f64", "f8e5m2", [0x7FF8000000000000, 0xFFF0000000000001], [0x7E, 0xFE]),
    ("f8e5m2", "f8e5m2", [0x7D, 0xFF], [0x7D, 0xFF]),
    ("f8e5m2", "f16", [0x7D, 0xFF], [0x7E00, 0xFE00]),
    ("f8e5m2fnuz", "f32", [0x80, 0x81], [0x7FC00000, 0xB7000000]),
    ("f8e4m3fnuz", "f8e5m2", [0x80], [0x7F]),
    ("f8e4m3fnuz", "f8e4m3fn", [0x80], [0x7F]),
    ("f8e4m3b11fnuz", "bf16", [0x80], [0x7FC0]),
    ("f8e4m3b11fnuz", "f64", [0x80], [0x7FF8000000000000]),
    ("f32", "f4e2m1fn", [0x7FC00000, 0xFFC00000], [0x8, 0x8]),
    ("f8e4m3", "f4e2m1fn", [0x7F, 0xFF], [0x8, 0x8]),
]
# op, operand, result: numbers of f8e5m2, which are computed with in f16
COMPUTED: list[tuple[Any, list[int], list[int]]] = [
    (xb.ops.negate, [0x7D, 0xFE, 0x3C], [0x7F, 0x7F, 0xBC]),
    (xb.ops.sqrt, [0xBC, 0xFF, 0x44], [0x7F, 0x7F, 0x40]),
    (xb.ops.abs, [0xFD, 0xBC], [0x7F, 0x3C]),
    (lambda x: xb.reduce(x, 0, xb.add, (0,)), [0xFD, 0xBC], 0x7F),
    (lambda x: xb.dot(x, x), [0xFD, 0xBC], 0x7F),
    (lambda x: xb.reduce_precision(x, exponent_bits=5, mantissa_bits=2), [0xFD, 0xBC], [0x7F, 0xBC]),
]


def _nans() -> Iterator[Case]:
    for source, target, given, wanted in NANS:
        unsigned, to = f"u{primitive_type(target).bits}", primitive_type(target)
        call = partial(_bits_of_result, lambda x, to=to: xb.convert(x, to), primitive_type(unsigned))
        name = f"convert-nan-{source}-{target}"
        # Which bits of a narrowed f64 real XLA keeps depends on the processor.
        oracle = (source, target) != ("f64", "f16")
        yield Case(name, call, (_bits(source, given),), array(unsigned, wanted), source=QUIET, oracle=oracle)
    for number, (op, given, result) in enumerate(COMPUTED):
        call, operand = partial(_bits_of_result, op, xb.u8), _bits("f8e5m2", given)
        yield Case(f"computed-nan-{number}", call, (operand,), array("u8", result), source=QUIET)


def _bits_of_result(op: Callable[[xb.Value], xb.Value], unsigned: xb.PrimitiveType, x: xb.Value) -> xb.Value:
    return xb.bitcast_convert(op(x), unsigned)


TIES = _bits("f32", [0x3F808000, 0x3F818000, 0x3F808001, 0x7F7FFFFF, 0x7F800001])


def _conversions() -> Iterator[Case]:
    for source, target, operand, result in CONVERSIONS:
        arguments, name = (array(source, operand),), f"convert-{source}-{target}"
        yield Case(name, xb.ops.convert, arguments, array(target, result), _to(target), source=CONVERT)
    for source, target, operand, result in UNRUN:
        name, wanted = f"convert-{source}-{target}", array(target, result)
        yield Case(name, xb.ops.convert, (array(source, operand),), wanted, _to(target), source=CONVERT, oracle=False)
    rounded = _bits("bf16", [0x3F80, 0x3F82, 0x3F81, 0x7F80, 0x7FC0])
    yield Case("convert-ties", xb.ops.convert, (TIES,), rounded, _to("bf16"), source=CONVERT)
    # XLA:CPU dies of it, and one of its front ends looks at the real part alone.
    whole, truth = array("c64", [0.0, 1j, 1.0]), array("pred", [0, 1, 1])
    yield Case("convert-c64-pred", xb.ops.convert, (whole,), truth, _to("pred"), source=CONVERT, oracle=False)


# operand, the new type, result
BITS: list[tuple[Any, str, Any]] = [
    (array("f32", [1.0, -0.0]), "u32", array("u32", [0x3F800000, 0x80000000])),
    (array("f32", [1.0]), "u8", array("u8", [[0, 0, 128, 63]])),
    (array("u16", [[0x1122, 0x3344]]), "u32", array("u32", [0x33441122])),
    (array("f64", 1.0), "u32", array("u32", [0, 0x3FF00000])),
    (array("u8", [[0, 0, 128, 63]]), "f32", array("f32", [1.0])),
    (_bits("f32", [0x7F800001]), "s32", array("s32", [0x7F800001])),
    (array("f8e4m3fn", [1.0, 2.0]), "u8", array("u8", [56, 64])),
    (array("bf16", [1.0]), "f16", _bits("f16", [0x3F80])),
    (array("s4", [[1, 2], [-1, 0], [7, -8]]), "u8", array("u8", [33, 15, 135])),
    (array("u8", [1, 0x21, 0xF7, 0x80]), "s4", array("s4", [[1, 0], [1, 2], [7, -1], [0, -8]])),
    (array("u8", [0b11100100]), "s2", array("s2", [[0, 1, -2, -1]])),
    (array("f4e2m1fn", [1.0, 2.0]), "u4", array("u4", [2, 4])),
    (array("u8", [0x12, 0xF3]), "f4e2m1fn", array("f4e2m1fn", [[1.0, 0.5], [1.5, -6.0]])),
    (array("s8", [-1]), "u8", array("u8", [255])),
    (array("c64", [1 + 2j]), "c64", array("c64", [1 + 2j])),
]
OCTETS = "XLA, ShapeInference::InferBitcastConvertShape: primitive_util::BitWidth(PRED) is 8"
TRUTHS = array("pred", [1, 0, 1, 1])
# A pred is a byte: 0 or 1, and every other byte becomes 1, as `not` and `select` of XLA:CPU read it.
PREDS: list[tuple[Any, str, Any]] = [
    (TRUTHS, "u8", array("u8", [1, 0, 1, 1])),
    (array("pred", True), "s8", array("s8", 1)),
    (TRUTHS, "u32", array("u32", 0x01010001)),
    (np.array([TRUTHS, ~TRUTHS]), "s32", array("s32", [0x01010001, 0x00000100])),
    (TRUTHS[:2], "bf16", _bits("bf16", [1])[0]),
    (TRUTHS, "u4", array("u4", [[1, 0], [0, 0], [1, 0], [1, 0]])),
    (TRUTHS, "u1", array("u1", [[t] + [0] * 7 for t in TRUTHS])),
    (TRUTHS, "f8e5m2", _bits("f8e5m2", [1, 0, 1, 1])),
    (TRUTHS, "pred", TRUTHS),
    (array("u8", [0, 1, 2, 254, 255]), "pred", array("pred", [0, 1, 1, 1, 1])),
    (array("s8", -128), "pred", array("pred", True)),
    (array("f64", 1.0), "pred", array("pred", [0, 0, 0, 0, 0, 0, 1, 1])),
    (array("f32", [[1.0], [-0.0]]), "pred", array("pred", [[[0, 0, 1, 1]], [[0, 0, 0, 1]]])),
    (array("s4", [[1, 0], [0, 0], [0, -8]]), "pred", array("pred", [1, 0, 1])),
    (array("u16", []), "pred", np.zeros((0, 2), bool)),
    (array("f6e2m3fn", [1.0, -7.5]), "u2", array("u2", [[0, 2, 0], [3, 3, 3]])),
    (array("u2", [[0, 2, 0], [3, 3, 3]]), "f6e2m3fn", array("f6e2m3fn", [1.0, -7.5])),
    (array("f6e2m3fn", [1.0, -7.5]), "f6e3m2fn", array("f6e3m2fn", [0.5, -28.0])),
]


def _bitcasts() -> Iterator[Case]:
    for operand, target, result in BITS:
        name = f"bitcast-{primitive_type(operand.dtype)}-{target}"
        yield Case(name, xb.ops.bitcast_convert, (operand,), result, _to(target), source=BITCAST)
    for operand, target, result in PREDS:
        name = f"bitcast-{xb.primitive_type(operand.dtype)[operand.shape]}-{target}"
        # The way to real XLA leads through StableHLO, in which a pred counts as one bit.
        runs = operand.dtype == np.bool_ and target == "pred"
        yield Case(name, xb.ops.bitcast_convert, (operand,), result, _to(target), source=OCTETS, oracle=runs)


# exponent bits, mantissa bits, type, operand, result
PRECISIONS: list[tuple[int, int, str, Any, Any]] = [
    (5, 10, "f32", [1.0001, 65519.9, 65520.0, 6e-8, -6e-8, NAN], [1.0, 65504.0, INF, 0.0, -0.0, NAN]),
    (4, 3, "f32", [247.0, 248.0, 2.0**-6, 2.0**-7], [240.0, INF, 2.0**-6, 0.0]),
    (8, 7, "f32", [1.00390625, 1.01171875, 3.4e38], [1.0, 1.015625, INF]),
    (1, 0, "f32", [0.5, 1.0, 1.5, -1.0], [0.0, 0.0, INF, -0.0]),
    (5, 1, "f32", [NAN, -NAN, 1.5], [NAN, NAN, 1.5]),
    (8, 23, "f32", [1.7, -INF], [1.7, -INF]),
    (20, 60, "f32", [1.7, 1e-3], [1.7, 1e-3]),
    (5, 2, "f64", [1.1, 1e9], [1.0, INF]),
    (5, 10, "f16", [1.5, 6e-8], [1.5, 6e-8]),
    (5, 10, "bf16", [1e5, 1.5], [INF, 1.5]),
    (3, 1, "f8e5m2", [1.25, 1.75, 57344.0], [1.0, 2.0, INF]),
]


# A format without a mantissa has no NaN; compiled code of XLA:CPU keeps it, against XLA's own constant folding.
WITHOUT_MANTISSA: list[tuple[str, Any, Any]] = [
    ("f32", [NAN, -NAN, 1.5, -INF], [INF, INF, 2.0, -INF]),
    ("bf16", [NAN, -1.5], [INF, -2.0]),
    ("f64", [-NAN], [INF]),
    ("f8e5m2", [NAN, 1.0], [INF, 1.0]),
]


def _bits_of(exponent: int, mantissa: int) -> dict[str, Any]:
    return {"exponent_bits": exponent, "mantissa_bits": mantissa}


def _precisions() -> Iterator[Case]:
    for exponent, mantissa, dtype, operand, result in PRECISIONS:
        name, arguments = f"reduce-{exponent}-{mantissa}-{dtype}", (array(dtype, operand),)
        attributes = _bits_of(exponent, mantissa)
        yield Case(name, xb.ops.reduce_precision, arguments, array(dtype, result), attributes, source=REDUCE)
    for dtype, operand, result in WITHOUT_MANTISSA:
        name, arguments = f"reduce-nan-{dtype}", (array(dtype, operand),)
        call, wanted = xb.ops.reduce_precision, array(dtype, result)
        yield Case(name, call, arguments, wanted, _bits_of(5, 0), source=REDUCE, oracle=False)


HALF = 2**31
# from, to, operand, random, result, whether XLA:CPU runs it
CHANCES: list[tuple[str, str, Any, Any, Any, bool]] = [
    ("f32", "s8", [1.25, 1.25, -1.25, 300.0, NAN, 2.0], [0, HALF, 0, 0, 0, 0], [2, 1, -2, 127, 0, 2], True),
    ("bf16", "s16", [1.5, 1.5], [32767, 32768], [2, 1], True),
    ("f64", "s32", [-2.5, -2.5], [0, 2**63], [-3, -2], True),
    ("f32", "bf16", [1.00390625, 1.00390625, -1.00390625], [HALF - 1, HALF, 0], [1.0078125, 1.0, -1.0078125], False),
    ("f32", "u8", [1.5, -1.5], [0, 0], [2, 0], False),
]


def _chances() -> Iterator[Case]:
    for source, target, operand, random, result, runs in CHANCES:
        arguments = array(source, operand), array(f"u{primitive_type(source).bits}", random)
        name, wanted = f"stochastic-{source}-{target}", array(target, result)
        yield Case(name, xb.ops.stochastic_convert, arguments, wanted, _to(target), source=STOCHASTIC, oracle=runs)


CASES: list[Case] = [*_conversions(), *_nans(), *_bitcasts(), *_precisions(), *_chances()]


Row = tuple[str, str, tuple[str, ...]]


def _refused(op: Callable[..., Any], attributes: dict[str, Any], *rows: Row) -> list[Refusal]:
    """Refusals of one op: its operands, separated by blanks, the kind, the facts."""
    return [
        Refusal(f"{op.__name__}-{operands}-{kind}", op, operands.split(), kind, names, attributes)
        for operands, kind, names in rows
    ]


FLOAT, UNFIT, TYPE = "element_type_unsupported", "dimension_mismatch", "element_type_mismatch"
REFUSALS: list[Refusal] = [
    *_refused(xb.convert, _to("s32"), ("(f32[2],f32[2])", "not_array", ("(f32[2], f32[2])",))),
    *_refused(
        xb.bitcast_convert,
        _to("f32"),
        ("u8[3,3]", UNFIT, ("3", "4", "u8", "f32")),
        ("u8[]", "rank_too_small", ("u8[]", "f32", "4")),
        ("c64[2]", FLOAT, ("c64", "f32")),
        ("pred[8]", UNFIT, ("8", "4", "32", "pred", "f32")),
        ("pred[]", "rank_too_small", ("pred[]", "f32", "4")),
    ),
    *_refused(xb.bitcast_convert, _to("u8"), ("f6e2m3fn[2]", TYPE, ("6", "8", "f6e2m3fn", "u8"))),
    *_refused(xb.bitcast_convert, _to("f6e3m2fn"), ("u32[2]", TYPE, ("6", "32", "f6e3m2fn", "u32"))),
    *_refused(xb.bitcast_convert, _to("pred"), ("c128[2]", FLOAT, ("c128", "pred")), ("u4[4]", UNFIT, ("4", "2", "8"))),
    *_refused(xb.reduce_precision, _bits_of(0, 10), ("f32[2]", "invalid_attribute", ("exponent_bits", "0"))),
    *_refused(xb.reduce_precision, _bits_of(5, -1), ("f16[2]", "invalid_attribute", ("mantissa_bits", "-1"))),
    *_refused(xb.reduce_precision, _bits_of(5, 10), ("s32[2]", FLOAT, ("s32",))),
    *_refused(
        xb.stochastic_convert,
        _to("s8"),
        ("f32[2] s32[2]", FLOAT, ("s32[2]",)),
        ("s32[2] u32[2]", FLOAT, ("s32[2]",)),
        ("f32[2] u16[2]", TYPE, ("32", "16")),
        ("f32[2] u32[3]", UNFIT, ("2", "3")),
        ("f32[2] u32[]", "rank_mismatch", ("f32[2]", "u32[]")),
    ),
    *_refused(xb.stochastic_convert, _to("pred"), ("f32[2] u32[2]", FLOAT, ("pred",))),
]


LAYOUT = "HloOpcode, bitcast; xla/hlo/ir/hlo_instruction.h"
SIX = np.arange(6, dtype=np.float32).reshape(2, 3)


def laid(operand: np.ndarray[Any, Any], target: str, expected: Any, source: str = "") -> Case:
    """A bitcast of the operand as laid out in `source` (by a bitcast of its own bytes from rows), if any."""

    def call(x: xb.Value) -> xb.Value:
        first = xb.bitcast(x, xb.parse_shape(source)) if source else x
        return xb.bitcast(first, xb.parse_shape(target))

    return Case(f"bitcast-{source}-{target}", call, (operand,), expected, source=LAYOUT, oracle=False)


CASES += [
    laid(SIX, "f32[3,2]{0,1}", SIX.T),
    laid(SIX, "f32[3,2]{1,0}", SIX.reshape(3, 2)),
    laid(SIX, "f32[6]{0}", SIX.ravel()),
    laid(SIX, "s32[6]", SIX.ravel().view(np.int32)),
    laid(SIX, "u8[2,12]", SIX.view(np.uint8)),
    laid(SIX, "f64[3]", SIX.ravel().view(np.float64)),
    laid(SIX, "f32[2,3]{1,0}", SIX),
    laid(SIX, "f32[6]{0}", SIX.ravel(), source="f32[3,2]{0,1}"),
    laid(SIX, "f32[3,2]{1,0}", SIX.reshape(3, 2), source="f32[3,2]{0,1}"),
    laid(
        np.arange(24, dtype=np.int16).reshape(2, 3, 4),
        "s16[4,2,3]{0,2,1}",
        np.arange(24, dtype=np.int16).reshape(2, 3, 4).transpose(2, 0, 1),
    ),
    laid(np.array([True, False]), "s8[2]", [1, 0]),
    laid(np.uint16([0x0200, 0x00FF]), "pred[2,2]{0,1}", np.array([[False, True], [True, False]])),
    laid(np.float32(1), "s32[1]", [0x3F800000]),
    laid(np.float32([1]), "s32[]", 0x3F800000),
    laid(
        np.array([1, 2, 3, 4], primitive_type("bf16").dtype),
        "u16[2,2]",
        np.array([1, 2, 3, 4], primitive_type("bf16").dtype).view(np.uint16).reshape(2, 2),
    ),
]
REFUSALS += [
    Refusal(
        "bitcast-bytes", xb.ops.bitcast, ("f32[2,3]",), "element_count_mismatch", ("24", "28"), {"shape": xb.f32[7]}
    ),
    Refusal("bitcast-width", xb.ops.bitcast, ("f32[3]",), "element_count_mismatch", ("12", "24"), {"shape": xb.f64[3]}),
    Refusal(
        "bitcast-dynamic",
        xb.ops.bitcast,
        ("f32[<=6]",),
        "dimension_mismatch",
        ("f32[<=6]", "f32[2,3]"),
        {"shape": xb.f32[2, 3]},
    ),
    Refusal("bitcast-tuple", xb.ops.bitcast, ("(f32[2])",), "not_array", ("(f32[2])",), {"shape": xb.f32[2]}),
]
