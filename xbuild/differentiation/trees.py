"""Trees in the form of a shape: cotangents, with None for leaves without one, and which leaves may vary."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from attrs import frozen

from shape_inference import AnyShape
from shape_inference.trees import Path as Path
from shape_inference.trees import at as at
from shape_inference.trees import fill as fill
from shape_inference.trees import flatten as flatten
from shape_inference.trees import map_leaves as map_leaves
from shape_inference.trees import map_paths as map_paths
from shape_inference.trees import paths as paths
from shape_inference.types import is_differentiable as is_differentiable


@frozen
class Bits:
    """The leaf of integers that hold bits of varying floats; the lowest `mantissa` bits come from a mantissa.

    Integers have no cotangent, so such a leaf does not count as varying; a float made from such bits does.
    """

    mantissa: int

    def __bool__(self) -> bool:
        return False


def differentiable_leaves(shape: AnyShape) -> Any:
    """True at each leaf of floats or complex numbers."""
    return map_leaves(is_differentiable, shape)


def map_shapes(shapes: Iterable[AnyShape], leaf: Callable[[int, Path], Any]) -> tuple[Any, ...]:
    """Trees for several shapes; `leaf` receives the number of the shape and the path of the leaf."""
    return map_paths(lambda path, _: leaf(path[0], path[1:]), (*shapes,))  # type: ignore[no-any-return]


def has_any(tree: Any) -> bool:
    """Whether any leaf is something other than False, None or bits."""
    if isinstance(tree, tuple | list):
        return any(map(has_any, tree))
    return tree is not None and tree is not False and not isinstance(tree, Bits)


def join(a: Any, b: Any) -> Any:
    """True at leaves where either tree is True; otherwise the bits that either holds."""
    return map_leaves(_join_leaves, a, b)


def _join_leaves(a: Any, b: Any) -> Any:
    return max((leaf for leaf in (a, b) if isinstance(leaf, Bits)), key=lambda leaf: leaf.mantissa, default=a or b)


def expand(tree: Any, shape: AnyShape) -> Any:
    """A tree of cotangents expanded to all leaves, with None for leaves without one."""
    return map_paths(lambda path, _: at(tree, path), shape)
