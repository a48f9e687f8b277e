"""Safe reader of untrusted npz files: headers are compared with the stored sizes before an array is loaded."""

from __future__ import annotations

import functools
import gzip
import io
import math
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from attrs import frozen

from shape_inference import Dims
from shape_inference.escaping import Harmless

from ..core.attributes import Array

_KINDS = "biufcV"
_LARGEST_ITEM = 16
_MOST_MEMBERS = 1 << 20
_LONGEST_HEADER = 1 << 16


class ArchiveError(Harmless):
    """The error for a file that does not have the arrays that the program needs."""


@frozen
class Member:
    """An array of a file, described by its header; `load` reads its elements."""

    name: str
    dtype: np.dtype[Any]
    dims: Dims
    load: Callable[[], Array]

    @property
    def bytes(self) -> int:
        return self.dtype.itemsize * math.prod(self.dims)

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.dims))}]"


@contextmanager
def regular(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A regular file, open for reading; raises ArchiveError for a folder, a device or a pipe, which may block."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise ArchiveError(f"{os.fspath(path)!r} is {kind_of(path)}, and a file is wanted")
            yield file
    except OSError as error:
        raise ArchiveError(f"{os.fspath(path)!r} cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # the name has a NUL character
        raise ArchiveError(f"{os.fspath(path)!r} cannot be read: {error}") from None


_MODES = (
    (stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)  # fmt: skip


def kind_of(path: str | os.PathLike[str]) -> str:
    """The kind of a path that is no regular file, for a message: a folder, a device, a pipe."""
    mode = os.stat(path).st_mode
    return next((words for test, words in _MODES if test(mode)), "no file")


@contextmanager
def members(path: str | os.PathLike[str]) -> Iterator[Mapping[str, Member]]:
    """The arrays of an npz file by name, not loaded; raises ArchiveError for a file of another format."""
    with regular(path) as raw, _zip(raw, os.fspath(path)) as file:
        yield dict(_members(file, os.fspath(path)))


def _zip(raw: IO[bytes], path: str) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(raw)
    except Exception:  # zipfile raises exceptions of any type on malformed bytes
        raise ArchiveError(f"{path!r} is no npz file of arrays, as numpy.savez writes them") from None


def _members(file: zipfile.ZipFile, path: str) -> Iterator[tuple[str, Member]]:
    infos = file.infolist()
    if len(infos) > _MOST_MEMBERS:
        raise ArchiveError(f"{path!r} has {len(infos):,} arrays, and {_MOST_MEMBERS:,} are the most")
    seen: set[str] = set()
    for info in infos:
        name = info.filename.removesuffix(".npy")
        if name in seen:
            raise ArchiveError(f"{path!r} holds {name[:60]!r} twice")
        seen.add(name)
        yield name, _guarded(path, name, functools.partial(_member, file, info, name))


def _guarded(path: str, name: str, reads: Callable[[], Any]) -> Any:
    """Read one array, with every exception as ArchiveError: NumPy and zipfile raise any type on malformed bytes."""
    try:
        return reads()
    except ArchiveError as error:
        raise ArchiveError(f"{path!r}: {name[:60]!r} {error}") from None
    except MemoryError:
        raise ArchiveError(f"{path!r}: {name[:60]!r} is larger than what memory is left") from None
    except Exception:
        raise ArchiveError(f"{path!r}: {name[:60]!r} is no array, as numpy.savez writes them, or is damaged") from None


def _member(file: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> Member:
    with file.open(info) as stream:
        begin = io.BytesIO(stream.read(_LONGEST_HEADER))
    dims, dtype = _header(begin)
    rest = info.file_size - begin.tell()
    if dtype.kind not in _KINDS or dtype.fields or dtype.subdtype or dtype.itemsize > _LARGEST_ITEM:
        raise ArchiveError(f"holds elements of {str(dtype)[:60]}, and numbers are wanted")
    claimed = dtype.itemsize * math.prod(dims)
    if claimed != rest:
        raise ArchiveError(f"claims {claimed:,} bytes of elements, and holds {rest:,}")

    def load() -> Array:
        with file.open(info) as stream:
            found: Array = np.lib.format.read_array(stream, allow_pickle=False)
        return found

    return Member(name, dtype, dims, lambda: _guarded(str(file.filename), name, load))


def _header(stream: IO[bytes]) -> tuple[Dims, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    if version not in ((1, 0), (2, 0)):
        raise ArchiveError(f"is of version {version} of NumPy's format, and 1.0 or 2.0 is wanted")
    dims, _, dtype = read(stream)
    if len(dims) > 64 or not all(type(size) is int and size >= 0 for size in dims):
        raise ArchiveError("claims sizes that no array has")
    return tuple(dims), dtype


MOST_UNPACKED = 1 << 30
"""The limit of bytes to which a compressed text may grow: a file of a megabyte can hold as many."""


def read_text(path: Path, most: int) -> bytes:
    """The bytes of a text file, of a `.gz` file what it holds; raises ArchiveError for more than `most` bytes."""
    with regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise ArchiveError(f"{str(path)!r} has {size:,} bytes, and {most:,} are the most that is read")
        return _unpacked(file, path, min(most, MOST_UNPACKED)) if path.suffix == ".gz" else file.read()


def _unpacked(file: IO[bytes], path: Path, most: int) -> bytes:
    try:
        found = gzip.GzipFile(fileobj=file).read(most + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ArchiveError(f"{str(path)!r} does not read as gzip: {error}") from None
    if len(found) > most:
        raise ArchiveError(f"{str(path)!r} holds more than {most:,} bytes, the most that is read of a compressed file")
    return found
