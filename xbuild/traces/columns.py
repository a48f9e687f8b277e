"""Safe reading of a trace's files: plain files alone are opened, and columns of the declared types alone are read."""

from __future__ import annotations

import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from attrs import frozen

from ..core.attributes import Array
from .forms import FormError

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
            raise FormError(f"{path.name} is no file")
        if told.st_size > most:
            raise FormError(f"{path.name} is of {told.st_size:,} bytes, and at most {most:,} are read")
        yield file


def _opened(path: Path) -> int:
    if path.is_symlink():
        raise FormError(f"{path.name} is a link, and links are not followed")
    return os.open(path, _FLAGS)


def text_of(path: Path) -> bytes:
    """The bytes of a file of text."""
    with plain_file(path, TEXT) as file:
        return file.read()


def columns(path: Path, wanted: Mapping[str, Column]) -> dict[str, Array]:
    """The columns of an uncompressed npz file; FormError where they are not those that are wanted."""
    try:
        with plain_file(path, LARGEST) as file, zipfile.ZipFile(file) as archive:
            found = {info.filename: info for info in archive.infolist()}
            if found.keys() != {f"{name}.npy" for name in wanted} or len(archive.infolist()) != len(found):
                raise FormError(f"{path.name} does not hold the columns {', '.join(sorted(wanted))}, each once")
            size = os.fstat(file.fileno()).st_size
            return {
                name: _column(_letters(archive, found[f"{name}.npy"], size), f"{path.name}: {name}", column)
                for name, column in wanted.items()
            }
    except FormError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, ValueError):
        raise FormError(f"{path.name} is no npz file, or is not whole") from None


def _letters(archive: zipfile.ZipFile, info: zipfile.ZipInfo, size: int) -> bytes:
    if info.compress_type != zipfile.ZIP_STORED or not info.compress_size == info.file_size <= size:
        raise FormError(f"{info.filename} is compressed or of a size that it cannot have")
    return archive.read(info)


def _column(letters: bytes, where: str, column: Column) -> Array:
    """An array from the bytes of an npy file; its header is read as NumPy writes it, and not evaluated."""
    begin = 10 + int.from_bytes(letters[8:10], "little")
    header = _HEADER.fullmatch(letters, 10, begin)
    if not letters.startswith(_MAGIC) or header is None or len(letters) < begin:
        raise FormError(f"{where} is no array of an npz file")
    dims = tuple(int(each) for each in header[2].decode().replace(" ", "").split(",") if each)
    dtype = _dtype(header[1].decode(), where, column)
    fits = len(dims) == len(column.dims) and all(a in (None, b) for a, b in zip(column.dims, dims, strict=True))
    if not fits or prod(dims) * dtype.itemsize != len(letters) - begin:
        raise FormError(f"{where} is {dtype}{list(dims)} of {len(letters) - begin:,} bytes, and {column} is wanted")
    return np.frombuffer(letters, dtype, offset=begin).reshape(dims)


def _dtype(spelled: str, where: str, column: Column) -> np.dtype[Any]:
    wanted = np.dtype(column.dtype)
    is_text = wanted.kind == "U" and re.fullmatch(r"[<>=]U[0-9]{1,12}", spelled)
    if spelled != wanted.str and not is_text:
        raise FormError(f"{where} is of {spelled!a}, and {column} is wanted")
    return np.dtype(spelled)


def within(column: Array, least: int, end: int, where: str) -> None:
    """Raise FormError unless all elements of a column are in least..end-1; the message names the first outside."""
    wrong = np.flatnonzero((column < least) | (column >= end))
    if wrong.size:
        place = np.unravel_index(int(wrong[0]), column.shape)
        at = ", ".join(str(int(each)) for each in place)
        wanted = f"{least}..{end - 1}" if end > least else "none"
        raise FormError(f"{where}[{at}] is {column[place]}, and {wanted} is wanted")
