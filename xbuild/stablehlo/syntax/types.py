"""Types of values in MLIR text; static tensors, tuples and tokens are the shapes of the project itself."""

from __future__ import annotations

from typing import TypeAlias

from attrs import frozen

from shape_inference import AnyShape, PrimitiveType


@frozen
class QuantizedType:
    """An element type whose integers stand for (integer - zero point) * scale, per tensor or along one dimension.

    `scales` and `zero_points` have one element where `dimension` is None.
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


@frozen
class TensorType:
    """A tensor that is no shape of the project: with extents that are not known (None), or quantized elements."""

    dims: tuple[int | None, ...]
    element: PrimitiveType | QuantizedType
    text: str = ""

    def __str__(self) -> str:
        return self.text


@frozen
class FutureType:
    """The result of stablehlo.async_start: what async_done gives."""

    values: tuple[Type, ...]

    def __str__(self) -> str:
        return f"!stablehlo.future<{', '.join(map(str, self.values))}>"


@frozen
class FunctionType:
    """The types of a function's arguments and results."""

    arguments: tuple[Type, ...]
    results: tuple[Type, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.arguments))}) -> ({', '.join(map(str, self.results))})"


@frozen
class ScalarType:
    """A number of its own, such as i64 after a number of an attribute; no value of a program has such a type."""

    text: str

    def __str__(self) -> str:
        return self.text


@frozen
class OpaqueType:
    """Any other type, of which the text is kept."""

    text: str

    def __str__(self) -> str:
        return self.text


Type: TypeAlias = AnyShape | TensorType | FutureType | FunctionType | ScalarType | OpaqueType
