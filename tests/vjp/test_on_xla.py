"""Programs of cotangents run on real XLA: a few here, all in `python -m tests.vjp.campaign`."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib")

from .on_xla import verdicts
from .rules.test_twice import CASES

NAMES = {
    "convolution all of it, reversed",
    "convolution groups of the batch, odd roles",
    "sum all of it",
    "greatest window with holes",
    "select least, with padding",
    "sum of exponentials cropped",
    "gather crossed batches",
    "scatter overwrite rows again",
    "sort values by keys",
    "factor c128 False (2, 3, 3)",
    "IRFFT of (4, 6) over (3, 4, 4)",
    "training",
}


def test_the_numbers_are_those_of_xla() -> None:
    chosen = [case for case in CASES if case.name in NAMES]
    assert {case.name for case in chosen} == NAMES
    assert {case.name: verdict for case, verdict in verdicts(chosen) if verdict != "equal"} == {}
