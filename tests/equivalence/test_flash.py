"""Attention in blocks, as JAX lowers it, is equal to plain attention if it is right, and different if it is not."""

from __future__ import annotations

import pytest

from tests.equivalence.flash import Case, cases

QUICK = (
    "halves, causal, float32", "jax.nn, full, float32", "jax.nn, causal, bfloat16",
    "logarithms, full, float32, no rescaling",
    "scan, causal, float32, mask off by one", "scan, full, float32, no rescaling",
    "unrolled, causal, float32, block left out", "loop, full, float32, denominator not rescaled",
    "halves, full, float32, no rescaling", "scan, full, bfloat16, maximum too large",
)  # fmt: skip
LONGER = (
    "logarithms, causal, float32", "scan, causal, float32", "unrolled, full, bfloat16", "loop, causal, float32",
    "ring, causal, float32",
)  # fmt: skip
NAMES = [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in LONGER)]


@pytest.fixture(scope="module")
def programs() -> dict[str, Case]:
    """Pairs by name."""
    pytest.importorskip("jax")
    return {each.name: each for each in cases(*QUICK, *LONGER)}


@pytest.mark.parametrize("name", NAMES)
def test_attention_in_blocks(programs: dict[str, Case], name: str) -> None:
    case = programs[name]
    found = case.verdict()
    assert found.kind == case.kind, str(found)
    if case.kind == "equal" and not name.startswith("jax.nn"):
        assert "exponents" in dict(found.assumed)
