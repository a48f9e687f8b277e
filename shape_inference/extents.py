"""The shape of an array as a sequence of its extents, as NumPy's shape is one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class Extents:
    """Base of Shape: length, iteration and indexing are those of its extents, where none is dynamic."""

    __slots__ = ()
    dims: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.dims)

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, dim: Any) -> Any:
        """The extent of a dimension, or those of a slice."""
        return self._known()[dim]

    def __iter__(self) -> Iterator[int]:
        return iter(self._known())

    def _known(self: Any) -> tuple[int, ...]:
        if self.is_dynamic:
            hint = "x.shape.dims are bounds, xb.get_dimension_size(x, dimension) is the extent of the run"
            raise TypeError(f"{self} has a dynamic dimension: {hint}")
        return self.dims  # type: ignore[no-any-return]

    def __array__(self, *arguments: Any, **keywords: Any) -> Any:
        raise TypeError(f"{self} is a shape, and no array; x.shape.dims are its extents")


def comparable_with_extents(shape_class: Any) -> None:
    """Let `==` compare a shape with a tuple or list, which has no element type, by the extents; hashes stay."""
    same = shape_class.__eq__

    def equal(self: Any, other: Any) -> Any:
        if isinstance(other, tuple | list):
            return not self.is_dynamic and self.dims == tuple(other)
        return same(self, other)

    shape_class.__eq__ = equal
