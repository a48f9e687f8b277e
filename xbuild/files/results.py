"""Writer of results into npz files, `d<device>_out<i>`, with bits for types that NumPy lacks; random arguments."""

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
    """Raise ArchiveError if `wanted`, a number of bytes, exceeds the limit `most`."""
    if most is not None and wanted > most:
        raise ArchiveError(f"{what} would take {wanted:,} bytes, and {most:,} may be taken")


_UNREADABLE = (ValueError, TypeError, KeyError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error)
"""The exceptions of NumPy for a file that is no npz file, is truncated, or holds Python objects."""


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[Any]:
    """An npz file, open for reading; raises ArchiveError for a file of another format."""
    try:
        with regular(path) as raw, np.load(raw, allow_pickle=False) as file:
            yield file
    except OSError as error:
        raise ArchiveError(f"{os.fspath(path)!r} cannot be read: {error.strerror or error}") from None
    except _UNREADABLE:
        raise ArchiveError(f"{os.fspath(path)!r} is no npz file of arrays, as numpy.savez writes them") from None


def random_arguments(seed: int, parameters: Sequence[Sequence[AnyShape]], most: int | None = None) -> list[list[Any]]:
    """Arguments for each device from a seed: normal floats, integers of 0..9 or the range of the type, booleans.

    `most` limits the total number of bytes; raises ArchiveError for more.
    """
    drawn = max((_DRAWN.get(leaf.dtype.kind, 8) * math.prod(leaf.dims) for leaf in _arrays(parameters)), default=0)
    wanted = drawn + sum(math.prod(leaf.dims) * leaf.dtype.dtype.itemsize for leaf in _arrays(parameters))
    check_size(wanted, most, "random arguments")
    generator = np.random.default_rng(seed)
    return [[_random(generator, shape) for shape in shapes] for shapes in parameters]


_DRAWN = {"complex": 48, "float": 16}
"""Bytes of an element while it is generated, for the kinds that need more than 8."""


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
    """Write the results of each device; after a failure an existing file is unchanged.

    NumPy's format lacks types such as bf16, f8 and s4. Arrays of such types are stored as bits, with the type in the
    name, such as `d0_out0:bf16`; an integer of less than 8 bits is stored as one byte.
    """
    arrays: dict[str, Any] = {}
    for device, (result, shape) in enumerate(zip(results, shapes, strict=True)):
        for number, (leaf, leaf_shape) in enumerate(leaf_values(result, shape)):
            suffix = "" if leaf_shape.dtype.is_native else f":{leaf_shape.dtype}"
            arrays[f"d{device}_out{number}{suffix}"] = to_bits(np.asarray(leaf), leaf_shape.dtype)
    with tempfile.TemporaryFile() as packed:  # NumPy's writer does not close files properly on a full disk
        _pack(packed, arrays)
        packed.seek(0)
        with replacing(Path(path)) as file:
            shutil.copyfileobj(packed, file)


def _pack(file: IO[bytes], arrays: dict[str, Any]) -> None:
    """Write the format of `numpy.savez_compressed`, and close every file, also if the disk is full."""
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
    """A device or a pipe, open for writing; raises OSError for a pipe without a reader instead of waiting for one."""
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
    """The temporary files that are being written; a process that ends at once must remove them."""
    return [*_unfinished]


@contextmanager
def replacing(target: Path) -> Iterator[IO[bytes]]:
    """A temporary file to write into, which replaces the target at the end; after a failure the target is unchanged.

    A target that is no regular file, such as /dev/null, is written to directly; of a link, its target is replaced.
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
    """The array in a type that NumPy's format supports."""
    if dtype.is_native:
        return array
    if dtype.is_integer:
        return array.astype(np.int8 if dtype.kind == "signed" else np.uint8)
    return np.ascontiguousarray(array).view(f"u{array.itemsize}").reshape(array.shape)


def from_bits(array: Array, dtype: PrimitiveType) -> Array:
    """The inverse of `to_bits`; an array of another type is returned unchanged, and the caller refuses it."""
    if dtype.is_native or array.dtype == dtype.dtype:
        return array
    if dtype.is_integer and array.dtype.kind in "iu" and array.itemsize == 1:
        return array.astype(dtype.dtype)
    if dtype.is_float and array.dtype.kind in "iuV" and array.itemsize == dtype.dtype.itemsize:
        return np.ascontiguousarray(array).view(dtype.dtype).reshape(array.shape)
    return array


def count_leaves(shapes: Sequence[AnyShape]) -> int:
    return sum(isinstance(leaf, Shape) for shape in shapes for leaf in leaves(shape))
