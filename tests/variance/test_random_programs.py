"""Random typed programs: what is typed one value is one value in the run, and types follow op by op."""

from __future__ import annotations

import pytest

import xbuild as xb
from xbuild.checking.dataflow.promises import declared_types
from xbuild.checking.model.program import program_of

from .campaign import outcome
from .random_programs import drawn


@pytest.mark.parametrize("seed", range(40))
def test_what_is_typed_one_value_is_one_value(seed: int) -> None:
    """A strict run compares the values of every instruction; types follow op by op, with casts and without."""
    assert outcome(seed) == "ok"


def test_text_keeps_what_is_stated() -> None:
    for seed in range(40, 50):
        made, _, _ = drawn(seed)
        again = xb.parse_hlo(made.module.to_hlo())
        assert again.to_hlo() == made.module.to_hlo()
        assert declared_types(program_of(again)) == []


def test_programs_are_not_all_refused() -> None:
    found = [drawn(seed) for seed in range(20)]
    steps = sum(len(made.typed.computation.root.operands) - 3 for made, _, _ in found)
    assert steps > 60
    assert sum(refused for _, _, refused in found) > 20
