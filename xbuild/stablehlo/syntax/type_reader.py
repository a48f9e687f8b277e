"""Reader of types; types that were read before are looked up by their text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn

from shape_inference import PrimitiveType, Shape, TupleShape, XbuildError, s64, token

from ..spelling.element_types import TYPES_BY_NAME
from .quantized import quantized_type
from .scanner import MlirScanner
from .types import FunctionType, FutureType, OpaqueType, QuantizedType, ScalarType, TensorType, Type

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
        """Types in brackets."""
        return tuple(self.listed(self.type, "(", ")"))

    def types_here(self) -> tuple[Type, ...]:
        """Types separated by commas."""
        found = [self.type()]
        while self.take(","):
            found.append(self.type())
        return tuple(found)

    def result_types(self) -> tuple[Type, ...]:
        """One type, or types in brackets."""
        return self.type_list() if self.sees("(") else (self.type(),)

    def function_type(self) -> FunctionType:
        arguments = self.type_list()
        self.expect("->")
        return FunctionType(arguments, self.result_types())

    def alias(self, name: str, place: int) -> Type:
        """The type that an alias stands for."""
        self.fail("undefined_name", f"there is no type {name!r}", place=place)

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
            return self._of_dialect(name, place)
        if name == "complex" or not _SCALAR.fullmatch(name):
            self.fail("syntax", f"a type is wanted, and {name[:40]!r} is none", place=place)
        return ScalarType(name)

    def _of_dialect(self, name: str, place: int) -> Type:
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
            self.fail("syntax", "xbuild has no tensors whose rank is not known", "give each extent, or ? for each")
        dims = tuple(self._extents())
        element = self.element_type()
        bounds = self._bounds(dims) if self.take(",") else (None,) * len(dims)
        self.expect(">", " at the end of a tensor's type")
        return _tensor(dims, element, bounds, self.text[begin : self.place])

    def _extents(self) -> list[int | None]:
        found: list[int | None] = []
        while match := self.scan(_EXTENT):
            if len(match[1]) > 18:
                self.fail("overflow", f"an extent of {match[1][:24]} is too large", place=match.start())
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
        found = s64 if match[0] == "index" else TYPES_BY_NAME.get(match[0])  # layouts and sizes have it
        if found is None:
            self._no_element(match[0], place)
        return found

    def _element_alias(self, name: str, place: int) -> PrimitiveType | QuantizedType:
        found = self.alias(name, place)
        if isinstance(found, OpaqueType) and found.text.startswith("!quant."):
            kind, _, body = found.text.partition("<")
            return quantized_type(self, kind, f"<{body}", place)
        return self._no_element(name, place)

    def _no_element(self, name: str, place: int) -> NoReturn:
        hints = self.near(name, TYPES_BY_NAME)
        self.fail("syntax", f"xbuild has no element type {name[:40]!r}", *hints, place=place)

    def _bounds(self, dims: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """The bounds of a tensor's extents, None where there is none."""
        place = self.skip()
        if not self.scan(_ENCODING):
            self.fail("syntax", "of a tensor's encodings xbuild reads #stablehlo.bounds alone", place=place)
        found = _BOUND.findall(self.bracketed())
        if len(found) != len(dims):
            self.fail("shape_mismatch", f"{len(found)} bounds are written for {len(dims)} extents", place=place)
        if any(len(each) > 18 for each in found):
            self.fail("overflow", "a bound is too large", place=place)
        return tuple(None if each == "?" else int(each) for each in found)

    def tuple_type(self) -> Type:
        place = self.skip()
        elements = self.listed(self.type, "<", ">")
        try:
            return TupleShape(elements)  # type: ignore[arg-type]
        except XbuildError as error:
            self.fail(error.kind, error.message, place=place)
        except AttributeError:
            self.fail("syntax", "the elements of a tuple are tensors, tokens and tuples", place=place)


def _tensor(
    dims: tuple[int | None, ...],
    element: PrimitiveType | QuantizedType,
    bounds: tuple[int | None, ...],
    text: str,
) -> Type:
    """The shape of a tensor where the project has one for it: extents that are known or bounded."""
    known = [bound if dim is None else dim for dim, bound in zip(dims, bounds, strict=True)]
    if isinstance(element, QuantizedType) or None in known:
        return TensorType(dims, element, text)
    if None not in dims:
        return element[dims]  # type: ignore[index]
    return Shape(element, known, tuple(dim is None for dim in dims))  # type: ignore[arg-type]


_BUILTIN: dict[str, Callable[[TypeReader], Type]] = {"tensor": TypeReader.tensor, "tuple": TypeReader.tuple_type}
