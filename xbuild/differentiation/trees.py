"""Trees of leaves in the form of a shape: cotangents with None where there is none, and what may vary."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from shape_inference import AnyShape, Shape, TupleShape

Path = tuple[int, ...]


def is_differentiable(shape: AnyShape) -> bool:
    """Whether it is the shape of an array of floats or complex numbers."""
    return isinstance(shape, Shape) and shape.dtype.kind in ("float", "complex")


def of_shape(shape: AnyShape, leaf: Callable[[AnyShape], Any]) -> Any:
    """The tree of a shape, made leaf by leaf."""
    if isinstance(shape, TupleShape):
        return tuple([of_shape(each, leaf) for each in shape.elements])
    return leaf(shape)


def differentiable(shape: AnyShape) -> Any:
    """True at each leaf of floats or complex numbers."""
    return of_shape(shape, is_differentiable)


def of_paths(shape: AnyShape, leaf: Callable[[Path], Any], before: Path = ()) -> Any:
    """The tree of a shape, made from the path of each leaf."""
    if isinstance(shape, TupleShape):
        return tuple([of_paths(each, leaf, (*before, n)) for n, each in enumerate(shape.elements)])
    return leaf(before)


def of_several(shapes: Iterable[AnyShape], leaf: Callable[[int, Path], Any]) -> tuple[Any, ...]:
    """The trees of several shapes, made from the number of the shape and the path of each leaf."""
    return tuple([of_paths(shape, functools.partial(leaf, n)) for n, shape in enumerate(shapes)])


def constant(shape: AnyShape, value: Any) -> Any:
    """The same at each leaf."""
    return of_shape(shape, lambda leaf: value)


def any_of(tree: Any) -> bool:
    """Whether one leaf is something other than False and None."""
    return any(map(any_of, tree)) if isinstance(tree, tuple | list) else tree is not None and tree is not False


def mapped(function: Callable[..., Any], *trees: Any) -> Any:
    """The tree of the results of a function on the leaves of trees of one form."""
    if isinstance(trees[0], tuple | list):
        return tuple([mapped(function, *each) for each in zip(*trees, strict=True)])
    return function(*trees)


def joined(a: Any, b: Any) -> Any:
    """True where one of two trees is."""
    return mapped(lambda x, y: x or y, a, b)


def paths(shape: AnyShape, before: Path = ()) -> Iterator[tuple[Path, AnyShape]]:
    """Each leaf of a shape with the indices that lead to it."""
    if isinstance(shape, TupleShape):
        for n, each in enumerate(shape.elements):
            yield from paths(each, (*before, n))
    else:
        yield before, shape


def at(tree: Any, path: Path) -> Any:
    """The leaf at the end of a path; None where the tree ends in None before."""
    for index in path:
        if tree is None:
            return None
        tree = tree[index]
    return tree


def leaves_of(tree: Any) -> Iterator[Any]:
    """The leaves of a tree, in order."""
    if isinstance(tree, tuple | list):
        for each in tree:
            yield from leaves_of(each)
    else:
        yield tree
