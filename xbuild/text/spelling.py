"""The spelling of names, shapes and attribute values in HLO text, and the interface of attribute codecs.

Sections:

    Styles of HLO text
    Names and shapes, printed
    Checks of operands before shape inference
    ParsedInstruction: one instruction as parsed
    Mixed element types without a convert
    Attribute values, read and printed by type
    The interface of attribute codecs
"""

from __future__ import annotations

import functools
import re
import typing
from collections.abc import Callable, Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import Factory, define, evolve, frozen

from shape_inference import (
    AnyShape,
    Dims,
    Layout,
    PrimitiveType,
    Shape,
    TokenShape,
    TupleShape,
    XbuildError,
    compatible,
    refuse,
)
from shape_inference.escaping import hlo_string
from shape_inference.types import of_one_width
from shape_inference.windows import Window, window_text

from ..core.attributes import Padding, Region, Regions, SourceTargetPairs
from ..core.builder import Values
from ..core.graph import NOTHING, Computation, Instruction, Source, TextSource
from ..core.op import Schema
from ..core.report_text import join_words
from ..properties.variances import declared, typed_text
from .expansion import ONE_PRECISION

if TYPE_CHECKING:
    from .reader import HloReader


# ----------------------------------------------------------------------------
# Styles of HLO text: which optional parts are printed


@frozen
class Style:
    """The optional parts of HLO text that are printed.

    `percent`: `%` before names, and signatures of computations. `layouts`: the default layout for shapes without one.
    `metadata`: scopes and source lines. `entry_layout`: the entry's signature in the header of a module. `types`: types
    on a mesh after the shapes, which no other reader of HLO accepts; otherwise they are attributes.
    """

    percent: bool = False
    layouts: bool = False
    metadata: bool = False
    entry_layout: bool = False
    types: bool = False


STYLES = {
    "short": Style(),
    "percent": Style(percent=True),
    "full": Style(percent=True, layouts=True, metadata=True, entry_layout=True),
    "typed": Style(types=True),
}


def make_style(named: str | Style = "short", **changes: bool | None) -> Style:
    """The style of this name, with all changes that are not None. Raises ValueError for an unknown name.

    >>> make_style("short", layouts=True, metadata=None)
    Style(percent=False, layouts=True, metadata=False, entry_layout=False, types=False)
    """
    if isinstance(named, str) and named not in STYLES:
        raise ValueError(f"unknown HLO text style {named!r}; expected one of {', '.join(STYLES)}")
    chosen = STYLES[named] if isinstance(named, str) else named
    return evolve(chosen, **{key: value for key, value in changes.items() if value is not None})


# ----------------------------------------------------------------------------
# Printed names and shapes, which depend on the style and on other names in the text


@define
class NameWriter:
    """A printer of names and shapes, which caches the text of each shape."""

    style: Style = STYLES["short"]
    names: dict[Computation, str] = Factory(dict)
    _shapes: dict[int, tuple[AnyShape, str]] = Factory(dict)
    _sources: dict[tuple[int, int], Source | None] = Factory(dict)

    @property
    def sigil(self) -> str:
        return "%" if self.style.percent else ""

    def reference(self, instruction: Instruction) -> str:
        return f"{self.sigil}{instruction.name}"

    def references(self, instructions: Iterable[Instruction]) -> str:
        if self.style.percent:
            return number_items([f"%{i.name}" for i in instructions])
        return ", ".join([i.name for i in instructions])

    def computation_name(self, computation: Computation) -> str:
        return f"{self.sigil}{self.names.get(computation, computation.name)}"

    def shape_of(self, instruction: Instruction) -> str:
        """The shape of an instruction, with its type on a mesh if the style shows types."""
        if not self.style.types or declared(instruction) is None:
            return self.shape(instruction.shape)
        return typed_text(instruction, self.shape)

    def shape(self, shape: AnyShape) -> str:
        """The text of a shape, cached by identity, since most shapes are shared. The cache keeps shapes alive."""
        known = self._shapes.get(id(shape))
        if known is None:
            known = self._shapes[id(shape)] = shape, self._shape_text(shape)
        return known[1]

    def source(self, instruction: Instruction) -> Source | None:
        """The source line of an instruction, looked up once per line of the user's program."""
        where = instruction.where
        if isinstance(where, TextSource):
            return None
        if not isinstance(where, tuple):
            return where
        place = id(where[0]), where[1]
        if place not in self._sources:
            self._sources[place] = instruction.source
        return self._sources[place]

    def _shape_text(self, shape: AnyShape) -> str:
        if isinstance(shape, TupleShape):
            return f"({number_items(list(map(self._shape_text, shape.elements)))})"
        if isinstance(shape, TokenShape):
            return "token[]"
        if shape.layout is None and self.style.layouts:
            shape = _with_default_layout(shape)
        return repr(shape) if shape.rank else repr(shape.plain())

    def name_all(self, computations: Iterable[Computation]) -> None:
        """Give computations of equal names unique names, since calls in text refer to names."""
        taken: set[str] = set()
        for computation in computations:
            name, count = computation.name, 0
            while name in taken:
                count += 1
                name = f"{computation.name}.{count}"
            taken.add(name)
            if name != computation.name:
                self.names[computation] = name


def _with_default_layout(shape: Shape) -> Shape:
    return evolve(shape, layout=Layout(tuple(reversed(range(shape.rank)))))


def number_items(items: list[str]) -> str:
    """Items separated by commas; as in XLA, every fifth item of a long list has its index as a comment."""
    if len(items) > 5:
        items = [f"/*index={n}*/{item}" if n and n % 5 == 0 else item for n, item in enumerate(items)]
    return ", ".join(items)


# ----------------------------------------------------------------------------
# Checks of operands before shape inference: lengths of operand lists, precision


@functools.lru_cache(maxsize=4096)
def segments_of(schema: Schema, count: int) -> tuple[int, ...] | None:
    """The lengths of the operand lists; several lists share the operands equally."""
    lists = sum(kind is Values for kind in schema.kinds)
    rest = count - (len(schema.kinds) - lists)
    if rest < 0 or (rest % lists if lists else rest):
        count_text = f"{len(schema.kinds)} operand{'s' * (len(schema.kinds) != 1)}"
        expected = f"{count_text} ({', '.join(schema.operands)})" if schema.operands else "no operands"
        if lists:
            expected = ", ".join(schema.operands) + " as equally long lists" * (lists > 1)
        raise XbuildError("arity_mismatch", f"expected {expected}, got {count}")
    return None if schema.is_flat else tuple(rest // lists if kind is Values else 1 for kind in schema.kinds)


def check_precision(schema: Schema, shapes: tuple[AnyShape, ...]) -> None:
    """Refuse float operands of different precisions, which HLO text does not have for most ops."""
    if schema.opcode not in ONE_PRECISION or (len(shapes) == 2 and shapes[0] is shapes[1]):
        return
    floats = {shape.dtype.name for shape in shapes if isinstance(shape, Shape) and shape.dtype.is_float}
    if len(floats) > 1:
        names = join_words(sorted(floats))
        raise XbuildError(
            "element_type_mismatch",
            f"the operands have the element types {names}, but HLO text requires a single floating-point type",
            ["convert one operand"],
        )


# ----------------------------------------------------------------------------
# ParsedInstruction: operands, written shape and attributes, from which an instruction is recorded


@define
class ParsedInstruction:
    """A parsed instruction: `shape` has no layout; `inside` is what the parentheses hold instead of operands."""

    shape: AnyShape | None
    operands: tuple[Instruction, ...] = ()
    inside: Any = None
    written: dict[str, Any] = Factory(dict)
    notes: dict[str, Any] = Factory(dict)
    control: tuple[Instruction, ...] = ()
    counts: tuple[int, int] = (1, 1)

    @property
    def annotations(self) -> Mapping[str, Any]:
        return self.notes or NOTHING

    def result(self) -> AnyShape:
        if self.shape is None:
            refuse("missing_shape", "write the shape of the result; it cannot be inferred")
        return self.shape

    def array(self) -> Shape:
        """The written shape of the result, which must be an array."""
        shape = self.result()
        if not isinstance(shape, Shape):
            refuse("shape_mismatch", f"the result is an array, but the text states {shape}")
        return shape

    def element(self, index: int, count: int) -> AnyShape:
        """The written shape of an element of the result, which must be a tuple of `count` elements."""
        shape = self.result()
        if not isinstance(shape, TupleShape) or len(shape) != count:
            refuse("shape_mismatch", f"the result is a tuple of length {count}, but the text states {shape}")
        return shape.elements[index]

    def resolve_dimension_size(self, inferred: AnyShape) -> AnyShape:
        """The shape of set-dimension-size; XLA writes it as static if the size is a constant equal to the bound."""
        size = self.operands[1]
        if not isinstance(inferred, Shape) or not isinstance(self.shape, Shape) or size.opcode != "constant":
            return inferred
        dim = self.written["dimensions"]
        if size.attributes.literal != inferred.dims[dim]:
            return inferred
        bounds = (*inferred.dynamic[:dim], False, *inferred.dynamic[dim + 1 :])
        plain = Shape(inferred.dtype, inferred.dims, bounds if any(bounds) else ())
        return plain if compatible(plain, self.shape) else inferred

    def check_written_shape(self, opcode: str, inferred: AnyShape, bits: Container[str]) -> None:
        """Refuse a written type other than the inferred one, except for random bits and ops on random bits."""
        if opcode == "outfeed" or (opcode == "all_reduce_start" and self.shape == TupleShape((inferred, inferred))):
            return  # as in older texts; only its done uses the result
        if opcode in ("send", "recv") and isinstance(inferred, TupleShape) and self._is_context(inferred):
            return
        if opcode in ("async_start", "async_update") and self._is_bound_later(inferred):
            return
        is_of_bits = opcode == "rng_bit_generator" or any(each.name in bits for each in self.operands)
        if self.shape is None or not is_of_bits or not of_one_width(inferred, self.shape):
            refuse("shape_mismatch", f"the result is {inferred}, but the text states {self.shape}")

    def _is_context(self, inferred: TupleShape) -> bool:
        """Whether the context of a transfer is written with a different middle element, or only as the payload."""
        written, (passed, _, token) = self.shape, inferred.elements
        if isinstance(written, TupleShape) and len(written) == 3:
            return written.elements[0] == passed and written.elements[2] == token
        return written == passed

    def _is_bound_later(self, inferred: AnyShape) -> bool:
        """Whether the result of an async op is written as (), because only its done states it."""
        if not isinstance(self.shape, TupleShape) or not isinstance(inferred, TupleShape):
            return False
        written, found = self.shape.elements, inferred.elements
        return (
            len(written) == len(found)
            and (*written[:1], TupleShape()) == written[:2]
            and all(a == b for n, (a, b) in enumerate(zip(written, found, strict=True)) if n != 1)
        )

    def operand(self) -> Shape | None:
        """The shape of the first operand, or None if it is not an array."""
        shape = self.operands[0].shape if self.operands else None
        return shape if isinstance(shape, Shape) else None

    def members(self) -> int:
        """The number of devices in each group: that of the first group, or all devices without groups."""
        groups, channel = self.written.get("replica_groups"), self.written.get("channel_id")
        replicas, partitions = self.counts
        named = len(groups.groups[0]) if groups is not None and groups.groups else None
        if self.written.get("use_global_device_ids"):
            return named or replicas * partitions
        return (named or replicas) * (1 if channel is None else partitions)

    def exchange_size(self) -> int:
        """The number of devices in each group of an all-to-all, whose ids are partitions if it has a channel."""
        groups = self.written.get("replica_groups")
        if groups is not None and groups.groups:
            return len(groups.groups[0])
        return self.counts[self.written.get("channel_id") is not None]


def matches_operand(shape: AnyShape, operand: Instruction, bits: Container[str]) -> bool:
    """Whether the shape written before an operand is its shape; for random bits, of any type of the same width."""
    return compatible(shape, operand.shape) or (operand.name in bits and of_one_width(shape, operand.shape))


# ----------------------------------------------------------------------------
# Mixed element types without a convert: of operands of products, and of results of reducers

PRODUCTS = ("dot", "convolution", "ragged_dot")
"""Ops whose first two operands are multiplied."""

_KINDS = {"pred": 0, "unsigned": 1, "signed": 1, "float": 2, "complex": 3}


def converted_operands(
    lhs: PrimitiveType, rhs: PrimitiveType, result: PrimitiveType | None
) -> tuple[PrimitiveType, PrimitiveType]:
    """The types to which the operands of a product are converted if their kinds differ.

    For example, an integer is converted to the type of a float operand, or to that of the result if that is a wider
    float: f32 if bf16 times s32 is f32, so that no integer is rounded to bf16.

    Source: XLA, OperandUpcaster.
    """
    one, other = _KINDS[lhs.kind], _KINDS[rhs.kind]
    if one == other:
        return lhs, rhs
    richer = lhs if one > other else rhs
    is_wider = result is not None and _KINDS[result.kind] == max(one, other) and result.bits > richer.bits
    target = result if is_wider and result is not None else richer
    return (lhs, target) if one > other else (target, rhs)


def product_types(opcode: str, parsed: ParsedInstruction) -> tuple[PrimitiveType, PrimitiveType] | None:
    """The types to which the operands of a product are converted; None if they are unchanged."""
    if opcode not in PRODUCTS or len(parsed.operands) < 2:
        return None
    shapes = [each.shape for each in parsed.operands[:2]]
    dtypes = [each.dtype for each in shapes if isinstance(each, Shape)]
    if len(dtypes) < 2:
        return None
    lhs, rhs = dtypes
    found = converted_operands(lhs, rhs, parsed.shape.dtype if isinstance(parsed.shape, Shape) else None)
    return None if found == (lhs, rhs) else found


def is_converted(opcode: str, parsed: ParsedInstruction, inferred: AnyShape) -> bool:
    """Whether the written element type of the result is one to which XLA converts it.

    That is a lower kind for a product, or the type of the operand for an all-reduce that adds in a wider type.
    """
    written, operand = parsed.shape, parsed.operand()
    if (
        not isinstance(written, Shape)
        or not isinstance(inferred, Shape)
        or written.with_dtype(inferred.dtype) != inferred
    ):
        return False
    if opcode == "all_reduce":
        return operand is not None and operand.dtype is written.dtype
    return opcode in ("dot", "convolution", "scaled_dot")


# ----------------------------------------------------------------------------
# Attribute values, read and printed by type

Write: TypeAlias = "Callable[[NameWriter, Any], str]"
Read: TypeAlias = "Callable[[HloReader], Any]"


@frozen
class Word:
    """Printer and reader of a type of attribute values."""

    write: Write
    read: Read


def braces(values: Iterable[Any]) -> str:
    return f"{{{','.join(map(str, values))}}}"


def nested_braces(values: Iterable[Iterable[Any]]) -> str:
    return braces(map(braces, values))


_PADDING = re.compile(r"-?\d{1,19}_-?\d{1,19}(?:_-?\d{1,19})?(?:x-?\d{1,19}_-?\d{1,19}(?:_-?\d{1,19})?)*+", re.ASCII)
_LABELS = re.compile(r"[0-9bf?]{2,66}+_[0-9io?]{2,66}+->[0-9bf?]{2,66}+")


def _plain(function: Callable[[Any], str]) -> Write:
    return lambda writer, value: function(value)


def read_dims(reader: HloReader) -> Dims:
    return tuple(reader.listed(reader.integer))


def read_pairs(reader: HloReader) -> tuple[Dims, ...]:
    return tuple(reader.listed(lambda: read_dims(reader)))


def _read_one(reader: HloReader) -> int:
    place = reader.skip()
    values = read_dims(reader)
    if len(values) != 1:
        reader.fail(
            "syntax",
            f"expected one dimension in braces, such as {{0}}, got {braces(values[:9])}",
            place=place,
        )
    return values[0]


def _read_padding(reader: HloReader) -> list[Dims]:
    match = reader.scan(_PADDING)
    if not match:
        reader.expected("padding such as 0_0x1_2_1")
    return [tuple(map(int, dim.split("_"))) for dim in match[0].split("x")]


def _read_window(reader: HloReader) -> str:
    place = reader.skip()
    text = reader.braces()
    if len(text) > 4000:
        reader.fail("syntax", f"expected at most 4000 characters for a window, got {len(text)}", place=place)
    return text[1:-1]


def _read_labels(reader: HloReader) -> str:
    match = reader.scan(_LABELS)
    return match[0] if match else reader.expected("dimension labels such as b01f_01io->b01f")


def _padding(dim: Any) -> str:
    return f"{dim.low}_{dim.high}" + (f"_{dim.interior}" if dim.interior else "")


INTEGER = Word(_plain(str), lambda reader: reader.integer())
NUMBER = Word(_plain(lambda value: repr(value).removesuffix(".0")), lambda reader: reader.number())
FLAG = Word(_plain(lambda value: "true" if value else "false"), lambda reader: reader.flag())
STRING = Word(_plain(hlo_string), lambda reader: reader.string())
CHOICE = Word(_plain(str), lambda reader: reader.word())
DIMS = Word(_plain(braces), read_dims)
ONE_DIM = Word(_plain(lambda value: f"{{{value}}}"), _read_one)
# Precisions are the only lists of words; they may be in capitals.
WORDS = Word(_plain(braces), lambda reader: tuple(each.lower() for each in reader.listed(reader.word)))
PAIRS = Word(_plain(nested_braces), read_pairs)
SLICES = Word(_plain(nested_braces), lambda reader: tuple(map(tuple, reader.listed(lambda: read_dims(reader)))))
LABELS = Word(_plain(str), _read_labels)
SHAPE = Word(lambda writer, shape: writer.shape(shape), lambda reader: reader.shape())
REGION = Word(lambda writer, region: writer.computation_name(region), lambda reader: reader.region())
REGIONS = Word(
    lambda writer, regions: f"{{{', '.join(map(writer.computation_name, regions))}}}",
    lambda reader: tuple(reader.listed(reader.region)),
)
PADDING = Word(_plain(lambda dims: "x".join(map(_padding, dims))), _read_padding)
WINDOW = Word(_plain(lambda window: f"{{{window_text(window)}}}"), _read_window)

# None: the value follows from the shape of the result or an operand.
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
    """Printer and reader of a type of values. Raises TypeError for an unknown type."""
    if annotation in BY_TYPE:
        return BY_TYPE[annotation]
    parts = (annotation, *typing.get_args(annotation))
    if any(typing.get_origin(part) is typing.Literal for part in parts):
        return CHOICE
    raise TypeError(f"attributes of type {annotation} cannot be written in HLO text")


# ----------------------------------------------------------------------------
# The interface of attribute codecs, which print attributes and read them from parsed text

ALWAYS: Any = object()  # equals no value

Found: TypeAlias = dict[str, Any]


@frozen
class Attribute:
    """An attribute as `key=value`, not printed if it is None or the default; `missing` is its value if not written."""

    name: str
    key: str
    word: Word
    default: Any = ALWAYS
    missing: Any = ALWAYS

    @property
    def by_operands(self) -> bool:
        return False

    @property
    def by_shapes(self) -> bool:
        return False

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def keys(self) -> Mapping[str, Read]:
        return {self.key: self.word.read}

    def text(self, writer: NameWriter, instruction: Instruction) -> str:
        value = getattr(instruction.attributes, self.name)
        if value is None or value == self.default:
            return ""
        return f", {self.key}={self.word.write(writer, value)}"

    def read(self, parsed: ParsedInstruction) -> Found:
        if self.key in parsed.written:
            return {self.name: parsed.written[self.key]}
        missing = self.default if self.missing is ALWAYS else self.missing
        return {} if missing is ALWAYS else {self.name: missing}


@frozen
class Joined:
    """Attributes that HLO text combines or spells in a special way; `text` prints `, key=value` or nothing.

    The values depend on more than the text of the instruction: on the shapes of the operands without layouts
    (`by_shapes`), or on the operands in other ways (`by_operands`).
    """

    names: tuple[str, ...]
    text: Callable[[NameWriter, Instruction], str]
    read: Callable[[ParsedInstruction], Found]
    keys: Mapping[str, Read] = NOTHING
    by_operands: bool = False
    by_shapes: bool = False


Spelling: TypeAlias = Attribute | Joined


def derived(name: str, find: Callable[[ParsedInstruction], Any], by_shapes: bool = False) -> Joined:
    """An attribute that the text omits, since it follows from the shape of the result or those of the operands."""
    return Joined((name,), lambda writer, instruction: "", lambda parsed: {name: find(parsed)}, by_shapes=by_shapes)
