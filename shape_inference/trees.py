"""Trees: nested tuples with a leaf at the end of each branch, such as the value of a tuple shape, or facts about it.

A tree is a tuple, a list or a TupleShape of trees, or a leaf, which is anything else. So a shape is a tree; its leaves
are the shapes of its arrays and tokens. Functions that return a tree build it of tuples. A path is the indices that
lead to a leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from .types import AnyShape, Shape, TokenShape, TupleShape

Path: TypeAlias = tuple[int, ...]


def flatten(tree: Any) -> list[Any]:
    """The leaves of a tree, in order.

    >>> flatten(((1, ()), 2))
    [1, 2]
    """
    if not isinstance(tree, _TREES):
        return [tree]
    return [leaf for branch in _branches(tree) for leaf in flatten(branch)]


def leaves(shape: AnyShape) -> Iterator[Shape | TokenShape]:
    """Return the arrays and tokens of a shape in order, with tuples flattened."""
    return iter(flatten(shape))


def paths(tree: Any) -> list[tuple[Path, Any]]:
    """The leaves of a tree in order, each after its path.

    >>> paths(("a", ("b",)))
    [((0,), 'a'), ((1, 0), 'b')]
    """
    if not isinstance(tree, _TREES):
        return [((), tree)]
    return [((n, *path), leaf) for n, branch in enumerate(_branches(tree)) for path, leaf in paths(branch)]


def map_leaves(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """The tree of the results of a function on the leaves of trees of one form, called in the order of the leaves.

    The form is that of the first tree. Raises ValueError if another tree has more or fewer branches.

    >>> map_leaves(max, (1, (2,)), (0, (3,)))
    (1, (3,))
    """
    if not isinstance(tree, _TREES):
        return function(tree, *others)
    if not others:
        return tuple([map_leaves(function, branch) for branch in _branches(tree)])
    return tuple([map_leaves(function, *part) for part in zip(*map(_branches, (tree, *others)), strict=True)])


def map_paths(function: Callable[[Path, Any], Any], tree: Any, path: Path = ()) -> Any:
    """The tree of the results of a function on the path of each leaf and the leaf.

    >>> map_paths(lambda path, leaf: (leaf, *path), ("a", ("b",)))
    (('a', 0), (('b', 1, 0),))
    """
    if not isinstance(tree, _TREES):
        return function(path, tree)
    return tuple([map_paths(function, branch, (*path, n)) for n, branch in enumerate(_branches(tree))])


def unflatten(tree: Any, leaves: Iterable[Any]) -> Any:
    """The tree of this form with the next of these leaves; an iterator advances past them.

    >>> unflatten(((0, ()), 0), [1, 2])
    ((1, ()), 2)
    """
    next_leaves = iter(leaves)
    return map_leaves(lambda _: next(next_leaves), tree)


def fill(tree: Any, leaf: Any) -> Any:
    """The tree of this form whose leaves are all the same.

    >>> fill(((0, ()), 0), True)
    ((True, ()), True)
    """
    return map_leaves(lambda _: leaf, tree)


def at(tree: Any, path: Path) -> Any:
    """The branch or leaf at the end of a path; None if the tree ends in None before it.

    >>> at((1, (2, 3)), (1, 0)), at((1, None), (1, 0))
    (2, None)
    """
    for index in path:
        if tree is None:
            return None
        tree = _branches(tree)[index]
    return tree


_TREES = (tuple, list, TupleShape)


def _branches(tree: Any) -> Any:
    """The trees that a tree consists of."""
    return tree.elements if isinstance(tree, TupleShape) else tree
