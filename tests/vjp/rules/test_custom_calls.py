"""Rules of custom calls that are known: placement, and what LAPACK's rules refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate


def called(target: str) -> Any:
    return xb.computation(xb.f64[3])(lambda x: xb.custom_call(xb.sin(x), target, xb.f64[3]))


@pytest.mark.parametrize("target", ["Sharding", "MoveToHost"])
def test_a_cotangent_goes_through_a_placement(target: str) -> None:
    x = np.array([0.1, 0.2, 0.3])
    (found,) = evaluate(xb.vjp(called(target)), x, [1.0, 2.0, 3.0])
    np.testing.assert_allclose(found, np.cos(x) * [1.0, 2.0, 3.0])


def test_an_unknown_target_is_refused_with_a_way_out() -> None:
    with pytest.raises(xb.XbuildError, match="custom_vjp") as caught:
        xb.vjp(called("somebody's"))
    assert caught.value.kind == "not_differentiable"


def test_factors_of_a_matrix_that_is_not_square_are_refused() -> None:
    shape = xb.TupleShape([xb.f64[3, 2], xb.s32[2], xb.s32[()]])
    program = xb.computation(xb.f64[3, 2])(lambda x: xb.custom_call(x, "lapack_dgetrf_ffi", shape)[0])
    with pytest.raises(xb.XbuildError, match="square matrices"):
        xb.vjp(program)
