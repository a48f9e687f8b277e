"""Validation of untrusted JSON: types, ranges and names, each fault reported with its place."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

MOST = (1 << 63) - 1
NODES = 1 << 23
"""The greatest number of lists, objects and their parts in a text."""


class FormError(ValueError):
    """Raised if a part of a file is invalid; the message states its place, its value, and what was expected."""


Form: TypeAlias = Callable[[Any, str], None]
"""A function that raises FormError if a value does not have the form; its second argument is the place of the value."""


def loads(letters: bytes, name: str) -> Any:
    """The value of a JSON text; raises FormError if the text is too large, has NaN or infinity, or repeats a key."""
    if sum(map(letters.count, (b",", b"[", b"{"))) > NODES:
        raise FormError(f"{name} has more parts than the limit of {NODES:,}")
    try:
        return json.loads(letters.decode(), object_pairs_hook=_refuse_duplicates, parse_constant=_refuse_constant)
    except FormError as error:
        raise FormError(f"{name} {error}") from None
    except (ValueError, RecursionError):
        raise FormError(f"{name} cannot be read as JSON") from None


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise FormError("has a duplicate key")
    return found


def _refuse_constant(text: str) -> Any:
    raise FormError(f"contains {text}, which is not valid JSON")


def refuse(where: str, value: Any, expected: str) -> FormError:
    """The FormError that states the place of a value, the value, and what was expected."""
    shown = ascii(value) if isinstance(value, bool | int | float | str | None) else "an object"
    shown = f"a list of {len(value)}" if isinstance(value, list) else shown
    return FormError(f"{where} is {shown if len(shown) <= 60 else f'{shown[:57]}...'}; expected {expected}")


def number(least: int = 0, most: int = MOST) -> Form:
    """The form of an integer in a range."""

    def check(value: Any, where: str) -> None:
        if type(value) is not int or not least <= value <= most:
            raise refuse(
                where, value, f"a number of {least}..{most}" if most < MOST else f"a number of at least {least}"
            )

    return check


def boolean(value: Any, where: str) -> None:
    if not isinstance(value, bool):
        raise refuse(where, value, "true or false")


def text(value: Any, where: str) -> None:
    """Raise FormError unless a value is a string without lone surrogates."""
    if not isinstance(value, str):
        raise refuse(where, value, "a text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise refuse(where, value, "text without lone surrogates") from None


def optional(form: Form) -> Form:
    """The form of null or of a value of a form."""

    def check(value: Any, where: str) -> None:
        if value is not None:
            form(value, where)

    return check


def listed(form: Form, count: int | None = None) -> Form:
    """The form of a list whose elements are of a form; of `count` elements if a count is stated."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, list) or (count is not None and len(value) != count):
            raise refuse(where, value, "a list" if count is None else f"a list of {count}")
        for place, each in enumerate(value):
            form(each, f"{where}[{place}]")

    return check


def mapping(form: Form) -> Form:
    """The form of an object with any keys, whose values are of a form."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise refuse(where, value, "an object")
        for key, each in value.items():
            text(key, f"a key of {where}")
            form(each, f"{where}[{ascii(key)[:60]}]")

    return check


def parts(*forms: Form) -> Form:
    """The form of a list with one element for each of the given forms."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, list) or len(value) != len(forms):
            raise refuse(where, value, f"a list of {len(forms)}")
        for place, (form, each) in enumerate(zip(forms, value, strict=True)):
            form(each, f"{where}[{place}]")

    return check


def record(forms: Mapping[str, Form], others: Form | None = None) -> Form:
    """The form of an object with these keys; values of other keys are of the form `others`, else there are none."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise refuse(where, value, "an object")
        if missing := sorted(forms.keys() - value.keys()):
            raise FormError(f"{where} has no {missing[0]!r}")
        for key, each in value.items():
            text(key, f"a key of {where}")
            form = forms.get(key, others)
            if form is None:
                raise FormError(f"{where} has the unknown key {ascii(key)[:60]}")
            form(each, f"{where}.{ascii(key)[1:-1][:60]}")

    return check


def anything(value: Any, where: str) -> None:
    """Raise FormError if a string in a JSON value has lone surrogates."""
    if isinstance(value, dict):
        mapping(anything)(value, where)
    elif isinstance(value, list):
        listed(anything)(value, where)
    elif isinstance(value, str):
        text(value, where)
