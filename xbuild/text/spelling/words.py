"""Printer and reader for each type of attribute value in HLO text."""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import frozen

from shape_inference import AnyShape, Dims, PrimitiveType, Shape
from shape_inference.escaping import hlo_string
from shape_inference.windows import Window, window_text

from ...core.attributes import Padding, Region, Regions, SourceTargetPairs

if TYPE_CHECKING:
    from ..reading.reader import Reader
    from .writer import Writer

Write: TypeAlias = "Callable[[Writer, Any], str]"
Read: TypeAlias = "Callable[[Reader], Any]"


@frozen
class Word:
    """The printer and the reader of a type of attribute values."""

    write: Write
    read: Read


def braces(values: Iterable[Any]) -> str:
    return f"{{{','.join(map(str, values))}}}"


def nested(values: Iterable[Iterable[Any]]) -> str:
    return braces(map(braces, values))


_PADDING = re.compile(r"-?\d{1,19}_-?\d{1,19}(?:_-?\d{1,19})?(?:x-?\d{1,19}_-?\d{1,19}(?:_-?\d{1,19})?)*+", re.ASCII)
_LABELS = re.compile(r"[0-9bf?]{2,66}+_[0-9io?]{2,66}+->[0-9bf?]{2,66}+")


def _plain(function: Callable[[Any], str]) -> Write:
    return lambda writer, value: function(value)


def read_dims(reader: Reader) -> Dims:
    return tuple(reader.listed(reader.integer))


def read_pairs(reader: Reader) -> tuple[Dims, ...]:
    return tuple(reader.listed(lambda: read_dims(reader)))


def _read_one(reader: Reader) -> int:
    place = reader.skip()
    values = read_dims(reader)
    if len(values) != 1:
        reader.fail(
            "syntax",
            f"one dimension in braces is wanted, such as {{0}}, and {braces(values[:9])} stands here",
            place=place,
        )
    return values[0]


def _read_padding(reader: Reader) -> list[Dims]:
    match = reader.scan(_PADDING)
    if not match:
        reader.expected("padding, such as 0_0x1_2_1,")
    return [tuple(map(int, dim.split("_"))) for dim in match[0].split("x")]


def _read_window(reader: Reader) -> str:
    place = reader.skip()
    text = reader.braces()
    if len(text) > 4000:
        reader.fail("syntax", "no window has that many dimensions", place=place)
    return text[1:-1]


def _read_labels(reader: Reader) -> str:
    match = reader.scan(_LABELS)
    return match[0] if match else reader.expected("dimension labels, such as b01f_01io->b01f,")


def _padding(dim: Any) -> str:
    return f"{dim.low}_{dim.high}" + (f"_{dim.interior}" if dim.interior else "")


INTEGER = Word(_plain(str), lambda reader: reader.integer())
NUMBER = Word(_plain(lambda value: repr(value).removesuffix(".0")), lambda reader: reader.number())
FLAG = Word(_plain(lambda value: "true" if value else "false"), lambda reader: reader.flag())
STRING = Word(_plain(hlo_string), lambda reader: reader.string())
CHOICE = Word(_plain(str), lambda reader: reader.word())
DIMS = Word(_plain(braces), read_dims)
ONE_DIM = Word(_plain(lambda value: f"{{{value}}}"), _read_one)
# Precisions, the only lists of words, may be in capitals.
WORDS = Word(_plain(braces), lambda reader: tuple(each.lower() for each in reader.listed(reader.word)))
PAIRS = Word(_plain(nested), read_pairs)
SLICES = Word(_plain(nested), lambda reader: tuple(map(tuple, reader.listed(lambda: read_dims(reader)))))
LABELS = Word(_plain(str), _read_labels)
SHAPE = Word(lambda writer, shape: writer.shape(shape), lambda reader: reader.shape())
REGION = Word(lambda writer, region: writer.called(region), lambda reader: reader.region())
REGIONS = Word(
    lambda writer, regions: f"{{{', '.join(map(writer.called, regions))}}}",
    lambda reader: tuple(reader.listed(reader.region)),
)
PADDING = Word(_plain(lambda dims: "x".join(map(_padding, dims))), _read_padding)
WINDOW = Word(_plain(lambda window: f"{{{window_text(window)}}}"), _read_window)

# None: the value follows from the shape of the result or of an operand.
BY_TYPE: dict[Any, Word | None] = {
    int: INTEGER,
    int | None: INTEGER,
    float: NUMBER,
    bool: FLAG,
    str: STRING,
    Dims: DIMS,
    tuple[str, ...]: WORDS,
    SourceTargetPairs: PAIRS,
    Region: REGION,
    Regions: REGIONS,
    Padding: PADDING,
    Window: WINDOW,
    Shape: None,
    AnyShape: None,
    PrimitiveType: None,
    PrimitiveType | None: None,
}


def word_for(annotation: Any) -> Word | None:
    """The printer and reader for values of a type; raises TypeError for an unknown type."""
    if annotation in BY_TYPE:
        return BY_TYPE[annotation]
    parts = (annotation, *typing.get_args(annotation))
    if any(typing.get_origin(part) is typing.Literal for part in parts):
        return CHOICE
    raise TypeError(f"no spelling for attributes of type {annotation}")
