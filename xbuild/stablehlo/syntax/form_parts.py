"""Parts of pretty forms that no row can say: constants, ranges of slices, windows, dimension numbers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from shape_inference import Shape, s64

from .attributes import Attribute, Dense, Enumeration, Record
from .drafts import Draft
from .form_kinds import TYPES, integers
from .forms import compiled, part

if TYPE_CHECKING:
    from .parser import Parser

_FLOAT_FORMAT = re.compile(r"e(\d{1,3})m(\d{1,4})\b", re.ASCII)
_RANGE = re.compile(r"\s*+(-?\d{1,19})\s*+:\s*+(-?\d{1,19})\s*+(?::\s*+(-?\d{1,19}))?\s*+", re.ASCII)


@part
def constant(parser: Parser, draft: Draft) -> None:
    """The elements, whose type is that of the result; older texts have it as the attribute `value`."""
    if parser.take("("):
        parser.expect(")")
        for each in compiled("{} =function"):
            each(parser, draft)
        return
    _braces(parser, draft)
    place, found = parser.skip(), parser.attribute()
    if not isinstance(found, Dense):
        parser.fail("syntax", "a constant is written as dense<...> : tensor<...>", place=place)
    draft.attributes["value"] = found
    draft.result_types = (found.type,)


@part
def expected(parser: Parser, draft: Draft) -> None:
    """The elements that a value is compared with."""
    place, found = parser.skip(), parser.attribute()
    if not isinstance(found, Dense):
        parser.fail("syntax", "elements are wanted: dense<...> : tensor<...>", place=place)
    draft.attributes["value"], draft.operand_types = found, (found.type,)


@part
def operand_types(parser: Parser, draft: Draft) -> None:
    draft.operand_types = parser.types_here()


@part
def tuple_index(parser: Parser, draft: Draft) -> None:
    parser.expect("[")
    draft.attributes["index"] = parser.integer()
    parser.expect("]")


@part
def slice_ranges(parser: Parser, draft: Draft) -> None:
    """`[1:3, 0:8:2]`: start, limit and, where it is not 1, stride of each dimension."""
    place = parser.skip()
    inside = parser.bracketed()[1:-1]
    found = [_RANGE.fullmatch(each) for each in inside.split(",")] if inside.strip() else []
    if not all(found):
        parser.fail("syntax", "ranges are written as [start:limit:stride, ...]", place=place)
    ranges = [(int(each[1]), int(each[2]), int(each[3] or 1)) for each in found if each]
    names = ("start_indices", "limit_indices", "strides")
    draft.attributes.update({name: tuple(each[n] for each in ranges) for n, name in enumerate(names)})


@part
def float_format(parser: Parser, draft: Draft) -> None:
    match = parser.scan(_FLOAT_FORMAT)
    if not match:
        parser.expected("a format such as e5m2")
    draft.attributes.update(exponent_bits=int(match[1]), mantissa_bits=int(match[2]))


@part
def dot_clauses(parser: Parser, draft: Draft) -> None:
    """`contracting_dims`, `batching_dims`, `precision` and `algorithm`, as far as they are there."""
    numbers: dict[str, Attribute] = {}
    while parser.take(","):
        place, word = parser.skip(), parser.word()
        parser.expect("=", f" after {word[:40]}")
        if word in ("contracting_dims", "batching_dims"):
            numbers[f"lhs_{word[:-1]}ensions"] = integers(parser)
            parser.expect_word("x")
            numbers[f"rhs_{word[:-1]}ensions"] = integers(parser)
        elif word == "precision":
            words = parser.listed(parser.word, "[", "]")
            draft.attributes["precision_config"] = tuple(Enumeration("stablehlo.precision", each) for each in words)
        elif word == "algorithm":
            draft.attributes["algorithm"] = parser.fields_of("stablehlo.dot_algorithm")
        else:
            parser.fail("syntax", f"a product has no {word[:40]!r}", place=place)
    if draft.name.endswith("dot_general"):
        draft.attributes["dot_dimension_numbers"] = Record("stablehlo.dot", numbers, "")


@part
def convolution_dimensions(parser: Parser, draft: Draft) -> None:
    """`[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`: the roles of the dimensions of input, kernel and output."""
    begin = parser.skip()
    parser.bracketed()
    parser.expect_word("x")
    parser.bracketed()
    parser.expect("->")
    parser.bracketed()
    draft.attributes["dimension_numbers"] = Record("stablehlo.conv", {}, parser.text[begin : parser.place])


_WINDOW = {
    "stride": "window_strides",
    "pad": "padding",
    "lhs_dilate": "lhs_dilation",
    "rhs_dilate": "rhs_dilation",
    "reverse": "window_reversal",
}


@part
def window(parser: Parser, draft: Draft) -> None:
    """`{stride = [1, 1], pad = [[0, 0], [1, 1]], reverse = [false, true]}`."""
    parser.expect("{")
    while not parser.take("}"):
        place, word = parser.skip(), parser.word()
        if word not in _WINDOW:
            parser.fail("syntax", f"a window has no {word[:40]!r}; it has {', '.join(_WINDOW)}", place=place)
        parser.expect("=", f" after {word}")
        found = parser.attribute()
        draft.attributes[_WINDOW[word]] = _padding(parser, found, place) if word == "pad" else found
        if not parser.sees("}"):
            parser.expect(",", " or '}'")


def _padding(parser: Parser, found: Attribute, place: int) -> Attribute:
    try:
        array = np.array(found, np.int64).reshape(-1, 2)
    except (TypeError, ValueError, OverflowError):
        parser.fail("syntax", "padding is written as [[low, high], ...]", place=place)
    return Dense(Shape(s64, array.shape), array)


@part
def barrier(parser: Parser, draft: Draft) -> None:
    """Operands with their types; without operands empty brackets."""
    _braces(parser, draft)
    if parser.take("("):
        parser.expect(")")
        return
    draft.operands = parser.values()
    _braces(parser, draft)
    parser.expect(":", " before the types")
    TYPES["pairs"](parser, draft)


def _braces(parser: Parser, draft: Draft) -> None:
    compiled("{}")[0](parser, draft)
