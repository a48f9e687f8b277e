"""The comparison itself: what it must tell apart, and what it must let pass."""

import ml_dtypes
import numpy as np
import pytest

from shape_inference import PRIMITIVES
from tests.support.compare import difference, distance, is_float

FLOATS = [t for t in PRIMITIVES.values() if t.is_float]


@pytest.mark.parametrize("kind", FLOATS, ids=str)
def test_each_float_is_one_ulp_from_the_next(kind):
    bits = np.arange(2 ** min(kind.bits, 16), dtype=np.uint16 if kind.bits >= 16 else np.uint8)
    if kind.bits > 16:
        bits = bits.astype(f"u{kind.bits // 8}") << (kind.bits - 16)
    values = bits.view(kind.dtype)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        values = values[np.isfinite(values).astype(bool)]
    order = np.argsort(values.astype(np.float64), kind="stable")
    values = values[order]
    different = np.diff(values.astype(np.float64)) != 0
    step = 2.0 ** max(kind.bits - 16, 0)
    assert (distance(values[1:], values[:-1])[different] <= 2 * step).all()
    assert (distance(values[1:], values[:-1])[different] >= 1).all()
    assert (distance(values, values) == 0).all()


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_minus_zero_is_not_zero_bit_for_bit(kind):
    assert difference(np.array(-0.0, kind), np.array(0.0, kind)) is not None
    assert difference(np.array(-0.0, kind), np.array(0.0, kind), 1) is None


def test_a_nan_equals_a_nan_and_nothing_else():
    nan = np.array([np.nan, 1.0], np.float32)
    assert difference(nan, nan) is None
    assert difference(nan, np.array([2.0, 1.0], np.float32), 1e9) is not None


def test_dtype_shape_length_and_integers():
    assert difference(np.int32(1), np.int64(1)) is not None
    assert difference(np.zeros(2), np.zeros((2, 1))) is not None
    assert difference((np.int32(1),), (np.int32(1), np.int32(2))) is not None
    assert "element 1" in difference((np.int32(1), np.int32(3)), (np.int32(1), np.int32(2)), 5)


def test_complex_numbers_differ_by_their_parts():
    assert difference(np.complex64(1 - 0j), np.complex64(1 + 0j)) is None
    assert difference(np.complex64(complex(1, -0.0)), np.complex64(complex(1, 0.0))) is not None
    assert distance(np.array(np.complex64(1)), np.array(np.complex64(complex(1, 1e-45)))) == 1


def test_floats_are_those_of_xla():
    assert is_float(np.dtype(ml_dtypes.bfloat16))
    assert not is_float(np.dtype(ml_dtypes.int4))
