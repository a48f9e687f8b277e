"""Signatures of functions and classes, a parameter a line where they are long."""

from __future__ import annotations

import inspect
from typing import Any

_WIDTH = 84


class _Bare(str):
    """The text of a type, which is written without quotes; defaults keep theirs."""

    __repr__ = str.__str__


def called(path: str, function: Any) -> str:
    """The call of a function by its path, with the types of its parameters; without `self`."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a class that is not called
        return path
    given = [_bare(each) for each in signature.parameters.values() if each.name not in ("self", "cls")]
    signature = signature.replace(parameters=given, return_annotation=_text(signature.return_annotation))
    whole = _plain(f"{path}{signature}")
    return whole if len(whole) <= _WIDTH else _wrapped(path, signature)


def _bare(parameter: inspect.Parameter) -> inspect.Parameter:
    return parameter.replace(annotation=_text(parameter.annotation))


def _text(annotation: Any) -> Any:
    return _Bare(annotation) if isinstance(annotation, str) else annotation


def _wrapped(path: str, signature: inspect.Signature) -> str:
    lines, is_keyword = [], False
    for each in signature.parameters.values():
        if each.kind is each.KEYWORD_ONLY and not is_keyword:
            lines, is_keyword = [*lines, "*"], True
        lines.append(_plain(str(each)))
    result = str(signature.replace(parameters=[]))[2:]
    return "\n".join([f"{path}(", *(f"    {line}," for line in lines), _plain(f"){result}")])


def _plain(text: str) -> str:
    """Types as the documentation calls them."""
    return text.replace("xbuild.", "xb.")
