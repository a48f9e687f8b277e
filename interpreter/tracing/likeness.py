"""Gives a function the signature of another, so that the parameters are declared once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def like(other: Callable[P, Any]) -> Callable[[Callable[..., T]], Callable[P, T]]:
    """A decorator that gives a function the parameters of another, for type checkers and `help`."""

    def marked(function: Callable[..., T]) -> Callable[P, T]:
        given = inspect.signature(function).return_annotation
        signature = inspect.signature(other).replace(return_annotation=given)
        function.__signature__ = signature  # type: ignore[attr-defined]
        return function

    return marked
