"""An op is declared by its signature and its docstring; calling it records an instruction."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import attrs
from attrs import field, frozen

from shape_inference import refuse

from .attributes import Called, Region, Regions, reader, reader_of
from .builder import Builder, Value, Values, builder_of

Declared = TypeVar("Declared", bound=Callable[..., Any])

OPS: dict[str, Schema] = {}


@frozen(eq=False)
class Schema:
    """What readers, printers and pictures need to know of an op.

    `spelling` is the opcode as HLO text has it; `is_flat` where each operand parameter is one value; `names` are
    all its attributes, `needed` those without a default.
    """

    opcode: str
    spelling: str
    operands: tuple[str, ...]
    kinds: tuple[Any, ...]
    is_flat: bool
    attributes: type | None
    names: frozenset[str]
    needed: frozenset[str]
    regions: tuple[str, ...]
    takes_builder: bool
    declaration: Callable[..., Any]
    readers: dict[str, Callable[[Any], Any]] = field(factory=dict)
    defaults: dict[str, Any] = field(factory=dict)

    def record(self, attributes: dict[str, Any]) -> Any:
        """The record of these attributes; refuses what is none of them, and the lack of one that is needed.

        It is filled past the frozen class, in half of the time; its fields keep their order.
        """
        if self.attributes is None:
            return self._refuse_names(attributes) if attributes else None
        record: Any = object.__new__(self.attributes)
        values, readers = record.__dict__, self.readers
        values.update(self.defaults)
        try:
            for key, value in attributes.items():
                values[key] = readers[key](value)
        except (KeyError, TypeError, ValueError, OverflowError):
            self._refuse_names(attributes)
            self._refuse_values(attributes)
            raise
        if not self.needed <= attributes.keys():
            self._refuse_names(attributes)
        return record

    def expect(self, attributes: dict[str, Any]) -> None:
        """Refuse attributes that the op does not have, and the lack of one that it needs."""
        if not self.needed <= attributes.keys() <= self.names:
            self._refuse_names(attributes)

    def _refuse_names(self, attributes: dict[str, Any]) -> None:
        fields = attrs.fields_dict(self.attributes) if self.attributes else {}
        for key in attributes.keys() - fields.keys():
            close = difflib.get_close_matches(key, fields, 1)
            refuse(
                "invalid_attribute",
                f"{self.spelling} has no attribute {key!r}; it has {', '.join(fields) or 'none'}",
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
        lists = [each if type(each) is tuple else _as_list(each) for each in arguments]
        return sum(lists, ()), tuple(map(len, lists))

    def unflatten(self, operands: tuple[Any, ...], segments: tuple[int, ...] | None) -> tuple[Any, ...]:
        """The inverse: for each operand parameter a value, None or a tuple."""
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


def op(declaration: Declared) -> Declared:
    """Declare an op: make its schema, its record of attributes, and the function that records it."""
    schema = OPS[declaration.__name__.strip("_")] = _schema(declaration)
    is_flat, flatten = schema.is_flat, schema.flatten

    @functools.wraps(declaration)
    def record(*arguments: Any, name: str | None = None, builder: Builder | None = None, **attributes: Any) -> Value:
        if schema.takes_builder and arguments:
            builder, arguments = arguments[0], arguments[1:]
        operands, segments = (arguments, None) if is_flat else flatten(arguments)
        if operands and type(operands[0]) is Value:
            builder = operands[0].builder
        else:
            builder = builder_of(schema, operands, builder)
        return builder.record(schema, operands, segments, attributes, name)

    return record  # type: ignore[return-value]


def _schema(declaration: Callable[..., Any]) -> Schema:
    opcode = declaration.__name__.strip("_")
    parameters = inspect.signature(declaration, eval_str=True).parameters.values()
    keywords = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    operands = [p for p in parameters if p.kind is not p.KEYWORD_ONLY and p.annotation is not Builder]
    fields = {p.name: _field(p) for p in keywords}
    readers = {p.name: reader_of(p.annotation) for p in keywords}
    return Schema(
        opcode,
        spelling=opcode.replace("_", "-"),
        operands=tuple(p.name for p in operands),
        kinds=tuple(p.annotation for p in operands),
        is_flat=all(p.annotation is Value for p in operands),
        attributes=_record(_title(opcode), fields) if fields else None,
        names=frozenset(fields),
        needed=frozenset(p.name for p in keywords if p.default is p.empty),
        regions=tuple(p.name for p in keywords if p.annotation in (Region, Regions)),
        takes_builder=any(p.annotation is Builder for p in parameters),
        declaration=declaration,
        readers=readers,
        defaults={p.name: None if p.default is p.empty else readers[p.name](p.default) for p in keywords},
    )


def _record(name: str, fields: dict[str, Any]) -> type:
    """The class of an op's attributes; `calling` names those that hold computations."""
    calling = tuple(key for key, each in fields.items() if each.type in (Region, Regions, Called))
    return attrs.make_class(name, fields, class_body={"calling": calling}, frozen=True, slots=False, kw_only=True)


def _field(parameter: inspect.Parameter) -> Any:
    default = attrs.NOTHING if parameter.default is parameter.empty else parameter.default
    return attrs.field(default=default, type=parameter.annotation, converter=reader_of(parameter.annotation))


def _title(opcode: str) -> str:
    return "".join(part.title() for part in opcode.split("_"))
