"""Trees of MLIR operations as in their text: values, types, attributes, regions, locations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from attrs import field, frozen

from shape_inference import AnyShape, PrimitiveType

# ----------------------------------------------------------------------------
# Locations of operations: names, and lines of the source program


@frozen
class Location:
    """Where an operation comes from: a name, and the innermost line of the program; either may be missing.

    `name` is what JAX or TensorFlow call the operation, such as `jit(f)/dot_general`; `function` is the function of
    the line.
    """

    name: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    function: str = ""


UNKNOWN = Location()


# ----------------------------------------------------------------------------
# Types that are not shapes; static tensors, tuples and tokens become shapes


@frozen(cache_hash=True)
class QuantizedType:
    """An element type whose integers represent (integer - zero point) * scale, per tensor or along one dimension.

    `scales` and `zero_points` have one element if `dimension` is None.
    """

    storage: PrimitiveType
    expressed: PrimitiveType
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    dimension: int | None = None
    storage_range: tuple[int, int] | None = None
    text: str = ""

    def __str__(self) -> str:
        return self.text


@frozen(cache_hash=True)
class TensorType:
    """A tensor with unknown extents (None) or quantized elements."""

    dims: tuple[int | None, ...]
    element: PrimitiveType | QuantizedType
    text: str = ""

    def __str__(self) -> str:
        return self.text


@frozen(cache_hash=True)
class FutureType:
    """The type of the result of stablehlo.async_start; `values` are the types that async_done returns."""

    values: tuple[Type, ...]

    def __str__(self) -> str:
        return f"!stablehlo.future<{', '.join(map(str, self.values))}>"


@frozen(cache_hash=True)
class FunctionType:
    """The types of a function's arguments and results."""

    arguments: tuple[Type, ...]
    results: tuple[Type, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.arguments))}) -> ({', '.join(map(str, self.results))})"


@frozen
class ScalarType:
    """A scalar type, such as i64 after a number in an attribute; values of programs have other types."""

    text: str

    def __str__(self) -> str:
        return self.text


@frozen
class OpaqueType:
    """Any other type, as its text."""

    text: str

    def __str__(self) -> str:
        return self.text


Type: TypeAlias = AnyShape | TensorType | FutureType | FunctionType | ScalarType | OpaqueType


# ----------------------------------------------------------------------------
# Attributes as Python values
#
# Numbers, flags, strings, arrays and types are int, float, bool, str, tuple and a type; a unit attribute is True.
# All other attributes have one of these classes.


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

    `fields` are its named parts, if any; `text` is the text between its brackets.
    """

    kind: str
    fields: Mapping[str, Any]
    text: str


@frozen(eq=False)
class Dense:
    """Elements of a tensor and their type; `array` is a view of one element for a splat."""

    type: Type
    array: Any

    @property
    def is_splat(self) -> bool:
        return self.array.ndim > 0 and not any(self.array.strides)


@frozen
class Opaque:
    """Any other attribute, as its text."""

    text: str


Attribute: TypeAlias = (
    bool | int | float | str | tuple[Any, ...] | Type | Symbol | Enumeration | Record | Dense | Opaque
)


# ----------------------------------------------------------------------------
# Operations and regions


@frozen(eq=False)
class Form:
    """What operations share that differ only in the names of values.

    `attributes` are properties and discardable attributes by name. All operations of a text with one form share one
    object, so that results derived from it can be cached by it. `texts` holds the text of each attribute in the
    dictionary after the operands.
    """

    name: str
    attributes: Mapping[str, Attribute]
    operand_types: tuple[Type, ...]
    result_types: tuple[Type, ...]
    texts: Mapping[str, str] = field(factory=dict)


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
    operations: tuple[ParsedOperation, ...]
    place: int = 0


@frozen(eq=False)
class ParsedOperation:
    """An operation: its form, the names of operands and results without `%`, its regions, and its place in the text.

    Several results of one operation are named `name#0`, `name#1` and so on.
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

    def walk(self) -> Iterator[ParsedOperation]:
        """This operation and all operations in its regions, in text order."""
        stack = [iter((self,))]
        while stack:
            each = next(stack[-1], None)
            if each is None:
                stack.pop()
                continue
            yield each
            stack.extend(iter(region.operations) for region in reversed(each.regions))
