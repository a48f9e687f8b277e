"""Answers of learners: read from a line or a Python value, and compared with what a program gave."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

_NUMBER = re.compile(r"[-+]?(?:inf(?:inity)?|nan|\d+\.?\d*(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?)(?![\w.])", re.IGNORECASE)
_FILLING = re.compile(r"[\s,;\[\](){}]+")
_YES = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}
_ZERO = frozenset({"none", "nothing", "zero"})
_SHAPE = re.compile(r"[a-z]\w*\[([\d,]*)\]")
_NOT = frozenset({"not", "no", "never", "none", "nothing", "neither"})
CLOSE = 1e-3
"""How far an answer may be from a number that is no integer, as a part of it: 0.333 is right for a third."""


def is_right(guess: Any, truth: Any, choices: Sequence[str] = ()) -> bool:
    """Whether a guess, typed or a Python value, says what the truth is; of a shape the extents are enough.

    >>> is_right("1 2", [[1], [2]]), is_right("a", "ok", ["ok", "deadlock"]), is_right("none", 0)
    (True, True, True)
    >>> is_right("F32[2, 3]", "f32[2,3]"), is_right("(2, 3)", "f32[2,3]"), is_right("s32[2,3]", "f32[2,3]")
    (True, True, False)
    """
    if choices:
        return _chosen(guess, choices) == _plain(truth)
    if isinstance(truth, str):
        extents = _extents(truth)
        return _plain(guess) == _plain(truth) or (extents is not None and _whole(guess) == extents)
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
        elif word.lower() in _ZERO:
            found.append(0.0)
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


def _extents(text: str) -> list[float] | None:
    """The extents of an array's shape; None of other words."""
    match = _SHAPE.fullmatch(text)
    return [float(each) for each in match[1].split(",") if each] if match else None


def _whole(guess: Any) -> list[float] | None:
    """The numbers of a guess; None where it has none, or is more than numbers."""
    return (_typed(guess) if isinstance(guess, str) else numbers(guess)) or None


def _plain(text: Any) -> str:
    return re.sub(r"[\s\"'.`]+", "", str(text)).casefold()


def _chosen(guess: Any, choices: Sequence[str]) -> str:
    """The choice that is meant by its letter, its words, or a part of its words that only one has; "" for none."""
    word = _plain(guess)
    letters = {chr(ord("a") + number): choice for number, choice in enumerate(choices)}
    meant = _plain(letters.get(word.rstrip(")"), word))
    if meant in map(_plain, choices):
        return meant
    parts = [each for each in choices if _is_part(_words(guess), _words(each))]
    return _plain(parts[0]) if len(parts) == 1 else ""


def _words(text: Any) -> list[str]:
    return re.findall(r"\w+", str(text).casefold())


def _is_part(words: list[str], whole: list[str]) -> bool:
    """Whether words stand in a row in others, and none is left out that turns the meaning around."""
    at = any(whole[n : n + len(words)] == words for n in range(len(whole)))
    return bool(words) and at and _NOT & {*whole} <= {*words}


def mismatch(guess: Any, truth: Any, choices: Sequence[str] = ()) -> str:
    """Why a guess is not of the kind or the count that is asked for; "" where it is.

    >>> mismatch("10", [10, 10, 10, 10]), mismatch("ten", 10), mismatch("9", 10)
    ('you gave 1 number, and 4 are wanted', 'you gave a word, and a number is wanted', '')
    """
    if choices:
        last = chr(ord("a") + len(choices) - 1)
        return "" if _chosen(guess, choices) else f"that is none of the choices a to {last}, or more than one of them"
    given, wanted = _typed(guess) if isinstance(guess, str) else numbers(guess), numbers(truth)
    if isinstance(truth, str) or wanted is None:
        is_shape = isinstance(truth, str) and _extents(truth) is not None
        return "you gave a number, and a word is wanted" if given and not is_shape else ""
    asked = "a number is" if len(wanted) == 1 else "numbers are"
    if given is None:
        return f"you gave {'words' if len(str(guess).split()) > 1 else 'a word'}, and {asked} wanted"
    if len(given) == len(wanted):
        return ""
    return f"you gave {len(given)} number{'s' * (len(given) != 1)}, and {len(wanted)} {_are(wanted)} wanted"


def _are(wanted: list[float]) -> str:
    return "is" if len(wanted) == 1 else "are"
