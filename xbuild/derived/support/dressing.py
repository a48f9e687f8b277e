"""The decorator `dressed`: refusals of a comfortable form state its name, its arguments and the user's line."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from shape_inference import XbuildError

from ...core.builder import Value
from ...core.diagnostics import caller, explain_call, segment_labels

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def dressed(form: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A decorator that adds a form's name and arguments to its refusals; refusals of recorded ops state theirs."""

    @functools.wraps(form)
    def checked(*arguments: Parameters.args, **keywords: Parameters.kwargs) -> Result:
        try:
            return form(*arguments, **keywords)
        except XbuildError as error:
            if error.explained:
                raise
            raise _explained(form, error, arguments, keywords) from None

    return checked


def _explained(
    form: Callable[..., Any], error: XbuildError, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> XbuildError:
    given = inspect.signature(form).bind(*arguments, **keywords).arguments
    operands = {name: _values(argument) for name, argument in given.items() if _holds_values(argument)}
    flat = (value for values in operands.values() for value in values)
    labelled = zip(segment_labels(operands, map(len, operands.values())), flat, strict=True)
    attributes = {name: argument for name, argument in given.items() if name not in operands and argument is not None}
    return explain_call(error, form.__name__.strip("_").replace("_", "-"), labelled, attributes, caller())


def _holds_values(argument: Any) -> bool:
    return any(isinstance(each, Value) for each in _values(argument))


def _values(argument: Any) -> tuple[Any, ...]:
    return tuple(argument) if isinstance(argument, tuple | list) else (argument,)
