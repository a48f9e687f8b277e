"""Answers of learners: read from a line or a Python value, and compared with what a program gave."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

_NUMBER = re.compile(r"[-+]?(?:inf(?:inity)?|nan|\d+\.?\d*(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?)(?![\w.])", re.IGNORECASE)
_FILLING = re.compile(r"[\s,;\[\](){}]+")
_YES = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}
CLOSE = 1e-3
"""How far an answer may be from a number that is no integer, as a part of it: 0.333 is right for a third."""


def is_right(guess: Any, truth: Any, choices: Sequence[str] = ()) -> bool:
    """Whether a guess, typed or a Python value, says what the truth is.

    >>> is_right("1 2", [[1], [2]]), is_right("a", "ok", ["ok", "deadlock"]), is_right("F32[2, 3]", "f32[2,3]")
    (True, True, True)
    """
    if choices:
        return _chosen(guess, choices) == _plain(truth)
    if isinstance(truth, str):
        return _plain(guess) == _plain(truth)
    wanted, given = numbers(truth), _typed(guess) if isinstance(guess, str) else numbers(guess)
    return wanted is not None and given is not None and _same(given, wanted)


def shown(value: Any) -> str:
    """A value as a person writes it: nested lists, whole numbers without a point.

    >>> import numpy as np
    >>> shown(np.float32([[1, 2.5], [np.nan, -0.0]])), shown((np.int32(3), [np.bool_(True)]))
    ('[[1, 2.5], [nan, 0]]', '[3, [yes]]')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(shown, value))}]"
    array = np.asarray(value)
    if array.ndim:
        return shown(list(array))
    number = array.item()
    if isinstance(number, bool):
        return "yes" if number else "no"
    return f"{number + 0:.0f}" if float(number).is_integer() and abs(number) < 1e16 else f"{number:.6g}"


def numbers(value: Any) -> list[float] | None:
    """All numbers of a value in order, without its nesting; None where something in it is no number."""
    if isinstance(value, list | tuple):
        parts = [numbers(each) for each in value]
        return None if any(part is None for part in parts) else [each for part in parts for each in part or ()]
    try:
        return [float(each) for each in np.asarray(value).astype(np.float64).ravel()]
    except (TypeError, ValueError):
        return None


def _typed(text: str) -> list[float] | None:
    """The numbers of a typed line; None where anything else stands in it."""
    found: list[float] = []
    for word in filter(None, _FILLING.split(text.strip())):
        if word.lower() in _YES:
            found.append(float(_YES[word.lower()]))
        elif _NUMBER.fullmatch(word):
            found.append(float(word))
        else:
            return None
    return found


def _same(given: Iterable[float], wanted: Iterable[float]) -> bool:
    pairs = [*zip(given, wanted, strict=False)]
    given, wanted = [*given], [*wanted]
    return len(given) == len(wanted) and all(_equal(*pair) for pair in pairs)


def _equal(given: float, wanted: float) -> bool:
    if np.isnan(wanted) or np.isinf(wanted) or wanted.is_integer():
        return given == wanted or (np.isnan(given) and np.isnan(wanted))
    return abs(given - wanted) <= CLOSE * abs(wanted)


def _plain(text: Any) -> str:
    return re.sub(r"[\s\"'.`]+", "", str(text)).casefold()


def _chosen(guess: Any, choices: Sequence[str]) -> str:
    """The choice that is meant by its letter or its words."""
    word = _plain(guess)
    letters = {chr(ord("a") + number): choice for number, choice in enumerate(choices)}
    return _plain(letters.get(word.rstrip(")"), word))
