"""Pretty forms with regions: reduce, while, functions, modules, scans and the computations of sdy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .attributes import Record
from .drafts import Draft
from .form_kinds import KINDS, integers
from .forms import compiled, part
from .trees import Argument, Form, Operation, Region
from .types import FunctionType, Type

if TYPE_CHECKING:
    from .parser import Parser


@part
def reduce(parser: Parser, draft: Draft) -> None:
    """`(%x init: %c) applies stablehlo.add across dimensions = [0] : types`, or with a region after `reducer`."""
    inputs, starts, inner = [], [], ""
    while True:
        parser.expect("(", " before an operand and its start")
        inputs.append(parser.value())
        parser.expect_word("init")
        parser.expect(":")
        starts.append(parser.value())
        parser.expect(")")
        if not parser.take(","):
            break
    draft.operands = (*inputs, *starts)
    if parser.take_word("applies"):
        inner = parser.word()
    parser.expect_word("across")
    parser.expect_word("dimensions")
    parser.expect("=")
    draft.attributes["dimensions"] = integers(parser)
    for each in compiled("{} =function"):
        each(parser, draft)
    draft.regions = (_applied(parser, draft, inner) if inner else _reducer(parser, len(inputs)),)


def _applied(parser: Parser, draft: Draft, inner: str) -> Region:
    """The region of a reduction by one op."""
    if len(draft.operand_types) != 2:
        parser.fail("syntax", "'applies' is for one operand and its start; several take a region after 'reducer'")
    scalar = draft.operand_types[1]
    one = Operation(Form(inner, {}, (scalar, scalar), (scalar,)), ("lhs", "rhs"), ("result",), place=draft.place)
    end = Operation(Form("stablehlo.return", {}, (scalar,), ()), ("result",), place=draft.place)
    return Region((Argument("lhs", scalar), Argument("rhs", scalar)), (one, end), draft.place)


def _reducer(parser: Parser, count: int) -> Region:
    """The region after `reducer(%a: T, %b: T) (%c: U, %d: U)`, whose arguments are all first ones, then the others."""
    parser.located()
    parser.expect_word("reducer")
    pairs = []
    for _ in range(count):
        pairs.append(parser.listed(parser.argument, "(", ")"))
        if len(pairs[-1]) != 2:
            parser.fail("syntax", f"{len(pairs[-1])} arguments are written, and two are wanted for each operand")
    parser.located()
    return parser.region(tuple([pair[0] for pair in pairs] + [pair[1] for pair in pairs]))


@part
def while_(parser: Parser, draft: Draft) -> None:
    """`(%a = %0, %b = %1) : types cond {...} do {...}`."""
    names: list[tuple[str, str]] = parser.listed(lambda: _bound(parser), "(", ")")
    draft.operands = tuple([value for _, value in names])
    if parser.take(":"):
        draft.operand_types = parser.types_here() if names else ()
    draft.result_types = draft.operand_types
    if len(draft.operand_types) != len(names):
        parser.fail("syntax", f"{len(draft.operand_types)} types are written for {len(names)} values")
    _keyword_attributes(parser, draft)
    arguments = tuple(Argument(name, type_) for (name, _), type_ in zip(names, draft.operand_types, strict=True))
    parser.expect_word("cond")
    condition = parser.region(arguments)
    parser.expect_word("do")
    draft.regions = (condition, parser.region(arguments))


def _bound(parser: Parser) -> tuple[str, str]:
    name = parser.value()
    parser.expect("=", f" after %{name}")
    return name, parser.value()


def _keyword_attributes(parser: Parser, draft: Draft) -> None:
    if parser.take_word("attributes"):
        compiled("{}")[0](parser, draft)


@part
def function(parser: Parser, draft: Draft) -> None:
    """`private @name(%a: T {...}) -> (U {...}) attributes {...} {...}`."""
    if not parser.sees("@"):
        draft.attributes["sym_visibility"] = parser.word()
    draft.attributes["sym_name"] = parser.symbol()
    notes: list[Record] = []
    arguments = tuple(parser.listed(lambda: parser.noted_argument(notes), "(", ")"))
    draft.attributes["arg_attrs"] = tuple(notes)
    results = _results(parser, draft) if parser.take("->") else ()
    draft.attributes["function_type"] = FunctionType(tuple(each.type for each in arguments), results)
    _keyword_attributes(parser, draft)
    if parser.sees("{"):
        draft.regions = (parser.region(arguments),)


def _results(parser: Parser, draft: Draft) -> tuple[Type, ...]:
    notes: list[Record] = []

    def result() -> Type:
        found = parser.type()
        notes.append(Record("", parser.dictionary() if parser.sees("{") else {}, ""))
        return found

    found = tuple(parser.listed(result, "(", ")")) if parser.sees("(") else (parser.type(),)
    draft.attributes["res_attrs"] = tuple(notes)
    return found


@part
def module(parser: Parser, draft: Draft) -> None:
    if parser.sees("@"):
        draft.attributes["sym_name"] = parser.symbol()
    _keyword_attributes(parser, draft)
    draft.regions = (parser.region(()),)


@part
def scan(parser: Parser, draft: Draft) -> None:
    """`(%x) inits (%c) dimension = 0 {...} : types`."""
    inputs = parser.listed(parser.value, "(", ")")
    parser.expect_word("inits")
    starts = parser.listed(parser.value, "(", ")")
    draft.operands = (*inputs, *starts)
    parser.expect_word("dimension")
    parser.expect("=")
    draft.attributes["dimension"] = parser.integer()
    _keyword_attributes(parser, draft)
    draft.regions = (parser.region(()),)
    compiled("=function")[0](parser, draft)
    draft.attributes["operandSegmentSizes"] = (len(inputs), len(starts))
    draft.attributes["resultSegmentSizes"] = (len(draft.result_types) - len(starts), len(starts))


@part
def manual_computation(parser: Parser, draft: Draft) -> None:
    """`(%x) in_shardings=[...] out_shardings=[...] manual_axes={...} (%a: T) {...} : types`."""
    draft.operands = tuple(parser.listed(parser.value, "(", ")"))
    _shardings(parser, draft)
    parser.expect_word("manual_axes")
    parser.expect("=")
    draft.attributes["manual_axes"] = KINDS["axes"](parser, "manual_axes")
    _inner(parser, draft)


@part
def named_computation(parser: Parser, draft: Draft) -> None:
    """`<"name">(%x) (%a: T) {...} : types`."""
    parser.expect("<")
    draft.attributes["name"] = parser.string()
    parser.expect(">")
    draft.operands = tuple(parser.listed(parser.value, "(", ")"))
    _shardings(parser, draft)
    _inner(parser, draft)


def _shardings(parser: Parser, draft: Draft) -> None:
    for name in ("in_shardings", "out_shardings"):
        if parser.take_word(name):
            parser.expect("=")
            draft.attributes[name] = KINDS["shardings"](parser, name)


def _inner(parser: Parser, draft: Draft) -> None:
    draft.regions = (parser.region(tuple(parser.listed(parser.argument, "(", ")"))),)
    for each in compiled("{} =function"):
        each(parser, draft)
