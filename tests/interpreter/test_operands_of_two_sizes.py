"""Elementwise ops of two operands whose dynamic dimensions have two sizes: the result has the smaller one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate
from tests.support.compare import assert_same
from xbuild.core.op import OPS

BINARY = sorted(
    opcode for opcode, schema in OPS.items()
    if schema.operands == ("lhs", "rhs") and not schema.names and schema.properties.elements == "same_place"
)  # fmt: skip


def taken(opcode: str) -> xb.PrimitiveType:
    return xb.f32 if opcode in ("atan2", "complex") else xb.s32


@pytest.mark.parametrize("sizes", [(2, 3), (3, 2), (3, 3)])
@pytest.mark.parametrize("opcode", BINARY)
def test_elements_of_both_operands_are_taken(opcode: str, sizes: tuple[int, int]) -> None:
    dtype, op = taken(opcode), getattr(xb.ops, OPS[opcode].declaration.__name__)

    @xb.computation(dtype[4], dtype[4], xb.s32[()], xb.s32[()])
    def cut(x: xb.Value, y: xb.Value, m: xb.Value, n: xb.Value) -> Any:
        return op(xb.ops.set_dimension_size(x, m, dimension=0), xb.ops.set_dimension_size(y, n, dimension=0))

    x, y = (np.array(row, dtype.dtype) for row in ([9, 2, 7, 4], [3, 1, 2, 5]))
    whole = xb.computation(dtype[min(sizes)], dtype[min(sizes)])(op)
    expected = evaluate(whole, *(each[: min(sizes)] for each in (x, y)))
    assert_same(evaluate(cut, x, y, *map(np.int32, sizes)), expected)
