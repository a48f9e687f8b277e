"""Elements of `dense<...>` in each spelling, and what is refused."""

from __future__ import annotations

import random
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xbuild as xb

LITERALS = [
    ("dense<[[1, 2], [3, -4]]> : tensor<2x2xi8>", np.array([[1, 2], [3, -4]], np.int8)),
    ("dense<[true, false]> : tensor<2xi1>", np.array([True, False])),
    ("dense<7> : tensor<2x3xui8>", np.full((2, 3), 7, np.uint8)),
    ("dense<> : tensor<0x3xf32>", np.zeros((0, 3), np.float32)),
    ("dense<[]> : tensor<0xi32>", np.zeros(0, np.int32)),
    ("dense<200> : tensor<i8>", np.int8(-56)),
    ("dense<0x7FC00001> : tensor<f32>", np.array(0x7FC00001, np.uint32).view(np.float32)),
    ("dense<[1.0, 0xFF800000]> : tensor<2xf32>", np.array([1, -np.inf], np.float32)),
    ("dense<0x3F80> : tensor<bf16>", np.array(1, ml_dtypes.bfloat16)),
    ('dense<"0x0000803F000000C0"> : tensor<2xf32>', np.array([1, -2], np.float32)),
    ('dense<"0x05"> : tensor<3xi8>', np.full(3, 5, np.int8)),
    ('dense<"0x0102F3"> : tensor<3xi4>', np.array([1, 2, 3], ml_dtypes.int4)),
    ('dense<"0x0FF302"> : tensor<3xui4>', np.array([15, 3, 2], ml_dtypes.uint4)),
    ('dense<"0x00010203"> : tensor<4xi2>', np.array([0, 1, -2, -1], ml_dtypes.int2)),
    ('dense<"0x0123F4"> : tensor<3xf4E2M1FN>', np.array([0.5, 1.5, 2], ml_dtypes.float4_e2m1fn)),
    ('dense<"0x010002"> : tensor<3xi1>', np.array([True, False, True])),
    ('dense<"0x01"> : tensor<9xi1>', np.full(9, True)),
    ('dense<"0xFF"> : tensor<3xi1>', np.full(3, True)),
    ('dense<"0x0501"> : tensor<9xi1>', np.array([1, 0, 1, 0, 0, 0, 0, 0, 1], np.bool_)),
    ("dense<(1.0,-2.0)> : tensor<complex<f32>>", np.complex64(1 - 2j)),
    ("dense<[(1.0, 0.0), (0.0, 1.5)]> : tensor<2xcomplex<f64>>", np.array([1, 1.5j])),
    ("dense<[\n  1, // one\n  2\n]> : tensor<2xi64>", np.array([1, 2])),
    ("dense<-1> : tensor<i4>", np.array(-1, ml_dtypes.int4)),
    ("dense<0.3> : tensor<f8E4M3FN>", np.array(0.3).astype(ml_dtypes.float8_e4m3fn)),
]
REFUSED = [
    ("dense<[1, 2, 3]> : tensor<2xi8>", "the size of s8[2] is 2, but the literal has size 3"),
    ("dense<[[1], [2]]> : tensor<2xi8>", "has rank 1, but the lists have rank 2"),
    ("dense<[[1, 2, 3], [4]]> : tensor<2x2xi8>", "the nesting of the lists does not match s8[2,2]"),
    ("dense<1000> : tensor<i8>", "1000 is out of range for s8"),
    ("dense<-1> : tensor<ui8>", "-1 is out of range for u8"),
    ("dense<1.5> : tensor<i8>", "1.5 is not a value of s8"),
    ("dense<1> : tensor<f32>", "write a float with a decimal point, such as 1.0"),
    ("dense<0x1FFFFFFFF> : tensor<f32>", "has more bits than f32"),
    ('dense<"0x0000"> : tensor<2xf32>', "2 bytes do not hold a whole number of f32 elements"),
    ('dense<"0x05"> : tensor<3xi1>', "a splat in newer MLIR, one bit per element in older"),
    ('dense<"0x0101"> : tensor<3xi1>', "pred[3] takes 3 bytes, or 1 with a bit per element, but the literal has 2"),
    ('dense<"text"> : tensor<2xf32>', 'expected bytes such as "0x3F80"'),
    ("dense<yes> : tensor<i1>", "expected true or false as an element of i1, got yes"),
    ("dense<1> : tensor<99999x99999xi8>", "a splat cannot fill 9,999,800,001 elements; the limit"),
    ("dense<1> : tensor<?xi8>", "expected the type of a static tensor"),
    ("dense<[1, 2> : tensor<2xi8>", "the nesting of the lists does not match"),
]


def _literal(text: str) -> np.ndarray:  # type: ignore[type-arg]
    read = xb.parse_stablehlo(
        f"func.func @main() -> {_type(text)} {{\n  %0 = stablehlo.constant {text}\n  return %0 : {_type(text)}\n}}"
    )
    return np.asarray(xb.evaluate(read.entry))


def _type(text: str) -> str:
    return text.rpartition("> : ")[2]


@pytest.mark.parametrize(("text", "expected"), LITERALS, ids=lambda each: str(each)[:40])
def test_elements(text: str, expected: np.ndarray) -> None:  # type: ignore[type-arg]
    found = _literal(text)
    assert found.dtype == np.asarray(expected).dtype
    assert found.shape == np.shape(expected)
    assert found.tobytes() == np.asarray(expected).tobytes()


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=lambda each: each[:40])
def test_elements_that_do_not_fit(text: str, message: str) -> None:
    with pytest.raises(xb.HloParseError, match=r"line|mlir") as caught:
        _literal(text)
    assert message in str(caught.value)
    assert caught.value.faults[0].line >= 2


@given(st.lists(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=3, max_size=3), min_size=1, max_size=4))
def test_lists_of_integers_are_what_they_say(rows: list[list[int]]) -> None:
    found = _literal(f"dense<{rows}> : tensor<{len(rows)}x3xi32>")
    assert found.tolist() == rows


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=2, max_size=9))
def test_bytes_and_decimal_digits_are_the_same_floats(values: list[float]) -> None:
    array = np.array(values, np.float32)
    type_ = f"tensor<{len(values)}xf32>"
    decimal = _literal(f"dense<[{', '.join(f'{value:.9e}' for value in values)}]> : {type_}")
    blob = _literal(f'dense<"0x{array.tobytes().hex().upper()}"> : {type_}')
    assert decimal.tobytes() == blob.tobytes() == array.tobytes()


def _resource(type_: str, raw: bytes, name: str = "r") -> str:
    """A program that gives a resource, which is written as MLIR writes it: after four bytes of alignment."""
    return (
        f"func.func @main() -> {type_} {{\n  %0 = stablehlo.constant dense_resource<{name}> : {type_}\n"
        f"  return %0 : {type_}\n}}\n{{-#\n  dialect_resources: {{\n    builtin: {{\n"
        f'      "r": "0x04000000{raw.hex().upper()}",\n      other: "0x0400000000"\n    }}\n  }}\n#-}}\n'
    )


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        ("tensor<2x2xf32>", np.float32([[0, 1], [2, np.inf]])),
        ("tensor<3xi1>", np.array([True, False, True])),
        ("tensor<i64>", np.int64(-7)),
        ("tensor<0xf32>", np.float32([])),
        ("tensor<2xcomplex<f32>>", np.complex64([1 + 2j, 3])),
        ("tensor<2xbf16>", np.array([1, 2]).astype(xb.bf16.dtype)),
        ("tensor<3xi4>", np.array([1, -2, 7]).astype(ml_dtypes.int4)),
        ("tensor<3xui4>", np.array([1, 15, 7]).astype(ml_dtypes.uint4)),
        ("tensor<2xi2>", np.array([1, -2]).astype(ml_dtypes.int2)),
        ("tensor<3xf4E2M1FN>", np.array([0.5, -6, 1.5]).astype(ml_dtypes.float4_e2m1fn)),
        ("tensor<2xf8E4M3FN>", np.array([0.5, -448]).astype(ml_dtypes.float8_e4m3fn)),
    ],
)
def test_resources(type_: str, expected: np.ndarray) -> None:  # type: ignore[type-arg]
    for name in ("r", '"r"'):
        found = np.asarray(xb.evaluate(xb.parse_stablehlo(_resource(type_, expected.tobytes(), name)).entry))
        assert (found.dtype, found.shape, found.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())


@pytest.mark.parametrize(
    ("type_", "raw", "name", "message"),
    [
        ("tensor<2xf32>", bytes(7), "r", "f32[2] has 8 bytes, but the resource has 7"),
        ("tensor<2xi1>", b"\x01\x02", "r", "the byte 0 or 1"),
        ("tensor<3xi4>", bytes(2), "r", "s4[3] has 3 bytes (one per element), but the resource has 2"),
        ("tensor<2xf32>", bytes(8), "missing", "undefined resource 'missing'"),
        ("tensor<?xf32>", bytes(8), "r", "expected the type of a static tensor"),
    ],
)
def test_resources_that_do_not_fit(type_: str, raw: bytes, name: str, message: str) -> None:
    with pytest.raises(xb.HloParseError) as caught:
        xb.parse_stablehlo(_resource(type_, raw, name))
    assert message in str(caught.value)
    assert caught.value.faults[0].line == 2


_OF_JAXLIB = """
import sys
from jaxlib.mlir import ir
from jax._src.interpreters import mlir
with mlir.make_ir_context(), ir.Location.unknown():
    for line in sys.stdin:
        print(ir.Attribute.parse(line.strip()))
"""


def test_bytes_are_what_jaxlib_reads() -> None:
    """Bytes of all narrow types; jaxlib writes each literal as a list, or as one element for all."""
    pytest.importorskip("jaxlib")
    drawn = random.Random(0)
    types = {"i1": 1, "i2": 2, "ui2": 2, "i4": 4, "ui4": 4, "i8": 8, "f4E2M1FN": 4, "f8E4M3FN": 7, "f8E5M2": 5}
    texts = []
    for type_, bits in types.items():
        for count in (1, 3, 8, 9):
            raw = bytes(drawn.randrange(1 << bits) for _ in range(count))
            texts += [f'dense<"0x{raw.hex()}"> : tensor<{count}x{type_}>'] * (type_ != "i1" or count > 1)
    command = [sys.executable, "-c", _OF_JAXLIB]
    done = subprocess.run(command, input="\n".join(texts), capture_output=True, text=True, check=True)
    lists = done.stdout.splitlines()
    assert len(lists) == len(texts) > 30
    assert not any("0x" in each for each in lists)
    for text, told in zip(texts, lists, strict=True):
        assert _literal(text).tobytes() == _literal(told).tobytes(), (text, told)
