"""Writer of results as npz files, `d<device>_out<i>`, with types that NumPy lacks as bits; random arguments."""

from __future__ import annotations

import errno
import math
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from shape_inference import AnyShape, PrimitiveType, Shape, TokenShape, TupleShape, leaves

from ..core.attributes import Array
from .npz import ArchiveError as ArchiveError
from .npz import regular
from .temporary import file_beside


def check_size(wanted: int, most: int | None, what: str) -> None:
    """ArchiveError where arrays would take more bytes than there may be."""
    if most is not None and wanted > most:
        raise ArchiveError(f"{what} would take {wanted:,} bytes, and {most:,} may be taken")


_UNREADABLE = (ValueError, TypeError, KeyError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error)
"""What NumPy raises of a file that is no npz file, is cut off, or holds objects of Python."""


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[Any]:
    """An npz file to read from; ArchiveError in plain words where it is none."""
    try:
        with regular(path) as raw, np.load(raw, allow_pickle=False) as file:
            yield file
    except OSError as error:
        raise ArchiveError(f"{os.fspath(path)!r} cannot be read: {error.strerror or error}") from None
    except _UNREADABLE:
        raise ArchiveError(f"{os.fspath(path)!r} is no npz file of arrays, as numpy.savez writes them") from None


def random_arguments(seed: int, parameters: Sequence[Sequence[AnyShape]], most: int | None = None) -> list[list[Any]]:
    """Arguments for each device from a seed: normal floats, integers of 0..9 (or as many as the type holds), coins.

    `most` is how many bytes they may take in all; ArchiveError where they take more.
    """
    drawn = max((_DRAWN.get(leaf.dtype.kind, 8) * math.prod(leaf.dims) for leaf in _arrays(parameters)), default=0)
    wanted = drawn + sum(math.prod(leaf.dims) * leaf.dtype.dtype.itemsize for leaf in _arrays(parameters))
    check_size(wanted, most, "random arguments")
    generator = np.random.default_rng(seed)
    return [[_random(generator, shape) for shape in shapes] for shapes in parameters]


_DRAWN = {"complex": 48, "float": 16}
"""Bytes that an element takes while it is drawn, where they are more than 8."""


def _arrays(parameters: Sequence[Sequence[AnyShape]]) -> Iterator[Shape]:
    return (leaf for shapes in parameters for shape in shapes for leaf in leaves(shape) if isinstance(leaf, Shape))


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
        _pack(packed, arrays)
        packed.seek(0)
        with replacing(Path(path)) as file:
            shutil.copyfileobj(packed, file)


def _pack(file: IO[bytes], arrays: dict[str, Any]) -> None:
    """Write what `numpy.savez_compressed` writes, and close every file, also where the disk is full."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def umask() -> int:
    """The process's umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _written_to(target: Path) -> int:
    """A device or a pipe, open; OSError where nobody reads the pipe, since opening it would wait for a reader."""
    try:
        handle = os.open(target, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        raise OSError(error.errno, "nobody reads this pipe", str(target)) from None
    if hasattr(os, "set_blocking"):
        os.set_blocking(handle, True)
    return handle


_unfinished: set[str] = set()


def unfinished() -> list[str]:
    """The temporary files that are being written, which are removed where the process is ended at once."""
    return [*_unfinished]


@contextmanager
def replacing(target: Path) -> Iterator[IO[bytes]]:
    """A temporary file to write into, which replaces the target at the end; after a failure the target is unchanged.

    What is no file, such as /dev/null, keeps its place and is written to, and so is what a link points at.
    """
    if target.exists() and not target.is_file():
        with os.fdopen(_written_to(target), "wb") as file:
            yield file
        return
    target = target.resolve()
    handle, temporary = file_beside(target)
    _unfinished.add(temporary)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(temporary, target.stat().st_mode if target.exists() else 0o666 & ~umask())
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
