"""The table of rules that turn operations of any dialect into instructions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias

from ...core.graph import Instruction
from ...core.hooks import Hook

if TYPE_CHECKING:
    from .operation import Reading

Results: TypeAlias = "Instruction | tuple[Instruction, ...] | None"
Rule: TypeAlias = "Callable[[Reading], Results]"

RULES: dict[str, Rule] = {}
"""The rule of each operation, by its name with the dialect."""

all_rules: Hook[[], None] = Hook("enters the rules of all operations")
"""Enters the rules of packages above into the table."""

sized_reader: Hook[[Any, str, str | None, Any, Mapping[str, int]], Any] = Hook("reads a program for given sizes")
"""A reader of a tree with open dimensions, for sizes by name."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """A decorator that enters a function as the rule of the operations of these names.

    A rule is given the operation under reading (`Reading`): its operands as instructions, its attributes by what they
    are wanted to be, and functions that record instructions. It gives the instruction that the result is, a tuple of
    them where there are several results, None where there is none. What it gives is compared with the types that are
    written; attributes without a point in their name that it does not ask for are refused as unknown. A rule raises
    Fault through `fail` of what it is given, or lets errors of recording pass.

    Where a rule records one instruction of all operands in their order, operations written alike are read by what was
    recorded first, without the rule: it must depend on nothing but the form of the operation and the operands' shapes.

    An operation has one rule: ValueError where a name has one already (`around` puts a rule in its place).
    """

    def enter(function: Rule) -> Rule:
        for name in names:
            if name in RULES:
                raise ValueError(f"{name} has a rule already, {RULES[name].__module__}.{RULES[name].__name__}")
            RULES[name] = function
        return function

    return enter


def around(*names: str) -> Callable[[Callable[[Reading, Rule], Results]], Callable[[Reading, Rule], Results]]:
    """A decorator that puts a function in the place of the rules of these operations; it is given the rule it replaces.

    KeyError where a name has no rule yet.
    """

    def enter(function: Callable[[Reading, Rule], Results]) -> Callable[[Reading, Rule], Results]:
        for name in names:
            RULES[name] = _around(function, RULES[name])
        return function

    return enter


def _around(function: Callable[[Reading, Rule], Results], earlier: Rule) -> Rule:
    @wraps(function)
    def outer(op: Reading) -> Results:
        return function(op, earlier)

    return outer


def both(*names: str) -> tuple[str, ...]:
    """The names with the dialects that have these ops: stablehlo, and mhlo before it."""
    return tuple(f"{dialect}.{name}" for dialect in ("stablehlo", "mhlo") for name in names)
