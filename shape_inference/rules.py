"""`Table` and `RuleTable`, tables from opcode to entry or rule, and the errors that rules raise."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar

from .escaping import Harmless, printable
from .kinds import KINDS

Entry = TypeVar("Entry")
Rule = TypeVar("Rule", bound=Callable[..., Any])


MOST_SAID = 8000
"""The characters of a message, in which the types of a hostile program may be very long; the rest is left out."""


class MissingRule(LookupError):
    """Raised for an opcode that has no rule in a table."""


class Table(dict[str, Entry]):
    """A table from opcode to what one reading has for it; an entry stays as it is entered, and is entered once.

    Raises ValueError for a second entry of an opcode, MissingRule for an opcode without one, and TypeError where an
    entry is removed.

    >>> words = Table("word")
    >>> words.enter("add", "plus")
    >>> words["add"]
    'plus'
    """

    def __init__(self, reading: str) -> None:
        super().__init__()
        self.reading = reading

    def __setitem__(self, opcode: str, entry: Entry) -> None:
        if opcode in self:
            raise ValueError(f"{opcode} has two {self.reading} rules")
        super().__setitem__(opcode, entry)

    enter = __setitem__

    def update(self, *entries: Any, **named: Any) -> None:
        """Enter the entries of a mapping."""
        for opcode, entry in dict(*entries, **named).items():
            self[opcode] = entry

    def __missing__(self, opcode: str) -> NoReturn:
        raise MissingRule(f"{opcode} has no {self.reading} rule")

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(f"entries in the table of {self.reading} rules cannot be changed or removed")

    __delitem__ = pop = popitem = clear = setdefault = __ior__ = _refuse


class RuleTable(Table[Callable[..., Any]]):
    """A table from opcode to function. Used as a decorator, it adds a function under the function's name.

    >>> cost = RuleTable("cost")
    >>> @cost
    ... def add(lhs, rhs): ...
    >>> cost.signature("add")
    (('lhs', 'rhs'), ())
    """

    def __call__(self, rule: Rule) -> Rule:
        self.enter(rule.__name__.strip("_"), rule)
        return rule

    def signature(self, opcode: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names of an op's operands and of its attributes, from the parameters of its rule."""
        parameters = inspect.signature(self[opcode]).parameters.values()
        keyword = inspect.Parameter.KEYWORD_ONLY
        return (
            tuple(p.name for p in parameters if p.kind is not keyword),
            tuple(p.name for p in parameters if p.kind is keyword),
        )


class XbuildError(Harmless, ValueError):
    """An error with a `kind` (one of the stable words of `shape_inference.kinds`), a message and hints."""

    def __init__(self, kind: str, message: str, hints: Iterable[str] = ()) -> None:
        assert kind in KINDS, kind
        message = message if len(message) <= MOST_SAID else f"{message[: MOST_SAID - 3]}..."
        super().__init__(message)
        self.kind, self.message = kind, message
        self.hints = (hints,) if isinstance(hints, str) else tuple(hints)
        self.explained = False

    def __str__(self) -> str:
        """The message, with the hints that it does not quote already; a report has all of them."""
        hints = () if self.explained else (hint for hint in self.hints if hint not in self.message)
        return "\n".join([super().__str__(), *(f"  hint: {printable(hint)}" for hint in hints)])


class ShapeError(XbuildError):
    """Raised when an op is called with operands or attributes that it cannot take."""


def refuse(kind: str, message: str, *hints: str) -> NoReturn:
    """Raise ShapeError with a short message; the builder adds the op, operands, attributes and the user's line."""
    raise ShapeError(kind, message, hints)


def require(holds: bool, kind: str, message: str, *hints: str) -> None:
    """Call `refuse` unless the condition holds. A rule that must be fast builds the message only after an `if`."""
    if not holds:
        refuse(kind, message, *hints)


infer = RuleTable("shape")
region_parameters = RuleTable("region")
