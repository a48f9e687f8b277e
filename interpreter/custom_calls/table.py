"""The table of built-in custom call targets, and readers of their backend_config."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from xbuild.core.graph import Instruction

Target: TypeAlias = Callable[..., Any]
"""The function of a target, of the instruction and the values of its operands."""

BUILT_IN: dict[str, Target] = {}

_ENTRY = re.compile(r"(\w+)\s*=\s*(-?\d+)")


def target(*names: str) -> Callable[[Target], Target]:
    """A decorator that enters a function into the table under these targets."""

    def enter(function: Target) -> Target:
        BUILT_IN.update(dict.fromkeys(names, function))
        return function

    return enter


def numbers(instruction: Instruction) -> dict[str, int]:
    """The integers of a backend_config such as `{mode = 83 : ui8, uplo = 76 : ui8}`."""
    found = _ENTRY.findall(instruction.attributes.backend_config)
    return {key: int(value) for key, value in found}


def letter(instruction: Instruction, key: str, default: str) -> str:
    """A letter among the integers of a backend_config, such as LAPACK's uplo."""
    return chr(numbers(instruction).get(key, ord(default)))


def flag(instruction: Instruction, key: str) -> bool:
    """Whether a word of a backend_config is `true`."""
    return re.search(rf"\b{key}\s*=\s*true\b", instruction.attributes.backend_config) is not None
