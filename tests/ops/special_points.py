"""Points for the special functions, and their values by mpmath."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from mpmath import mp, mpf

import xbuild as xb
from interpreter import evaluate
from shape_inference import primitive_type

Array = np.ndarray[Any, Any]
FLOATS = (np.float32, np.float64)
NAN, INF = math.nan, math.inf
RANDOM = np.random.default_rng(7)


def uniform(low: float, high: float, count: int = 150) -> Array:
    return RANDOM.uniform(low, high, count)


def powers(low: float, high: float, count: int = 150) -> Array:
    """Numbers of every size between two powers of ten."""
    return 10 ** RANDOM.uniform(low, high, count)


def apply(function: Callable[..., Any], *arguments: Array, **options: Any) -> Any:
    shapes = [primitive_type(argument.dtype)[argument.shape] for argument in arguments]
    return evaluate(xb.computation(*shapes)(function), *arguments, **options)


def exactly(reference: Callable[..., Any], *arguments: Array, digits: int = 50) -> list[Any]:
    with mp.workdps(digits):
        return [mp.re(reference(*map(mpf, map(float, row)))) for row in zip(*arguments, strict=True)]


def rounded(numbers: list[Any], dtype: Any) -> Array:
    with np.errstate(over="ignore"):
        return np.array([float(number) for number in numbers]).astype(dtype)
