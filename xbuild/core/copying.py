"""Copies of programs and values: an immutable object is its own copy, a builder has none, and none is pickled."""

from __future__ import annotations

import copy
import sys
from types import CodeType
from typing import Any, NoReturn


class Unchanged:
    """Base of immutable objects: `copy` and `deepcopy` give the object itself, as for a tuple of ints.

    `==` is identity, except of values, where it records. HLO text is the stored form, so that pickling is refused.
    """

    __slots__ = ()

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise not_copied(self, "pickled")


class Uncopied:
    """Base of objects that change with use, such as builders: copies are refused, since a write would miss one."""

    __slots__ = ()

    def __copy__(self) -> NoReturn:
        raise not_copied(self, "copied")

    def __deepcopy__(self, memo: Any) -> NoReturn:
        raise not_copied(self, "copied")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise not_copied(self, "pickled")


_STORED = "module.to_hlo() is the text of a program, and xb.parse_hlo reads it"
_BUILDER = "build() ends it and gives a computation; xb.edit changes a program into another"


def not_copied(thing: Any, how: str) -> Exception:
    """The refusal, with the user's line."""
    from .builder import Builder
    from .diagnostics import ValueUseError, dressed_text

    hints = (_BUILDER,) if isinstance(thing, Builder) else (_STORED,)
    named = f" {thing.name!r}" if hasattr(thing, "name") else ""
    message = f"a {type(thing).__name__} is not {how}"
    text = dressed_text(f"{type(thing).__name__}{named}: {message} [not_copied]", (), _asking(), hints)
    error = ValueUseError("not_copied", text, hints)
    error.message, error.explained = message, True
    return error


def _asking() -> tuple[CodeType, int] | None:
    """The user's frame: the first outside Python's copy module and this module."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename in (__file__, copy.__file__):
        frame = frame.f_back
    return frame.f_code, frame.f_lasti
