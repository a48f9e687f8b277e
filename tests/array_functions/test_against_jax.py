"""The functions of whole arrays, and their gradients, against JAX in a child process, for all its float types."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xbuild as xb

from .functions import FLOATS, FUNCTIONS, PLACES, argument, weights

pytest.importorskip("jaxlib")
ROOT = Path(__file__).parents[2]
ALL = FUNCTIONS + PLACES
ULPS = {16: 24, 32: 64, 64: 64}  # JAX rounds each step of a narrow type, xbuild the last alone


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("jax") / "values.npz"
    command = [sys.executable, "-m", "tests.array_functions.jax_values", str(path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return np.load(path)


def form(number: int) -> Any:
    name, keywords, other = ALL[number]
    function = getattr(xb, other or name.partition(".")[2])
    return lambda x: function(x, **keywords)


def assert_near(given: Any, wanted: Any, dtype: Any) -> None:
    near = ULPS[dtype.itemsize * 8] * float(ml_dtypes.finfo(dtype).eps)
    assert np.shape(given) == wanted.shape
    np.testing.assert_allclose(np.asarray(given, np.float64), wanted, rtol=near, atol=near)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("number", range(len(ALL)), ids=lambda n: f"{ALL[n][0]}{ALL[n][1] or ''}")
def test_values(values: Any, number: int, dtype: str) -> None:
    x = argument(dtype)
    result = xb.computation(xb.primitive_type(x.dtype)[x.shape])(form(number))(x)
    assert_near(result, values[f"{dtype} {number}"], x.dtype)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("number", range(len(FUNCTIONS)), ids=lambda n: f"{ALL[n][0]}{ALL[n][1] or ''}")
def test_gradients(values: Any, number: int, dtype: str) -> None:
    x = argument(dtype)

    def loss(x: xb.Value) -> xb.Value:
        result = form(number)(x)
        return (result * weights(result.shape.dims, x.dtype.dtype)).sum()

    gradient = xb.grad(loss)(xb.primitive_type(x.dtype)[x.shape])(x)
    assert gradient.dtype == x.dtype
    assert_near(gradient, values[f"{dtype} {number} gradient"], x.dtype)
