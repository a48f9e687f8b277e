"""Types of attributes, and for each type the reader that converts a user's argument to it."""

from __future__ import annotations

import functools
import operator
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, get_args, get_origin

import numpy as np
from attrs import frozen

from shape_inference import AnyShape, Dims, PrimitiveType, Shape, TokenShape, TupleShape, primitive_type, refuse
from shape_inference.convolutions import ConvolutionDimensionNumbers
from shape_inference.elided import ElidedArray
from shape_inference.windows import Window, read_window

from .graph import Computation

ReplicaGroups: TypeAlias = tuple[tuple[int, ...], ...]
SliceSizes: TypeAlias = tuple[tuple[int, ...], ...]
SourceTargetPairs: TypeAlias = tuple[tuple[int, int], ...]
Region: TypeAlias = Computation
Regions: TypeAlias = tuple[Computation, ...]
Array: TypeAlias = np.ndarray[Any, Any]
Called: TypeAlias = Regions | tuple[()]  # computations that an op only passes on; functions are not traced
Aliases: TypeAlias = tuple[tuple[Dims, int, Dims], ...]
Shapes: TypeAlias = tuple[AnyShape, ...]


@frozen
class PaddingDimension:
    """The padding of one dimension: before, after and between its elements. Negative values of `low` and `high`
    crop."""

    low: int
    high: int
    interior: int = 0


Padding: TypeAlias = tuple[PaddingDimension, ...]


def reader_of(annotation: Any) -> Callable[[Any], Any]:
    """The reader of an attribute type; it raises TypeError, ValueError or OverflowError for a bad argument."""
    return _READERS.get(annotation) or _choice(annotation)


def reader(name: str, annotation: Any) -> Callable[[Any], Any]:
    """The reader of an attribute type; its errors name the attribute."""
    read = reader_of(annotation)

    def checked(value: Any) -> Any:
        try:
            return read(value)
        except (TypeError, ValueError, OverflowError) as error:
            refuse("invalid_attribute", f"{name}={value!r}: {getattr(error, 'message', error)}")

    return checked


def _choice(annotation: Any) -> Callable[[Any], Any]:
    """The reader of a Literal type: one of its words, or None if the type allows it."""
    words = next((a for a in (annotation, *get_args(annotation)) if get_origin(a) is typing.Literal), None)
    if words is None:
        raise TypeError(f"cannot read attributes of type {annotation}")
    allowed = (*get_args(words), *(each for each in get_args(annotation) if each is type(None)))

    def read(value: Any) -> Any:
        if not (isinstance(value, str) and value in allowed) and type(value) not in allowed:
            raise ValueError(f"expected one of {', '.join(map(repr, get_args(words)))}")
        return value

    return read


def _index(value: Any) -> int:
    if type(value) is int:
        return value
    try:
        return int(operator.index(value))
    except TypeError:
        raise TypeError("expected an int") from None


def _maybe_index(value: Any) -> int | None:
    return None if value is None else _index(value)


def _dims(value: Any) -> Dims:
    if type(value) is tuple:
        for each in value:
            if type(each) is not int:
                break
        else:
            return value
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        raise TypeError("expected a list of ints")
    return tuple(_index(each) for each in value)


@functools.lru_cache(maxsize=64)
def _shared(lists: ReplicaGroups) -> ReplicaGroups:
    """The first of equal lists of groups or pairs, which the programs of all devices share."""
    return lists


def _groups(value: Any) -> ReplicaGroups:
    if value is None:
        return ()
    try:
        return _shared(tuple([_dims(group) for group in value]))
    except TypeError:
        one_group = f"; write one group as [{list(value)}]" if isinstance(value, tuple | list) and value else ""
        raise TypeError(f"expected a list of groups, each a list of ids{one_group}") from None


def _pairs(value: Any) -> SourceTargetPairs:
    items = value.items() if isinstance(value, Mapping) else value
    pairs = tuple(_dims(pair) for pair in items)
    if any(len(pair) != 2 for pair in pairs):
        raise TypeError("expected a list of (source, target) pairs")
    return typing.cast(SourceTargetPairs, _shared(pairs))


def _padding(value: Any) -> Padding:
    return tuple(p if isinstance(p, PaddingDimension) else _padding_dimension(_dims(p)) for p in value)


def _padding_dimension(amounts: Dims) -> PaddingDimension:
    if len(amounts) not in (2, 3):
        raise ValueError("expected (low, high) or (low, high, interior) for each dimension")
    return PaddingDimension(*amounts)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError("expected True or False")
    return bool(value)


def _number(value: Any) -> float:
    if isinstance(value, bool | str | bytes):
        raise TypeError("expected a number")
    return float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("expected a string")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    return tuple([_text(each) for each in value])


def _flags(value: Any) -> tuple[bool, ...]:
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        raise TypeError("expected a list of True and False")
    return tuple(_flag(each) for each in value)


def _maybe_type(value: Any) -> PrimitiveType | None:
    return None if value is None else primitive_type(value)


def _shape(value: Any) -> AnyShape:
    if isinstance(value, PrimitiveType):
        return value[()]
    if isinstance(value, Shape | TupleShape | TokenShape):
        return value
    raise TypeError("expected a shape, such as xb.f32[2, 3]")


def _shapes(value: Any) -> Shapes:
    if isinstance(value, Shape | TupleShape | TokenShape) or not hasattr(value, "__iter__"):
        raise TypeError("expected a list of shapes, such as [xb.u32[()]]")
    return tuple(map(_shape, value))


def _array_shape(value: Any) -> Shape:
    shape = _shape(value)
    if not isinstance(shape, Shape):
        raise TypeError("expected the shape of an array, such as xb.f32[2, 3]")
    return shape


def _literal(value: Any) -> Array:
    if isinstance(value, ElidedArray):
        return value  # type: ignore[return-value]
    array = np.array(value)
    array = array.view(primitive_type(array.dtype).dtype)  # an unpickled array has another dtype object
    array.flags.writeable = False
    return array


def _maybe(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)


def _aliases(value: Any) -> Aliases:
    """The aliases, each with the index of an output, the number of an operand, and the index in that operand."""
    found = []
    for each in value:
        if len(each) != 3:
            raise TypeError("expected a list of (output index, operand number, operand index)")
        found.append((_dims(each[0]), _index(each[1]), _dims(each[2])))
    return tuple(found)


def _region(value: Any) -> Computation:
    if not isinstance(value, Computation):
        raise TypeError("expected a Computation or a function")
    return value


def _regions(value: Any) -> Regions:
    return tuple(_region(each) for each in value)


_READERS: dict[Any, Callable[[Any], Any]] = {
    int: _index,
    int | None: _maybe_index,
    float: _number,
    bool: _flag,
    str: _text,
    Dims: _dims,
    ReplicaGroups: _groups,
    SourceTargetPairs: _pairs,
    Padding: _padding,
    Window: read_window,
    ConvolutionDimensionNumbers: ConvolutionDimensionNumbers.read,
    tuple[str, ...]: _texts,
    tuple[bool, ...]: _flags,
    PrimitiveType: primitive_type,
    PrimitiveType | None: _maybe_type,
    Shape: _array_shape,
    AnyShape: _shape,
    Shapes: _shapes,
    Array: _literal,
    Array | None: _maybe(_literal),
    Shapes | None: _maybe(_shapes),
    Window | None: _maybe(read_window),
    ConvolutionDimensionNumbers | None: _maybe(ConvolutionDimensionNumbers.read),
    Aliases: _aliases,
    Region: _region,
    Regions: _regions,
    Called: _regions,
}

UNSHARED = (float, str, Array, Array | None)
"""Types whose values are no keys: -0.0 equals 0.0, a string may be of a class of its own, and an array has no hash."""
