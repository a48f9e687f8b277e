"""Kinds of attributes and of type lists in pretty forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from shape_inference import COMPONENT, Shape, TupleShape

from .attributes import Enumeration, Record, Symbol
from .drafts import Draft

if TYPE_CHECKING:
    from .parser import Parser


def integers(parser: Parser) -> tuple[int, ...]:
    """Integers between square brackets."""
    return tuple(parser.listed(parser.integer, "[", "]"))


def _words(parser: Parser, kind: str) -> tuple[Enumeration, ...]:
    return tuple(Enumeration(kind, word) for word in parser.listed(parser.word, "[", "]"))


def _flag(parser: Parser) -> bool:
    if parser.take_word("true"):
        return True
    parser.expect_word("false")
    return False


def _raw(parser: Parser, kind: str) -> Record:
    return Record(kind, {}, parser.bracketed()[1:-1].strip())


def _reduced(parser: Parser) -> Record:
    """Axes along which a collective reduces, after the word of the reduction where it is no sum: `max {"x"}`."""
    word = next((f"{each} " for each in ("max", "min", "sum") if parser.take_word(each)), "")
    return Record("sdy.axes", {}, f"{word}{parser.bracketed()}")


KINDS: dict[str, Callable[[Parser, str], Any]] = {
    "int": lambda parser, name: parser.integer(),
    "ints": lambda parser, name: integers(parser),
    "float": lambda parser, name: parser.number(),
    "flag": lambda parser, name: _flag(parser),
    "string": lambda parser, name: parser.string(),
    "symbol": lambda parser, name: Symbol(parser.symbol()),
    "name": lambda parser, name: parser.symbol(),
    "word": lambda parser, name: Enumeration(f"stablehlo.{name}", parser.word()),
    "precisions": lambda parser, name: _words(parser, "stablehlo.precision"),
    "attribute": lambda parser, name: parser.attribute(),
    "sharding": lambda parser, name: _raw(parser, "sdy.sharding"),
    "shardings": lambda parser, name: Record("sdy.sharding_per_value", {}, parser.bracketed()),
    "mesh": lambda parser, name: _raw(parser, "sdy.mesh"),
    "axes": lambda parser, name: Record(f"sdy.{name}", {}, parser.bracketed()),
    "reduced": lambda parser, name: _reduced(parser),
}
"""How an attribute of each kind is read."""


def _function(parser: Parser, draft: Draft) -> None:
    draft.set_types(parser.function_type())


def _same(parser: Parser, draft: Draft) -> None:
    """One type for all operands and the result, or the type of a function."""
    if parser.sees("("):
        _function(parser, draft)
        return
    found = parser.type()
    draft.operand_types, draft.result_types = (found,) * len(draft.operands), (found,)


def _results(parser: Parser, draft: Draft) -> None:
    draft.result_types = parser.types_here()


def _operands(parser: Parser, draft: Draft) -> None:
    draft.operand_types = parser.types_here()


def _arrow(parser: Parser, draft: Draft) -> None:
    """The types of the operands, an arrow, and those of the results; or one type for all."""
    if parser.sees("("):
        _function(parser, draft)
        return
    found = parser.types_here()
    if parser.take("->"):
        draft.operand_types, draft.result_types = found, parser.result_types()
    else:
        draft.operand_types = found * len(draft.operands) if len(found) == 1 else found
        draft.result_types = found[:1]


def _repeated(parser: Parser, draft: Draft) -> None:
    """One type for all operands, or the types of each; there are no results."""
    if parser.sees("("):
        _function(parser, draft)
        return
    found = parser.types_here()
    draft.operand_types = found * len(draft.operands) if len(found) == 1 else found


def _pairs(parser: Parser, draft: Draft) -> None:
    """The types of the operands, which the results have as well."""
    if parser.sees("("):
        _function(parser, draft)
        return
    draft.operand_types = draft.result_types = parser.types_here()


def _select(parser: Parser, draft: Draft) -> None:
    """The type of the condition and that of what is selected."""
    if parser.sees("("):
        _function(parser, draft)
        return
    condition = parser.type()
    parser.expect(",", " and the type of what is selected")
    found = parser.type()
    draft.operand_types, draft.result_types = (condition, found, found), (found,)


def _complex(parser: Parser, draft: Draft) -> None:
    """The type of the complex result, from which that of its parts follows."""
    if parser.sees("("):
        _function(parser, draft)
        return
    place, found = parser.skip(), parser.type()
    if not isinstance(found, Shape) or found.dtype not in COMPONENT:
        parser.fail("syntax", f"a tensor of complex numbers is wanted, and {found} is written", place=place)
    draft.operand_types = (found.with_dtype(COMPONENT[found.dtype]),) * len(draft.operands)
    draft.result_types = (found,)


def _tuple(parser: Parser, draft: Draft) -> None:
    """The type of the tuple, from which those of its elements follow."""
    if parser.sees("("):
        _function(parser, draft)
        return
    place, found = parser.skip(), parser.type()
    if not isinstance(found, TupleShape):
        parser.fail("syntax", f"a tuple is wanted, and {found} is written", place=place)
    draft.operand_types, draft.result_types = found.elements, (found,)


TYPES: dict[str, Callable[[Parser, Draft], None]] = {
    "function": _function,
    "same": _same,
    "results": _results,
    "operands": _operands,
    "arrow": _arrow,
    "repeated": _repeated,
    "pairs": _pairs,
    "select": _select,
    "complex": _complex,
    "tuple": _tuple,
}
"""How the types at the end of a form are read."""
