"""The trial of the first mistakes: each program is run as it was typed, then as the message says.

`python -m tests.first_mistakes` writes docs/first_mistakes.md.
"""

from __future__ import annotations

import tomllib
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

import xbuild as xb

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tests" / "data" / "first_mistakes.toml"
DOCUMENT = ROOT / "docs" / "first_mistakes.md"
ARRAYS = {
    "X": np.array([[1, 2, 3], [4, 5, 6]], np.float32),
    "Y": np.array([[6, 5, 4], [3, 2, 1]], np.float32),
    "W": np.arange(12, dtype=np.float32).reshape(3, 4),
    "V": np.array([10, 20, 30], np.float32),
    "I": np.array([2, 0, 1], np.int32),
    "N": np.int32(2),
    "Z": np.array([[7, 8, 9], [1, 2, 3]], np.float32),
}


@frozen
class Mistake:
    """A program as a newcomer types it, what was meant, and how the message lets it be mended."""

    habit: str
    code: str
    meant: str
    wanted: str
    mended: str = ""
    says: tuple[str, ...] = ()
    replicas: int = 1


@frozen
class Outcome:
    """What a program gave: its result, or what was said instead of it or beside it."""

    result: Any = None
    said: str = ""

    def is_right(self, wanted: Any) -> bool:
        """Whether the result is what was meant, to the precision of half floats."""
        if self.result is None:
            return False
        pairs = zip(self.result, wanted, strict=True) if isinstance(wanted, tuple | list) else [(self.result, wanted)]
        return all(_is_same(given, meant) for given, meant in pairs)


def _is_same(given: Any, meant: Any) -> bool:
    if isinstance(meant, str):
        return bool(given == meant)
    return np.shape(given) == np.shape(meant) and bool(np.allclose(given, meant, rtol=1e-3, atol=1e-6))


@cache
def _list() -> dict[str, Any]:
    return tomllib.loads(LIST.read_text(encoding="utf-8"))


def mistakes() -> list[Mistake]:
    return [Mistake(**{**each, "says": tuple(each.get("says", ()))}) for each in _list()["mistake"]]


def wanted(mistake: Mistake) -> Any:
    """What was meant, in NumPy."""
    return eval(mistake.wanted, {"np": np, **ARRAYS})


def outcome(code: str, replicas: int) -> Outcome:
    """The result of a program after the prelude; an error, or a warning beside a result, is what was said."""
    space: dict[str, Any] = dict(ARRAYS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(compile(_list()["prelude"] + code, "<typed>", "exec"), space)
            return Outcome(_computed(space["builder"], space["result"], replicas), _warned(caught))
        except Exception as error:
            return Outcome(said=f"{type(error).__name__}: {error}")


def _warned(caught: list[warnings.WarningMessage]) -> str:
    return "\n".join(f"{each.category.__name__}: {each.message}" for each in caught)


def _computed(builder: xb.Builder, result: Any, replicas: int) -> Any:
    """A result; of a value the number of a run on all replicas, of which the first is taken."""
    if not isinstance(result, xb.Value):
        return result
    entry = builder.build(result)
    arguments = [*ARRAYS.values()][: len(entry.parameters)]
    module = xb.Module("typed", entry, num_replicas=replicas)
    return xb.execute(module, [arguments] * replicas)[0]
