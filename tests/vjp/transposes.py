"""The law of transposes: for any cotangent t and tangent v is <t, J v> = <Jᵀ t, v>, without conjugation."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from interpreter import evaluate

from .numeric import Case, drawn, is_smooth, leaves_of

TOLERANCE = 1e-11  # of f64, relative to the sizes of the terms


def check_transposes(case: Case, seed: int = 0) -> None:
    """Compare the two derivatives of a program."""
    chance = np.random.default_rng(seed)
    program = xb.computation(*case.shapes)(case.function)
    arguments = [
        np.asarray(case.given[n]).astype(shape.dtype.dtype) if n in case.given else drawn(chance, shape)
        for n, shape in enumerate(case.shapes)
    ]
    tangents = [drawn(chance, shape) for shape in case.shapes if is_smooth(shape)]
    cotangents = [drawn(chance, shape) for shape in leaves_of(program.root.shape) if is_smooth(shape)]
    forward = evaluate(xb.jvp(program), *arguments, *tangents)
    backward = evaluate(xb.vjp(program), *arguments, *cotangents)
    ahead = sum(np.sum(t * jv).real for t, jv in zip(cotangents, forward, strict=True))
    back = sum(np.sum(jt * v).real for jt, v in zip(backward, tangents, strict=True))
    size = 1 + sum(np.sum(np.abs(t * jv)) for t, jv in zip(cotangents, forward, strict=True))
    np.testing.assert_allclose(ahead, back, rtol=0, atol=TOLERANCE * size)
