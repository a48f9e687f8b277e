"""Attributes of MLIR operations as Python values.

Numbers, flags, strings, arrays and types are what they are in Python: int, float, bool, str, tuple, a type; a unit
attribute is True. The classes here are all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from attrs import frozen

from .types import Type


@frozen
class Symbol:
    """The name of a function or a mesh, without its `@`."""

    name: str


@frozen
class Enumeration:
    """A word of a kind, such as `#stablehlo<precision HIGHEST>`: kind `stablehlo.precision`, word `HIGHEST`."""

    kind: str
    word: str


@frozen
class Record:
    """An attribute of a dialect, such as `#stablehlo.gather<offset_dims = [1], ...>`, or a dictionary (no kind).

    `fields` are its named parts where it has such; `text` is what stands between its brackets.
    """

    kind: str
    fields: Mapping[str, Any]
    text: str


@frozen(eq=False)
class Dense:
    """Elements of a tensor and their type; of a splat, `array` is a view of one element."""

    type: Type
    array: Any

    @property
    def is_splat(self) -> bool:
        return self.array.ndim > 0 and not any(self.array.strides)


@frozen
class Opaque:
    """Any other attribute, of which the text is kept."""

    text: str


Attribute: TypeAlias = (
    bool | int | float | str | tuple[Any, ...] | Type | Symbol | Enumeration | Record | Dense | Opaque
)
