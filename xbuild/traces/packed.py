"""Values read from the columns of a pool, each column validated against the bytes of the pool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from attrs import define, field

from shape_inference import PRIMITIVES, AnyShape, Shape, TupleShape, primitive_type

from ..core.attributes import Array
from .columns import Column, within
from .forms import Form, FormError, listed, loads, number, record, refuse, text
from .summary import CELLS, Summary

POOL = {"kinds": Column(np.str_, ()), "kind": Column(np.int32), "at": Column(np.int64), "letters": Column(np.uint8)}

_FIGURES = 40
_BLOCK = 1 << 20
_EXTENT = 1 << 48
_DIMS = listed(number(0, _EXTENT))
_FORMS: dict[str, Form] = {
    "of": record({"of": number(0, 1 << 31)}),
    "c": record({"t": text, "d": _DIMS, "c": listed(number(0, CELLS), 2)}),
    "f": record({"t": text, "d": _DIMS, "f": text}),
}


@define(eq=False)
class Packed:
    """The columns of a pool in the format of traces; a value is read by its number, and decoded once."""

    kinds: Sequence[Mapping[str, Any]]
    kind: Array
    at: Array
    letters: Array
    _made: dict[int, Any] = field(factory=dict)
    _fits: dict[tuple[int, int], tuple[AnyShape, bool]] = field(factory=dict)

    def __getitem__(self, number: int) -> Any:
        if number not in self._made:
            self._made[number] = self._value(number)
        return self._made[number]

    def _value(self, number: int) -> Any:
        kind, at = self.kinds[int(self.kind[number])], int(self.at[number])
        if "of" in kind:
            return tuple(None if ref < 0 else self[ref] for ref in self._refs(number))
        dims = tuple(kind["d"])
        if "c" in kind:
            return self._summary(kind, at)
        array = self._array(PRIMITIVES[kind["t"]].dtype, dims, at)
        return array if dims else array[()]

    def _refs(self, number: int) -> list[int]:
        """The numbers of the parts of a tuple, -1 for a part that was not kept."""
        count = self.kinds[int(self.kind[number])]["of"]
        return np.frombuffer(self.letters, np.int32, count, int(self.at[number])).tolist() if count else []

    def _array(self, dtype: Any, dims: Sequence[int], at: int) -> Array:
        size = prod(dims)
        return np.frombuffer(self.letters[at : at + size * dtype.itemsize].tobytes(), dtype).reshape(tuple(dims))

    def _summary(self, kind: Mapping[str, Any], at: int) -> Summary:
        low, high, mean, nans, infs = self._array(np.dtype(np.float64), (5,), at).tolist()
        low, high, mean = (None if each != each else each for each in (low, high, mean))
        cells = self._array(np.dtype(np.float32), kind["c"], at + _FIGURES)
        return Summary(kind["t"], tuple(kind["d"]), low, high, mean, int(nans), int(infs), cells)

    def fits(self, number: int, shape: AnyShape) -> bool:
        """Whether a value has a shape; a value that was not kept (-1) fits every shape."""
        if number < 0:
            return True
        kind = self.kinds[int(self.kind[number])]
        if not isinstance(shape, TupleShape):
            return isinstance(shape, Shape) and "of" not in kind and _is_of(kind, shape)
        if kind.get("of") != len(shape.elements):
            return False
        known = self._fits.get((number, id(shape)))
        if known is None:
            pairs = zip(self._refs(number), shape.elements, strict=True)
            known = self._fits[number, id(shape)] = shape, all(self.fits(ref, each) for ref, each in pairs)
        return known[1]


def _is_of(kind: Mapping[str, Any], shape: Shape) -> bool:
    extents = zip(kind["d"], shape.dims, shape.dynamic or (False,) * shape.rank, strict=False)
    inside = all(extent == most or (dynamic and extent < most) for extent, most, dynamic in extents)
    return kind["t"] == str(shape.dtype) and len(kind["d"]) == shape.rank and inside


def fits(value: Any, shape: AnyShape) -> bool:
    """Whether a value has a shape; a value that was not kept (None) fits every shape."""
    if value is None:
        return True
    if isinstance(value, tuple):
        parts = shape.elements if isinstance(shape, TupleShape) else None
        return parts is not None and len(parts) == len(value) and all(map(fits, value, parts))
    if not isinstance(shape, Shape):
        return False
    told = isinstance(value, Summary)
    dims, name = (value.dims, value.type) if told else (np.shape(value), str(primitive_type(value.dtype)))
    return _is_of({"t": name, "d": dims}, shape)


def packed(columns: Mapping[str, Array], where: str) -> Packed:
    """The values of the columns of a pool; FormError where a kind, a place or a byte is invalid."""
    kinds = loads(str(columns["kinds"][()]).encode(errors="replace"), f"{where}: kinds")
    listed(_kind)(kinds, f"{where}: kinds")
    found = Packed(kinds, columns["kind"], columns["at"], columns["letters"])
    if len(found.kind) != len(found.at):
        raise FormError(f"{where}: kind has {len(found.kind)} values, at has {len(found.at)}")
    within(found.kind, 0, len(kinds), f"{where}: kind")
    _check_places(found, where)
    for which, kind in enumerate(kinds):
        _check_contents(found, which, kind, f"{where}: letters")
    return found


def _kind(value: Any, where: str) -> None:
    form = next((form for key, form in _FORMS.items() if isinstance(value, dict) and key in value), None)
    if form is None:
        raise refuse(where, value, "the kind of an array, a summary or a tuple")
    form(value, where)
    if "t" not in value:
        return
    if value["t"] not in PRIMITIVES or value.get("f", value["t"]) != value["t"]:
        raise refuse(f"{where}.t", value["t"], "an element type")
    if len(value["d"]) > 64 or prod(max(1, extent) for extent in value["d"]) > _EXTENT:
        raise FormError(f"{where}.d is of more elements than an array has")
    if "c" in value and value["c"] not in (_pictured(value["d"]), [0, 0]):
        raise FormError(f"{where}.c is {value['c']}, and {_pictured(value['d'])} is wanted for {value['d']}")


def _pictured(dims: Sequence[int]) -> list[int]:
    return [min(prod(dims[:-1]), CELLS), min(dims[-1], CELLS)] if dims and prod(dims) else [0, 0] if dims else [1, 1]


def _size(kind: Mapping[str, Any]) -> int:
    """The number of bytes of a value of a kind."""
    if "of" in kind:
        return 4 * int(kind["of"])
    if "c" in kind:
        return _FIGURES + 4 * int(prod(kind["c"]))
    return int(prod(kind["d"])) * PRIMITIVES[kind["t"]].dtype.itemsize


def _check_places(found: Packed, where: str) -> None:
    """Raise FormError unless each value begins where the previous value ends, and the last one with the bytes."""
    total = len(found.letters)
    sizes = np.array([min(_size(kind), total + 1) for kind in found.kinds], np.float64)[found.kind]
    if sizes.sum() != total:
        raise FormError(f"{where}: the kinds want {sizes.sum():,.0f} bytes or more, letters has {total:,}")
    begins = np.cumsum(sizes.astype(np.int64)) - sizes.astype(np.int64)
    wrong = np.flatnonzero(begins != found.at)
    if wrong.size:
        place = int(wrong[0])
        raise FormError(f"{where}: at[{place}] is {found.at[place]}, and {begins[place]} is wanted")


def _check_contents(found: Packed, number: int, kind: Mapping[str, Any], where: str) -> None:
    """Raise FormError unless parts precede their tuples, figures are possible, and bytes encode elements."""
    numbers = np.flatnonzero(found.kind == number)
    size = _size(kind)
    if not size or not numbers.size or ("f" in kind and _all_bytes_do(kind["t"])):
        return
    step = max(1, _BLOCK // size)
    for start in range(0, len(numbers), step):
        some = numbers[start : start + step]
        if "of" in kind:
            _check_parts(_gathered(found, some, size).view(np.int32), some, where)
        elif "c" in kind:
            _check_figures(_gathered(found, some, _FIGURES).view(np.float64), kind, where)
        else:
            _check_bytes((found.letters[at : at + size] for at in found.at[some].tolist()), kind["t"], where)


def _gathered(found: Packed, numbers: Array, size: int) -> Array:
    """The first `size` bytes of each of these values, as rows."""
    return found.letters[found.at[numbers][:, None] + np.arange(size)]


def _check_parts(refs: Array, owners: Array, where: str) -> None:
    wrong = np.argwhere((refs < -1) | (refs >= owners[:, None]))
    if wrong.size:
        row, column = wrong[0].tolist()
        raise FormError(f"{where}: part {column} of the tuple {owners[row]} is value {refs[row, column]}")


def _check_figures(figures: Array, kind: Mapping[str, Any], where: str) -> None:
    low, high, _, nans, infs = figures.T
    size = prod(kind["d"])
    nothing = np.isnan(low) & np.isnan(high)
    right = (np.isfinite(low) & np.isfinite(high) & (low <= high)) | nothing
    with np.errstate(all="ignore"):
        right &= (nans >= 0) & (infs >= 0) & (nans % 1 == 0) & (infs % 1 == 0) & (nans + infs <= size)
    if not right.all():
        raise FormError(f"{where}: a summary of {kind['t']}{kind['d']} tells figures that no such array has")


def _all_bytes_do(name: str) -> bool:
    return PRIMITIVES[name].kind != "pred" and PRIMITIVES[name].bits >= 8


def _check_bytes(values: Iterator[Array], name: str, where: str) -> None:
    known = _bytes_of(name)
    for letters in values:
        if not known[letters].all():
            raise FormError(f"{where}: a value of {name} has a byte that is none of that type")


def _bytes_of(name: str) -> Array:
    """The bytes that encode an element of a type of less than a byte."""
    dtype = PRIMITIVES[name].dtype
    found = np.zeros(256, bool)
    every = np.arange(256, dtype=np.uint8)
    if dtype.kind == "b":
        found[:2] = True
    else:
        found[every.view(dtype).astype(np.float32).astype(dtype).view(np.uint8)] = True
    return found
