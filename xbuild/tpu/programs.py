"""Calls that build a program and run it at once, and that give the program alone by their `program`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, ParamSpec

from .program import Program

P = ParamSpec("P")


class Call(Generic[P]):
    """A function that runs the program that it builds; `program` builds it and does not run it."""

    __name__: str
    __qualname__: str

    def __init__(self, build: Callable[P, Program]) -> None:
        functools.update_wrapper(self, build)
        self.__name__ = self.__qualname__ = build.__name__.strip("_")
        self._build = build

    def __call__(self, *arguments: P.args, **keywords: P.kwargs) -> Any:
        return self._build(*arguments, **keywords).run()

    def program(self, *arguments: P.args, **keywords: P.kwargs) -> Program:
        """The program that the call would run."""
        return self._build(*arguments, **keywords)

    def __repr__(self) -> str:
        return f"<function xb.tpu.{self.__name__}>"


def with_program(build: Callable[P, Program]) -> Call[P]:
    """The call of a function that builds a program."""
    return Call(build)
