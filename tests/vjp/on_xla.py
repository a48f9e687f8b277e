"""Programs of cotangents on real XLA, and here: the same numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import xbuild as xb
from interpreter import evaluate
from tests.oracle import Failure, Job, run

from .numeric import Case, drawn, flat, is_smooth, leaves_of

TOLERANCE = 1e-10  # of the largest element, in f64 and c128
NOT_ON_CPU = "ragged-dot"  # the op itself is none of XLA:CPU's


def verdicts(cases: Sequence[Case]) -> Iterator[tuple[Case, str]]:
    """`equal`, or what XLA says, or how far its numbers are."""
    jobs, ours = zip(*map(_prepared, cases), strict=True)
    for case, found, outcome in zip(cases, ours, run(jobs), strict=True):
        if isinstance(outcome, Failure):
            yield case, "not on CPU" if NOT_ON_CPU in outcome.message else f"failure: {outcome.message}"
        else:
            yield case, _compared(found, outcome[0])


def _prepared(case: Case) -> tuple[Job, list[Any]]:
    chance = np.random.default_rng(0)
    program = xb.computation(*case.shapes)(case.function)
    arguments = [
        np.asarray(case.given[n]).astype(shape.dtype.dtype) if n in case.given else drawn(chance, shape)
        for n, shape in enumerate(case.shapes)
    ]
    arguments += [drawn(chance, shape) for shape in leaves_of(program.root.shape) if is_smooth(shape)]
    derivative = xb.vjp(program)
    text = xb.Module("cotangents", derivative).to_hlo()
    return Job(text, (tuple(arguments),)), flat(evaluate(derivative, *arguments))


def _compared(ours: Sequence[Any], theirs: Sequence[Any]) -> str:
    for a, b in zip(ours, theirs, strict=True):
        size = np.abs(b[np.isfinite(b)]).max(initial=0)
        if not np.allclose(a, b, rtol=0, atol=TOLERANCE * size, equal_nan=True):
            return f"different: {a.reshape(-1)[:4]}, XLA {np.reshape(b, -1)[:4]}"
    return "equal"
