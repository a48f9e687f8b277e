"""Pretty forms of operations: one row per op, which both reads and prints what follows its name.

Sections:

    Draft: an operation while it is read
    Kinds of attributes and of type lists
    Words of a row, compiled to functions that read
    Words of a row, compiled to functions that print
    Parts of forms that no row can state
    Forms with regions
    Forms of MLIR's shard dialect and of mesh, its former name
    The row of each op that has a pretty form
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from attrs import Factory, define, frozen

from shape_inference import COMPONENT, Dims, Shape, TupleShape, s64
from shape_inference.escaping import mlir_string

from ..spelling import fields, flag, listed, result_types_text, symbol
from .trees import (
    Argument,
    Attribute,
    Dense,
    Enumeration,
    Form,
    FunctionType,
    OpaqueType,
    ParsedOperation,
    Record,
    Region,
    ScalarType,
    Symbol,
    Type,
)

if TYPE_CHECKING:
    from .parser import Parser


# ----------------------------------------------------------------------------
# Draft: an operation while it is read


@define
class OperationDraft:
    """The parts of an operation that have been read so far."""

    name: str
    place: int
    operands: tuple[str, ...] = ()
    attributes: dict[str, Attribute] = Factory(dict)
    operand_types: tuple[Type, ...] = ()
    result_types: tuple[Type, ...] = ()
    regions: tuple[Region, ...] = ()
    kept: dict[str, Any] = Factory(dict)
    texts: dict[str, str] = Factory(dict)

    def set_types(self, type_: FunctionType) -> None:
        self.operand_types, self.result_types = type_.arguments, type_.results


# ----------------------------------------------------------------------------
# Kinds of attributes and of type lists


def read_integers(parser: Parser) -> tuple[int, ...]:
    """Read integers in square brackets."""
    return tuple(parser.listed(parser.integer, "[", "]"))


def _read_words(parser: Parser, kind: str) -> tuple[Enumeration, ...]:
    return tuple(Enumeration(kind, word) for word in parser.listed(parser.word, "[", "]"))


def _read_flag(parser: Parser) -> bool:
    if parser.take_word("true"):
        return True
    parser.expect_word("false")
    return False


def _read_raw(parser: Parser, kind: str) -> Record:
    return Record(kind, {}, parser.bracketed()[1:-1].strip())


def _read_reduced(parser: Parser) -> Record:
    """Read the axes of a reducing collective, after the reduction unless it is a sum: `max {"x"}`."""
    word = next((f"{each} " for each in ("max", "min", "sum") if parser.take_word(each)), "")
    return Record("sdy.axes", {}, f"{word}{parser.bracketed()}")


@frozen
class AttributeKind:
    """How attributes of a kind are read, given the name, and printed."""

    read: Callable[[Parser, str], Any]
    write: Callable[[Any], str] = str


KINDS = {
    "int": AttributeKind(lambda parser, name: parser.integer()),
    "ints": AttributeKind(lambda parser, name: read_integers(parser), listed),
    "float": AttributeKind(lambda parser, name: parser.number()),
    "flag": AttributeKind(lambda parser, name: _read_flag(parser), flag),
    "string": AttributeKind(lambda parser, name: parser.string(), mlir_string),
    "symbol": AttributeKind(lambda parser, name: Symbol(parser.symbol()), symbol),
    "name": AttributeKind(lambda parser, name: parser.symbol(), symbol),
    "word": AttributeKind(lambda parser, name: Enumeration(f"stablehlo.{name}", parser.word())),
    "precisions": AttributeKind(lambda parser, name: _read_words(parser, "stablehlo.precision")),
    "attribute": AttributeKind(lambda parser, name: parser.attribute()),
    "sharding": AttributeKind(lambda parser, name: _read_raw(parser, "sdy.sharding")),
    "shardings": AttributeKind(lambda parser, name: Record("sdy.sharding_per_value", {}, parser.bracketed())),
    "mesh": AttributeKind(lambda parser, name: _read_raw(parser, "sdy.mesh")),
    "axes": AttributeKind(lambda parser, name: Record(f"sdy.{name}", {}, parser.bracketed())),
    "reduced": AttributeKind(lambda parser, name: _read_reduced(parser)),
}


def _read_function_type(parser: Parser, draft: OperationDraft) -> None:
    draft.set_types(parser.function_type())


def _read_same(parser: Parser, draft: OperationDraft) -> None:
    """One type for all operands and the result, or a function type."""
    if parser.sees("("):
        _read_function_type(parser, draft)
        return
    found = parser.type()
    draft.operand_types, draft.result_types = (found,) * len(draft.operands), (found,)


def _read_results(parser: Parser, draft: OperationDraft) -> None:
    draft.result_types = parser.types_here()


def _read_operands(parser: Parser, draft: OperationDraft) -> None:
    draft.operand_types = parser.types_here()


def _read_arrow(parser: Parser, draft: OperationDraft) -> None:
    """The operand types, an arrow and the result types; or one type for all."""
    if parser.sees("("):
        _read_function_type(parser, draft)
        return
    found = parser.types_here()
    if parser.take("->"):
        draft.operand_types, draft.result_types = found, parser.result_types()
    else:
        draft.operand_types = found * len(draft.operands) if len(found) == 1 else found
        draft.result_types = found[:1]


def _read_repeated(parser: Parser, draft: OperationDraft) -> None:
    """One type for all operands, or one for each; there are no results."""
    if parser.sees("("):
        _read_function_type(parser, draft)
        return
    found = parser.types_here()
    draft.operand_types = found * len(draft.operands) if len(found) == 1 else found


def _read_pairs(parser: Parser, draft: OperationDraft) -> None:
    """The operand types, which are also the result types."""
    if parser.sees("("):
        _read_function_type(parser, draft)
        return
    draft.operand_types = draft.result_types = parser.types_here()


def _read_select(parser: Parser, draft: OperationDraft) -> None:
    """The types of the condition and of the selected values."""
    if parser.sees("("):
        _read_function_type(parser, draft)
        return
    condition = parser.type()
    parser.expect(",", " before the type of the selected values")
    found = parser.type()
    draft.operand_types, draft.result_types = (condition, found, found), (found,)


def _read_complex(parser: Parser, draft: OperationDraft) -> None:
    """The type of the complex result, which determines those of its parts."""
    if parser.sees("("):
        _read_function_type(parser, draft)
        return
    place, found = parser.skip(), parser.type()
    if not isinstance(found, Shape) or found.dtype not in COMPONENT:
        parser.fail("syntax", f"expected a tensor of complex numbers, got {found}", place=place)
    draft.operand_types = (found.with_dtype(COMPONENT[found.dtype]),) * len(draft.operands)
    draft.result_types = (found,)


def _read_tuple(parser: Parser, draft: OperationDraft) -> None:
    """The type of the tuple, which determines those of its elements."""
    if parser.sees("("):
        _read_function_type(parser, draft)
        return
    place, found = parser.skip(), parser.type()
    if not isinstance(found, TupleShape):
        parser.fail("syntax", f"expected a tuple type, got {found}", place=place)
    draft.operand_types, draft.result_types = found.elements, (found,)


def function_text(operands: Sequence[str], results: Sequence[str]) -> str:
    """The text of a function type."""
    return f"({', '.join(operands)}) -> {result_types_text(results)}"


def _same_text(operands: Sequence[str], results: Sequence[str]) -> str:
    (result,) = results
    return result if operands.count(result) == len(operands) else function_text(operands, results)


def _select_text(operands: Sequence[str], results: Sequence[str]) -> str:
    condition, *chosen = operands
    return f"{condition}, {chosen[0]}" if chosen == [*results] * 2 else function_text(operands, results)


@frozen
class TypeList:
    """How the types at the end of a form are read, and printed from operand and result types."""

    read: Callable[[Parser, OperationDraft], None]
    write: Callable[[Sequence[str], Sequence[str]], str] = function_text


TYPES = {
    "function": TypeList(_read_function_type),
    "same": TypeList(_read_same, _same_text),
    "results": TypeList(_read_results, lambda operands, results: ", ".join(results)),
    "operands": TypeList(_read_operands, lambda operands, results: ", ".join(operands)),
    "arrow": TypeList(_read_arrow, lambda operands, results: f"{', '.join(operands)} -> {result_types_text(results)}"),
    "repeated": TypeList(_read_repeated),
    "pairs": TypeList(_read_pairs, lambda operands, results: ", ".join(operands)),
    "select": TypeList(_read_select, _select_text),
    "complex": TypeList(_read_complex),
    "tuple": TypeList(_read_tuple, lambda operands, results: ", ".join(results)),
}


# ----------------------------------------------------------------------------
# Words of a row, compiled to functions that read
#
# A row is a list of words. `%` is one operand, `%*` a list of operands, `{}` optional attributes in braces,
# `$name:kind` an attribute, `=types` the types at the end, `[ ... ]` an optional part that begins with a token, and
# `&part` a part that a function reads. Every other word is read literally.

Part: TypeAlias = "Callable[[Parser, OperationDraft], None]"

PARTS: dict[str, Part] = {}
"""The parts `&part` of rows, by name."""

_WORD = re.compile(r"\w")


def part(function: Part) -> Part:
    """A decorator that enters a function as the part `&name` of rows."""
    PARTS[function.__name__.strip("_")] = function
    return function


@functools.cache
def compile_row(row: str) -> tuple[Part, ...]:
    """The functions that read a row, in order."""
    return tuple(_compile_words(iter(row.split())))


def _compile_words(words: Iterator[str]) -> Iterator[Part]:
    for word in words:
        if word == "]":
            return
        yield _optional_part(next(words), tuple(_compile_words(words))) if word == "[" else _compile_word(word)


def _compile_word(word: str) -> Part:
    if word in _OPERANDS:
        return _OPERANDS[word]
    if word.startswith("$"):
        name, _, kind = word[1:].partition(":")
        return _attribute_part(name, kind)
    if word.startswith("=") and len(word) > 1:
        return _types_part(word[1:])
    if word.startswith("&"):
        return PARTS[word[1:]]
    return _literal(word)


def _literal(word: str) -> Part:
    if _WORD.match(word):
        return lambda parser, draft: parser.expect_word(word)
    return lambda parser, draft: parser.expect(word)


def _optional_part(word: str, parts: tuple[Part, ...]) -> Part:
    """A part that is read only if its first token is there; `,_word` is a comma and a word."""
    tokens = [word] if _WORD.match(word) else word.split("_", 1)

    def read(parser: Parser, draft: OperationDraft) -> None:
        begin = parser.skip()
        for token in tokens:
            if not (parser.take_word(token) if _WORD.match(token) else parser.take(token)):
                parser.place = begin
                return
        for each in parts:
            each(parser, draft)

    return read


def _attribute_part(name: str, kind: str) -> Part:
    read = KINDS[kind].read

    def fill(parser: Parser, draft: OperationDraft) -> None:
        draft.attributes[name] = read(parser, name)

    return fill


def _types_part(kind: str) -> Part:
    read = TYPES[kind].read

    def fill(parser: Parser, draft: OperationDraft) -> None:
        parser.expect(":", " before the types")
        read(parser, draft)

    return fill


def _operand(parser: Parser, draft: OperationDraft) -> None:
    draft.operands += (parser.value(),)


def _operands(parser: Parser, draft: OperationDraft) -> None:
    draft.operands += parser.values()


def _attributes(parser: Parser, draft: OperationDraft) -> None:
    if not parser.sees("{"):
        return
    for key, value in parser.dictionary(draft.texts).items():
        if key in draft.attributes:
            parser.fail("duplicate_attribute", f"{key[:60]} appears twice")
        draft.attributes[key] = value


_OPERANDS: dict[str, Part] = {"%": _operand, "%*": _operands, "{}": _attributes}


# ----------------------------------------------------------------------------
# Words of a row, compiled to functions that print
#
# A blank precedes each word except a comma and brackets. An optional part is printed if its attribute is given.

Attributes: TypeAlias = "Mapping[str, Any]"
Piece: TypeAlias = "Callable[[Sequence[str], Attributes], Any]"

PRINTS: dict[str, Piece] = {}
"""How the parts `&part` of rows are printed, by name, including the separator before them."""


def prints(read: Part) -> Callable[[Piece], Piece]:
    """A decorator that enters a function as the printer of a part."""

    def enter(write: Piece) -> Piece:
        PRINTS[read.__name__.strip("_")] = write
        return write

    return enter


@frozen
class Printer:
    """The printer that the row of an op becomes.

    `head` returns the text up to the annotations, from operand names and attributes. `types` returns the text of the
    types, from operand and result types.
    """

    head: Piece
    types: Callable[[Sequence[str], Sequence[str]], str]

    def text(self, operands: Sequence[str], types: Sequence[str], results: Sequence[str], /, **attributes: Any) -> str:
        """The text of an op without annotations."""
        return f"{self.head(operands, attributes)} : {self.types(types, results)}"


def compile_printer(name: str, row: str) -> Printer:
    """Compile a row to a printer; words after `{}` are types."""
    before, _, after = row.partition("{}")
    kind = TYPES[after.split("=")[1]] if "=" in after else TYPES["operands"]
    template, pieces = _compile_template(before.split())
    return Printer(_fill_template(f"{name}{template}", pieces), kind.write)


def _fill_template(template: str, pieces: Sequence[Piece]) -> Piece:
    """The template with each `%s` filled by a piece."""
    if len(pieces) == 1:
        (only,) = pieces
        return lambda operands, attributes: template % (only(operands, attributes),)
    if len(pieces) == 2:
        first, second = pieces
        return lambda operands, attributes: template % (first(operands, attributes), second(operands, attributes))
    return lambda operands, attributes: template % tuple([piece(operands, attributes) for piece in pieces])


def _compile_template(words: Sequence[str]) -> tuple[str, tuple[Piece, ...]]:
    waiting, template, pieces, count, gap = iter(words), "", list[Piece](), 0, " "
    for word in waiting:
        if word in ("(", ",", ")") or word[0] not in "[%$&":
            template += word if word in ("(", ",", ")") else f"{gap}{word}"
        elif word == "[":
            template += "%s"
            pieces.append(_optional_text([*itertools.takewhile(lambda each: each != "]", waiting)]))
        elif word[0] == "&" or word == "%*":  # includes its separator
            template += "%s"
            pieces.append(_part_text(word[1:]) if word[0] == "&" else _operands_text(count, gap))
        else:
            template += f"{gap}%s"
            pieces.append(_operand_text(count) if word == "%" else _attribute_text(word))
            count += word == "%"
        gap = "" if word == "(" else " "
    return template, tuple(pieces)


def _operand_text(number: int) -> Piece:
    return lambda operands, attributes: operands[number]


def _operands_text(first: int, gap: str) -> Piece:
    if first == 0:
        return lambda operands, attributes: f"{gap}{', '.join(operands)}" if operands else ""
    return lambda operands, attributes: f"{gap}{', '.join(operands[first:])}" if len(operands) > first else ""


def _attribute_text(word: str) -> Piece:
    name, _, kind = word[1:].partition(":")
    write = KINDS[kind].write
    if write is str:  # as the template does
        return lambda operands, attributes: attributes[name]
    return lambda operands, attributes: write(attributes[name])


def _part_text(name: str) -> Piece:
    return PRINTS[name]


def _optional_text(words: Sequence[str]) -> Piece:
    """An optional part, printed if its attribute is given; `,_word` is a comma and a word."""
    apart = [each for word in words for each in (word.split("_", 1) if word[:2] == ",_" else (word,))]
    found = _fill_template(*_compile_template(apart))
    name = next(word[1:].partition(":")[0] for word in words if word.startswith("$"))
    return lambda operands, attributes: found(operands, attributes) if name in attributes else ""


# ----------------------------------------------------------------------------
# Parts of forms that no row can state: constants, ranges of slices, windows, dimension numbers

_TWO_COMMAS = re.compile(r",\s*+,")
_FLOAT_FORMAT = re.compile(r"e(\d{1,3})m(\d{1,4})\b", re.ASCII)
_RANGE = re.compile(r"\s*+(-?\d{1,19})\s*+:\s*+(-?\d{1,19})\s*+(?::\s*+(-?\d{1,19}))?\s*+", re.ASCII)


@part
def constant(parser: Parser, draft: OperationDraft) -> None:
    """The elements, which have the type of the result; older texts state them as the attribute `value`."""
    if parser.take("("):
        parser.expect(")")
        for each in compile_row("{} =function"):
            each(parser, draft)
        return
    _read_annotations(parser, draft)
    place, found = parser.skip(), parser.attribute()
    if not isinstance(found, Dense):
        parser.fail("syntax", "expected a constant such as dense<...> : tensor<...>", place=place)
    draft.attributes["value"] = found
    draft.result_types = (found.type,)


def constant_text(notes: str, elements: str, type_: str) -> str:
    """The text of a constant; annotations precede the elements."""
    return f"stablehlo.constant{notes} {elements} : {type_}"


@part
def expected(parser: Parser, draft: OperationDraft) -> None:
    """The elements to compare a value with."""
    place, found = parser.skip(), parser.attribute()
    if not isinstance(found, Dense):
        parser.fail("syntax", "expected elements such as dense<...> : tensor<...>", place=place)
    draft.attributes["value"], draft.operand_types = found, (found.type,)


@part
def operand_types(parser: Parser, draft: OperationDraft) -> None:
    draft.operand_types = parser.types_here()


@part
def empty_list(parser: Parser, draft: OperationDraft) -> None:
    """MLIR prints a comma after a scalar operand even though no indices follow."""
    match = parser.scan(_TWO_COMMAS)
    if match:
        parser.place = match.end() - 1


@prints(empty_list)
def _empty_list_text(operands: Sequence[str], attributes: Attributes) -> str:
    return ""


@part
def tuple_index(parser: Parser, draft: OperationDraft) -> None:
    parser.expect("[")
    draft.attributes["index"] = parser.integer()
    parser.expect("]")


@prints(tuple_index)
def _tuple_index_text(operands: Sequence[str], attributes: Attributes) -> str:
    return f"[{attributes['index']}]"


@part
def slice_ranges(parser: Parser, draft: OperationDraft) -> None:
    """`[1:3, 0:8:2]`: start, limit and optional stride of each dimension."""
    place = parser.skip()
    inside = parser.bracketed()[1:-1]
    found = [_RANGE.fullmatch(each) for each in inside.split(",")] if inside.strip() else []
    if not all(found):
        parser.fail("syntax", "expected ranges such as [start:limit:stride, ...]", place=place)
    ranges = [(int(each[1]), int(each[2]), int(each[3] or 1)) for each in found if each]
    names = ("start_indices", "limit_indices", "strides")
    draft.attributes.update({name: tuple(each[n] for each in ranges) for n, name in enumerate(names)})


@prints(slice_ranges)
def _slice_ranges_text(operands: Sequence[str], attributes: Attributes) -> str:
    starts, limits = attributes["start_indices"], attributes["limit_indices"]
    strides = attributes["strides"] or (1,) * len(starts)
    ranges = zip(starts, limits, strides, strict=True)
    return f" {listed(f'{low}:{high}:{step}' if step != 1 else f'{low}:{high}' for low, high, step in ranges)}"


@part
def float_format(parser: Parser, draft: OperationDraft) -> None:
    match = parser.scan(_FLOAT_FORMAT)
    if not match:
        parser.expected("a format such as e5m2")
    draft.attributes.update(exponent_bits=int(match[1]), mantissa_bits=int(match[2]))


@prints(float_format)
def _float_format_text(operands: Sequence[str], attributes: Attributes) -> str:
    return f" e{attributes['exponent_bits']}m{attributes['mantissa_bits']}"


@part
def dot_clauses(parser: Parser, draft: OperationDraft) -> None:
    """`contracting_dims`, `batching_dims`, `precision` and `algorithm`, all optional."""
    numbers: dict[str, Attribute] = {}
    while parser.take(","):
        place, word = parser.skip(), parser.word()
        parser.expect("=", f" after {word[:40]}")
        if word in ("contracting_dims", "batching_dims"):
            numbers[f"lhs_{word[:-1]}ensions"] = read_integers(parser)
            parser.expect_word("x")
            numbers[f"rhs_{word[:-1]}ensions"] = read_integers(parser)
        elif word == "precision":
            words = parser.listed(parser.word, "[", "]")
            draft.attributes["precision_config"] = tuple(Enumeration("stablehlo.precision", each) for each in words)
        elif word == "algorithm":
            draft.attributes["algorithm"] = parser.fields_of("stablehlo.dot_algorithm")
        else:
            parser.fail(
                "syntax",
                f"expected contracting_dims, batching_dims, precision or algorithm, got {word[:40]!r}",
                place=place,
            )
    if draft.name.endswith("dot_general"):
        draft.attributes["dot_dimension_numbers"] = Record("stablehlo.dot", numbers, "")


@prints(dot_clauses)
def _dot_clauses_text(operands: Sequence[str], attributes: Attributes) -> str:
    words = []
    if attributes["lhs_batching_dimensions"]:
        lhs, rhs = attributes["lhs_batching_dimensions"], attributes["rhs_batching_dimensions"]
        words.append(f", batching_dims = {listed(lhs)} x {listed(rhs)}")
    lhs, rhs = attributes["lhs_contracting_dimensions"], attributes["rhs_contracting_dimensions"]
    words.append(f", contracting_dims = {listed(lhs)} x {listed(rhs)}")
    if attributes["precision_config"]:
        words.append(f", precision = {listed(attributes['precision_config'])}")
    if attributes["algorithm"]:
        words.append(f", algorithm = {attributes['algorithm']}")
    return "".join(words)


@part
def convolution_dimensions(parser: Parser, draft: OperationDraft) -> None:
    """`[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`: the roles of the dimensions of input, kernel and output."""
    begin = parser.skip()
    parser.bracketed()
    parser.expect_word("x")
    parser.bracketed()
    parser.expect("->")
    parser.bracketed()
    draft.attributes["dimension_numbers"] = Record("stablehlo.conv", {}, parser.text[begin : parser.place])


@prints(convolution_dimensions)
def _convolution_dimensions_text(operands: Sequence[str], attributes: Attributes) -> str:
    numbers = attributes["dimension_numbers"]
    return f" {_roles('bf', numbers.lhs)}x{_roles('oi', numbers.rhs)}->{_roles('bf', numbers.output)}"


def _roles(words: str, dims: Dims) -> str:
    """The role of each dimension: a letter, or the number of a spatial one."""
    ordered = sorted(zip(dims, [*words, *range(len(dims) - 2)], strict=True))
    return listed(role for _, role in ordered)


_WINDOW = {
    "stride": "window_strides",
    "pad": "padding",
    "lhs_dilate": "lhs_dilation",
    "rhs_dilate": "rhs_dilation",
    "reverse": "window_reversal",
}


@part
def window(parser: Parser, draft: OperationDraft) -> None:
    """`{stride = [1, 1], pad = [[0, 0], [1, 1]], reverse = [false, true]}`."""
    parser.expect("{")
    while not parser.take("}"):
        place, word = parser.skip(), parser.word()
        if word not in _WINDOW:
            parser.fail(
                "syntax", f"unknown window field {word[:40]!r}; expected one of {', '.join(_WINDOW)}", place=place
            )
        parser.expect("=", f" after {word}")
        found = parser.attribute()
        draft.attributes[_WINDOW[word]] = _padding_attribute(parser, found, place) if word == "pad" else found
        if not parser.sees("}"):
            parser.expect(",", " or '}'")


@prints(window)
def _window_text(operands: Sequence[str], attributes: Attributes) -> str:
    return f" {{{fields({word: listed(attributes[name]) for word, name in _WINDOW.items()})}}}"


def _padding_attribute(parser: Parser, found: Attribute, place: int) -> Attribute:
    try:
        array = np.array(found, np.int64).reshape(-1, 2)
    except (TypeError, ValueError, OverflowError):
        parser.fail("syntax", "expected padding such as [[low, high], ...]", place=place)
    return Dense(Shape(s64, array.shape), array)


@part
def barrier(parser: Parser, draft: OperationDraft) -> None:
    """Operands with their types; empty parentheses if there are none."""
    _read_annotations(parser, draft)
    if parser.take("("):
        parser.expect(")")
        return
    draft.operands = parser.values()
    _read_annotations(parser, draft)
    parser.expect(":", " before the types")
    TYPES["pairs"].read(parser, draft)


@prints(barrier)
def _barrier_text(operands: Sequence[str], attributes: Attributes) -> str:
    return f" {', '.join(operands)}"


def _read_annotations(parser: Parser, draft: OperationDraft) -> None:
    compile_row("{}")[0](parser, draft)


# ----------------------------------------------------------------------------
# Forms with regions: reduce, while, functions, modules, scans and the computations of sdy


@part
def reduce(parser: Parser, draft: OperationDraft) -> None:
    """`(%x init: %c) applies stablehlo.add across dimensions = [0] : types`, or with a region after `reducer`."""
    inputs, inits, inner = [], [], ""
    while True:
        parser.expect("(", " before an operand and its initial value")
        inputs.append(parser.value())
        parser.expect_word("init")
        parser.expect(":")
        inits.append(parser.value())
        parser.expect(")")
        if not parser.take(","):
            break
    draft.operands = (*inputs, *inits)
    if parser.take_word("applies"):
        inner = parser.word()
    parser.expect_word("across")
    parser.expect_word("dimensions")
    parser.expect("=")
    draft.attributes["dimensions"] = read_integers(parser)
    for each in compile_row("{} =function"):
        each(parser, draft)
    draft.regions = (_one_op_region(parser, draft, inner) if inner else _reducer_region(parser, len(inputs)),)


def reduce_text(pairs: Sequence[tuple[str, str]], word: str, dimensions: Dims, notes: str, types: str) -> str:
    """The text of a reduction: each operand with its initial value, and the applied op, if the reducer is one op."""
    inputs = ", ".join(f"({operand} init: {init})" for operand, init in pairs)
    applies = f" applies {word}" if word else ""
    return f"stablehlo.reduce{inputs}{applies} across dimensions = {listed(dimensions)}{notes} : {types}"


def _one_op_region(parser: Parser, draft: OperationDraft, inner: str) -> Region:
    """The region of a reducer that is one op."""
    if len(draft.operand_types) != 2:
        parser.fail(
            "syntax",
            "'applies' takes one operand and its initial value; for several operands, write a region after 'reducer'",
        )
    scalar = draft.operand_types[1]
    one = ParsedOperation(Form(inner, {}, (scalar, scalar), (scalar,)), ("lhs", "rhs"), ("result",), place=draft.place)
    end = ParsedOperation(Form("stablehlo.return", {}, (scalar,), ()), ("result",), place=draft.place)
    return Region((Argument("lhs", scalar), Argument("rhs", scalar)), (one, end), draft.place)


def _reducer_region(parser: Parser, count: int) -> Region:
    """The region after `reducer(%a: T, %b: T) (%c: U, %d: U)`; its arguments are a, c, b, d."""
    parser.located()
    parser.expect_word("reducer")
    pairs = []
    for _ in range(count):
        pairs.append(parser.listed(parser.argument, "(", ")"))
        if len(pairs[-1]) != 2:
            parser.fail("syntax", f"expected 2 arguments for each operand, got {len(pairs[-1])}")
    parser.located()
    return parser.region(tuple([pair[0] for pair in pairs] + [pair[1] for pair in pairs]))


def reducer_text(pairs: Sequence[tuple[str, str]], body: str) -> str:
    """The text of the region of a reduction, with each pair of arguments in parentheses."""
    return f"reducer{' '.join(f'({first}, {second})' for first, second in pairs)} {body}"


@part
def while_(parser: Parser, draft: OperationDraft) -> None:
    """`(%a = %0, %b = %1) : types cond {...} do {...}`."""
    names: list[tuple[str, str]] = parser.listed(lambda: _binding(parser), "(", ")")
    draft.operands = tuple([value for _, value in names])
    if parser.take(":"):
        draft.operand_types = parser.types_here() if names else ()
    draft.result_types = draft.operand_types
    if len(draft.operand_types) != len(names):
        parser.fail("syntax", f"expected {len(names)} type{'s' * (len(names) != 1)}, got {len(draft.operand_types)}")
    _read_attributes_clause(parser, draft)
    arguments = tuple(Argument(name, type_) for (name, _), type_ in zip(names, draft.operand_types, strict=True))
    parser.expect_word("cond")
    condition = parser.region(arguments)
    parser.expect_word("do")
    draft.regions = (condition, parser.region(arguments))


def while_text(
    pairs: Sequence[tuple[str, str]], types: Sequence[str], notes: str, indent: str, regions: Sequence[str]
) -> str:
    """The text of a loop: the names of its state with their initial values, the condition and the body."""
    state = ", ".join(f"{name} = {value}" for name, value in pairs)
    typed = f" : {', '.join(types)}" if types else ""
    attributes = f" attributes{notes}" if notes else ""
    condition, body = regions
    return f"stablehlo.while({state}){typed}{attributes}\n{indent}cond {condition} do {body}"


def _binding(parser: Parser) -> tuple[str, str]:
    name = parser.value()
    parser.expect("=", f" after %{name}")
    return name, parser.value()


def _read_attributes_clause(parser: Parser, draft: OperationDraft) -> None:
    if parser.take_word("attributes"):
        compile_row("{}")[0](parser, draft)


@part
def function(parser: Parser, draft: OperationDraft) -> None:
    """`private @name(%a: T {...}) -> (U {...}) attributes {...} {...}`."""
    if not parser.sees("@"):
        draft.attributes["sym_visibility"] = parser.word()
    draft.attributes["sym_name"] = parser.symbol()
    notes: list[Record] = []
    arguments = tuple(parser.listed(lambda: parser.noted_argument(notes), "(", ")"))
    draft.attributes["arg_attrs"] = tuple(notes)
    results = _read_function_results(parser, draft) if parser.take("->") else ()
    draft.attributes["function_type"] = FunctionType(tuple(each.type for each in arguments), results)
    _read_attributes_clause(parser, draft)
    if parser.sees("{"):
        draft.regions = (parser.region(arguments),)


def _read_function_results(parser: Parser, draft: OperationDraft) -> tuple[Type, ...]:
    notes: list[Record] = []

    def result() -> Type:
        found = parser.type()
        notes.append(Record("", parser.dictionary() if parser.sees("{") else {}, ""))
        return found

    found = tuple(parser.listed(result, "(", ")")) if parser.sees("(") else (parser.type(),)
    draft.attributes["res_attrs"] = tuple(notes)
    return found


@part
def module(parser: Parser, draft: OperationDraft) -> None:
    if parser.sees("@"):
        draft.attributes["sym_name"] = parser.symbol()
    _read_attributes_clause(parser, draft)
    draft.regions = (parser.region(()),)


@part
def scan(parser: Parser, draft: OperationDraft) -> None:
    """`(%x) inits (%c) dimension = 0 {...} : types`."""
    inputs = parser.listed(parser.value, "(", ")")
    parser.expect_word("inits")
    inits = parser.listed(parser.value, "(", ")")
    draft.operands = (*inputs, *inits)
    parser.expect_word("dimension")
    parser.expect("=")
    draft.attributes["dimension"] = parser.integer()
    _read_attributes_clause(parser, draft)
    draft.regions = (parser.region(()),)
    compile_row("=function")[0](parser, draft)
    draft.attributes["operandSegmentSizes"] = (len(inputs), len(inits))
    draft.attributes["resultSegmentSizes"] = (len(draft.result_types) - len(inits), len(inits))


@part
def manual_computation(parser: Parser, draft: OperationDraft) -> None:
    """`(%x) in_shardings=[...] out_shardings=[...] manual_axes={...} (%a: T) {...} : types`."""
    draft.operands = tuple(parser.listed(parser.value, "(", ")"))
    _read_shardings(parser, draft)
    parser.expect_word("manual_axes")
    parser.expect("=")
    draft.attributes["manual_axes"] = KINDS["axes"].read(parser, "manual_axes")
    _read_body(parser, draft)


@part
def named_computation(parser: Parser, draft: OperationDraft) -> None:
    """`<"name">(%x) (%a: T) {...} : types`."""
    parser.expect("<")
    draft.attributes["name"] = parser.string()
    parser.expect(">")
    draft.operands = tuple(parser.listed(parser.value, "(", ")"))
    _read_shardings(parser, draft)
    _read_body(parser, draft)


def _read_shardings(parser: Parser, draft: OperationDraft) -> None:
    for name in ("in_shardings", "out_shardings"):
        if parser.take_word(name):
            parser.expect("=")
            draft.attributes[name] = KINDS["shardings"].read(parser, name)


def _read_body(parser: Parser, draft: OperationDraft) -> None:
    draft.regions = (parser.region(tuple(parser.listed(parser.argument, "(", ")"))),)
    for each in compile_row("{} =function"):
        each(parser, draft)


# ----------------------------------------------------------------------------
# Forms of MLIR's shard dialect and of mesh, its former name: rows, and parts that no row can state

_ON = "% on $grid:symbol [ AXES = $grid_axes:ints ]"
_ROWS = f"""
all_gather: {_ON} gather_axis = $gather_axis:int {{}} =arrow
all_reduce: {_ON} [ reduction = &reduction ] {{}} =arrow
all_slice: {_ON} slice_axis = $slice_axis:int {{}} =arrow
all_to_all: {_ON} split_axis = $split_axis:int concat_axis = $concat_axis:int {{}} =arrow
broadcast: {_ON} root = $root:ints {{}} =arrow
gather: {_ON} gather_axis = $gather_axis:int root = $root:ints {{}} =arrow
get_sharding: % {{}} =arrow
grid: $sym_name:name &grid_sizes {{}}
grid_shape: $grid:symbol [ axes = $axes:ints ] {{}} =results
neighbors_linear_indices: on $grid:symbol &device split_axes = $split_axes:ints {{}} : &index_types
process_linear_index: on $grid:symbol {{}} =results
process_multi_index: on $grid:symbol [ axes = $axes:ints ] {{}} =results
recv: {_ON} [ source = $source:ints ] {{}} =arrow
reduce: {_ON} [ reduction = &reduction ] root = $root:ints {{}} =arrow
reduce_scatter: {_ON} [ reduction = &reduction ] &scatter_axis {{}} =arrow
scatter: {_ON} &scatter_axis root = $root:ints {{}} =arrow
send: {_ON} destination = $destination:ints {{}} =arrow
shard: % to % [ annotate_for_users &for_users ] {{}} : &sharded
shard_shape: dims = &dims sharding = % device = &device {{}} : &shard_shape_types
sharding: $grid:symbol split_axes = $split_axes:attribute [ halo_sizes = $halo_sizes:ints ] \
[ sharded_dims_offsets = $sharded_dims_offsets:ints ] {{}} =results
shift: {_ON} shift_axis = $shift_axis:int offset = $offset:int [ rotate &rotate ] {{}} =arrow
update_halo: % on $grid:symbol split_axes = $split_axes:attribute halo_sizes = $halo_sizes:ints {{}} =same
"""
_SIZES = re.compile(r"\s*+((?:\d{1,9}|\?)(?:x(?:\d{1,9}|\?))*+)", re.ASCII)
INDEX = ScalarType("index")
SHARDING = OpaqueType("!shard.sharding")


def shard_rows() -> dict[str, str]:
    """The rows under both names of the dialect; in the older one a grid is a mesh, with mesh_axes."""
    found = {}
    for line in _ROWS.strip().splitlines():
        name, _, row = line.partition(": ")
        found[f"shard.{name}"] = row.replace("AXES", "grid_axes")
        found[f"mesh.{'mesh' + name[4:] if name in ('grid', 'grid_shape') else name}"] = row.replace(
            "AXES", "mesh_axes"
        )
    return found


@part
def grid_sizes(parser: Parser, draft: OperationDraft) -> None:
    """The sizes of a grid, such as 2x?x4; -1 for an unknown one."""
    for token in ("(", "shape", "="):
        parser.expect(token)
    match = _SIZES.match(parser.text, parser.place)
    words = match[1].split("x") if match else []
    parser.place = match.end() if match else parser.place
    parser.expect(")")
    draft.attributes["shape"] = tuple(-1 if word == "?" else int(word) for word in words)


@part
def reduction(parser: Parser, draft: OperationDraft) -> None:
    """`<max>`, or the full attribute."""
    if parser.take("<"):
        draft.attributes["reduction"] = Enumeration("shard.partial", parser.word())
        parser.expect(">")
    else:
        draft.attributes["reduction"] = parser.attribute()


@part
def scatter_axis(parser: Parser, draft: OperationDraft) -> None:
    """The scattered dimension, under either of its names."""
    if not parser.take_word("scatter_dim"):
        parser.expect_word("scatter_axis")
    parser.expect("=")
    draft.attributes["scatter_axis"] = parser.integer()


@part
def rotate(parser: Parser, draft: OperationDraft) -> None:
    draft.attributes["rotate"] = True


@part
def for_users(parser: Parser, draft: OperationDraft) -> None:
    draft.attributes["annotate_for_users"] = True


@part
def sharded(parser: Parser, draft: OperationDraft) -> None:
    """The type of the tensor; the text omits that of the sharding."""
    found = parser.type()
    draft.operand_types, draft.result_types = (found, SHARDING), (found,)


@part
def device(parser: Parser, draft: OperationDraft) -> None:
    _read_indices(parser, draft, "device")


@part
def dims(parser: Parser, draft: OperationDraft) -> None:
    _read_indices(parser, draft, "dims")


def _read_indices(parser: Parser, draft: OperationDraft, name: str) -> None:
    """Numbers and values, such as `[1, %n]`; a value becomes -1 and an operand."""
    found: list[Attribute] = []

    def item() -> None:
        if parser.sees("%"):
            draft.operands += (parser.value(),)
            found.append(-1)
        else:
            found.append(parser.integer())

    parser.listed(item, "[", "]")
    draft.attributes[name] = tuple(found)


@part
def shard_shape_types(parser: Parser, draft: OperationDraft) -> None:
    """The types of the extents; the text omits those of the operands, indices and one sharding."""
    given = draft.attributes["dims"]
    open_dims = sum(each == -1 for each in given) if isinstance(given, tuple) else 0
    count = len(draft.operands)
    draft.operand_types = (*[INDEX] * open_dims, SHARDING, *[INDEX] * (count - open_dims - 1))
    draft.result_types = parser.types_here()


@part
def index_types(parser: Parser, draft: OperationDraft) -> None:
    """The types of results; these and the operands are indices."""
    draft.operand_types, draft.result_types = (INDEX,) * len(draft.operands), parser.types_here()


@part
def arith_constant(parser: Parser, draft: OperationDraft) -> None:
    """A number with its type, or the elements of a tensor."""
    if parser.sees("dense"):
        found = parser.attribute()
        if isinstance(found, Dense):
            draft.attributes["value"], draft.result_types = found, (found.type,)
            return
    draft.attributes["value"] = parser.number()
    parser.expect(":", " before the type of the number")
    draft.result_types = (parser.type(),)


# ----------------------------------------------------------------------------
# The row of each op that has a pretty form

_STABLEHLO = """
abs: %* {} =same
add: %* {} =same
after_all: %* {} =same
and: %* {} =same
atan2: %* {} =same
bitcast_convert: %* {} =function
broadcast: % , sizes = $broadcast_sizes:ints {} =function
broadcast_in_dim: % , dims = $broadcast_dimensions:ints {} =function
cbrt: %* {} =same
ceil: %* {} =same
cholesky: % [ ,_lower = $lower:flag ] {} =same
clamp: %* {} =same
compare: $comparison_direction:word , % , % [ , $compare_type:word ] {} =function
complex: %* {} =complex
composite: $name:string %* {} =function
concatenate: %* , dim = $dimension:int {} =function
constant: &constant
convert: %* {} =same
convolution: ( %* ) dim_numbers = &convolution_dimensions , window = &window {} =function
cosine: %* {} =same
count_leading_zeros: %* {} =same
create_token: {} =results
custom_call: $call_target_name:name ( %* ) {} =function
divide: %* {} =same
dot: % , % &dot_clauses {} =function
dot_general: % , % &dot_clauses {} =function
dynamic_broadcast_in_dim: % , % , dims = $broadcast_dimensions:ints {} =function
dynamic_iota: % , dim = $iota_dimension:int {} =function
dynamic_pad: %* {} =function
dynamic_reshape: %* {} =function
dynamic_slice: %* &empty_list , sizes = $slice_sizes:ints {} =function
dynamic_update_slice: %* {} =function
exponential: %* {} =same
exponential_minus_one: %* {} =same
fft: % , type = $fft_type:word , length = $fft_length:ints {} =function
floor: %* {} =same
get_dimension_size: % , dim = $dimension:int {} =function
get_tuple_element: % &tuple_index {} =function
imag: %* {} =same
iota: dim = $iota_dimension:int {} =results
is_finite: %* {} =function
log: %* {} =same
log_plus_one: %* {} =same
logistic: %* {} =same
maximum: %* {} =same
minimum: %* {} =same
multiply: %* {} =same
negate: %* {} =same
not: %* {} =same
optimization_barrier: &barrier
or: %* {} =same
pad: %* , low = $edge_padding_low:ints , high = $edge_padding_high:ints , interior = $interior_padding:ints {} =function
partition_id: {} =results
popcnt: %* {} =same
power: %* {} =same
real: %* {} =same
real_dynamic_slice: %* {} =function
reduce: &reduce
reduce_precision: % , format = &float_format {} =same
remainder: %* {} =same
replica_id: {} =results
reshape: %* {} =function
return: %* {} [ : &operand_types ]
reverse: % , dims = $dimensions:ints {} =same
rng: %* , distribution = $rng_distribution:word {} =function
rng_bit_generator: % , algorithm = $rng_algorithm:word {} =function
round_nearest_afz: %* {} =same
round_nearest_even: %* {} =same
rsqrt: %* {} =same
select: %* {} =select
set_dimension_size: %* , dim = $dimension:int {} =function
shift_left: %* {} =same
shift_right_arithmetic: %* {} =same
shift_right_logical: %* {} =same
sign: %* {} =same
sine: %* {} =same
slice: % &slice_ranges {} =function
sqrt: %* {} =same
subtract: %* {} =same
tan: %* {} =same
tanh: %* {} =same
transpose: % , dims = $permutation:ints {} =function
tuple: %* {} =tuple
uniform_dequantize: %* {} =same
uniform_quantize: %* {} =same
while: &while
xor: %* {} =same
"""

_SDY = """
all_gather: $gathering_axes:axes % out_sharding = $out_sharding:sharding {} =same
all_reduce: $reduction_axes:reduced % out_sharding = $out_sharding:sharding {} =same
all_slice: $slicing_axes:axes % out_sharding = $out_sharding:sharding {} =same
all_to_all: $params:axes % out_sharding = $out_sharding:sharding {} =same
collective_permute: % out_sharding = $out_sharding:sharding {} =same
constant: &constant
data_flow_edge: % [ sharding = $sharding:sharding ] {} =same
manual_computation: &manual_computation
mesh: $sym_name:name = $mesh:mesh {}
named_computation: &named_computation
propagation_barrier: % allowed_direction = $allowed_direction:word {} =same
reduce_scatter: $reduce_scatter_axes:reduced % out_sharding = $out_sharding:sharding {} =same
replicated_to_unreduced: $axes:axes % out_sharding = $out_sharding:sharding {} =same
reshard: % $sharding:sharding {} =same
return: %* {} [ : &operand_types ]
sharded_to_unreduced: $axes:axes % out_sharding = $out_sharding:sharding {} =same
sharding_constraint: % $sharding:sharding {} =same
sharding_group: % group_id = $group_id:int {} =operands
"""

_CHLO = """
constant: &constant
scan: &scan
top_k: ( % , k = $k:int [ ,_is_stable = $is_stable:flag ] ) {} =arrow
"""

_OTHER = """
arith.constant: &arith_constant
builtin.module: &module
check.expect_almost_eq: % , % [ ,_tolerance = $tolerance:float ] {} =repeated
check.expect_almost_eq_const: % , &expected [ ,_tolerance = $tolerance:float ] {} [ : &operand_types ]
check.expect_close: % , % [ ,_max_ulp_difference = $max_ulp_difference:int ] \
[ ,_min_ulp_difference = $min_ulp_difference:int ] {} =operands
check.expect_eq: % , % {} =repeated
check.expect_eq_const: % , &expected {} [ : &operand_types ]
func.call: $callee:symbol ( %* ) {} =function
func.func: &function
func.return: %* {} [ : &operand_types ]
interpreter.print: %* {} =operands
interpreter.probe: % , probe_id = $probe_id:string {} =same
mhlo.erf: %* {} =same
"""


def _parse_rows(lines: str, *dialects: str) -> Iterator[tuple[str, str]]:
    for line in lines.strip().splitlines():
        name, _, row = line.partition(": ")
        yield from ((f"{dialect}{name}", row) for dialect in dialects)


ROWS: Mapping[str, str] = dict([
    *_parse_rows(_STABLEHLO, "stablehlo.", "mhlo."), *_parse_rows(_SDY, "sdy."), *_parse_rows(_CHLO, "chlo."),
    *_parse_rows(_OTHER, ""),
    *shard_rows().items(),
])  # fmt: skip
"""The row of each op; ops of chlo that are not listed have the row `OTHERS`."""

OTHERS = "%* {} =arrow"

SHORT = {"call": "func.call", "func": "func.func", "module": "builtin.module", "return": "func.return"}
"""Ops whose dialect may be omitted."""


def row_of(name: str) -> str | None:
    """The row of an op; None if it has no pretty form."""
    return ROWS.get(name, OTHERS if name.startswith("chlo.") else None)


@functools.cache
def printer_of(name: str) -> Printer:
    """The printer of an op with a pretty form.

    >>> printer_of("stablehlo.iota").head([], {"iota_dimension": 1})
    'stablehlo.iota dim = 1'
    """
    row = row_of(name)
    assert row is not None
    return compile_printer(name, row)
