"""Guesses of learners: a choice by a part of its words, and why a guess is not of the kind or count that is wanted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xbuild.learning.answers import is_right, mismatch

CHOICES = ["it ends", "it hangs", "it never waits", "XLA refuses it"]

MEANT = [
    ("b", "it hangs"), ("It hangs.", "it hangs"), ("hangs", "it hangs"), ("xla refuses", "XLA refuses it"),
    ("never waits", "it never waits"),
]  # fmt: skip


@pytest.mark.parametrize(("guess", "choice"), MEANT)
def test_a_part_of_one_choice_is_that_choice(guess: str, choice: str) -> None:
    assert [each for each in CHOICES if is_right(guess, each, CHOICES)] == [choice]
    assert mismatch(guess, CHOICES[0], CHOICES) == ""


@pytest.mark.parametrize("guess", ["it", "waits", "han", "e", "3", "", "hangs it"])
def test_what_is_no_choice_or_several_is_told(guess: str) -> None:
    assert not any(is_right(guess, each, CHOICES) for each in CHOICES)
    assert mismatch(guess, CHOICES[0], CHOICES) == "expected one of the choices a to d"


REASONS = [
    ("10", np.int32([10] * 4), "expected 4 numbers, got 1"),
    ([1, 2], 3.0, "expected 1 number, got 2"),
    ("f32[2,2]", [2, 2], "expected numbers, got a word"),
    ("two by two", 2, "expected a number, got words"),
    ("2 2", "refused", "expected a word, got a number"), ("2 3", "f32[2,2]", ""), ("2", "f32[2,2]", ""),
    ("f32[3]", "f32[2,2]", ""), ("1 2", [3, 4], ""), ("yes", np.bool_(False), ""),
]  # fmt: skip


@pytest.mark.parametrize(("guess", "truth", "words"), REASONS)
def test_why_a_guess_is_of_another_kind_or_count(guess: Any, truth: Any, words: str) -> None:
    assert mismatch(guess, truth) == words
    assert not is_right(guess, truth)


@pytest.mark.parametrize("guess", ["f32[2,7]", "F32[2, 7]", "[2,7]", "(2, 7)", "2 7", "2,7", [2, 7], (2, 7)])
def test_of_a_shape_the_extents_are_enough(guess: Any) -> None:
    assert is_right(guess, "f32[2,7]")
    assert not is_right(guess, "f32[7,2]")
    assert not is_right(guess, "f32[2,7,1]")


@pytest.mark.parametrize("guess", ["s32[2,7]", "[2,7] 1", "", "none", [], "2 times 7"])
def test_what_is_another_shape_or_none_is_not_taken(guess: Any) -> None:
    assert not is_right(guess, "f32[2,7]")


@pytest.mark.parametrize("guess", ["0", "none", "None.", "zero", "nothing", "no"])
def test_nothing_is_zero(guess: str) -> None:
    assert is_right(guess.rstrip("."), 0)
    assert not is_right(guess.rstrip("."), 1)
    assert not is_right(f"1 {guess.rstrip('.')}", [1, 2])
