"""Along which axes of a mesh a value may differ between devices: the type of a value beside its shape."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from attrs import field, frozen

from shape_inference import AnyShape, TupleShape, XbuildError, refuse
from shape_inference.escaping import in_line

from ..core.graph import Instruction
from .mesh import Mesh

Axes: TypeAlias = frozenset[str]
NONE: Axes = frozenset()

VARIANCE = "xbuild.variance"
STATES = ("varying", "unreduced", "reduced")
_LETTERS = dict(zip("VUR", STATES, strict=True))


def _axes(given: Iterable[str] | str) -> Axes:
    return frozenset((given,) if isinstance(given, str) else given)


@frozen(repr=False)
class Variance:
    """Three disjoint sets of axis names; along an axis of none of them a value is invarying.

    varying: devices along the axis may hold different values. unreduced: they hold parts, and the value that is meant
    is their sum. reduced: they hold one value, as along an invarying axis, and its cotangent is unreduced. invarying:
    they hold one value.
    Raises: state_mismatch where an axis is in two sets.

    >>> Variance(varying=["i"], reduced="j")
    {V:i,R:j}

    Source: JAX, jax._src.core.ManualAxisType.
    """

    varying: Axes = field(default=NONE, converter=_axes)
    unreduced: Axes = field(default=NONE, converter=_axes)
    reduced: Axes = field(default=NONE, converter=_axes)

    def __attrs_post_init__(self) -> None:
        for one, other in ((0, 1), (0, 2), (1, 2)):
            both = getattr(self, STATES[one]) & getattr(self, STATES[other])
            if both:
                refuse("state_mismatch", f"{_named(sorted(both))} is both {STATES[one]} and {STATES[other]}")

    @property
    def axes(self) -> Axes:
        """The axes along which it is not invarying."""
        return self.varying | self.unreduced | self.reduced

    def state(self, axis: str) -> str:
        """varying, unreduced, reduced or invarying, along an axis."""
        return next((state for state in STATES if axis in getattr(self, state)), "invarying")

    def moved(self, axes: Iterable[str], to: str) -> Variance:
        """The same with these axes in another state."""
        away = frozenset(axes)
        sets = {state: getattr(self, state) - away for state in STATES}
        if to != "invarying":
            sets[to] |= away
        return Variance(**sets)

    def text(self, mesh: Mesh | None = None) -> str:
        """As it stands behind a shape: nothing where it is invarying along every axis; axes in the mesh's order.

        >>> from xbuild.properties.mesh import Mesh
        >>> Variance(varying=("j", "i")).text(Mesh(i=2, j=4))
        '{V:(i,j)}'
        """
        order = (lambda axes: mesh.ordered(axes)) if mesh else sorted
        sets = [(letter, order(getattr(self, state))) for letter, state in _LETTERS.items()]
        return "{" + ",".join(f"{letter}:{_named(axes)}" for letter, axes in sets if axes) + "}" if self.axes else ""

    def __repr__(self) -> str:
        return self.text() or "{}"


def _named(axes: Iterable[str]) -> str:
    names = list(axes)
    return names[0] if len(names) == 1 else f"({','.join(names)})"


INVARYING = Variance()


class Unknown(Variance):
    """The variance of a value of which nothing is known yet, in the rounds that find the types of a loop."""

    def state(self, axis: str) -> str:
        return "unknown"


UNKNOWN = Unknown()

Type: TypeAlias = Any
"""The type of a value: a Variance, or of a tuple a tuple of types."""


def flat(given: Type) -> list[Variance]:
    """The leaves of a type, in order."""
    return [leaf for each in given for leaf in flat(each)] if isinstance(given, tuple) else [given]


def spread(leaf: Variance, shape: AnyShape) -> Type:
    """The type of this shape all of whose leaves have this variance."""
    return tuple(spread(leaf, each) for each in shape.elements) if isinstance(shape, TupleShape) else leaf


def like(leaves: Iterable[Variance], shape: AnyShape) -> Type:
    """The type of this shape with these leaves, in order."""
    given = iter(leaves)
    return _like(given, shape)


def _like(given: Any, shape: AnyShape) -> Type:
    return tuple(_like(given, each) for each in shape.elements) if isinstance(shape, TupleShape) else next(given)


def spelled(given: Type, mesh: Mesh | None = None) -> str:
    """A type as programs carry it in HLO text."""
    if isinstance(given, tuple):
        return f"({', '.join(spelled(each, mesh) for each in given)})"
    return given.text(mesh) or "{}"


_TOKEN = re.compile(r"\s*(\{[^{}]*\}|[(),])")
_SET = re.compile(r"([VUR]):(?:\(([\w,]*)\)|(\w+))")


def read_type(text: str) -> Type:
    """The type that `spelled` spells; invalid_attribute for other text.

    >>> read_type("({V:(i,j)}, ({}, {U:i,R:j}))")
    ({V:(i,j)}, ({}, {U:i,R:j}))
    """
    return _parsed(text, lambda word: _read_leaf(word, text))


def _parsed(text: str, leaf: Callable[[str], Any]) -> Any:
    """The nested tuples of a type, with what `leaf` makes of each set of axes."""
    words = _TOKEN.findall(text)
    if "".join(words) != re.sub(r"\s", "", text) or not words:
        _no_type(text)
    found, rest = _read(words, text, leaf)
    return found if not rest else _no_type(text)


def _read(words: list[str], text: str, leaf: Callable[[str], Any]) -> tuple[Any, list[str]]:
    if not words or words[0] in "),":
        return _no_type(text), []
    if words[0] != "(":
        return leaf(words[0]), words[1:]
    found, rest = [], words[1:]
    while rest and rest[0] != ")":
        each, rest = _read(rest, text, leaf)
        found.append(each)
        if rest and rest[0] == ",":
            rest = rest[1:]
    return (tuple(found), rest[1:]) if rest else (_no_type(text), [])


def _read_leaf(word: str, text: str) -> Variance:
    sets = _SET.findall(word)
    if ",".join(f"{letter}:{f'({many})' if many else one}" for letter, many, one in sets) != word[1:-1]:
        _no_type(text)
    return Variance(**{_LETTERS[letter]: (many or one).split(",") for letter, many, one in sets})


def _no_type(text: str) -> Any:
    return refuse("invalid_attribute", f"{text!r} is no type of a value on a mesh, which reads as {{V:(i,j),R:k}}")


def declared(instruction: Instruction) -> str | None:
    """The type that an instruction states, as text, or None where it states none."""
    given = instruction.annotations.get("frontend_attributes")
    return given.get(VARIANCE) if given else None


def type_of(instruction: Instruction) -> Type | None:
    """The type that an instruction states, or None where it states none; invalid_attribute where it is no type."""
    text = declared(instruction)
    return None if text is None else read_type(text)


def typed_text(instruction: Instruction, spell: Callable[[AnyShape], str] = repr) -> str:
    """The shape of an instruction with its type behind it, leaf by leaf of a tuple; the shape alone where it has none.

    Text that is no type of the shape stands behind it as it is.
    """
    text = declared(instruction)
    if text is None:
        return spell(instruction.shape)
    try:
        return _shaped(instruction.shape, _parsed(text, lambda word: word if word != "{}" else ""), spell)
    except (XbuildError, ValueError, TypeError):
        return f"{spell(instruction.shape)}{in_line(text)}"


def _shaped(shape: AnyShape, given: Type, spell: Callable[[AnyShape], str]) -> str:
    if isinstance(shape, TupleShape):
        parts = zip(shape.elements, given, strict=True)
        return f"({', '.join(_shaped(each, leaf, spell) for each, leaf in parts)})"
    return f"{spell(shape)}{in_line(given)}"
