"""The decorator `op`, which turns a declaration into a recording function, and `Schema`, the facts that it states."""

from __future__ import annotations

import difflib
import functools
import itertools
from collections.abc import Callable
from typing import Any, TypeVar

import attrs
from attrs import field, frozen

from shape_inference import refuse

from .attributes import UNSHARED, Called, Region, Regions, reader, reader_of
from .builder import Builder, Value, Values, builder_of, stands_for
from .properties import Properties

Declared = TypeVar("Declared", bound=Callable[..., Any])

OPS: dict[str, Schema] = {}


@frozen(eq=False)
class Schema:
    """The facts of an op that its declaration states: signature, attributes, regions, properties.

    `spelling` is the opcode as HLO text has it; `is_flat` is True where each operand parameter is one value; `names`
    are the names of all attributes, `needed` of those without a default, and `types` the types of the fields of the
    record that holds their values; `shares_records` is True where equal attributes are the same ones, and can be keys.
    """

    opcode: str
    spelling: str
    operands: tuple[str, ...]
    kinds: tuple[Any, ...]
    is_flat: bool
    types: dict[str, Any]
    names: frozenset[str]
    needed: frozenset[str]
    regions: tuple[str, ...]
    takes_builder: bool
    declaration: Callable[..., Any]
    properties: Properties
    readers: dict[str, Callable[[Any], Any]] = field(factory=dict)
    defaults: dict[str, Any] = field(factory=dict)
    shares_records: bool = True
    _record: type | None = field(default=None, init=False)

    @property
    def attributes(self) -> type | None:
        """The class of the op's attributes, made for ops that a program uses; None for an op without attributes.

        Its `calling` names the attributes that hold computations.
        """
        if self._record or not self.types:
            return self._record
        calling = tuple(key for key, annotation in self.types.items() if annotation in (Region, Regions, Called))
        given = self.declaration.__kwdefaults__ or {}
        fields = {
            key: attrs.field(default=given.get(key, attrs.NOTHING), type=annotation, converter=self.readers[key])
            for key, annotation in self.types.items()
        }
        title = "".join(part.title() for part in self.opcode.split("_"))
        made = attrs.make_class(title, fields, class_body={"calling": calling}, frozen=True, slots=False, kw_only=True)
        object.__setattr__(self, "_record", made)
        return made

    def read(self, attributes: dict[str, Any]) -> Any:
        """The record of these attributes; unknown and missing attributes raise an error."""
        return self.fill(self.convert(attributes)) if attributes or self.names else None

    def convert(self, attributes: dict[str, Any]) -> dict[str, Any]:
        """The attributes as their readers convert them; unknown and bad ones raise an error."""
        readers, converted = self.readers, {}
        try:
            for key, value in attributes.items():
                converted[key] = readers[key](value)
            return converted
        except (KeyError, TypeError, ValueError, OverflowError):
            self._refuse_names(attributes)
            self._refuse_values(attributes)
            raise

    def fill(self, converted: dict[str, Any]) -> Any:
        """The record of converted attributes, with defaults for the others; missing attributes raise an error.

        The record is filled without the constructor of its frozen class, in half of the time, in declared order.
        """
        if not self.needed <= converted.keys():
            self._refuse_names(converted)
        record: Any = object.__new__(self._record or self.attributes)  # type: ignore[arg-type]  # it has attributes
        record.__dict__.update(self.defaults)
        record.__dict__.update(converted)
        return record

    def expect(self, attributes: dict[str, Any]) -> None:
        """Refuse attributes that the op does not have, and missing ones that the op needs."""
        if not self.needed <= attributes.keys() <= self.names:
            self._refuse_names(attributes)

    def _refuse_names(self, attributes: dict[str, Any]) -> None:
        fields = attrs.fields_dict(self.attributes) if self.attributes else {}
        for key in attributes.keys() - fields.keys():
            close = difflib.get_close_matches(key, fields, 1)
            refuse(
                "invalid_attribute",
                f"{self.spelling} has no attribute {key!r}; it has {', '.join(fields) or 'no attributes'}",
                *(f"did you mean {guess!r}?" for guess in close),
            )
        for key in fields:
            if key in self.needed and key not in attributes:
                refuse("invalid_attribute", f"attribute {key!r} is missing")

    def _refuse_values(self, attributes: dict[str, Any]) -> None:
        fields = attrs.fields_dict(self.attributes) if self.attributes else {}
        for key, value in attributes.items():
            reader(key, fields[key].type)(value)

    def flatten(self, arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[int, ...] | None]:
        """The arguments as one flat tuple and the sizes of its segments (None where each is one value)."""
        if self.is_flat or len(arguments) != len(self.kinds):
            return arguments, None
        flat: list[Any] = []
        sizes: list[int] = []
        for each in arguments:
            values = each if type(each) is tuple else _as_list(each)
            flat += values
            sizes.append(len(values))
        return tuple(flat), tuple(sizes)

    def places(self, names: tuple[str, ...], segments: tuple[int, ...] | None) -> tuple[int, ...]:
        """The places in the flat tuple of operands that the values of these operand parameters have."""
        if segments is None:
            return tuple([self.operands.index(name) for name in names])
        ends = list(itertools.accumulate(segments))
        numbers = [self.operands.index(name) for name in names]
        return tuple([place for n in numbers for place in range(ends[n] - segments[n], ends[n])])

    def unflatten(self, operands: tuple[Any, ...], segments: tuple[int, ...] | None) -> tuple[Any, ...]:
        """The inverse of `flatten`: for each operand parameter a value, None or a tuple."""
        if segments is None:
            return operands
        found, start = [], 0
        for kind, size in zip(self.kinds, segments, strict=True):
            values = operands[start : start + size]
            found.append(values if kind is Values else values[0] if values else None)
            start += size
        return tuple(found)


def _as_list(argument: Any) -> tuple[Any, ...]:
    if argument is None:
        return ()
    return tuple(argument) if isinstance(argument, tuple | list) else (argument,)


def op(properties: Properties) -> Callable[[Declared], Declared]:
    """A decorator that declares an op with these properties: its schema enters OPS, and calls of it are recorded.

    Raises ValueError where the properties name an operand that the op does not have.
    """

    def declare(declaration: Declared) -> Declared:
        schema = OPS[declaration.__name__.strip("_")] = _schema(declaration, properties)
        return _recording(schema, declaration)

    return declare


def _recording(schema: Schema, declaration: Declared) -> Declared:
    """The function that records an instruction of the op; it has the name and the docstring of the declaration."""
    is_flat, flatten = schema.is_flat, schema.flatten

    @functools.wraps(declaration)
    def call(*arguments: Any, name: str | None = None, builder: Builder | None = None, **attributes: Any) -> Value:
        if schema.takes_builder and arguments:
            builder, arguments = arguments[0], arguments[1:]
        operands, segments = (arguments, None) if is_flat else flatten(arguments)
        if operands and type(operands[0]) is Value:
            builder = operands[0].builder
        else:
            operands = tuple(map(stands_for, operands)) if operands else ()
            builder = builder_of(schema, operands, builder)
        return builder.record(schema, operands, segments, attributes, name)

    return call  # type: ignore[return-value]


def _schema(declaration: Callable[..., Any], properties: Properties) -> Schema:
    opcode = declaration.__name__.strip("_")
    code, given = declaration.__code__, declaration.__kwdefaults__ or {}
    count = code.co_argcount
    parameters = {name: _type_of(declaration, name) for name in code.co_varnames[: count + code.co_kwonlyargcount]}
    operands = [name for name in code.co_varnames[:count] if parameters[name] is not Builder]
    keywords = {name: parameters[name] for name in code.co_varnames[count : count + code.co_kwonlyargcount]}
    readers = {name: reader_of(annotation) for name, annotation in keywords.items()}
    _check_names(opcode, properties, operands)
    return Schema(
        opcode,
        spelling=opcode.replace("_", "-"),
        operands=tuple(operands),
        kinds=tuple([parameters[name] for name in operands]),
        is_flat=all(parameters[name] is Value for name in operands),
        types=keywords,
        names=frozenset(keywords),
        needed=frozenset(keywords.keys() - given.keys()),
        regions=tuple([name for name, annotation in keywords.items() if annotation in (Region, Regions)]),
        takes_builder=Builder in parameters.values(),
        declaration=declaration,
        properties=properties,
        readers=readers,
        shares_records=not any(annotation in UNSHARED for annotation in keywords.values()),
        defaults={name: readers[name](given[name]) if name in given else None for name in keywords},
    )


_types: dict[tuple[int, str], tuple[Any, Any]] = {}


def _type_of(declaration: Callable[..., Any], name: str) -> Any:
    """The type of a parameter. Each text of a module is evaluated once; the entry keeps the module's names alive."""
    text, names = declaration.__annotations__[name], declaration.__globals__
    if not isinstance(text, str):
        return text
    key = id(names), text
    if key not in _types:
        _types[key] = names, eval(text, names)
    return _types[key][1]


def _check_names(opcode: str, properties: Properties, operands: list[str]) -> None:
    for name in (*properties.moves, *properties.chosen_by):
        if name not in operands:
            raise ValueError(
                f"{opcode}: a property names the operand {name!r}, but the operands are {', '.join(operands)}"
            )


def opcodes(holds: Callable[[Properties], bool]) -> frozenset[str]:
    """The opcodes of all declared ops whose properties satisfy a condition."""
    return frozenset(opcode for opcode, schema in OPS.items() if holds(schema.properties))
