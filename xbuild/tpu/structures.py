"""Nested structures of lists, tuples, named tuples and dicts, flattened and packed like TensorFlow's `nest`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

Leaf: TypeAlias = Any
Structure: TypeAlias = Any


def is_nested(structure: Structure) -> bool:
    """Whether it is a dict, list or tuple. Arrays, numbers, strings and None are leaves."""
    return isinstance(structure, list | tuple | Mapping)


def flatten(structure: Structure) -> list[Leaf]:
    """The leaves in order; a dict is ordered by its sorted keys."""
    return list(_leaves(structure))


def _leaves(structure: Structure) -> Iterator[Leaf]:
    if isinstance(structure, Mapping):
        for key in _sort_keys(structure):
            yield from _leaves(structure[key])
    elif isinstance(structure, list | tuple):
        for part in structure:
            yield from _leaves(part)
    else:
        yield structure


def map_leaves(function: Callable[[Leaf], Leaf], structure: Structure) -> Structure:
    """The same structure with a function applied to its leaves, in the order of `flatten`."""
    if isinstance(structure, Mapping):
        by_key = {key: map_leaves(function, structure[key]) for key in _sort_keys(structure)}
        items = [(key, by_key[key]) for key in structure]
        return dict(items) if type(structure) is dict else type(structure)(items)  # type: ignore[call-arg]
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*(map_leaves(function, part) for part in structure))
    if isinstance(structure, list | tuple):
        return type(structure)([map_leaves(function, part) for part in structure])
    return function(structure)


def pack(structure: Structure, leaves: Sequence[Leaf]) -> Structure:
    """The same structure with these leaves."""
    in_order = iter(leaves)
    return map_leaves(lambda _: next(in_order), structure)


def read_form(structure: Structure) -> Any:
    """A key that structures of the same form share: classes and keys. None counts as a leaf."""
    if isinstance(structure, Mapping):
        return ("dict", *((key, read_form(structure[key])) for key in _sort_keys(structure)))
    if isinstance(structure, list | tuple):
        return (type(structure).__name__, *map(read_form, structure))
    return "leaf"


def is_flat(outputs: Any) -> bool:
    """Whether a computation returned one value or a list of values, without nesting."""
    if isinstance(outputs, list | tuple):
        return not any(map(is_nested, outputs))
    return not isinstance(outputs, Mapping)


def _sort_keys(mapping: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(mapping)
    except TypeError:  # keys of different types
        return list(mapping)
