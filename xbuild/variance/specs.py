"""`P`: specs that say which axes of a mesh split which dimensions of a global array."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, NoReturn, TypeAlias

from attrs import field, frozen

from shape_inference import AnyShape, Shape, TupleShape, refuse
from shape_inference.trees import map_leaves, map_paths

from ..core.report_text import join_words
from ..properties.mesh import Mesh
from ..properties.variances import NONE, Axes, Type, Variance

Entry: TypeAlias = "str | tuple[str, ...] | None"
Specs: TypeAlias = Any
"""A P for a value and all that is in it, or a tuple of these for a tuple."""


def _axes(given: Iterable[str] | str) -> Axes:
    return frozenset((given,) if isinstance(given, str) else given)


def _entries(given: Iterable[Any]) -> tuple[Entry, ...]:
    return tuple(tuple(each) if isinstance(each, list) else each for each in given)


@frozen(init=False, repr=False)
class P:
    """The mesh axis or axes that split each dimension of an array, or None.

    Dimensions that are not listed are not split.

    Along an axis that is not mentioned, all devices have the same value, unless `unreduced` names the axis; in that
    case, they hold partial sums. Along an axis of `reduced`, devices have the same value, and the value's cotangent is
    unreduced.

    >>> import xbuild as xb
    >>> xb.P("i", None, ("j", "k")), xb.P(unreduced={"i"})
    (P('i', None, ('j', 'k')), P(unreduced={'i'}))

    Source: JAX, jax.sharding.PartitionSpec.
    """

    entries: tuple[Entry, ...] = field(converter=_entries)
    unreduced: Axes = field(default=NONE, converter=_axes)
    reduced: Axes = field(default=NONE, converter=_axes)

    def __init__(self, *entries: Entry, unreduced: Iterable[str] = (), reduced: Iterable[str] = ()) -> None:
        self.__attrs_init__(entries, unreduced, reduced)

    @property
    def cuts(self) -> tuple[tuple[str, ...], ...]:
        """The axes that split each dimension, the outermost first."""
        return tuple(() if each is None else (each,) if isinstance(each, str) else each for each in self.entries)

    @property
    def mentioned(self) -> Axes:
        """The axes that split a dimension."""
        return frozenset(axis for cut in self.cuts for axis in cut)

    @property
    def variance(self) -> Variance:
        """The type of a value with this spec."""
        return Variance(varying=self.mentioned, unreduced=self.unreduced, reduced=self.reduced)

    @property
    def transposed(self) -> P:
        """The spec of the cotangent of a value with this spec, in which unreduced and reduced are exchanged."""
        return P(*self.entries, unreduced=self.reduced, reduced=self.unreduced)

    def check(self, mesh: Mesh, what: str) -> None:
        """Refuse axes that the mesh does not have (unbound_axis) and axes that occur twice (duplicate_dimension)."""
        named = [axis for cut in self.cuts for axis in cut] + [*self.unreduced, *self.reduced]
        for axis in named:
            if not isinstance(axis, str) or axis not in mesh.axes:
                refuse(
                    "unbound_axis",
                    f"{what} is {self}, but {mesh} has no axis {axis!r}; its axes are {', '.join(mesh.axes)}",
                )
            if named.count(axis) > 1:
                refuse(
                    "duplicate_dimension",
                    f"{what} is {self}, which contains axis {axis!r} twice; list each axis only once",
                )

    def local(self, mesh: Mesh, shape: Shape, what: str) -> Shape:
        """Return the shape of one device's shard of an array. Raises divisibility if an extent cannot be split
        evenly."""
        self._check_rank(shape, what)
        dims = list(shape.dims)
        for dimension, cut in enumerate(self.cuts):
            parts = mesh.size(cut)
            if dims[dimension] % parts:
                axes = join_words(map(repr, cut))
                refuse(
                    "divisibility",
                    f"{what} is {self} for {shape}: dimension {dimension} of extent {dims[dimension]} is sharded along "
                    f"mesh axis {axes} of size {parts}, and {parts} does not divide {dims[dimension]}",
                )
            dims[dimension] //= parts
        return Shape(shape.dtype, tuple(dims))

    def whole(self, mesh: Mesh, shape: Shape, what: str) -> Shape:
        """Return the shape of an array whose shard on each device has this shape."""
        self._check_rank(shape, what)
        dims = list(shape.dims)
        for dimension, cut in enumerate(self.cuts):
            dims[dimension] *= mesh.size(cut)
        return Shape(shape.dtype, tuple(dims))

    def _check_rank(self, shape: Shape, what: str) -> None:
        if len(self.entries) > shape.rank:
            message = (
                f"{what} is {self} for {shape}: it has {len(self.entries)} entries, but the array has rank {shape.rank}"
            )
            refuse("rank_mismatch", message)

    def __repr__(self) -> str:
        parts = [repr(each) for each in self.entries]
        for word in ("unreduced", "reduced"):
            if getattr(self, word):
                parts.append(f"{word}={{{', '.join(map(repr, sorted(getattr(self, word))))}}}")
        return f"P({', '.join(parts)})"


def per_leaf(specs: Specs, shape: AnyShape, what: str) -> Specs:
    """A P for each array of a value, nested as the value; refuses specs that are nested differently."""
    if isinstance(shape, TupleShape):
        if isinstance(specs, P):
            return tuple(per_leaf(specs, each, f"{what}[{n}]") for n, each in enumerate(shape.elements))
        if not isinstance(specs, tuple | list) or len(specs) != len(shape.elements):
            refuse(
                "arity_mismatch",
                f"{what} is {specs!r} for {shape}; expected a single P, or a tuple of {len(shape.elements)} entries",
            )
        pairs = enumerate(zip(specs, shape.elements, strict=True))
        return tuple(per_leaf(spec, each, f"{what}[{n}]") for n, (spec, each) in pairs)
    if not isinstance(specs, P):
        refuse("invalid_attribute", f"{what} is {specs!r}; expected a P, such as xb.P('i')")
    return specs


def types_of(specs: Specs) -> Type:
    """The type of a value with these specs."""
    return map_leaves(lambda spec: spec.variance, specs)


def map_specs(function: Any, specs: Specs, shape: Any, what: str, *others: Any) -> Any:
    """The results of `function(spec, shape, path, *others)` on the leaves, nested as the specs."""
    names = map_paths(lambda path, _: "".join((what, *(f"[{n}]" for n in path))), specs)
    return map_leaves(function, specs, shape, names, *others)


def read_specs(text: str) -> list[P | None]:
    """Read specs, separated by semicolons, as they are written in Python; an empty text between them is None.

    Raises invalid_attribute for any other text.

    >>> read_specs("P('a', None); P(('a', 'b'), unreduced={'c'});; P()")
    [P('a', None), P(('a', 'b'), unreduced={'c'}), None, P()]
    """
    return [_read_spec(each.strip()) if each.strip() else None for each in text.split(";")]


def _read_spec(text: str) -> P:
    try:
        call = ast.parse(text, mode="eval").body
        if not isinstance(call, ast.Call) or ast.unparse(call.func) not in ("P", "xb.P", "PartitionSpec"):
            _refuse_spec(text)
        entries = [ast.literal_eval(each) for each in call.args]
        named = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        _refuse_spec(text)
    is_axes = all(isinstance(each, str | set | tuple | list) for each in named.values())
    if not all(map(_is_entry, entries)) or not named.keys() <= {"unreduced", "reduced"} or not is_axes:
        _refuse_spec(text)
    return P(*entries, **named)


def _is_entry(entry: Any) -> bool:
    several = entry if isinstance(entry, tuple | list) else (entry,)
    return entry is None or all(isinstance(each, str) for each in several)


def _refuse_spec(text: str) -> NoReturn:
    refuse("invalid_attribute", f"{text!r} is not a spec; write a spec as in P('i', None) or P(unreduced={{'i'}})")
