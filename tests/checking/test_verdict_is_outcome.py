"""The verdict before the run is what the run shows, on 2,000 random programs; `python -m tests.campaign` runs more."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.campaign import compare
from tests.support.random_programs import random_program

CHUNK = 100


@pytest.mark.parametrize("first", range(0, 2000, CHUNK))
def test_the_verdict_is_the_outcome(first: int) -> None:
    _, wrong = compare(range(first, first + CHUNK))
    text = "\n\n".join(f"seed {seed}: {found}\n{random_program(seed).module}" for seed, found in wrong.items())
    assert not wrong, text


@pytest.mark.slow
def test_programs_of_every_kind_are_among_them() -> None:
    counts, _ = compare(range(400))
    forms = [f"{style} {order}" for style in ("SPMD", "MPMD") for order in ("given", "free")]
    kinds: Counter[str] = Counter(counts)
    assert [form for form in forms if not kinds[f"{form}: ok"] or not kinds[f"{form}: error"]] == []
    assert kinds["MPMD given: deadlock"] > 10
    assert kinds["SPMD given: deadlock"] > 0


def test_a_seed_gives_one_program() -> None:
    assert str(random_program(7).module) == str(random_program(7).module)
