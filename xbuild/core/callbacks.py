"""The registry of the functions behind custom calls, by target."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from attrs import frozen

Function = TypeVar("Function", bound=Callable[..., Any])


class _Pending:
    """The type of PENDING."""

    def __repr__(self) -> str:
        return "xb.PENDING"


PENDING = _Pending()
"""The result of a registered function that has no answer yet; it is called again with the same operands."""


@frozen
class Callback:
    """A registered function, and whether it takes the `backend_config` of the call."""

    function: Callable[..., Any]
    takes_config: bool


CALLBACKS: dict[str, Callback] = {}


def custom_call_target(name: str) -> Callable[[Function], Function]:
    """Decorate a function to register it for a custom-call target in all later runs.

    The function gets the operands as read-only arrays: a rank-0 array as a NumPy scalar, a tuple as a tuple, and a
    token as None. If it has a parameter `backend_config`, it also gets the call's backend_config string. It returns an
    array, or a tuple if the declared shape is a tuple. Python numbers and lists take the declared element type. A
    function that returns `xb.PENDING` is called again later. If the run has a time limit, the function runs in a
    separate thread, which is abandoned when the limit is reached. Raises TypeError if the name is not a string or the
    decorated object is not callable.

    >>> import xbuild as xb
    >>> @xb.custom_call_target("clipped")
    ... def clipped(x, *, backend_config):
    ...     return x.clip(max=float(backend_config))
    >>> @xb.computation(xb.f32[3])
    ... def program(x):
    ...     return xb.custom_call(x, "clipped", xb.f32[3], backend_config="2.5")
    >>> xb.evaluate(program, [1.0, 2.0, 3.0])
    array([1. , 2. , 2.5], dtype=float32)

    Source: Operation Semantics, CustomCall.
    """
    if not isinstance(name, str):
        raise TypeError(f"custom_call_target: expected a string as the name of the target, got {name!r}")

    def register(function: Function) -> Function:
        if not callable(function):
            raise TypeError(f"custom_call_target({name!r}): expected a function, got {function!r}")
        CALLBACKS[name] = Callback(function, _takes_config(function))
        return function

    return register


def _takes_config(function: Callable[..., Any]) -> bool:
    try:
        return "backend_config" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # a function of C that does not tell
        return False
