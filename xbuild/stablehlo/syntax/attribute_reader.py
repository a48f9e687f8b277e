"""Reader of attributes: numbers, strings, lists, dictionaries, dense elements, attributes of dialects."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import Any

from shape_inference import Shape
from shape_inference.elided import ElidedArray

from ..literals.dense_literals import dense_array, elements_of
from ..literals.element_words import WordError
from ..spelling.element_types import TYPES_BY_NAME
from .attributes import Attribute, Dense, Enumeration, Opaque, Record, Symbol
from .resources import array_of, resources_of
from .type_reader import TypeReader
from .types import FunctionType

_NUMBER = re.compile(r"-?(?:0x[0-9A-Fa-f]++|\d++(?:\.\d*+(?:[eE][-+]?\d++)?+)?+)", re.ASCII)
_WORD = re.compile(r"[A-Za-z_]\w*+", re.ASCII)
_KEY = re.compile(r"[A-Za-z_][\w.$-]*+", re.ASCII)
_NAME = re.compile(r"#[A-Za-z_][\w.$-]*+", re.ASCII)
_ONE_WORD = re.compile(r"\s*+(\w++)\s*+", re.ASCII)
_FIELD = re.compile(r"\s*+\w++\s*+=", re.ASCII)
_INSIDE = re.compile(r'(?:[^<>"/]++|//[^\n]*+|"[^"\n]*+"|/)*+')
_ARRAY = re.compile(r"array\s*+<\s*+(\w++)\s*+(?::([^<>\"]*+))?>", re.ASCII)
_SUB_AXIS = re.compile(r"\((\d{1,9}+)\)(\d{1,9}+)", re.ASCII)
_OPAQUE = ("affine_map", "affine_set", "sparse", "strided", "distinct", "opaque")
_LOOKED_INTO = ("stablehlo.", "mhlo.", "chlo.")


class AttributeReader(TypeReader):
    """A scanner that reads types and attributes."""

    def attribute(self) -> Attribute:
        with self.deeper():
            place = self.skip()
            read = _BY_CHARACTER.get(self.text[place : place + 1])
            if read is not None:
                return read(self)  # type: ignore[no-any-return]
            match = _WORD.match(self.text, place)
            named = _BY_WORD.get(match[0]) if match else None
            if match and named is not None:
                return named(self)  # type: ignore[no-any-return]
            if match and match[0] in _OPAQUE:
                return self._opaque(match)
            return self.type() if match else self.expected("an attribute")

    def attribute_alias(self, name: str, place: int) -> Attribute:
        """The attribute that an alias stands for."""
        self.fail("undefined_name", f"there is no attribute {name!r}", place=place)

    def dictionary(self) -> dict[str, Attribute]:
        """The attributes between braces, by name; a name alone is a unit attribute."""
        found: dict[str, Attribute] = {}
        self.expect("{")
        while not self.take("}"):
            place = self.skip()
            key = self.string() if self.text.startswith('"', place) else self._key()
            if key in found:
                self.fail("duplicate_attribute", f"{key[:60]} is given twice", place=place)
            found[key] = self.attribute() if self.take("=") else True
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

    def _bare(self) -> Record:
        """An attribute whose kind follows from where it stands, such as `<name = "x", size = 2>`."""
        return Record("", {}, self.bracketed()[1:-1].strip())

    def _parenthesized(self) -> FunctionType | tuple[int, int]:
        """The type of a function, or the part of an axis of a mesh, written as (1)2."""
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
            self.fail("syntax", "an array is written as array<i64: 1, 2>")
        try:
            return tuple(elements_of(match[2] or "", dtype).tolist())
        except WordError as error:
            self.fail("invalid_literal", error.message, place=match.start())

    def _dense(self) -> Dense:
        self.word()
        self.expect("<")
        begin = self.place
        match = _INSIDE.match(self.text, begin)
        assert match is not None  # it may be empty
        self.place = match.end()
        self.expect(">", " at the end of the elements")
        self.expect(":", " and the type of the elements")
        place = self.skip()
        type_ = self.type()
        if not isinstance(type_, Shape) or type_.is_dynamic:
            self.fail("syntax", f"elements are those of a static tensor, and {type_} is written", place=place)
        return Dense(type_, dense_array(self, begin, match[0], type_))

    def _resource(self) -> Dense:
        self.word()
        place = self.skip()
        name = self.bracketed()[1:-1].strip().strip('"')
        self.expect(":", " and the type of the elements")
        type_ = self.type()
        if not isinstance(type_, Shape) or type_.is_dynamic:
            self.fail("syntax", f"elements are those of a static tensor, and {type_} is written", place=place)
        return Dense(type_, self.resource(name, type_, place))

    def resource(self, name: str, shape: Shape, place: int) -> Any:
        """The elements that stand at the end of the text, or were left out by who printed it."""
        if name in self.resources:
            return array_of(self, self.resources[name], shape, place)
        if name != "__elided__":
            self.fail("undefined_name", f"there is no resource {name[:60]!r}", place=place)
        return ElidedArray(shape.dtype, shape.dims)

    @cached_property
    def resources(self) -> dict[str, str]:
        return resources_of(self.text)

    def dialect_attribute(self) -> Attribute:
        """`#stablehlo<precision HIGHEST>`, `#stablehlo.gather<...>`, or an alias."""
        place = self.skip()
        match = self.scan(_NAME)
        if not match:
            self.expected("an attribute")
        kind = match[0][1:]
        if not self.text.startswith("<", self.place):
            return self.attribute_alias(match[0], place)
        begin = self.place
        text = self.bracketed()[1:-1]
        if "." not in kind:
            first = _WORD.match(text.lstrip())
            if not first:
                self.fail("syntax", "the kind of the attribute is wanted", place=begin + 1)
            skipped = len(text) - len(text.lstrip()) + first.end()
            kind, begin, text = f"{kind}.{first[0]}", begin + skipped, text[skipped:]
        word = _ONE_WORD.fullmatch(text)
        if word:
            return Enumeration(kind, word[1])
        return Record(kind, self._fields(kind, begin + 1, text), text.strip())

    def _fields(self, kind: str, begin: int, text: str) -> dict[str, Attribute]:
        """The named parts of an attribute, such as `offset_dims = [1]`."""
        found: dict[str, Attribute] = {}
        if not kind.startswith(_LOOKED_INTO) or not _FIELD.match(text):
            return found
        end, self.place = self.place, begin
        while self.skip() < end - 1:
            place = self.place
            key = self.word()
            self.expect("=", f" after {key[:40]!r}")
            if key in found:
                self.fail("duplicate_attribute", f"{key[:60]} is given twice", place=place)
            found[key] = self.attribute()
            if self.skip() < end - 1:
                self.expect(",")
        self.place = end
        return found


_BY_CHARACTER: dict[str, Callable[[AttributeReader], Any]] = {
    '"': AttributeReader._string,
    "[": AttributeReader._list,
    "(": AttributeReader._parenthesized,
    "<": AttributeReader._bare,
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
