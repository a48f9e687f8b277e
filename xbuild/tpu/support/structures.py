"""Nested structures of lists, tuples, named tuples and dicts, as TensorFlow's `nest` flattens and packs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

Leaf: TypeAlias = Any
Structure: TypeAlias = Any


def is_nested(structure: Structure) -> bool:
    """Whether it holds others: a dict, a list or a tuple. Arrays, numbers, strings and None are leaves."""
    return isinstance(structure, list | tuple | Mapping)


def flatten(structure: Structure) -> list[Leaf]:
    """The leaves in order, those of a dict by its sorted keys."""
    return list(_leaves(structure))


def _leaves(structure: Structure) -> Iterator[Leaf]:
    if isinstance(structure, Mapping):
        for key in _keys(structure):
            yield from _leaves(structure[key])
    elif isinstance(structure, list | tuple):
        for each in structure:
            yield from _leaves(each)
    else:
        yield structure


def mapped(function: Callable[[Leaf], Leaf], structure: Structure) -> Structure:
    """The same structure with the function's results for its leaves, which are visited in the order of `flatten`."""
    if isinstance(structure, Mapping):
        found = {key: mapped(function, structure[key]) for key in _keys(structure)}
        items = [(key, found[key]) for key in structure]
        return dict(items) if type(structure) is dict else type(structure)(items)  # type: ignore[call-arg]
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*(mapped(function, each) for each in structure))
    if isinstance(structure, list | tuple):
        return type(structure)([mapped(function, each) for each in structure])
    return function(structure)


def packed(structure: Structure, leaves: Sequence[Leaf]) -> Structure:
    """The same structure with these leaves."""
    given = iter(leaves)
    return mapped(lambda _: next(given), structure)


def form_of(structure: Structure) -> Any:
    """What two structures of one form have in common, as a key: classes and keys; None is a leaf as any other."""
    if isinstance(structure, Mapping):
        return ("dict", *((key, form_of(structure[key])) for key in _keys(structure)))
    if isinstance(structure, list | tuple):
        return (type(structure).__name__, *map(form_of, structure))
    return "leaf"


def is_flat(outputs: Any) -> bool:
    """Whether what a computation returns is one value or a list of values: no list, tuple or dict inside."""
    if isinstance(outputs, list | tuple):
        return not any(map(is_nested, outputs))
    return not isinstance(outputs, Mapping)


def _keys(mapping: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(mapping)
    except TypeError:  # keys of several kinds
        return list(mapping)
