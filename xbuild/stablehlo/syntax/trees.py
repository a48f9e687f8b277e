"""Plain trees of MLIR operations, as their text has them: names of values, types, attributes, regions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from .locations import UNKNOWN, Location
from .types import Type

if TYPE_CHECKING:
    from .attributes import Attribute


@frozen(eq=False)
class Form:
    """What operations have in common that are written alike but for the names of values.

    `attributes` are the properties and the discardable attributes of an operation by name. A form is one object for
    all operations of a text that have it, so that what is derived from it can be kept for it.
    """

    name: str
    attributes: Mapping[str, Attribute]
    operand_types: tuple[Type, ...]
    result_types: tuple[Type, ...]


@frozen(eq=False)
class Argument:
    """An argument of a region: its name without `%`, its type, and its location."""

    name: str
    type: Type
    location: Location = UNKNOWN


@frozen(eq=False)
class Region:
    """The one block of a region: its arguments, its operations, and the place of its bracket in the text."""

    arguments: tuple[Argument, ...]
    operations: tuple[Operation, ...]
    place: int = 0


@frozen(eq=False)
class Operation:
    """An operation: its form, the names of operands and results without `%`, its regions, and its place in the text.

    Results of one operation that has several are called `name#0`, `name#1` and so on.
    """

    form: Form
    operands: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    regions: tuple[Region, ...] = ()
    place: int = field(default=0, kw_only=True)
    location: Location = field(default=UNKNOWN, kw_only=True)

    @property
    def name(self) -> str:
        """The name of the operation with its dialect, such as `stablehlo.add`."""
        return self.form.name

    @property
    def attributes(self) -> Mapping[str, Any]:
        return self.form.attributes

    @property
    def operand_types(self) -> tuple[Type, ...]:
        return self.form.operand_types

    @property
    def result_types(self) -> tuple[Type, ...]:
        return self.form.result_types

    def walk(self) -> Iterator[Operation]:
        """This operation and all those in its regions, in the order of the text."""
        stack = [iter((self,))]
        while stack:
            each = next(stack[-1], None)
            if each is None:
                stack.pop()
                continue
            yield each
            stack.extend(iter(region.operations) for region in reversed(each.regions))
