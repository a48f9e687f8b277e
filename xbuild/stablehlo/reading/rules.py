"""The table of rules that turn operations into instructions, and the decorators that fill it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias

from ...core.graph import Instruction
from ...core.hooks import Hook

if TYPE_CHECKING:
    from .operation import OperationReading

Results: TypeAlias = "Instruction | tuple[Instruction, ...] | None"
Rule: TypeAlias = "Callable[[OperationReading], Results]"

RULES: dict[str, Rule] = {}
"""The rule of each operation, by name with dialect."""

enter_all_rules: Hook[[], None] = Hook("enters the rules of all operations")
"""Enters the rules of higher packages into the table."""

make_sized_reader: Hook[[Any, str, str | None, Any, Mapping[str, int]], Any] = Hook("reads a program for given sizes")
"""Makes the reader of a tree with unknown dimensions, for sizes by name."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """A decorator that enters a function as the rule of these operations.

    A rule receives an `OperationReading`: the operands as instructions, attributes by expected type, and methods that
    record instructions. It returns the instruction of the result, a tuple of instructions for several results, or None
    for no result. The reader compares the results with the types in the text, and keeps attributes that the rule did
    not read as frontend attributes. A rule raises Fault through `fail`; errors of recording become faults.

    If a rule records one instruction on all operands in order, later operations of the same form are recorded without
    it. So the result of a rule must depend only on the form of the operation and on the shapes of its operands.

    Raises ValueError if an operation has a rule already; `wrap_rule` replaces one.
    """

    def enter(function: Rule) -> Rule:
        for name in names:
            if name in RULES:
                raise ValueError(f"{name} already has the rule {RULES[name].__module__}.{RULES[name].__name__}")
            RULES[name] = function
        return function

    return enter


def wrap_rule(
    *names: str,
) -> Callable[[Callable[[OperationReading, Rule], Results]], Callable[[OperationReading, Rule], Results]]:
    """A decorator that replaces the rules of these operations by a function, which receives the replaced rule.

    Raises KeyError if a name has no rule yet.
    """

    def enter(function: Callable[[OperationReading, Rule], Results]) -> Callable[[OperationReading, Rule], Results]:
        for name in names:
            RULES[name] = _wrap(function, RULES[name])
        return function

    return enter


def _wrap(function: Callable[[OperationReading, Rule], Results], earlier: Rule) -> Rule:
    @wraps(function)
    def outer(op: OperationReading) -> Results:
        return function(op, earlier)

    return outer


def hlo_names(*names: str) -> tuple[str, ...]:
    """Names of ops in stablehlo and in mhlo, its predecessor."""
    return tuple(f"{dialect}.{name}" for dialect in ("stablehlo", "mhlo") for name in names)
