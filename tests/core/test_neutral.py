"""Neutral elements: what an op makes of one and a number is that number, bit for bit, in every element type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from shape_inference import PrimitiveType, XbuildError
from shape_inference.types import PRIMITIVES
from xbuild.properties.patterns import neutral_element

OPS = {
    "add": xb.ops.add, "multiply": xb.ops.multiply, "maximum": xb.ops.maximum, "minimum": xb.ops.minimum,
    "and": xb.ops.and_, "or": xb.ops.or_, "xor": xb.ops.xor,
}  # fmt: skip


def numbers(dtype: PrimitiveType) -> Any:
    """Numbers of a type with its corners, as far as it has them."""
    corners = [0.0, -0.0, 1, 2, 0.5, 1e30, -1, -2, np.inf, -np.inf] if not dtype.is_integer else [0, 1, 5, 100, -1, -7]
    if dtype.kind == "complex":
        corners = [complex(one, other) for one in corners[:8] for other in corners[:8]]
    with np.errstate(all="ignore"):
        found = np.array(corners).astype(dtype.dtype)
    return found[~np.isnan(found.astype(np.complex128))]


@pytest.mark.parametrize("name", PRIMITIVES)
@pytest.mark.parametrize("opcode", OPS)
def test_an_op_does_not_notice_its_neutral_element(opcode: str, name: str) -> None:
    dtype, number = PRIMITIVES[name], neutral_element(opcode, PRIMITIVES[name])
    given = numbers(dtype)
    try:
        joined = xb.computation(dtype[()], dtype[len(given)])(
            lambda one, many: OPS[opcode](xb.ops.broadcast(one, sizes=(len(given),), dimensions=()), many)
        )
    except XbuildError:  # the op does not have the type
        return
    if number is None:
        assert (opcode, name) == ("add", "f8e8m0fnu")
        return
    assert number.dtype == dtype.dtype
    assert number.shape == ()
    if dtype.kind == "complex" and opcode == "multiply":  # (1 + 0i) * -0 has another zero
        np.testing.assert_array_equal(xb.evaluate(joined, number, given), given)
        return
    assert xb.evaluate(joined, number, given).tobytes() == given.tobytes()
