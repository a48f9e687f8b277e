"""The type of a value on a mesh: along which axes it may differ between devices."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from attrs import field, frozen

from shape_inference import AnyShape, TupleShape, XbuildError, refuse
from shape_inference.bounds import DEEPEST_TUPLE
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

    varying: devices along the axis may hold different values. unreduced: they hold partial sums, and the value is their
    sum. reduced: they hold one value, as along an invarying axis, and its cotangent is unreduced. invarying:
    they hold one value.
    Raises: state_mismatch if an axis is in two sets.

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
                refuse("state_mismatch", f"{_axes_text(sorted(both))} is both {STATES[one]} and {STATES[other]}")

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
        """The text after a shape: empty if invarying along every axis; axes in the mesh's order.

        >>> from xbuild.properties.mesh import Mesh
        >>> Variance(varying=("j", "i")).text(Mesh(i=2, j=4))
        '{V:(i,j)}'
        """
        order = (lambda axes: mesh.ordered(axes)) if mesh else sorted
        sets = [(letter, order(getattr(self, state))) for letter, state in _LETTERS.items()]
        return (
            "{" + ",".join(f"{letter}:{_axes_text(axes)}" for letter, axes in sets if axes) + "}" if self.axes else ""
        )

    def __repr__(self) -> str:
        return self.text() or "{}"


def _axes_text(axes: Iterable[str]) -> str:
    names = list(axes)
    return names[0] if len(names) == 1 else f"({','.join(names)})"


INVARYING = Variance()


class Unknown(Variance):
    """The variance of a value without known facts, in the rounds that infer the types of a loop."""

    def state(self, axis: str) -> str:
        return "unknown"


UNKNOWN = Unknown()

Type: TypeAlias = Any
"""The type of a value: a Variance, or for a tuple a tuple of types."""


def spelled(given: Type, mesh: Mesh | None = None) -> str:
    """A type as spelled in HLO text."""
    if isinstance(given, tuple):
        return f"({', '.join(spelled(each, mesh) for each in given)})"
    return given.text(mesh) or "{}"


_TOKEN = re.compile(r"\{[^{}]*\}|[(),]")
_SET = re.compile(r"([VUR]):(?:\(([\w,]*)\)|(\w+))")


def read_type(text: str) -> Type:
    """The type that `spelled` spells; invalid_attribute for other text.

    >>> read_type("({V:(i,j)}, ({}, {U:i,R:j}))")
    ({V:(i,j)}, ({}, {U:i,R:j}))
    """
    return _parse_nested(text, lambda word: _read_leaf(word, text))


def _parse_nested(text: str, leaf: Callable[[str], Any]) -> Any:
    """The nested tuples of a type, with what `leaf` makes of each set of axes."""
    plain = re.sub(r"\s", "", text)
    words = _TOKEN.findall(plain)
    if "".join(words) != plain:
        _refuse_type(text)
    open_: list[list[Any]] = [[]]  # the elements that are read of each tuple around the place
    expects_comma = False
    for word in words:
        if word == ",":
            if not expects_comma or len(open_) == 1:
                _refuse_type(text)
            expects_comma = False
            continue
        if word == ")":
            if len(open_) == 1:
                _refuse_type(text)
            found = tuple(open_.pop())
            open_[-1].append(found)
        elif word == "(":
            open_.append([])
            if len(open_) > DEEPEST_TUPLE + 1:
                _refuse_type(text)
        else:
            open_[-1].append(leaf(word))
        expects_comma = word != "("
    if len(open_) > 1 or len(open_[0]) != 1:
        _refuse_type(text)
    return open_[0][0]


def _read_leaf(word: str, text: str) -> Variance:
    sets = _SET.findall(word)
    if ",".join(f"{letter}:{f'({many})' if many else one}" for letter, many, one in sets) != word[1:-1]:
        _refuse_type(text)
    return Variance(**{_LETTERS[letter]: (many or one).split(",") for letter, many, one in sets})


def _refuse_type(text: str) -> Any:
    shown = text if len(text) <= 200 else f"{text[:197]}..."
    message = f"{shown!r} is not the type of a value on a mesh; write a type as in {{V:(i,j),R:k}}"
    return refuse("invalid_attribute", message)


def declared(instruction: Instruction) -> str | None:
    """The type that an instruction declares, as text, or None if it declares none."""
    attributes = instruction.annotations.get("frontend_attributes")
    return attributes.get(VARIANCE) if attributes else None


def type_of(instruction: Instruction) -> Type | None:
    """The type that an instruction declares, or None if it declares none; invalid_attribute for other text."""
    text = declared(instruction)
    return None if text is None else read_type(text)


def typed_text(instruction: Instruction, spell: Callable[[AnyShape], str] = repr) -> str:
    """The shape of an instruction followed by its type, leaf by leaf of a tuple; only the shape if it has none.

    Text that is not a type of the shape follows it unchanged.
    """
    text = declared(instruction)
    if text is None:
        return spell(instruction.shape)
    try:
        return _nested_text(instruction.shape, _parse_nested(text, lambda word: word if word != "{}" else ""), spell)
    except (XbuildError, ValueError, TypeError):
        return f"{spell(instruction.shape)}{in_line(text)}"


def _nested_text(shape: AnyShape, given: Type, spell: Callable[[AnyShape], str]) -> str:
    if isinstance(shape, TupleShape):
        parts = zip(shape.elements, given, strict=True)
        return f"({', '.join(_nested_text(each, leaf, spell) for each, leaf in parts)})"
    return f"{spell(shape)}{in_line(given)}"
