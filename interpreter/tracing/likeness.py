"""A function with the parameters of another, stated there alone."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def like(other: Callable[P, Any]) -> Callable[[Callable[..., T]], Callable[P, T]]:
    """Takes what the other takes, by type and in `help`, and gives what itself gives."""

    def marked(function: Callable[..., T]) -> Callable[P, T]:
        given = inspect.signature(function).return_annotation
        signature = inspect.signature(other).replace(return_annotation=given)
        function.__signature__ = signature  # type: ignore[attr-defined]
        return function

    return marked
