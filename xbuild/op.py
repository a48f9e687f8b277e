"""An op is declared by its signature and its docstring; calling it records an instruction."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import attrs
from attrs import frozen

from shape_inference import refuse

from .attributes import Region, Regions, reader
from .builder import Builder, Value, Values, builder_of

Declared = TypeVar("Declared", bound=Callable[..., Any])

OPS: dict[str, Schema] = {}


@frozen(eq=False)
class Schema:
    """What readers, printers and pictures need to know of an op; `is_flat` where each operand parameter is one value."""

    opcode: str
    operands: tuple[str, ...]
    kinds: tuple[Any, ...]
    is_flat: bool
    attributes: type | None
    regions: tuple[str, ...]
    takes_builder: bool
    declaration: Callable[..., Any]

    @property
    def spelling(self) -> str:
        """The opcode as HLO text has it."""
        return self.opcode.replace("_", "-")

    def expect(self, attributes: dict[str, Any]) -> None:
        """Refuse attributes that the op does not have, and the lack of one that it needs."""
        fields = attrs.fields_dict(self.attributes) if self.attributes else {}
        for key in attributes.keys() - fields.keys():
            close = difflib.get_close_matches(key, fields, 1)
            refuse(
                "invalid_attribute",
                f"{self.spelling} has no attribute {key!r}; it has {', '.join(fields) or 'none'}",
                *(f"did you mean {guess!r}?" for guess in close),
            )
        for key, each in fields.items():
            if each.default is attrs.NOTHING and key not in attributes:
                refuse("invalid_attribute", f"attribute {key!r} is missing")

    def flatten(self, arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[int, ...] | None]:
        """The arguments as one flat tuple and the sizes of its segments (None where each is one value)."""
        if self.is_flat or len(arguments) != len(self.kinds):
            return arguments, None
        lists = tuple(map(_as_list, arguments))
        return tuple(value for each in lists for value in each), tuple(map(len, lists))

    def gather(self, operands: tuple[Any, ...], segments: tuple[int, ...] | None) -> tuple[Any, ...]:
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

    @functools.wraps(declaration)
    def record(*arguments: Any, name: str | None = None, builder: Builder | None = None, **attributes: Any) -> Value:
        if schema.takes_builder and arguments:
            builder, arguments = arguments[0], arguments[1:]
        operands, segments = schema.flatten(arguments)
        return builder_of(schema, operands, builder).record(schema, operands, segments, attributes, name)

    return record  # type: ignore[return-value]


def _schema(declaration: Callable[..., Any]) -> Schema:
    opcode = declaration.__name__.strip("_")
    parameters = inspect.signature(declaration, eval_str=True).parameters.values()
    keywords = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    operands = [p for p in parameters if p.kind is not p.KEYWORD_ONLY and p.annotation is not Builder]
    fields = {p.name: _field(p) for p in keywords}
    return Schema(
        opcode,
        operands=tuple(p.name for p in operands),
        kinds=tuple(p.annotation for p in operands),
        is_flat=all(p.annotation is Value for p in operands),
        attributes=attrs.make_class(_title(opcode), fields, frozen=True, slots=False, kw_only=True) if fields else None,
        regions=tuple(p.name for p in keywords if p.annotation in (Region, Regions)),
        takes_builder=any(p.annotation is Builder for p in parameters),
        declaration=declaration,
    )


def _field(parameter: inspect.Parameter) -> Any:
    default = attrs.NOTHING if parameter.default is parameter.empty else parameter.default
    return attrs.field(default=default, type=parameter.annotation, converter=reader(parameter.name, parameter.annotation))


def _title(opcode: str) -> str:
    return "".join(part.title() for part in opcode.split("_"))
