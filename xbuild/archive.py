"""Arrays of a run in npz files: `d<device>_arg<i>` or `arg<i>`, `..infeed<i>` in, `d<device>_out<i>` out."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from shape_inference import PRIMITIVES, AnyShape, PrimitiveType, Shape, TokenShape, TupleShape, leaves

from .attributes import Array


class ArchiveError(Exception):
    """A file does not hold what the program wants."""


def read_arguments(path: str | os.PathLike[str], parameters: Sequence[Sequence[AnyShape]]) -> list[list[Any]]:
    """The arguments of each device, shaped as its parameters are; ArchiveError names what is missing or odd."""
    stored = {key.partition(":")[0]: array for key, array in _read(path).items()}
    return [_device(stored, device, shapes) for device, shapes in enumerate(parameters)]


_UNREADABLE = (ValueError, TypeError, KeyError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error)
"""What NumPy raises of a file that is no npz file, is cut off, or holds objects of Python."""


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[Any]:
    """An npz file to read from; ArchiveError in plain words where it is none."""
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            yield file
    except OSError as error:
        raise ArchiveError(f"{os.fspath(path)!r} cannot be read: {error.strerror or error}") from None
    except _UNREADABLE:
        raise ArchiveError(f"{os.fspath(path)!r} is no npz file of arrays, as numpy.savez writes them") from None


def _read(path: str | os.PathLike[str]) -> dict[str, Array]:
    """All arrays of an npz file by name."""
    with opened(path) as file:
        return {key: file[key] for key in file.files}


def _device(stored: Mapping[str, Array], device: int, shapes: Sequence[AnyShape]) -> list[Any]:
    counter = iter(range(2**31))
    return [_filled(stored, device, shape, counter) for shape in shapes]


def _filled(stored: Mapping[str, Array], device: int, shape: AnyShape, counter: Iterator[int]) -> Any:
    if isinstance(shape, TupleShape):
        return tuple(_filled(stored, device, element, counter) for element in shape.elements)
    if isinstance(shape, TokenShape):
        return None
    number = next(counter)
    for key in (f"d{device}_arg{number}", f"arg{number}"):
        if key in stored:
            return from_bits(stored[key], shape.dtype)
    raise ArchiveError(
        f"argument {number} of device {device}, {shape}, is missing: neither d{device}_arg{number} nor arg{number} is "
        f"among {', '.join(sorted(stored)) or 'no arrays'}"
    )


_ITEM = re.compile(r"(?:d(?P<device>\d+)_)?infeed(?P<item>\d+)(?P<path>(?:_\d+)*)(?::(?P<type>\w+))?")


def read_infeed(path: str | os.PathLike[str], devices: int) -> list[list[Any]]:
    """The infeed items of each device: `d<device>_infeed<i>`, or `infeed<i>` where a device has none of its own.

    Element k of an item that is a tuple is `infeed<i>_<k>`, and so on inside it. Items are counted from 0.
    """
    found: dict[int | None, dict[int, dict[tuple[int, ...], Array]]] = {}
    for key, array in _read(path).items():
        device, item, place, dtype = _item_of(key)
        if device is not None and device >= devices:
            raise ArchiveError(f"{key} is for device {device}, and the program has {devices}")
        value = array if dtype is None else from_bits(array, dtype)
        found.setdefault(device, {}).setdefault(item, {})[place] = value
    common = found.get(None, {})
    return [_counted(common | found.get(device, {}), device) for device in range(devices)]


def _item_of(key: str) -> tuple[int | None, int, tuple[int, ...], PrimitiveType | None]:
    """The device that a name is for (None: every one), the item, the place in its tuple, the type that is named."""
    match = _ITEM.fullmatch(key)
    if match is None or (match["type"] and match["type"] not in PRIMITIVES):
        raise ArchiveError(f"{key!r} is no item of an infeed: d<device>_infeed<i> or infeed<i> is wanted")
    place = tuple(map(int, match["path"].split("_")[1:]))
    device = None if match["device"] is None else int(match["device"])
    return device, int(match["item"]), place, PRIMITIVES[match["type"]] if match["type"] else None


def _counted(items: Mapping[int, Mapping[tuple[int, ...], Array]], device: int) -> list[Any]:
    for number in range(len(items)):
        if number not in items:
            raise ArchiveError(f"infeed item {number} of device {device} is missing, and {max(items)} is there")
    return [_joined(items[number], f"infeed{number}") for number in range(len(items))]


def _joined(parts: Mapping[tuple[int, ...], Array], name: str) -> Any:
    """An array, or the tuple of what stands at 0, 1, ... of it."""
    if () in parts:
        if len(parts) > 1:
            raise ArchiveError(f"{name} is an array, and is a tuple, too")
        return parts[()]
    count = 1 + max(place[0] for place in parts)
    inside = [{place[1:]: part for place, part in parts.items() if place[0] == number} for number in range(count)]
    for number, each in enumerate(inside):
        if not each:
            raise ArchiveError(f"element {number} of {name} is missing, and {count - 1} is there")
    return tuple(_joined(each, f"{name}_{number}") for number, each in enumerate(inside))


def random_arguments(seed: int, parameters: Sequence[Sequence[AnyShape]]) -> list[list[Any]]:
    """Arguments for each device from a seed: normal floats, integers of 0..9 (or as many as the type holds), coins."""
    generator = np.random.default_rng(seed)
    return [[_random(generator, shape) for shape in shapes] for shapes in parameters]


def _random(generator: np.random.Generator, shape: AnyShape) -> Any:
    if isinstance(shape, TupleShape):
        return tuple(_random(generator, element) for element in shape.elements)
    if isinstance(shape, TokenShape):
        return None
    dtype = shape.dtype
    if dtype.kind == "complex":
        parts = generator.standard_normal((2, *shape.dims))
        return np.asarray(parts[0] + 1j * parts[1]).astype(dtype.dtype)
    if dtype.kind == "float":
        drawn = np.asarray(generator.standard_normal(shape.dims))
        return (np.exp2(np.round(drawn)) if dtype.name == "f8e8m0fnu" else drawn).astype(dtype.dtype)
    largest = 1 if dtype.kind == "pred" else min(9, 2 ** (dtype.bits - (dtype.kind == "signed")) - 1)
    return np.asarray(generator.integers(0, largest, shape.dims, endpoint=True)).astype(dtype.dtype)


def write_results(path: str | os.PathLike[str], results: Sequence[Any], shapes: Sequence[AnyShape]) -> None:
    """Write the results of each device; the file is there whole, or as it was before.

    NumPy's files know no bf16, f8, s4 and the like: those are stored as their bits, with the type in the name, such as
    `d0_out0:bf16`; integers of under a byte take one each.
    """
    arrays: dict[str, Any] = {}
    for device, (result, shape) in enumerate(zip(results, shapes, strict=True)):
        for number, (leaf, leaf_shape) in enumerate(leaf_values(result, shape)):
            suffix = "" if leaf_shape.dtype.is_native else f":{leaf_shape.dtype}"
            arrays[f"d{device}_out{number}{suffix}"] = to_bits(np.asarray(leaf), leaf_shape.dtype)
    with tempfile.TemporaryFile() as packed:  # NumPy's writer does not take it well where the target is full
        np.savez_compressed(packed, **arrays)
        packed.seek(0)
        with replacing(Path(path)) as file:
            shutil.copyfileobj(packed, file)


def _umask() -> int:
    """The rights that new files do not get; it can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


_unfinished: set[str] = set()


def unfinished() -> list[str]:
    """The temporary files that are being written, for who ends the process without coming back to them."""
    return [*_unfinished]


@contextmanager
def replacing(target: Path) -> Iterator[IO[bytes]]:
    """A file to write into that takes the target's place at the end; where that fails the target is as it was.

    What is no file, such as /dev/null, keeps its place and is written to, and so is what a link points at.
    """
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    target = target.resolve()
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    _unfinished.add(temporary)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(temporary, target.stat().st_mode if target.exists() else 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
    finally:
        _unfinished.discard(temporary)


def leaf_values(value: Any, shape: AnyShape) -> Iterator[tuple[Any, Shape]]:
    """The arrays of a result with their shapes, tuples flattened, tokens left out."""
    if isinstance(shape, TupleShape):
        for each, element in zip(value, shape.elements, strict=True):
            yield from leaf_values(each, element)
    elif isinstance(shape, Shape):
        yield value, shape


def to_bits(array: Array, dtype: PrimitiveType) -> Array:
    """The array as NumPy's files can hold it."""
    if dtype.is_native:
        return array
    if dtype.is_integer:
        return array.astype(np.int8 if dtype.kind == "signed" else np.uint8)
    return np.ascontiguousarray(array).view(f"u{array.itemsize}").reshape(array.shape)


def from_bits(array: Array, dtype: PrimitiveType) -> Array:
    """The inverse of to_bits; an array that is stored as another type is left for the caller to refuse."""
    if dtype.is_native or array.dtype == dtype.dtype:
        return array
    if dtype.is_integer and array.dtype.kind in "iu" and array.itemsize == 1:
        return array.astype(dtype.dtype)
    if dtype.is_float and array.dtype.kind in "iuV" and array.itemsize == dtype.dtype.itemsize:
        return np.ascontiguousarray(array).view(dtype.dtype).reshape(array.shape)
    return array


def count_leaves(shapes: Sequence[AnyShape]) -> int:
    return sum(isinstance(leaf, Shape) for shape in shapes for leaf in leaves(shape))
