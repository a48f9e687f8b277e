"""Expressions of a plan: a value is the Python text of a leaf, or a tuple of expressions."""

from __future__ import annotations

from typing import TypeAlias

Expr: TypeAlias = str | tuple["Expr", ...]


def flat(expr: Expr) -> list[str]:
    """The leaves of an expression, in order."""
    return [expr] if isinstance(expr, str) else [leaf for each in expr for leaf in flat(each)]


def spell(expr: Expr) -> str:
    """The expression as Python."""
    return expr if isinstance(expr, str) else f"({''.join(f'{spell(each)}, ' for each in expr)})"


def target(expr: Expr) -> str:
    """The expression as the left side of an assignment; tokens are assigned to `_`."""
    if isinstance(expr, str):
        return "_" if expr == "None" else expr
    return f"({''.join(f'{target(each)}, ' for each in expr)})" if expr else "_"
