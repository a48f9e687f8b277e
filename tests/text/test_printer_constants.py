"""Constants that the printer writes: the shortest exact text, which we and real XLA read as the same bits."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import xbuild as xb
from shape_inference import PRIMITIVES, PrimitiveType
from tests.text.real_xla import refusals
from xbuild.text.literals import literal_text


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.float32(0.1), "0.1"),
        (np.float32(1), "1"),
        (np.float32(3.4028235e38), "3.4028235e+38"),
        (np.float32(1e-45), "1e-45"),
        (np.float32("-0"), "-0.0"),
        (np.array([-0.0, 0.0, -10.0, 1e16]), "{-0.0, 0, -10, 1e+16}"),
        (np.array([np.nan, np.inf, -np.inf], np.float32), "{nan, inf, -inf}"),
        (-np.float32(np.nan), "-nan"),
        (np.float16(0.1), "0.1"),
        (ml_dtypes.bfloat16(3.14), "3.14"),
        (np.array([0.1, -0.0], ml_dtypes.float8_e4m3fn), "{0.1, -0.0}"),
        (np.complex64(1 - 2j), "(1, -2)"),
        (np.array([complex(-0.0, np.nan)]), "{(-0.0, nan)}"),
        (np.bool_(True), "true"),
        (np.array([True, False]), "{1, 0}"),
        (np.array([-8, 7], ml_dtypes.int4), "{-8, 7}"),
        (np.array([15, 0], ml_dtypes.uint4), "{15, 0}"),
        (np.uint64(2**64 - 1), "18446744073709551615"),
        (np.int64(-(2**63)), "-9223372036854775808"),
        (np.arange(4, dtype=np.int8).reshape(2, 2), "{ { 0, 1 }, { 2, 3 } }"),
        (np.zeros((1, 1, 1), np.float32), "{ { { 0 } } }"),
        (np.zeros(0, np.float32), "{}"),
        (np.zeros((2, 0), np.int32), "{ {}, {} }"),
        (np.zeros((0, 2), np.float32), "{}"),
        (np.broadcast_to(np.float32(2), (2,)), "{2, 2}"),
        (np.arange(6, dtype=ml_dtypes.bfloat16)[::2], "{0, 2, 4}"),
    ],
)
def test_constants(array: np.ndarray, text: str) -> None:
    assert literal_text(np.asarray(array)) == text


@pytest.mark.parametrize("dtype", [t for t in PRIMITIVES.values() if t.is_float and t.bits <= 16], ids=str)
def test_every_small_float_comes_back(dtype: PrimitiveType) -> None:
    values = every(dtype)
    assert read_back(values).tobytes() == values.tobytes()


def read_back(values: np.ndarray) -> np.ndarray:
    """A constant, printed and read."""
    builder = xb.Builder("constant")
    text = xb.Module("constant", builder.build(xb.ops.constant(builder, literal=values))).to_hlo()
    found: np.ndarray = xb.parse_hlo(text).entry.root.attributes.literal
    return found


def every(dtype: PrimitiveType) -> np.ndarray:
    bits = np.arange(1 << max(dtype.bits, 4), dtype=np.uint16 if dtype.bits == 16 else np.uint8)
    return bits.view(dtype.dtype)


@given(arrays.arrays(st.sampled_from([np.float32, np.float64]), st.integers(1, 5)))
def test_wide_floats_come_back(values: np.ndarray) -> None:
    assert read_back(values).tobytes() == values.tobytes()


@given(st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=6), st.sampled_from([np.float32, np.float64]))
def test_every_pattern_of_bits_comes_back(patterns: list[int], dtype: type) -> None:
    bits = np.array(patterns[: len(patterns) // 2 * 2], np.uint64) | np.uint64(0x7FF0000000000000 * (patterns[0] % 2))
    values = bits.view(dtype)
    for each in (values, values.view(np.complex64 if dtype is np.float32 else np.complex128)):
        assert read_back(each).tobytes() == each.tobytes()


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", PRIMITIVES.values(), ids=str)
def test_real_xla_reads_the_same_constant(dtype: PrimitiveType) -> None:
    """The bytes of the literal that XLA made of our text."""
    pytest.importorskip("jaxlib")
    from tests.oracle import run_one
    from tests.oracle.chance import UNRUN

    values = sample(dtype)
    builder = xb.Builder("constant")
    text = xb.Module("constant", builder.build(xb.ops.constant(builder, literal=values))).to_hlo()
    if dtype.name in UNRUN or (dtype.bits == 1 and dtype.is_integer):  # XLA:CPU runs none of these
        assert refusals([text]) == [""]
        return
    (back,) = run_one(text)
    with np.errstate(invalid="ignore"):
        number = ~np.isnan(values.astype(np.complex128)) if dtype.kind in ("float", "complex") else values == values
        assert back[number].tobytes() == values[number].tobytes()
        if not number.all():
            assert np.isnan(back[~number].astype(np.complex128)).all()


def sample(dtype: PrimitiveType) -> np.ndarray:
    if dtype.is_float and dtype.bits <= 16:
        return every(dtype)
    if dtype.is_float:
        bits = np.random.default_rng(0).integers(0, 1 << 32, 400 * dtype.bits // 32, dtype=np.uint32)
        return bits.view(dtype.dtype)
    if dtype.kind == "complex":
        return np.array([1 - 2j, complex(-0.0, 0.1), complex(0.1, -0.0), 1e30], dtype.dtype)
    low = 0 if dtype.kind != "signed" else -(2 ** (dtype.bits - 1))
    high = 1 if dtype.kind == "pred" else low + 2**dtype.bits - 1
    return np.array([low, 0, 1 if high else 0, high], object).astype(np.int64 if low else np.uint64).astype(dtype.dtype)
