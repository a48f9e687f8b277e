"""Names that are an elementwise op in XlaBuilder and a fold along an axis in NumPy: max and min."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ...core.builder import Value
from ...core.diagnostics import ValueUseError, caller, dressed_text, warn
from .axes import rank_of


def between_two(form: Callable[..., Value], method: str) -> Callable[..., Value]:
    """An elementwise form of two operands under a name that NumPy has for a fold along an axis.

    It refuses a call without a second operand, and warns of an int that could be an axis.
    """

    def compared(
        lhs: Any,
        rhs: Any = None,
        broadcast_dimensions: Sequence[int] | None = None,
        *,
        name: str | None = None,
        **of_a_fold: Any,
    ) -> Value:
        if rhs is None or of_a_fold:
            _refuse_fold(lhs, method)
        rank = rank_of(lhs) if type(rhs) is int else None
        if rank and -rank <= rhs < rank:
            warn(
                f"xb.{method}(x, {rhs}) compares each element with {rhs}. x.{method}(axis={rhs}) is the {method} along "
                f"axis {rhs}, and xb.{form.__name__}(x, {rhs}) compares, without this warning"
            )
        return form(lhs, rhs, broadcast_dimensions, name=name)

    compared.__name__ = compared.__qualname__ = form.__name__
    compared.__module__ = form.__module__
    compared.__doc__ = (form.__doc__ or "").replace(f"xb.{form.__name__}(", f"xb.{method}(")
    return compared


def _refuse_fold(operand: Any, method: str) -> NoReturn:
    message = f"one operand, and xb.{method} compares two"
    hint = f"x.{method}(axis=...) is the {method} of the elements of x, with keepdims=, too"
    rows = [("lhs", f"{operand.shape}  %{operand.name}")] if isinstance(operand, Value) else []
    text = dressed_text(f"{method}: {message} [arity_mismatch]", rows, caller(), [hint])
    error = ValueUseError("arity_mismatch", text, [hint])
    error.message, error.explained = message, True
    raise error
