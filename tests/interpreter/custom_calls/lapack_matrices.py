"""Matrices, and calls of LAPACK's targets on them."""

from __future__ import annotations

from typing import Any

import numpy as np

import xbuild as xb
from interpreter import evaluate
from shape_inference import parse_shape

TYPES = {"s": "f32", "d": "f64", "c": "c64", "z": "c128"}
DTYPES = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}
EPS = {"s": 2e-5, "d": 1e-12, "c": 2e-5, "z": 1e-12}


def matrices(kind: str, *sizes: int, seed: int = 0) -> Any:
    draw = np.random.default_rng(seed)
    found = draw.normal(size=sizes)
    return (found + 1j * draw.normal(size=sizes) if kind in "cz" else found).astype(DTYPES[kind])


def adjoint(matrix: Any) -> Any:
    return np.conj(np.swapaxes(matrix, -1, -2))


def positive(kind: str, *sizes: int) -> Any:
    root = matrices(kind, *sizes)
    return (root @ adjoint(root) + 4 * np.eye(sizes[-1])).astype(root.dtype)


def call(target: str, shapes: list[str], *arguments: Any, config: str = "") -> Any:
    """What the target gives: a tuple, but of one shape the value."""
    builder = xb.Builder("call")
    parameters = [
        xb.parameter(builder, number=n, shape=xb.primitive_type(np.asarray(a).dtype)[np.shape(a)])
        for n, a in enumerate(arguments)
    ]
    declared = list(map(parse_shape, shapes))
    shape: Any = declared if len(declared) > 1 else declared[0]
    return evaluate(builder.build(xb.custom_call(parameters, target, shape, backend_config=config)), *arguments)


def assert_close(got: Any, wanted: Any, kind: str) -> None:
    np.testing.assert_allclose(got, wanted, rtol=0, atol=EPS[kind] * max(1.0, float(np.abs(wanted).max(initial=0))))
