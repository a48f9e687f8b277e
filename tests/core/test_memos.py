"""Memos: a fact of an immutable object is found once, is the object's own, and goes with it."""

from __future__ import annotations

import gc
import weakref

import pytest

import xbuild as xb
from xbuild.core.memos import memo, memos, remembered


def program() -> xb.Computation:
    return xb.computation(xb.f32[2])(lambda x: x + x)


def test_a_fact_is_found_once_for_each_object() -> None:
    asked: list[xb.Computation] = []

    @remembered
    def size(computation: xb.Computation) -> int | None:
        asked.append(computation)
        return None  # a fact, too

    first, second = program(), program()
    assert [size(first), size(first), size(second), size(first)] == [None] * 4
    assert asked == [first, second]


def test_facts_of_one_name_in_two_functions_are_two() -> None:
    def fact(number: int):  # type: ignore[no-untyped-def]
        def inner(_: xb.Computation) -> int:
            return number

        inner.__qualname__ = f"fact{number}"
        return remembered(inner)

    computation = program()
    assert [fact(1)(computation), fact(2)(computation)] == [1, 2]


def test_memos_are_kept_by_name_and_key() -> None:
    computation = program()
    found = [
        memo(computation, name, key, lambda n=number: n) for number, (name, key) in enumerate(["ax", "ay", "bx", "ax"])
    ]
    assert found == [0, 1, 2, 0]
    assert memos(computation, "a") == {"x": 0, "y": 1}


def test_what_raises_is_asked_again() -> None:
    computation, left = program(), [ValueError("not yet")]

    @remembered
    def fact(_: xb.Computation) -> int:
        if left:
            raise left.pop()
        return 3

    with pytest.raises(ValueError, match="not yet"):
        fact(computation)
    assert fact(computation) == 3


def test_a_memo_goes_with_its_object() -> None:
    class Fact:
        pass

    computation = program()
    fact = weakref.ref(memo(computation, "facts", 0, Fact))
    assert fact() is not None
    del computation
    gc.collect()
    assert fact() is None
