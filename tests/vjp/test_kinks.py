"""Derivatives at ties and kinks beside JAX's; all of them are judged by `python -m tests.vjp.kinks`."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("jax")

from tests.support.measured import is_newer_jaxlib, require_measured_jaxlib

from .kinks import CONVENTIONS, DIFFERENT, KINKS, judged, table

DOCUMENT = Path(__file__).parents[2] / "docs" / "derivatives.md"
EQUAL_IN_NEWER = {"arccosh of complex, left", "hypot at the origin"}
"""Functions whose derivative in JAX after 0.10 is another than in 0.10, and ours."""
EACH = 11  # one function of so many is judged here
SELECTED = sorted(
    {*[*KINKS][::EACH], "softplus", "logaddexp of ties", "log_sigmoid", "cumlogsumexp", "value at argmax", "abs"}
)


@pytest.mark.parametrize("name", SELECTED)
def test_derivatives_at_kinks_are_those_of_jax_or_others_for_a_stated_reason(name: str) -> None:
    stated = DIFFERENT.keys() - (EQUAL_IN_NEWER if is_newer_jaxlib() else set())
    assert bool(judged(KINKS[name])) == (name in stated)


def test_there_are_functions_enough_and_each_reason_is_one_of_these() -> None:
    assert len(KINKS) >= 200
    assert {*DIFFERENT, *CONVENTIONS} <= {*KINKS}


@pytest.mark.slow
def test_the_table_of_the_document_has_what_is_computed() -> None:
    require_measured_jaxlib()
    assert table() in DOCUMENT.read_text(encoding="utf-8")
