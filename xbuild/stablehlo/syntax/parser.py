"""The parser of MLIR text: tokens, types, attributes, locations, and operations as trees.

Pretty forms are read by their rows in `forms`. A line that differs from an earlier one only in the names of values is
not parsed again.

Sections:

    Scanner of MLIR tokens
    Quantized element types
    Types
    Elements of dense_resource<name>
    Attributes
    Locations and aliases
    Fast path: an operation that differs from an earlier one only in the names of values
    Parser of operations
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from attrs import evolve, frozen

from shape_inference import PrimitiveType, Shape, TupleShape, XbuildError, s64, token
from shape_inference.bounds import EXPANSION, MOST_EXPANDED, check_array
from shape_inference.elided import ElidedArray

from ...core.attributes import Array
from ...text.scanner import COUNTED_FAULTS, MOST_FAULTS, Fault, Scanner
from ..literals import WordError, dense_array, read_array_elements, read_bytes
from ..spelling import TYPES_BY_NAME, unescape
from .forms import ROWS, SHORT, OperationDraft, compile_row, row_of
from .trees import (
    UNKNOWN,
    Argument,
    Attribute,
    Dense,
    Enumeration,
    Form,
    FunctionType,
    FutureType,
    Location,
    Opaque,
    OpaqueType,
    ParsedOperation,
    QuantizedType,
    Record,
    Region,
    ScalarType,
    Symbol,
    TensorType,
    Type,
)

# ----------------------------------------------------------------------------
# Scanner of MLIR tokens

_BLANK = re.compile(r"(?:[ \t\r\n]++|//[^\n]*+)*+")
_WORD = re.compile(r"[A-Za-z_][\w$.]*+", re.ASCII)
_VALUE = re.compile(r"%([\w$.-]++(?:#\d++)?+)", re.ASCII)
_SYMBOL = re.compile(r'@(?:([A-Za-z_][\w$.-]*+)|"((?:[^"\\\n]++|\\.)*+)")', re.ASCII)
_STRING = re.compile(r'"((?:[^"\\\n]++|\\.)*+)"')
_INTEGER = re.compile(r"-?\d++", re.ASCII)
_BRACKET = re.compile(r'"(?:[^"\\\n]++|\\.)*+"|//[^\n]*+|->|[][(){}<>"]')
_CLOSING = {"<": ">", "(": ")", "[": "]", "{": "}"}


class MlirScanner(Scanner):
    """A scanner of MLIR text; raises Fault at an unexpected token."""

    integer_pattern = _INTEGER

    def skip(self) -> int:
        """Skip blanks and comments, and return the place of the next token."""
        match = _BLANK.match(self.text, self.place)
        assert match is not None  # the pattern matches the empty string
        self.place = match.end()
        return self.place

    def word(self) -> str:
        match = self.scan(_WORD)
        return match[0] if match else self.expected("a word")

    def sees_word(self, word: str) -> bool:
        """Whether the next token is exactly this word."""
        match = _WORD.match(self.text, self.skip())
        return match is not None and match[0] == word

    def take_word(self, word: str) -> bool:
        if not self.sees_word(word):
            return False
        self.place += len(word)
        return True

    def expect_word(self, word: str) -> None:
        if not self.take_word(word):
            self.expected(f"{word!r}")

    def value(self) -> str:
        """Take the name of a value, without `%`; `#n` selects one of several results."""
        match = self.scan(_VALUE)
        return match[1] if match else self.expected("a value, such as %0")

    def values(self) -> tuple[str, ...]:
        """Take names of values separated by commas; a comma without a value after it is left."""
        found: list[str] = []
        match = self.scan(_VALUE)
        while match:
            found.append(match[1])
            place = self.place
            match = self.scan(_VALUE) if self.take(",") else None
            if not match:
                self.place = place
        return tuple(found)

    def symbol(self) -> str:
        """Take the name of a function or mesh, without `@`; nested names are joined by `::`."""
        match = self.scan(_SYMBOL)
        if not match:
            self.expected("a symbol, such as @main")
        found = unescape(match[2]) if match[1] is None else match[1]
        return f"{found}::{self.symbol()}" if self.take("::") else found

    def string(self) -> str:
        match = self.scan(_STRING)
        return unescape(match[1]) if match else self.expected("a string in quotes")

    def bracketed(self) -> str:
        """Take the text from an opening bracket to the one that closes it."""
        begin = self.skip()
        open_: list[str] = [_CLOSING.get(self.text[begin : begin + 1]) or self.expected("a bracket")]
        self.place = begin + 1
        while open_:
            match = _BRACKET.search(self.text, self.place)
            if not match:
                self.fail("syntax", f"this {self.text[begin]!r} is not closed", place=begin)
            self._bracket(match, open_)
        return self.text[begin : self.place]

    def _bracket(self, match: re.Match[str], open_: list[str]) -> None:
        """Open or close a bracket; `->`, strings and comments are skipped."""
        found, self.place = match[0], match.end()
        if found == '"':
            self.fail("syntax", "this string is not closed", place=match.start())
        if found in _CLOSING:
            open_.append(_CLOSING[found])
        elif found == open_[-1]:
            open_.pop()
        elif found in (">", ")", "]", "}"):
            self.fail("syntax", f"expected {open_[-1]!r}, got {found!r}", place=match.start())


# ----------------------------------------------------------------------------
# Quantized element types: `!quant.uniform<i8:f32, 0.5:3>` has storage and expressed types, scales, zero points

_SCALE_NUMBER = r"-?\d++(?:\.\d*+)?(?:[eE][-+]?\d{1,3}+)?"
_QUANTIZED = re.compile(
    r"<\s*+([iu]\d++)\s*+(?:<\s*+(-?\d{1,20})\s*+:\s*+(-?\d{1,20})\s*+>)?\s*+:\s*+(\w++)\s*+(?::\s*+(\d{1,9}))?\s*+,\s*+(.*)>",
    re.DOTALL | re.ASCII,
)
_SCALE = re.compile(rf"\s*+({_SCALE_NUMBER})\s*+(?::\s*+(-?\d{{1,20}}))?\s*+", re.ASCII)


def quantized_type(scanner: MlirScanner, kind: str, body: str, place: int) -> QuantizedType:
    """Read a quantized type from its name and its bracketed text."""
    match = _QUANTIZED.fullmatch(body) if kind == "!quant.uniform" else None
    storage = _storage_type(match[1]) if match else None
    expressed = TYPES_BY_NAME.get(match[4]) if match else None
    scales = _read_scales(match[6], match[5] is not None) if match else None
    if match is None or storage is None or expressed is None or scales is None:
        example = "!quant.uniform<i8:f32, 0.5:3> or !quant.uniform<i8:f32:1, {0.5:3, 0.25}>"
        scanner.fail("syntax", f"expected a quantized type such as {example}", place=place)
    limits = None if match[2] is None else (int(match[2]), int(match[3]))
    along = None if match[5] is None else int(match[5])
    return QuantizedType(
        storage, expressed, tuple([s for s, _ in scales]), tuple([z for _, z in scales]), along, limits, kind + body
    )


def _storage_type(name: str) -> PrimitiveType | None:
    return TYPES_BY_NAME.get(name if name.startswith("i") else f"u{name.replace('u', 'i')}")


def _read_scales(text: str, is_listed: bool) -> list[tuple[float, int]] | None:
    """The pairs of scale and zero point; None if the text is not a list of them."""
    text = text.strip()
    if is_listed != (text.startswith("{") and text.endswith("}")):
        return None
    parts = text[1:-1].split(",") if is_listed else [text]
    found = [_SCALE.fullmatch(part) for part in parts]
    return [(float(each[1]), int(each[2] or 0)) for each in found if each] if all(found) else None


# ----------------------------------------------------------------------------
# Types, cached by their text

_USUAL = re.compile(r'tensor<(?:[^<>"]|<[^<>"]*+>)*+>|!stablehlo\.token\b')
_EXTENT = re.compile(r"(\d++|\?)[ \t\r\n]*+x[ \t\r\n]*+", re.ASCII)
_NAME = re.compile(r"!?[A-Za-z_][\w.]*+", re.ASCII)
_COMPLEX = re.compile(r"complex[ \t]*+<[ \t]*+(f32|f64)[ \t]*+>")
_ENCODING = re.compile(r"#(?:stablehlo|mhlo)\.(?:bounds|type_extensions)\b")
_BOUND = re.compile(r"\?|\d++", re.ASCII)
_SCALAR = re.compile(r"(?:s|u)?i\d{1,3}|index|none|tf32|bf16|f\d\w*", re.ASCII)
_TOKENS = ("!stablehlo.token", "!mhlo.token")
_LONGEST = 400


class TypeReader(MlirScanner):
    """A scanner that reads types."""

    def __init__(self, text: str, place: int = 0) -> None:
        super().__init__(text, place)
        self.types: dict[str, Type] = {}
        self.expanded = 0
        self._most_expanded = max(MOST_EXPANDED, EXPANSION * len(text))

    def expand(self, size: int, place: int) -> None:
        """Count the characters that an alias expands to; aliases of aliases could double them with each line."""
        self.expanded += size
        if self.expanded > self._most_expanded:
            self.fail(
                "overflow", f"aliases expand to more than {self._most_expanded:,} characters of types and attributes",
                "use fewer aliases inside other aliases", place=place,
            )  # fmt: skip

    def type(self) -> Type:
        match = _USUAL.match(self.text, self.skip())
        found = self.types.get(match[0]) if match else None
        if match and found is not None:
            self.place = match.end()
            return found
        begin = self.place
        with self.deeper():
            found = self._type()
        if self.place - begin < _LONGEST:
            return self.types.setdefault(self.text[begin : self.place], found)
        return found

    def type_list(self) -> tuple[Type, ...]:
        """Read types in parentheses."""
        return tuple(self.listed(self.type, "(", ")"))

    def types_here(self) -> tuple[Type, ...]:
        """Read types separated by commas."""
        found = [self.type()]
        while self.take(","):
            found.append(self.type())
        return tuple(found)

    def result_types(self) -> tuple[Type, ...]:
        """Read one type, or types in parentheses."""
        return self.type_list() if self.sees("(") else (self.type(),)

    def function_type(self) -> FunctionType:
        arguments = self.type_list()
        self.expect("->")
        return FunctionType(arguments, self.result_types())

    def alias(self, name: str, place: int) -> Type:
        """The type of an alias."""
        self.fail("undefined_name", f"undefined type alias {name!r}", place=place)

    def _type(self) -> Type:
        place = self.skip()
        if self.sees("("):
            return self.function_type()
        match = self.scan(_NAME)
        if not match:
            self.expected("a type")
        name = match[0]
        read = _BUILTIN.get(name)
        if read is not None:
            return read(self)
        if name in _TOKENS:
            return token
        if name.startswith("!"):
            return self._dialect_type(name, place)
        if name == "complex" or not _SCALAR.fullmatch(name):
            self.fail("syntax", f"expected a type, got {name[:40]!r}", place=place)
        return ScalarType(name)

    def _dialect_type(self, name: str, place: int) -> Type:
        if name in ("!stablehlo.future", "!mhlo.future"):
            return FutureType(tuple(self.listed(self.type, "<", ">")))
        if name.startswith("!quant."):
            self.bracketed()
            return OpaqueType(self.text[place : self.place])
        if "." not in name:
            return self.alias(name, place)
        if self.text.startswith("<", self.place):
            self.bracketed()
        return OpaqueType(self.text[place : self.place])

    def tensor(self) -> Type:
        begin = self.place - len("tensor")
        self.expect("<")
        if self.sees("*"):
            self.fail(
                "syntax", "xbuild does not support unranked tensors", "write each extent, or ? for an unknown extent"
            )
        dims = tuple(self._extents())
        element = self.element_type()
        bounds = self._bounds(dims) if self.take(",") else (None,) * len(dims)
        self.expect(">", " at the end of a tensor's type")
        try:
            return _tensor(dims, element, bounds, self.text[begin : self.place])
        except XbuildError as error:
            self.fail(error.kind, error.message, place=begin)

    def _extents(self) -> list[int | None]:
        found: list[int | None] = []
        while match := self.scan(_EXTENT):
            if len(match[1]) > 18:
                self.fail("overflow", f"the extent {match[1][:24]} has more than 18 digits", place=match.start())
            found.append(None if match[1] == "?" else int(match[1]))
        return found

    def element_type(self) -> PrimitiveType | QuantizedType:
        place = self.skip()
        if match := self.scan(_COMPLEX):
            return TYPES_BY_NAME[f"complex<{match[1]}>"]
        match = self.scan(_NAME)
        if not match:
            self.expected("an element type")
        if match[0].startswith("!quant."):
            return quantized_type(self, match[0], self.bracketed(), place)
        if match[0].startswith("!") and "." not in match[0]:
            return self._element_alias(match[0], place)
        found = s64 if match[0] == "index" else TYPES_BY_NAME.get(match[0])  # as in layouts and sizes
        if found is None:
            self._refuse_element_type(match[0], place)
        return found

    def _element_alias(self, name: str, place: int) -> PrimitiveType | QuantizedType:
        found = self.alias(name, place)
        if isinstance(found, OpaqueType) and found.text.startswith("!quant."):
            kind, _, body = found.text.partition("<")
            return quantized_type(self, kind, f"<{body}", place)
        return self._refuse_element_type(name, place)

    def _refuse_element_type(self, name: str, place: int) -> NoReturn:
        hints = self.near(name, TYPES_BY_NAME)
        self.fail("syntax", f"xbuild has no element type {name[:40]!r}", *hints, place=place)

    def _bounds(self, dims: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """Read the bounds of extents; None for an extent without a bound."""
        place = self.skip()
        if not self.scan(_ENCODING):
            self.fail("syntax", "the only tensor encoding that xbuild reads is #stablehlo.bounds", place=place)
        found = _BOUND.findall(self.bracketed())
        if len(found) != len(dims):
            self.fail(
                "shape_mismatch",
                f"expected one bound for each extent, got {len(found)} bounds for {len(dims)} extents",
                place=place,
            )
        if any(len(each) > 18 for each in found):
            self.fail("overflow", "a bound has more than 18 digits", place=place)
        return tuple(None if each == "?" else int(each) for each in found)

    def tuple_type(self) -> Type:
        place = self.skip()
        elements = self.listed(self.type, "<", ">")
        try:
            return TupleShape(elements)  # type: ignore[arg-type]
        except XbuildError as error:
            self.fail(error.kind, error.message, place=place)
        except AttributeError:
            self.fail("syntax", "the elements of a tuple must be tensors, tokens or tuples", place=place)


def _tensor(
    dims: tuple[int | None, ...],
    element: PrimitiveType | QuantizedType,
    bounds: tuple[int | None, ...],
    text: str,
) -> Type:
    """The shape of a tensor with known or bounded extents; a TensorType for any other."""
    known = [bound if dim is None else dim for dim, bound in zip(dims, bounds, strict=True)]
    if isinstance(element, QuantizedType) or None in known:
        check_array([1 if extent is None else extent for extent in known])
        return TensorType(dims, element, text)
    if None not in dims:
        return element[dims]  # type: ignore[index]
    return Shape(element, known, tuple(dim is None for dim in dims))  # type: ignore[arg-type]


_BUILTIN: dict[str, Callable[[TypeReader], Type]] = {"tensor": TypeReader.tensor, "tuple": TypeReader.tuple_type}


# ----------------------------------------------------------------------------
# Elements of dense_resource<name>: hexadecimal bytes at the end of the text

_SECTION = re.compile(r"dialect_resources\s*+:", re.ASCII)
_TOKEN = re.compile(r'"((?:[^"\\\n]++|\\.)*+)"|([A-Za-z_][\w.$-]*+)|(\s++)|\\.|.', re.ASCII | re.DOTALL)
_DIGITS = re.compile(r"0x([0-9A-Fa-f]*+)", re.ASCII)
_ALIGNMENT = 4  # the elements follow their alignment, a number of this many bytes


def read_resources(text: str) -> dict[str, str]:
    """The hexadecimal digits of each resource, by name."""
    begin = text.rfind("{-#")
    end = text.find("#-}", begin) if begin >= 0 else -1
    section = _SECTION.search(text, begin, end) if end >= 0 else None
    found: dict[str, str] = {}
    name, has_colon = "", False
    for match in _TOKEN.finditer(text, section.end(), end) if section else ():
        if match[3]:
            continue
        digits = _DIGITS.fullmatch(match[1] or "") if name and has_colon else None
        if digits:
            found[name] = digits[1]
        if match[0] == ":":
            has_colon = bool(name)
        else:
            name, has_colon = match[2] or unescape(match[1] or ""), False
    return found


def resource_array(scanner: MlirScanner, digits: str, shape: Shape, place: int) -> Array:
    """The elements of a resource; each takes whole bytes, even of types narrower than 8 bits."""
    dtype = shape.dtype
    wanted, found = shape.size * dtype.dtype.itemsize, len(digits) // 2 - _ALIGNMENT
    if len(digits) % 2 or found != wanted:
        unit = " (one per element)" if dtype.bits < 8 else ""
        has = f"but the resource has {max(found, 0):,} after its alignment"
        message = f"{shape} has {wanted:,} bytes{unit}, {has}"
        scanner.fail("shape_mismatch", message, place=place)
    raw = np.frombuffer(bytes.fromhex(digits), np.uint8, offset=_ALIGNMENT)
    if dtype.kind == "pred" and raw.size and raw.max() > 1:
        scanner.fail("invalid_literal", f"each element of {shape} must be the byte 0 or 1", place=place)
    return read_bytes(raw.tobytes(), dtype).reshape(shape.dims)


# ----------------------------------------------------------------------------
# Attributes: numbers, strings, lists, dictionaries, dense elements, attributes of dialects

_NUMBER = re.compile(r"-?(?:0x[0-9A-Fa-f]++|\d++(?:\.\d*+(?:[eE][-+]?\d++)?+)?+)", re.ASCII)
_ATTRIBUTE_WORD = re.compile(r"[A-Za-z_]\w*+", re.ASCII)
_KEY = re.compile(r"[A-Za-z_][\w.$-]*+", re.ASCII)
_ATTRIBUTE_NAME = re.compile(r"#[A-Za-z_][\w.$-]*+", re.ASCII)
_ONE_WORD = re.compile(r"\s*+(\w++)\s*+", re.ASCII)
_FIELD = re.compile(r"\s*+\w++\s*+=", re.ASCII)
_INSIDE = re.compile(r'(?:[^<>"/]++|//[^\n]*+|"[^"\n]*+"|/)*+')
_ARRAY = re.compile(r"array\s*+<\s*+(\w++)\s*+(?::([^<>\"]*+))?>", re.ASCII)
_SUB_AXIS = re.compile(r"\((\d{1,9}+)\)(\d{1,9}+)", re.ASCII)
_OPAQUE = ("affine_map", "affine_set", "sparse", "strided", "distinct", "opaque")
_WITH_FIELDS = ("stablehlo.", "mhlo.", "chlo.")


class AttributeReader(TypeReader):
    """A scanner that reads types and attributes."""

    def attribute(self) -> Attribute:
        with self.deeper():
            place = self.skip()
            read = _BY_CHARACTER.get(self.text[place : place + 1])
            if read is not None:
                return read(self)  # type: ignore[no-any-return]
            match = _ATTRIBUTE_WORD.match(self.text, place)
            named = _BY_WORD.get(match[0]) if match else None
            if match and named is not None:
                return named(self)  # type: ignore[no-any-return]
            if match and match[0] in _OPAQUE:
                return self._opaque(match)
            return self.type() if match else self.expected("an attribute")

    def attribute_alias(self, name: str, place: int) -> Attribute:
        """The attribute of an alias."""
        self.fail("undefined_name", f"undefined attribute alias {name!r}", place=place)

    def dictionary(self, texts: dict[str, str] | None = None) -> dict[str, Attribute]:
        """Read attributes in braces, by name; a name without a value is a unit attribute.

        The text of each value is added to `texts`.
        """
        found: dict[str, Attribute] = {}
        self.expect("{")
        while not self.take("}"):
            place = self.skip()
            key = self.string() if self.text.startswith('"', place) else self._key()
            if key in found:
                self.fail("duplicate_attribute", f"{key[:60]} appears twice", place=place)
            if self.take("="):
                begin = self.skip()
                found[key] = self.attribute()
                if texts is not None:
                    texts[key] = self.text[begin : self.place]
            else:
                found[key] = True
                if texts is not None:
                    texts[key] = "unit"
            if not self.sees("}"):
                self.expect(",", " or '}'")
        return found

    def _key(self) -> str:
        match = self.scan(_KEY)
        return match[0] if match else self.expected("the name of an attribute")

    def _dictionary(self) -> Record:
        begin = self.place
        fields = self.dictionary()
        return Record("", fields, self.text[begin : self.place])

    def _string(self) -> str:
        found = self.string()
        if self.take(":"):
            self.type()
        return found

    def _list(self) -> tuple[Attribute, ...]:
        return tuple(self.listed(self.attribute, "[", "]"))

    def _symbol(self) -> Symbol:
        return Symbol(self.symbol())

    def _number(self) -> int | float:
        match = self.scan(_NUMBER)
        if not match:
            self.expected("a number")
        is_float = "." in match[0]
        if not is_float and len(match[0]) > 24:
            self.fail("syntax", f"{match[0][:24]} has more than 64 bits", place=match.start())
        value: int | float = float(match[0]) if is_float else int(match[0], 16 if "x" in match[0] else 10)
        if self.take(":"):
            self.type()
        return value

    def _flag(self) -> bool:
        return self.word() == "true"

    def _unit(self) -> bool:
        self.word()
        return True

    def _kindless(self) -> Record:
        """An attribute whose kind follows from the context, such as `<name = "x", size = 2>`."""
        return Record("", {}, self.bracketed()[1:-1].strip())

    def _parenthesized(self) -> FunctionType | tuple[int, int]:
        """The type of a function, or a sub-axis of a mesh, such as (1)2."""
        part = self.scan(_SUB_AXIS)
        return (int(part[1]), int(part[2])) if part else self.function_type()

    def _opaque(self, match: re.Match[str]) -> Opaque:
        self.place = match.end()
        self.bracketed()
        return Opaque(self.text[match.start() : self.place])

    def _array(self) -> tuple[Any, ...]:
        match = self.scan(_ARRAY)
        dtype = TYPES_BY_NAME.get(match[1]) if match else None
        if match is None or dtype is None:
            self.fail("syntax", "expected an array such as array<i64: 1, 2>")
        try:
            return tuple(read_array_elements(match[2] or "", dtype).tolist())
        except WordError as error:
            self.fail("invalid_literal", error.message, place=match.start())

    def _dense(self) -> Dense:
        self.word()
        self.expect("<")
        begin = self.place
        match = _INSIDE.match(self.text, begin)
        assert match is not None  # the pattern matches the empty string
        self.place = match.end()
        self.expect(">", " at the end of the elements")
        self.expect(":", " and the type of the elements")
        place = self.skip()
        type_ = self.type()
        if not isinstance(type_, Shape) or type_.is_dynamic:
            self.fail("syntax", f"expected the type of a static tensor, got {type_}", place=place)
        return Dense(type_, dense_array(self, begin, match[0], type_))

    def _resource(self) -> Dense:
        self.word()
        place = self.skip()
        name = self.bracketed()[1:-1].strip().strip('"')
        self.expect(":", " and the type of the elements")
        type_ = self.type()
        if not isinstance(type_, Shape) or type_.is_dynamic:
            self.fail("syntax", f"expected the type of a static tensor, got {type_}", place=place)
        return Dense(type_, self.resource(name, type_, place))

    def resource(self, name: str, shape: Shape, place: int) -> Any:
        """The elements from the end of the text, or an elided array if the printer left them out."""
        if name in self.resources:
            return resource_array(self, self.resources[name], shape, place)
        if name != "__elided__":
            self.fail("undefined_name", f"undefined resource {name[:60]!r}", place=place)
        return ElidedArray(shape.dtype, shape.dims)

    @cached_property
    def resources(self) -> dict[str, str]:
        return read_resources(self.text)

    def dialect_attribute(self) -> Attribute:
        """`#stablehlo<precision HIGHEST>`, `#stablehlo.gather<...>`, or an alias."""
        place = self.skip()
        match = self.scan(_ATTRIBUTE_NAME)
        if not match:
            self.expected("an attribute")
        kind = match[0][1:]
        if not self.text.startswith("<", self.place):
            return self.attribute_alias(match[0], place)
        begin = self.place
        text = self.bracketed()[1:-1]
        if "." not in kind:
            first = _ATTRIBUTE_WORD.match(text.lstrip())
            if not first:
                self.fail("syntax", "expected the kind of the attribute", place=begin + 1)
            skipped = len(text) - len(text.lstrip()) + first.end()
            kind, begin, text = f"{kind}.{first[0]}", begin + skipped, text[skipped:]
        word = _ONE_WORD.fullmatch(text)
        if word:
            return Enumeration(kind, word[1])
        return Record(kind, self._fields(kind, begin + 1, text), text.strip())

    def _fields(self, kind: str, begin: int, text: str) -> dict[str, Attribute]:
        """Read the named fields of an attribute, such as `offset_dims = [1]`."""
        found: dict[str, Attribute] = {}
        if not kind.startswith(_WITH_FIELDS) or not _FIELD.match(text):
            return found
        end, self.place = self.place, begin
        while self.skip() < end - 1:
            place = self.place
            key = self.word()
            self.expect("=", f" after {key[:40]!r}")
            if key in found:
                self.fail("duplicate_attribute", f"{key[:60]} appears twice", place=place)
            found[key] = self.attribute()
            if self.skip() < end - 1:
                self.expect(",")
        self.place = end
        return found


_BY_CHARACTER: dict[str, Callable[[AttributeReader], Any]] = {
    '"': AttributeReader._string,
    "[": AttributeReader._list,
    "(": AttributeReader._parenthesized,
    "<": AttributeReader._kindless,
    "{": AttributeReader._dictionary,
    "@": AttributeReader._symbol,
    "#": AttributeReader.dialect_attribute,
    **dict.fromkeys("-0123456789", AttributeReader._number),
}
_BY_WORD: dict[str, Callable[[AttributeReader], Any]] = {
    "array": AttributeReader._array,
    "dense": AttributeReader._dense,
    "dense_resource": AttributeReader._resource,
    "true": AttributeReader._flag,
    "false": AttributeReader._flag,
    "unit": AttributeReader._unit,
}


# ----------------------------------------------------------------------------
# Locations, and aliases, which may be defined after their use

_DEFINITION = re.compile(r"^[ \t]*+([#!][A-Za-z_][\w$.-]*+)[ \t]*+=[ \t]*+", re.MULTILINE | re.ASCII)
_NAMED_LOCATION = re.compile(r'loc\("([^"\\\n]*+)"\((#\w++)\)\)', re.ASCII)
_ALIAS_NAME = re.compile(r"#[\w$.-]++", re.ASCII)
_POSITION = re.compile(r":(\d{1,9}+):(\d{1,9}+)(?:[ ]to[ ](?:\d++)?:\d++)?", re.ASCII)


class LocationReader(AttributeReader):
    """A scanner that reads types, attributes, locations and aliases."""

    def __init__(self, text: str, place: int = 0) -> None:
        super().__init__(text, place)
        self.definitions = {match[1]: match.end() for match in _DEFINITION.finditer(text)}
        self.locations: dict[str, Location] = {}
        self.attributes: dict[str, Attribute] = {}
        self.sizes: dict[str, int] = {}
        self._open: set[str] = set()

    def definition(self) -> None:
        """Skip the definition of an alias, and report its faults; its use reads it."""
        begin = self.skip()
        line = self.text.rfind("\n", 0, begin) + 1
        match = _DEFINITION.match(self.text, line)
        if not match or self.text[line:begin].strip():  # text before it on the line
            self.expected("an operation")
        usual = _NAMED_LOCATION.match(self.text, match.end())
        self.place = usual.end() if usual else match.end()
        if usual:
            return
        if match[1].startswith("!"):
            self.type()
        elif self.sees("loc("):
            self.place += 3
            self.bracketed()
        else:
            self.attribute()

    def alias(self, name: str, place: int) -> Type:
        if name not in self.sizes:
            self.types[name] = self._read_measured(name, "type", place, self.type)
        self.expand(self.sizes[name], place)
        return self.types[name]

    def attribute_alias(self, name: str, place: int) -> Attribute:
        if name not in self.sizes:
            self.attributes[name] = self._read_measured(name, "attribute", place, self.attribute)
        self.expand(self.sizes[name], place)
        return self.attributes[name]

    def _read_measured(self, name: str, what: str, place: int, read: Callable[[], Any]) -> Any:
        """Read the value of an alias, and store its length with all aliases in it expanded."""
        before, end = self.expanded, 0

        def read_to_end() -> Any:
            nonlocal end
            found = read()
            end = self.place
            return found

        found = self._read_definition(name, what, place, read_to_end)
        self.sizes[name] = end - self.definitions[name] + self.expanded - before
        return found

    def _read_definition(self, name: str, what: str, place: int, read: Callable[[], Any]) -> Any:
        """Apply `read` at the definition of an alias."""
        if name not in self.definitions:
            hints = self.near(name, self.definitions)
            self.fail("undefined_name", f"undefined {what} {name[:60]!r}", *hints, place=place)
        if name in self._open:
            self.fail("undefined_name", f"{name[:60]!r} is defined in terms of itself", place=place)
        after, self.place = self.place, self.definitions[name]
        self._open.add(name)
        try:
            return read()
        finally:
            self.place = after
            self._open.discard(name)

    def located(self) -> Location:
        """Read the location of an operation or argument, if there is one."""
        if not self.sees("loc("):
            return UNKNOWN
        self.place += 4
        found = self._location()
        self.expect(")", " at the end of the location")
        return found

    def location_alias(self, name: str, place: int) -> Location:
        """The location of an alias."""
        found = self.locations.get(name)
        if found is None:
            found = self.locations[name] = self._read_location_alias(name, place)
        return found

    def _read_location_alias(self, name: str, place: int) -> Location:
        begin = self.definitions.get(name, 0)
        usual = _NAMED_LOCATION.match(self.text, begin) if begin else None
        if usual and usual[2] not in self._open:
            self._open.add(name)
            try:
                with self.deeper():
                    return _named_location(usual[1], self.location_alias(usual[2], place))
            finally:
                self._open.discard(name)
        found = self._read_definition(name, "location", place, self.located)
        assert isinstance(found, Location)
        return found

    def _location(self) -> Location:
        with self.deeper():
            place = self.skip()
            if self.text.startswith("#", place):
                match = self.scan(_ALIAS_NAME)
                return self.location_alias(match[0], place) if match else self.expected("a location")
            if self.text.startswith('"', place):
                return self._quoted()
            word = self.word()
            if word == "unknown":
                return UNKNOWN
            if word == "callsite":
                return self._callsite()
            if word == "fused":
                return self._fused()
            return self.fail("syntax", f"expected a location, got {word[:40]!r}", place=place)

    def _quoted(self) -> Location:
        text = self.string()
        position = _POSITION.match(self.text, self.place)
        if position:
            self.place = position.end()
            return Location("", text, int(position[1]), int(position[2]))
        if not self.take("("):
            return Location(text)
        child = self._location()
        self.expect(")")
        return _named_location(text, child)

    def _callsite(self) -> Location:
        """A call site: the location of the callee if it names a file, else that of the caller."""
        begin = self.skip()
        self.bracketed()
        end, self.place = self.place, begin
        self.expect("(")
        found = self._location()
        found = evolve(found, name="", function=found.function or found.name)
        if not found.file and self.take_word("at"):
            caller = self._location()
            found = evolve(caller, name="", function=caller.function or caller.name)
        self.place = end
        return found

    def _fused(self) -> Location:
        if self.sees("<"):
            self.bracketed()
        found = self.listed(self._location, "[", "]")
        return next((each for each in found if each.file), next((each for each in found if each.name), UNKNOWN))


def _named_location(name: str, child: Location) -> Location:
    """A location with a new name; its previous name becomes that of the function."""
    return Location(unescape(name), child.file, child.line, child.column, child.function or child.name)


# ----------------------------------------------------------------------------
# Fast path: an operation that differs from an earlier one only in the names of values

_VALUE_NAMES = re.compile(r"%([\w$.-]++(?:#\d++)?+)", re.ASCII)
_LINE_RESULT = re.compile(r"%([\w$.-]++)(?::(\d{1,6}+))?+ = ", re.ASCII)
_LOCATION_ALIAS = re.compile(r"#[\w$.-]++", re.ASCII)
_FOLLOWING = re.compile(r'\s*+(?=[%}"^]|[a-z_]++\.[a-z]|return\b)', re.ASCII)
_LONGEST_LINE = 2000


class OperationLine:
    """A line that looks like one operation: result, operands, and the rest of the text as its key."""

    __slots__ = ("count", "end", "following", "key", "location", "operands", "place", "result")

    def __init__(self, place: int, end: int, following: int) -> None:
        self.place, self.end, self.following = place, end, following
        self.result, self.count, self.location = "", 0, ""
        self.operands: list[str] = []
        self.key = ""

    def ends(self, text: str, place: int) -> bool:
        """Whether reading that ended at this place consumed exactly this line."""
        return not text[min(place, self.end) : max(place, self.end)].strip()


def line_at(text: str, place: int) -> OperationLine | None:
    """The line at a place; None if it is too long or no operation follows it."""
    end = text.find("\n", place, place + _LONGEST_LINE + 1)
    if end < 0:
        return None
    following = _FOLLOWING.match(text, end)
    if not following:
        return None
    line = OperationLine(place, end, following.end())
    result = _LINE_RESULT.match(text, place)
    if result:
        line.result, place = result[1], result.end()
        line.count = 1 if result[2] is None else int(result[2])
    if text.startswith(")", end - 1):
        end = _end_before_location(text, place, end, line)
    parts = _VALUE_NAMES.split(text[place:end])
    line.operands = parts[1::2]
    line.key = "\n".join(parts[::2])  # a separator that no line contains; a lone % stays in the key
    return line


def _end_before_location(text: str, place: int, end: int, line: OperationLine) -> int:
    """The end of the operation before ` loc(#name)`; lines with other locations are not shortened."""
    begin = text.rfind(" loc(", place, end)
    if begin < 0:
        return end
    location = text[begin + 5 : end - 1]
    if not _LOCATION_ALIAS.fullmatch(location):
        return end
    line.location = location
    return begin


@frozen(eq=False)
class KnownOperation:
    """What operations with the same line key share, and how many characters their aliases expand to."""

    form: Form
    regions: tuple[Region, ...]
    expanded: int

    def operation(self, reader: LocationReader, line: OperationLine) -> ParsedOperation | None:
        """The operation of a line; None if its number of results differs, which the full parser refuses."""
        if line.count != len(self.form.result_types) and line.count:
            return None
        if self.expanded:
            reader.expand(self.expanded, line.place)
        if line.count == 1:
            results: tuple[str, ...] = (line.result,)
        else:
            results = tuple([f"{line.result}#{number}" for number in range(line.count)])
        if not line.location:
            return ParsedOperation(self.form, tuple(line.operands), results, self.regions, place=line.place)
        location = reader.location_alias(line.location, line.place)
        return ParsedOperation(
            self.form, tuple(line.operands), results, self.regions, place=line.place, location=location
        )


# ----------------------------------------------------------------------------
# Parser of operations

_RESULT = re.compile(r"%([\w$.-]++)(?:[ ]*+:[ ]*+(\d{1,6}+))?", re.ASCII)
_LABEL = re.compile(r"\^[\w$.-]++", re.ASCII)
_RESUME = re.compile(r'\n[ \t]*+(?=%[\w$.-]++(?::\d++)? = |"?[a-z_]++\.[a-z_]\w*+|return\b|\})', re.ASCII)


class Parser(LocationReader):
    """Parses one module; `faults` holds the first faults, and `count` is the number of all."""

    def __init__(self, text: str, place: int = 0) -> None:
        super().__init__(text, place)
        self.faults: list[Fault] = []
        self.count = 0
        self.known_lines: dict[str, KnownOperation] = {}

    def module(self) -> ParsedOperation:
        """Parse the module of the text; top-level operations without a module form an unnamed one."""
        found: list[ParsedOperation] = []
        while self.skip() < len(self.text):
            if self.text[self.place] in "#!":
                self.definition()
            elif self.text.startswith("{-#", self.place):
                self._skip_resources()
            else:
                self._parse_or_skip(found)
        if len(found) == 1 and found[0].name == "builtin.module":
            return found[0]
        return ParsedOperation(Form("builtin.module", {}, (), ()), regions=(Region((), tuple(found)),))

    def keep(self, fault: Fault) -> None:
        """Store a fault; beyond a limit, faults are only counted."""
        self.count += 1
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(fault)
        self.is_terse = len(self.faults) == MOST_FAULTS

    def _skip_resources(self) -> None:
        end = self.text.find("#-}", self.place)
        if end < 0:
            self.fail("syntax", "'{-#' is not closed")
        self.place = end + 3

    def _parse_or_skip(self, found: list[ParsedOperation]) -> None:
        """Parse an operation; after a fault, resume at the next line that looks like one, if braces are balanced."""
        begin = self.skip()
        try:
            found.append(self.operation())
        except Fault as fault:
            if self.count + 1 >= COUNTED_FAULTS:
                raise
            resume = _RESUME.search(self.text, max(self.place, begin + 1) - 1)
            if resume is None or self._is_unbalanced(begin, resume.start()):
                raise
            self.keep(fault)
            self.place = resume.end()

    def _is_unbalanced(self, begin: int, end: int) -> bool:
        return self.text.count("{", begin, end) != self.text.count("}", begin, end)

    def operation(self) -> ParsedOperation:
        line = line_at(self.text, self.place)
        known = self.known_lines.get(line.key) if line else None
        if line and known and (found := known.operation(self, line)):
            self.place = line.following
            return found
        place, expanded = self.place, self.expanded
        found = self._parse_operation(place)
        if line and line.ends(self.text, self.place) and line.operands == list(found.operands):
            self.known_lines.setdefault(line.key, KnownOperation(found.form, found.regions, self.expanded - expanded))
        return found

    def _parse_operation(self, place: int) -> ParsedOperation:
        names = self._result_names() if self.text.startswith("%", place) else []
        draft = OperationDraft(*self._operation_name())
        if self.text[draft.place] == '"':
            self._parse_generic(draft)
        else:
            self._parse_pretty(draft)
        location = self.located()
        form = Form(draft.name, draft.attributes, draft.operand_types, draft.result_types, draft.texts)
        if len(draft.operands) != len(form.operand_types):
            self.fail(
                "arity_mismatch",
                f"{draft.name}: expected one type for each operand, got {len(form.operand_types)} types for "
                f"{len(draft.operands)} operands",
                place=draft.place,
            )
        results = self._expand_names(names, form, draft.place)
        return ParsedOperation(form, draft.operands, results, draft.regions, place=place, location=location)

    def _result_names(self) -> list[tuple[str, int]]:
        """The names before `=`, each with its number of results."""
        found: list[tuple[str, int]] = []
        while True:
            match = self.scan(_RESULT)
            if not match:
                self.expected("the name of a result")
            found.append((match[1], int(match[2] or 1)))
            if not self.take(","):
                break
        self.expect("=", f" after %{found[-1][0]}")
        return found

    def _expand_names(self, names: list[tuple[str, int]], form: Form, place: int) -> tuple[str, ...]:
        count = sum(count for _, count in names)
        if names and count != len(form.result_types):
            expected = f"{form.name}: expected one name for each result"
            message = f"{expected}, got {count} names for {len(form.result_types)} results"
            self.fail("arity_mismatch", message, place=place)
        return tuple([each for name, n in names for each in ([name] if n == 1 else [f"{name}#{k}" for k in range(n)])])

    def _operation_name(self) -> tuple[str, int]:
        place = self.skip()
        if self.text.startswith('"', place):
            return self.string(), place
        name = self.word()
        return SHORT.get(name, name), place

    def _parse_pretty(self, draft: OperationDraft) -> None:
        row = row_of(draft.name)
        if row is None:
            self._refuse_form(draft)
        else:
            for each in compile_row(row):
                each(self, draft)

    def _refuse_form(self, draft: OperationDraft) -> None:
        if "." not in draft.name:
            self.fail("syntax", f"expected an operation, got {draft.name[:40]!r}", place=draft.place)
        hints = self.near(draft.name, ROWS)
        quoted = f'"{draft.name}"(...) : (...) -> ...'
        self.fail(
            "unknown_opcode",
            f"{draft.name[:60]} has no short form; write it as {quoted}",
            *hints,
            place=draft.place,
        )

    def _parse_generic(self, draft: OperationDraft) -> None:
        """`(operands) <{properties}> (regions) {attributes} : function type`."""
        draft.operands = tuple(self.listed(self.value, "(", ")"))
        if self.take("<"):
            draft.attributes.update(self.dictionary())
            self.expect(">", " at the end of the properties")
        if self.sees("("):
            draft.regions = tuple(self.listed(lambda: self.region(()), "(", ")"))
        for each in compile_row("{} =function"):
            each(self, draft)

    def region(self, arguments: tuple[Argument, ...]) -> Region:
        """Parse a region of one block; its arguments are given or precede its operations."""
        begin = self.skip()
        self.expect("{", " before a region")
        with self.deeper():
            if self.scan(_LABEL):
                given = tuple(self.listed(self.argument, "(", ")")) if self.sees("(") else ()
                arguments = given or arguments
                self.expect(":", " after the arguments of the block")
            found: list[ParsedOperation] = []
            while not self.take("}"):
                if self.text.startswith("^", self.place):
                    self.fail("syntax", "xbuild cannot read regions with several blocks")
                if self.skip() >= len(self.text):
                    self.fail("syntax", "this region is not closed", place=begin)
                self._parse_or_skip(found)
        return Region(arguments, tuple(found), begin)

    def argument(self) -> Argument:
        """Parse the name, type and location of an argument."""
        name = self.value()
        self.expect(":", f" and the type of %{name}")
        return Argument(name, self.type(), self.located())

    def noted_argument(self, notes: list[Record]) -> Argument:
        """Parse an argument of a function and add its attributes to `notes`; a declaration may omit the name."""
        name = ""
        if self.sees("%"):
            name = self.value()
            self.expect(":", f" and the type of %{name}")
        type_ = self.type()
        notes.append(Record("", self.dictionary() if self.sees("{") else {}, ""))
        return Argument(name, type_, self.located())

    def fields_of(self, kind: str) -> Record:
        """Parse an attribute without its kind, such as the algorithm of a dot."""
        begin = self.skip()
        text = self.bracketed()[1:-1]
        return Record(kind, self._fields(kind, begin + 1, text), text.strip())
