"""The pool of values of a trace as columns: each distinct value once, each column validated when read.

Sections:

    Safe reading of a trace's files
    The pool of values
    Values read from the columns of a pool
"""

from __future__ import annotations

import os
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from attrs import define, field, frozen

from shape_inference import PRIMITIVES, AnyShape, Shape, TupleShape, primitive_type

from ..core.attributes import Array
from .forms import Form, FormError, listed, loads, number, record, refuse, text
from .summary import CELLS, Summary

# ----------------------------------------------------------------------------
# Safe reading of a trace's files
#
# Only plain files are opened, and only columns of the declared types are read.

LARGEST = 1 << 33
"""The greatest size of a file of columns, in bytes."""

TEXT = 1 << 28
"""The greatest size of a file of text, in bytes."""

_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_HEADER = re.compile(rb"\{'descr': '([^']{1,20})', 'fortran_order': False, 'shape': \(([0-9, ]{0,60})\), \} *\n")
_MAGIC = b"\x93NUMPY\x01\x00"


@frozen
class Column:
    """The type of a column and its extents, where None stands for any extent."""

    dtype: Any
    dims: tuple[int | None, ...] = (None,)

    def __str__(self) -> str:
        return f"{np.dtype(self.dtype)}[{','.join('*' if each is None else str(each) for each in self.dims)}]"


@contextmanager
def plain_file(path: Path, most: int) -> Iterator[IO[bytes]]:
    """A file open for reading; OSError where there is none, FormError where it is no plain file, or too large."""
    with os.fdopen(_opened(path), "rb") as file:
        told = os.fstat(file.fileno())
        if not stat.S_ISREG(told.st_mode):
            raise FormError(f"{path.name} is not a regular file")
        if told.st_size > most:
            raise FormError(f"{path.name} has {told.st_size:,} bytes, but the limit is {most:,}")
        yield file


def _opened(path: Path) -> int:
    if path.is_symlink():
        raise FormError(f"{path.name} is a link, and links are not allowed")
    return os.open(path, _FLAGS)


def text_of(path: Path) -> bytes:
    """The bytes of a file of text."""
    with plain_file(path, TEXT) as file:
        return file.read()


def columns(path: Path, wanted: Mapping[str, Column]) -> dict[str, Array]:
    """The columns of an uncompressed npz file; FormError where they differ from the expected columns."""
    try:
        with plain_file(path, LARGEST) as file, zipfile.ZipFile(file) as archive:
            found = {info.filename: info for info in archive.infolist()}
            if found.keys() != {f"{name}.npy" for name in wanted} or len(archive.infolist()) != len(found):
                raise FormError(f"{path.name} must contain exactly the columns {', '.join(sorted(wanted))}")
            size = os.fstat(file.fileno()).st_size
            return {
                name: _column(_letters(archive, found[f"{name}.npy"], size), f"{path.name}: {name}", column)
                for name, column in wanted.items()
            }
    except FormError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, ValueError):
        raise FormError(f"{path.name} is not a complete npz file") from None


def _letters(archive: zipfile.ZipFile, info: zipfile.ZipInfo, size: int) -> bytes:
    if info.compress_type != zipfile.ZIP_STORED or not info.compress_size == info.file_size <= size:
        raise FormError(f"{info.filename} is compressed or has an impossible size")
    return archive.read(info)


def _column(letters: bytes, where: str, column: Column) -> Array:
    """An array from the bytes of an npy file; its header is read as NumPy writes it, and not evaluated."""
    begin = 10 + int.from_bytes(letters[8:10], "little")
    header = _HEADER.fullmatch(letters, 10, begin)
    if not letters.startswith(_MAGIC) or header is None or len(letters) < begin:
        raise FormError(f"{where} is not an array of an npz file")
    dims = tuple(int(each) for each in header[2].decode().replace(" ", "").split(",") if each)
    dtype = _dtype(header[1].decode(), where, column)
    fits = len(dims) == len(column.dims) and all(a in (None, b) for a, b in zip(column.dims, dims, strict=True))
    if not fits or prod(dims) * dtype.itemsize != len(letters) - begin:
        raise FormError(f"{where} is {dtype}{list(dims)} of {len(letters) - begin:,} bytes; expected {column}")
    return np.frombuffer(letters, dtype, offset=begin).reshape(dims)


def _dtype(spelled: str, where: str, column: Column) -> np.dtype[Any]:
    wanted = np.dtype(column.dtype)
    is_text = wanted.kind == "U" and re.fullmatch(r"[<>=]U[0-9]{1,12}", spelled)
    if spelled != wanted.str and not is_text:
        raise FormError(f"{where} has type {spelled!a}; expected {column}")
    return np.dtype(spelled)


def within(column: Array, least: int, end: int, where: str) -> None:
    """Raise FormError unless all elements of a column are in least..end-1; the message names the first outside."""
    wrong = np.flatnonzero((column < least) | (column >= end))
    if wrong.size:
        place = np.unravel_index(int(wrong[0]), column.shape)
        at = ", ".join(str(int(each)) for each in place)
        wanted = f"{least}..{end - 1}" if end > least else "none"
        raise FormError(f"{where}[{at}] is {column[place]}; expected {wanted}")


# ----------------------------------------------------------------------------
# The pool of values
#
# Each distinct type and shape once, and all bytes one after the other.

Spelled: TypeAlias = Callable[[Array], tuple[str, Array]]
"""A function that gives the format of an array in the pool, and the array in this format."""

_FIGURES = ("low", "high", "mean", "nans", "infs")


def as_they_are(array: Array) -> tuple[str, Array]:
    return str(primitive_type(array.dtype)), array


def single(cells: Array) -> Array:
    return np.asarray(cells, np.float32)


@define(eq=False)
class Pool:
    """Values to be written; an object that is added again is stored once.

    A kind is `{t, d, f}` of an array of type `t` and extents `d` in format `f`; `{t, d, c}` of a summary with cells of
    extents `c` as `shaded` gives them, after five figures as f64; `{of}` of a tuple of so many, whose bytes are the
    numbers of its elements.
    """

    spelled: Spelled = as_they_are
    shaded: Callable[[Array], Array] = single
    kinds: list[dict[str, Any]] = field(factory=list)
    size: int = 0
    _kind: list[int] = field(factory=list)
    _at: list[int] = field(factory=list)
    _bytes: list[bytes] = field(factory=list)
    _number: dict[Any, int] = field(factory=dict)
    _known: dict[int, tuple[Any, int]] = field(factory=dict)

    def add(self, value: Any) -> int:
        """Add a value to the pool; its number, or -1 for None."""
        if value is None:
            return -1
        known = self._known.get(id(value))
        if known is None:
            known = self._known[id(value)] = value, self._added(value)
        return known[1]

    def _added(self, value: Any) -> int:
        if isinstance(value, tuple):
            return self._put(len(value), {"of": len(value)}, np.array([self.add(each) for each in value], np.int32))
        if isinstance(value, Summary):
            figures = [np.nan if (each := getattr(value, name)) is None else each for name in _FIGURES]
            key = value.type, value.dims, value.cells.shape
            kind = {"t": value.type, "d": list(value.dims), "c": list(value.cells.shape)}
            return self._put(key, kind, np.array(figures, np.float64), self.shaded(value.cells))
        array = np.asarray(value)
        form, plain = self.spelled(array)
        known = self._number.get((array.dtype, array.shape))
        kind = {} if known is not None else _kind(array, form)
        return self._put((array.dtype, array.shape), kind, plain)

    def _put(self, key: Any, kind: dict[str, Any], *arrays: Array) -> int:
        number = self._number.get(key)
        if number is None:
            number = self._number[key] = len(self.kinds)
            self.kinds.append(kind)
        self._kind.append(number)
        self._at.append(self.size)
        for array in arrays:
            letters = array.tobytes()
            self._bytes.append(letters)
            self.size += len(letters)
        return len(self._kind) - 1

    def __len__(self) -> int:
        return len(self._kind)

    @property
    def columns(self) -> tuple[Array, Array, Array]:
        """The kind of each value, the offset of its bytes, and all bytes."""
        at = np.array(self._at, np.int64)
        return np.array(self._kind, np.int32), at, np.frombuffer(b"".join(self._bytes), np.uint8)


def _kind(array: Array, form: str) -> dict[str, Any]:
    return {"t": str(primitive_type(array.dtype)), "d": list(array.shape), "f": form}


# ----------------------------------------------------------------------------
# Values read from the columns of a pool
#
# Each column is validated against the bytes of the pool.

POOL = {"kinds": Column(np.str_, ()), "kind": Column(np.int32), "at": Column(np.int64), "letters": Column(np.uint8)}

_PACKED_FIGURES = 40
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
        cells = self._array(np.dtype(np.float32), kind["c"], at + _PACKED_FIGURES)
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
    listed(_kind_of_column)(kinds, f"{where}: kinds")
    found = Packed(kinds, columns["kind"], columns["at"], columns["letters"])
    if len(found.kind) != len(found.at):
        raise FormError(f"{where}: column `kind` has {len(found.kind)} values, but column `at` has {len(found.at)}")
    within(found.kind, 0, len(kinds), f"{where}: kind")
    _check_places(found, where)
    for which, kind in enumerate(kinds):
        _check_contents(found, which, kind, f"{where}: letters")
    return found


def _kind_of_column(value: Any, where: str) -> None:
    form = next((form for key, form in _FORMS.items() if isinstance(value, dict) and key in value), None)
    if form is None:
        raise refuse(where, value, "the kind of an array, a summary or a tuple")
    form(value, where)
    if "t" not in value:
        return
    if value["t"] not in PRIMITIVES or value.get("f", value["t"]) != value["t"]:
        raise refuse(f"{where}.t", value["t"], "an element type")
    if len(value["d"]) > 64 or prod(max(1, extent) for extent in value["d"]) > _EXTENT:
        raise FormError(f"{where}.d has more elements than an array can have")
    if "c" in value and value["c"] not in (_pictured(value["d"]), [0, 0]):
        raise FormError(f"{where}.c is {value['c']}; expected {_pictured(value['d'])} for {value['d']}")


def _pictured(dims: Sequence[int]) -> list[int]:
    return [min(prod(dims[:-1]), CELLS), min(dims[-1], CELLS)] if dims and prod(dims) else [0, 0] if dims else [1, 1]


def _size(kind: Mapping[str, Any]) -> int:
    """The number of bytes of a value of a kind."""
    if "of" in kind:
        return 4 * int(kind["of"])
    if "c" in kind:
        return _PACKED_FIGURES + 4 * int(prod(kind["c"]))
    return int(prod(kind["d"])) * PRIMITIVES[kind["t"]].dtype.itemsize


def _check_places(found: Packed, where: str) -> None:
    """Raise FormError unless each value begins where the previous value ends, and the last one with the bytes."""
    total = len(found.letters)
    sizes = np.array([min(_size(kind), total + 1) for kind in found.kinds], np.float64)[found.kind]
    if sizes.sum() != total:
        needed = f"{sizes.sum():,.0f}"
        raise FormError(f"{where}: the kinds need at least {needed} bytes, but column `letters` has {total:,}")
    begins = np.cumsum(sizes.astype(np.int64)) - sizes.astype(np.int64)
    wrong = np.flatnonzero(begins != found.at)
    if wrong.size:
        place = int(wrong[0])
        raise FormError(f"{where}: at[{place}] is {found.at[place]}; expected {begins[place]}")


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
            _check_figures(_gathered(found, some, _PACKED_FIGURES).view(np.float64), kind, where)
        else:
            _check_bytes((found.letters[at : at + size] for at in found.at[some].tolist()), kind["t"], where)


def _gathered(found: Packed, numbers: Array, size: int) -> Array:
    """The first `size` bytes of each of these values, as rows."""
    return found.letters[found.at[numbers][:, None] + np.arange(size)]


def _check_parts(refs: Array, owners: Array, where: str) -> None:
    wrong = np.argwhere((refs < -1) | (refs >= owners[:, None]))
    if wrong.size:
        row, column = wrong[0].tolist()
        part = f"part {column} of tuple {owners[row]}"
        raise FormError(f"{where}: {part} is value {refs[row, column]}; expected -1..{owners[row] - 1}")


def _check_figures(figures: Array, kind: Mapping[str, Any], where: str) -> None:
    low, high, _, nans, infs = figures.T
    size = prod(kind["d"])
    nothing = np.isnan(low) & np.isnan(high)
    right = (np.isfinite(low) & np.isfinite(high) & (low <= high)) | nothing
    with np.errstate(all="ignore"):
        right &= (nans >= 0) & (infs >= 0) & (nans % 1 == 0) & (infs % 1 == 0) & (nans + infs <= size)
    if not right.all():
        raise FormError(
            f"{where}: a summary of {kind['t']}{kind['d']} states numbers that are impossible for such an array"
        )


def _all_bytes_do(name: str) -> bool:
    return PRIMITIVES[name].kind != "pred" and PRIMITIVES[name].bits >= 8


def _check_bytes(values: Iterator[Array], name: str, where: str) -> None:
    known = _bytes_of(name)
    for letters in values:
        if not known[letters].all():
            raise FormError(f"{where}: a value of type {name} has a byte that is invalid for this type")


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
