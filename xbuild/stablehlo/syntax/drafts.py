"""An operation while it is read: what the parts of its form have given so far."""

from __future__ import annotations

from typing import Any

from attrs import Factory, define

from .attributes import Attribute
from .trees import Region
from .types import FunctionType, Type


@define
class Draft:
    """The name, operands, attributes, types and regions of an operation, as far as they are read."""

    name: str
    place: int
    operands: tuple[str, ...] = ()
    attributes: dict[str, Attribute] = Factory(dict)
    operand_types: tuple[Type, ...] = ()
    result_types: tuple[Type, ...] = ()
    regions: tuple[Region, ...] = ()
    kept: dict[str, Any] = Factory(dict)

    def set_types(self, given: FunctionType) -> None:
        self.operand_types, self.result_types = given.arguments, given.results
