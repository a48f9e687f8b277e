"""Hooks: functions that a lower package calls and a higher package supplies, one by one or as a namespace."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from attrs import define

if TYPE_CHECKING:
    from .builder import Value

P = ParamSpec("P")
R = TypeVar("R")


@define(eq=False)
class Hook(Generic[P, R]):
    """A function that is supplied later; `purpose` describes it in the error of a call before it is supplied."""

    purpose: str
    function: Callable[P, R] | None = None

    def supply(self, function: Callable[P, R]) -> Callable[P, R]:
        """Set the function of the hook; usable as a decorator."""
        self.function = function
        return function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.function is None:
            raise RuntimeError(f"no function was supplied to the hook that {self.purpose}")
        return self.function(*args, **kwargs)


class Forms:
    """The convenience forms that operators on values record, by name; `xbuild` supplies its own namespace."""

    namespace: Any = None

    def __getattr__(self, name: str) -> Callable[..., Value]:
        found = vars(self)[name] = getattr(self.namespace, name)
        return found  # type: ignore[no-any-return]


forms = Forms()


text_of: Hook[..., str] = Hook("writes HLO text")
"""The HLO text of an instruction, a computation or a module, in a style."""

applied: Hook[..., Any] = Hook("calls a computation on arguments")
"""Calls a computation on values, which records the call, or on arrays, which evaluates it."""

stablehlo_of: Hook[..., str] = Hook("writes StableHLO text")
"""The StableHLO text of a computation or a module, with or without locations."""

program_in: Hook[..., Any] = Hook("reads a program from a text, a path or a JAX object")
"""The program of a text, of bytes, of a path or of what JAX returns; any other object unchanged."""

drawing: Hook[[Any], Any] = Hook("draws a picture")
"""Draws the picture of an object that a notebook shows."""

reported: Hook[[Iterable[Any]], str] = Hook("writes a report as HTML")
"""The lines of a report (`report_text.py`) as HTML, as a notebook shows them."""

framed: Hook[[Any], str] = Hook("makes a step page")
"""The step page of a trace, in a frame that a notebook shows."""


class Reported:
    """Base of results that are reports: a notebook shows them with colours, a terminal shows text."""

    __slots__ = ()

    _styled_lines: Callable[[], Iterable[Any]]  # the lines of the report, as in `report_text.py`

    def _repr_html_(self) -> str:
        return reported(self._styled_lines())


class Showable:
    """Base of programs, values and verdicts: a notebook shows a picture, a terminal shows text."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return drawing(self)._repr_svg_()  # type: ignore[no-any-return]

    def _repr_html_(self) -> str:
        return drawing(self)._repr_html_()  # type: ignore[no-any-return]
