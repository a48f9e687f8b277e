"""The shape of a buffer, an array that is written in place."""

from __future__ import annotations

from attrs import frozen

from .types import PrimitiveType, Shape


@frozen(repr=False, cache_hash=True)
class BufferShape(Shape):
    """The shape of a buffer: an array in memory that custom calls write in place; no other op takes it as an array.

    >>> from shape_inference import f32
    >>> BufferShape(f32, (2,)), BufferShape(f32, (2,)) == Shape(f32, (2,))
    (b(f32[2]), False)

    Source: xla_data.proto, PrimitiveType BUFFER.
    """

    def plain(self) -> BufferShape:
        return self if self.layout is None else BufferShape(self.dtype, self.dims, self.dynamic)

    def with_dtype(self, dtype: PrimitiveType) -> BufferShape:
        return BufferShape(dtype, self.dims, self.dynamic)

    def __repr__(self) -> str:
        return f"b({super().__repr__()})"
