"""Memos: facts about an immutable object, computed once and stored with it, so that they live as long as it does."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, TypeVar

Fact = TypeVar("Fact")
Owner = TypeVar("Owner")


def memos(owner: object, name: str) -> dict[Any, Any]:
    """The memos of this name on an object: a dict from their keys.

    The object has a `__dict__`, and may be frozen: its attributes stay as they are, and its memos are none of them.
    """
    kept: dict[Any, Any] = vars(owner).setdefault(f"_memos_{name}", {})
    return kept


def memo(owner: object, name: str, key: Hashable, find: Callable[[], Fact]) -> Fact:
    """The memo under this name and key; `find` computes the memo the first time."""
    kept = memos(owner, name)
    if key not in kept:
        kept[key] = find()
    return kept[key]  # type: ignore[no-any-return]


def remembered(fact: Callable[[Owner], Fact]) -> Callable[[Owner], Fact]:
    """A decorator for a function of an immutable object, such as a computation; stores the result with it."""
    name = f"_memo_{fact.__module__}.{fact.__qualname__}"

    @wraps(fact)
    def ask(owner: Owner) -> Fact:
        kept = vars(owner)
        if name not in kept:
            kept[name] = fact(owner)
        return kept[name]  # type: ignore[no-any-return]

    return ask
