"""The decorator `dressed`: refusals of a comfortable form state its name, its arguments and the user's line."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from shape_inference import XbuildError

from ...core.builder import Value
from ...core.diagnostics import ValueUseError, caller, explain_call, segment_labels

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
        except TypeError:
            misuse = _misused(form, arguments, keywords)
            if misuse is None:
                raise
            raise misuse from None

    return checked


def _misused(form: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> XbuildError | None:
    """The error of a call whose arguments do not fit the form's signature; None where they do."""
    signature = inspect.signature(form)
    try:
        signature.bind(*arguments, **keywords)
    except TypeError as error:
        name = form.__name__
        usage = f"xb.{name}({', '.join(map(_without_annotation, signature.parameters.values()))})"
        near = [near for key in keywords if key not in signature.parameters for near in _nearest(key, signature)]
        hints = [f"it is called as {usage}", *(f"{key} is {near}=" for key, near in near)]
        return explain_call(ValueUseError("arity_mismatch", str(error), hints), name, (), {}, caller())
    return None


def _without_annotation(parameter: inspect.Parameter) -> str:
    return str(parameter.replace(annotation=inspect.Parameter.empty))


_AXES = ("axis", "dim", "axes", "dims")


def _nearest(key: str, signature: inspect.Signature) -> list[tuple[str, str]]:
    """The parameter that is meant by a keyword which a form does not have."""
    names = [*signature.parameters]
    if key in _AXES:
        found = [name for name in names if name.startswith(("dim", "axis", "permutation"))]
    else:
        found = difflib.get_close_matches(key, names, 1)
    return [(key, name) for name in found[:1]]


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
