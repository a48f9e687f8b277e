"""The first mistakes: each gives what was meant, or a message that says what to type instead."""

from __future__ import annotations

import pytest

from tests.first_mistakes import DOCUMENT, Mistake, document, mistakes, tried

MISTAKES = mistakes()


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.code)
def test_a_first_mistake_is_right_or_mended_by_its_message(mistake: Mistake) -> None:
    trial = tried(mistake)
    assert trial.is_right is (not mistake.mended), trial
    assert trial.is_right or trial.is_mendable, trial


def test_there_are_sixty_and_those_of_a_later_trial_of_all_habits() -> None:
    assert len({mistake.code for mistake in MISTAKES}) == 66
    assert {mistake.habit for mistake in MISTAKES} == {"NumPy", "JAX", "XlaBuilder"}


def test_the_document_is_up_to_date() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document(), "python -m tests.first_mistakes writes it anew"
