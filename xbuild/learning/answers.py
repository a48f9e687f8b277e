"""Answers of learners: read from a line or a Python value, and compared with the result of a program."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

_NUMBER = re.compile(
    r"[-+]?(?:inf(?:inity)?|nan|\d++(?:\.\d*+)?(?:e[-+]?\d++)?|\.\d++(?:e[-+]?\d++)?)(?![\w.])", re.IGNORECASE
)
_FILLING = re.compile(r"[\s,;\[\](){}]+")
_YES = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}
_ZERO = frozenset({"none", "nothing", "zero"})
_SHAPE = re.compile(r"[a-z]\w*\[([\d,]*)\]")
_NEGATIONS = frozenset({"not", "no", "never", "none", "nothing", "neither"})
CLOSE = 1e-3
"""The relative error that an answer may have if the number is not an integer: 0.333 is right for 1/3."""


def is_right(guess: Any, truth: Any, choices: Sequence[str] = ()) -> bool:
    """Whether a guess, a typed line or a Python value, is right; for a shape, its extents are enough.

    >>> is_right("1 2", [[1], [2]]), is_right("a", "ok", ["ok", "deadlock"]), is_right("none", 0)
    (True, True, True)
    >>> is_right("F32[2, 3]", "f32[2,3]"), is_right("(2, 3)", "f32[2,3]"), is_right("s32[2,3]", "f32[2,3]")
    (True, True, False)
    """
    if choices:
        return _match_choice(guess, choices) == _normalize(truth)
    if isinstance(truth, str):
        extents = _extents(truth)
        return _normalize(guess) == _normalize(truth) or (extents is not None and _guessed_numbers(guess) == extents)
    expected, guessed = numbers(truth), read_numbers(guess) if isinstance(guess, str) else numbers(guess)
    return expected is not None and guessed is not None and _are_equal(guessed, expected)


def is_same_answer(guess: Any, other: str, choices: Sequence[str] = ()) -> bool:
    """Whether two answers, right or wrong, mean the same: the same choice, numbers, shape or text.

    >>> is_same_answer([[1, 2]], "1 2"), is_same_answer("5 5", "f32[5,5]"), is_same_answer("1 2", "2 1")
    (True, True, False)
    """
    if guess is None:
        return False
    if choices:
        return bool(found := _match_choice(guess, choices)) and found == _match_choice(other, choices)
    guessed = read_numbers(guess) if isinstance(guess, str) else numbers(guess)
    meant = _extents(other) or read_numbers(other)
    if guessed and meant:
        return _are_equal(guessed, meant)
    return bool(_normalize(guess)) and _normalize(guess) == _normalize(other)


def answer_text(value: Any) -> str:
    """A value as a person writes it: nested lists, integers without a decimal point.

    >>> import numpy as np
    >>> answer_text(np.float32([[1, 2.5], [np.nan, -0.0]])), answer_text((np.int32(3), [np.bool_(True)]))
    ('[[1, 2.5], [nan, 0]]', '[3, [yes]]')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(answer_text, value))}]"
    array = np.asarray(value)
    if array.ndim:
        return answer_text(list(array))
    number = array.item()
    if isinstance(number, bool):
        return "yes" if number else "no"
    return f"{number + 0:.0f}" if float(number).is_integer() and abs(number) < 1e16 else f"{number:.6g}"


def numbers(value: Any) -> list[float] | None:
    """All numbers of a value in order, without its nesting; None if a part is not a number."""
    if isinstance(value, list | tuple):
        parts = [numbers(part) for part in value]
        return None if any(part is None for part in parts) else [number for part in parts for number in part or ()]
    try:
        return [float(number) for number in np.asarray(value).astype(np.float64).ravel()]
    except (TypeError, ValueError):
        return None


def read_numbers(text: str) -> list[float] | None:
    """The numbers of a typed line; None if the line contains anything else."""
    read: list[float] = []
    for word in filter(None, _FILLING.split(text.strip())):
        if word.lower() in _YES:
            read.append(float(_YES[word.lower()]))
        elif word.lower() in _ZERO:
            read.append(0.0)
        elif _NUMBER.fullmatch(word):
            read.append(float(word))
        else:
            return None
    return read


def _are_equal(guessed: list[float], expected: list[float]) -> bool:
    return len(guessed) == len(expected) and all(map(_is_close, guessed, expected))


def _is_close(guess: float, expected: float) -> bool:
    if np.isnan(expected) or np.isinf(expected) or expected.is_integer():
        return bool(guess == expected or (np.isnan(guess) and np.isnan(expected)))
    return abs(guess - expected) <= CLOSE * abs(expected)


def _extents(text: str) -> list[float] | None:
    """The extents of the shape of an array; None for other text."""
    match = _SHAPE.fullmatch(text)
    return [float(extent) for extent in match[1].split(",") if extent] if match else None


def _guessed_numbers(guess: Any) -> list[float] | None:
    """The numbers of a guess; None if it has no numbers, or contains anything else."""
    return (read_numbers(guess) if isinstance(guess, str) else numbers(guess)) or None


def _normalize(text: Any) -> str:
    return re.sub(r"[\s\"'.`]+", "", str(text)).casefold()


def _match_choice(guess: Any, choices: Sequence[str]) -> str:
    """The choice that a guess names by letter, text, or a part that only one choice has; "" if no choice matches."""
    word = _normalize(guess)
    letters = {chr(ord("a") + number): choice for number, choice in enumerate(choices)}
    named = _normalize(letters.get(word.rstrip(")"), word))
    if named in map(_normalize, choices):
        return named
    matches = [choice for choice in choices if _is_part(_words(guess), _words(choice))]
    return _normalize(matches[0]) if len(matches) == 1 else ""


def _words(text: Any) -> list[str]:
    return re.findall(r"\w+", str(text).casefold())


def _is_part(words: list[str], choice: list[str]) -> bool:
    """Whether words occur consecutively in a choice and do not omit a word that negates it."""
    occurs = any(choice[n : n + len(words)] == words for n in range(len(choice)))
    return bool(words) and occurs and _NEGATIONS & {*choice} <= {*words}


def mismatch(guess: Any, truth: Any, choices: Sequence[str] = ()) -> str:
    """Why a guess has the wrong kind or number of answers; "" if both are right.

    >>> mismatch("10", [10, 10, 10, 10]), mismatch("ten", 10), mismatch("9", 10)
    ('expected 4 numbers, got 1', 'expected a number, got a word', '')
    """
    if choices:
        last = chr(ord("a") + len(choices) - 1)
        return "" if _match_choice(guess, choices) else f"expected one of the choices a to {last}"
    guessed, expected = read_numbers(guess) if isinstance(guess, str) else numbers(guess), numbers(truth)
    if isinstance(truth, str) or expected is None:
        is_shape = isinstance(truth, str) and _extents(truth) is not None
        return "expected a word, got a number" if guessed and not is_shape else ""
    if guessed is None:
        kind = "words" if len(str(guess).split()) > 1 else "a word"
        return f"expected {'a number' if len(expected) == 1 else 'numbers'}, got {kind}"
    if len(guessed) == len(expected):
        return ""
    return f"expected {len(expected)} number{'s' * (len(expected) != 1)}, got {len(guessed)}"
