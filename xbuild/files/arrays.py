"""Arrays from and into npz files: untrusted files are read safely; results and random arguments.

Sections:

    Safe reader of untrusted npz files
    Results into npz files, and random arguments
    Arguments and infeed items from npz files
"""

from __future__ import annotations

import errno
import functools
import gzip
import io
import itertools
import math
import os
import re
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from attrs import frozen

from shape_inference import PRIMITIVES, AnyShape, Dims, PrimitiveType, Shape, TokenShape, leaves
from shape_inference.escaping import Harmless
from shape_inference.trees import at, map_leaves, paths

from ..core.attributes import Array
from .temporary import file_beside, folder_beside

# ----------------------------------------------------------------------------
# Safe reader of untrusted npz files
#
# Headers are compared with the stored sizes before an array is loaded.

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
                raise ArchiveError(f"{os.fspath(path)!r} is {kind_of(path)}; expected a file")
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
    return next((words for test, words in _MODES if test(mode)), "a special file")


@contextmanager
def members(path: str | os.PathLike[str]) -> Iterator[Mapping[str, Member]]:
    """The arrays of an npz file by name, not loaded; raises ArchiveError for a file of another format."""
    with regular(path) as raw, _zip(raw, os.fspath(path)) as file:
        yield dict(_members(file, os.fspath(path)))


def _zip(raw: IO[bytes], path: str) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(raw)
    except Exception:  # zipfile raises exceptions of any type on malformed bytes
        raise ArchiveError(f"{path!r} is not an npz file of arrays; numpy.savez writes such files") from None


def _members(file: zipfile.ZipFile, path: str) -> Iterator[tuple[str, Member]]:
    infos = file.infolist()
    if len(infos) > _MOST_MEMBERS:
        raise ArchiveError(f"{path!r} contains {len(infos):,} arrays; the limit is {_MOST_MEMBERS:,}")
    seen: set[str] = set()
    for info in infos:
        name = info.filename.removesuffix(".npy")
        if name in seen:
            raise ArchiveError(f"{path!r} contains {name[:60]!r} twice")
        seen.add(name)
        yield name, _guarded(path, name, functools.partial(_member, file, info, name))


def _guarded(path: str, name: str, reads: Callable[[], Any]) -> Any:
    """Read one array, with every exception as ArchiveError: NumPy and zipfile raise any type on malformed bytes."""
    try:
        return reads()
    except ArchiveError as error:
        raise ArchiveError(f"{path!r}: {name[:60]!r} {error}") from None
    except MemoryError:
        raise ArchiveError(f"{path!r}: {name[:60]!r} does not fit in the available memory") from None
    except Exception:
        raise ArchiveError(
            f"{path!r}: {name[:60]!r} is damaged, or is not an array in the format of numpy.savez"
        ) from None


def _member(file: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> Member:
    with file.open(info) as stream:
        begin = io.BytesIO(stream.read(_LONGEST_HEADER))
    dims, dtype = _header(begin)
    rest = info.file_size - begin.tell()
    if dtype.kind not in _KINDS or dtype.fields or dtype.subdtype or dtype.itemsize > _LARGEST_ITEM:
        raise ArchiveError(f"has elements of {str(dtype)[:60]}; expected numbers")
    claimed = dtype.itemsize * math.prod(dims)
    if claimed != rest:
        raise ArchiveError(f"states {claimed:,} bytes of elements, but contains {rest:,}")

    def load() -> Array:
        with file.open(info) as stream:
            found: Array = np.lib.format.read_array(stream, allow_pickle=False)
        return found

    return Member(name, dtype, dims, lambda: _guarded(str(file.filename), name, load))


def _header(stream: IO[bytes]) -> tuple[Dims, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    if version not in ((1, 0), (2, 0)):
        raise ArchiveError(f"is in version {version} of NumPy's format; expected version 1.0 or 2.0")
    dims, _, dtype = read(stream)
    if len(dims) > 64 or not all(type(size) is int and size >= 0 for size in dims):
        raise ArchiveError("states a rank or extents that no array can have")
    return tuple(dims), dtype


MOST_UNPACKED = 1 << 30
"""The limit of bytes to which a compressed text may grow: a file of a megabyte can hold as many."""


def read_text(path: Path, most: int) -> bytes:
    """The bytes of a text file, of a `.gz` file what it holds; raises ArchiveError for more than `most` bytes."""
    with regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise ArchiveError(f"{str(path)!r} has {size:,} bytes; the limit is {most:,}")
        return _unpacked(file, path, min(most, MOST_UNPACKED)) if path.suffix == ".gz" else file.read()


def _unpacked(file: IO[bytes], path: Path, most: int) -> bytes:
    try:
        found = gzip.GzipFile(fileobj=file).read(most + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ArchiveError(f"{str(path)!r} cannot be read as gzip: {error}") from None
    if len(found) > most:
        raise ArchiveError(f"{str(path)!r} unpacks to more than {most:,} bytes, the limit for a compressed file")
    return found


# ----------------------------------------------------------------------------
# Results into npz files, and random arguments
#
# `d<device>_out<i>`, with bits for types that NumPy lacks.


def check_size(wanted: int, most: int | None, what: str) -> None:
    """Raise ArchiveError if `wanted`, a number of bytes, exceeds the limit `most`."""
    if most is not None and wanted > most:
        raise ArchiveError(f"{what} would take {wanted:,} bytes; the limit is {most:,}")


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
        raise ArchiveError(f"{os.fspath(path)!r} is not an npz file of arrays; numpy.savez writes such files") from None


def random_arguments(seed: int, parameters: Sequence[Sequence[AnyShape]], most: int | None = None) -> list[list[Any]]:
    """Arguments for each device from a seed: normal floats, integers of 0..9 or the range of the type, booleans.

    `most` limits the total number of bytes; raises ArchiveError for more.
    """
    drawn = max((_DRAWN.get(leaf.dtype.kind, 8) * math.prod(leaf.dims) for leaf in _arrays(parameters)), default=0)
    wanted = drawn + sum(math.prod(leaf.dims) * leaf.dtype.dtype.itemsize for leaf in _arrays(parameters))
    check_size(wanted, most, "random arguments")
    generator = np.random.default_rng(seed)
    return [[map_leaves(lambda leaf: _random(generator, leaf), shape) for shape in shapes] for shapes in parameters]


_DRAWN = {"complex": 48, "float": 16}
"""Bytes of an element while it is generated, for the kinds that need more than 8."""


def _arrays(parameters: Sequence[Sequence[AnyShape]]) -> Iterator[Shape]:
    return (leaf for shapes in parameters for shape in shapes for leaf in leaves(shape) if isinstance(leaf, Shape))


def _random(generator: np.random.Generator, shape: Shape | TokenShape) -> Any:
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


def write_results(
    path: str | os.PathLike[str], results: Sequence[Any], shapes: Sequence[AnyShape], word: str = "out"
) -> None:
    """Write the results of each device; after a failure an existing file is unchanged.

    With `word="arg"`, they are the arguments of each device as a tuple, which `read_arguments` reads.

    NumPy's format lacks types such as bf16, f8 and s4. Arrays of such types are stored as bits, with the type in the
    name, such as `d0_out0:bf16`; an integer of less than 8 bits is stored as one byte.
    """
    arrays: dict[str, Any] = {}
    for device, (result, shape) in enumerate(zip(results, shapes, strict=True)):
        for number, (leaf, leaf_shape) in enumerate(leaf_values(result, shape)):
            suffix = "" if leaf_shape.dtype.is_native else f":{leaf_shape.dtype}"
            arrays[f"d{device}_{word}{number}{suffix}"] = to_bits(np.asarray(leaf), leaf_shape.dtype)
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
        raise OSError(error.errno, "no process is reading from this pipe", str(target)) from None
    if hasattr(os, "set_blocking"):
        os.set_blocking(handle, True)
    return handle


_unfinished: set[str] = set()


def remove_unfinished() -> None:
    """Remove the temporary files and folders that are being written, before the process ends at once."""
    for path in [*_unfinished]:
        _remove(path)


def _remove(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            os.unlink(path)


@contextmanager
def _temporary(path: str) -> Iterator[None]:
    """Inside, a temporary file or folder is filled and then renamed; what is left of it afterwards is removed."""
    _unfinished.add(path)
    try:
        yield
    finally:
        _remove(path)
        _unfinished.discard(path)


_STREAMS = re.compile("/dev|/proc/[0-9]+/fd")
"""The folders of /dev/stdout and /dev/fd/1, whose links lead to open files."""


@contextmanager
def replacing(target: Path) -> Iterator[IO[bytes]]:
    """A temporary file to write into, which replaces the target at the end; after a failure the target is unchanged.

    A target that is no regular file, such as /dev/null, is written to directly. Raises OSError for a link to a file: a
    stranger's folder may hold a link of the output's name to a file of the user.
    """
    target = target.parent.resolve() / target.name
    if (target.exists() and not target.is_file()) or _STREAMS.fullmatch(str(target.parent)):
        with os.fdopen(_written_to(target), "wb") as file:
            yield file
        return
    _refuse_link(target)
    handle, temporary = file_beside(target)
    with _temporary(temporary):
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(temporary, target.stat().st_mode if target.exists() else 0o666 & ~umask())
        os.replace(temporary, target)


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A temporary folder to fill, which becomes the target at the end; after a failure there is nothing of it.

    Folders above the target are made where they are missing. Raises OSError where the target is a link, or is there and
    is no empty folder.
    """
    target = target.absolute()
    with _folders_above(target):
        _refuse_link(target)
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise FileExistsError(errno.EEXIST, "a file or folder with this name already exists", str(target))
        made = folder_beside(target)
        with _temporary(made):
            yield Path(made)
            os.chmod(made, 0o777 & ~umask())
            if target.is_dir():
                target.rmdir()
            os.rename(made, target)


@contextmanager
def _folders_above(target: Path) -> Iterator[None]:
    """Make the folders above a target that are missing, and remove them after a failure."""
    missing = [each for each in target.parents if not each.exists()]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for each in missing:
            with suppress(OSError):
                each.rmdir()
        raise


def _refuse_link(target: Path) -> None:
    if target.is_symlink():
        raise OSError(errno.ELOOP, "this is a link, and xbuild does not write through links; name the file itself",
                      str(target))  # fmt: skip


def leaf_values(value: Any, shape: AnyShape) -> Iterator[tuple[Any, Shape]]:
    """The arrays of a result with their shapes, tuples flattened, tokens left out."""
    for path, leaf in paths(shape):
        if isinstance(leaf, Shape):
            yield at(value, path), leaf


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


# ----------------------------------------------------------------------------
# Arguments and infeed items from npz files
#
# `[d<device>_]arg<i>` and `[d<device>_]infeed<i>`.


def read_arguments(
    path: str | os.PathLike[str], parameters: Sequence[Sequence[AnyShape]], most: int | None = None
) -> list[list[Any]]:
    """The arguments of each device, in the structure of its parameters; ArchiveError names a missing or wrong array.

    An array whose extents differ from the parameter's is not loaded: an array of its type and extents that takes no
    memory replaces it, which the run refuses. `most` limits the total number of bytes.
    """
    with members(path) as found:
        stored = Stored(_named(found, parameters, os.fspath(path)), most)
        return [_device(stored, device, shapes) for device, shapes in enumerate(parameters)]


_NAME = re.compile(r"(?:d(?P<device>\d{1,9})_)?(?:(?P<out>out)|arg)(?P<number>\d{1,9})(?::\w+)?", re.ASCII)


def _named(found: Mapping[str, Member], parameters: Sequence[Sequence[AnyShape]], path: str) -> dict[str, Member]:
    """The arrays by name without element type; results, d<device>_out<i>, are permitted beside arguments."""
    counts = [count_leaves(shapes) for shapes in parameters]
    named: dict[str, Member] = {}
    for name, member in found.items():
        match = _NAME.fullmatch(name)
        if match is None:
            raise ArchiveError(
                f"{path!r}: {name[:60]!r} is not the name of an argument; expected d<device>_arg<i> or arg<i>"
            )
        key, number = name.partition(":")[0], int(match["number"])
        device = None if match["device"] is None else int(match["device"])
        if device is not None and device >= len(counts):
            only = f"the program has only {len(counts)} device{'s' * (len(counts) != 1)}"
            hint = "; a program that xbuild partitions takes global arrays, such as arg0" if len(counts) == 1 else ""
            raise ArchiveError(f"{key} is for device {device}, but {only}{hint}")
        count = max(counts, default=0) if device is None else counts[device]
        if not match["out"] and number >= count:
            raise ArchiveError(
                f"unexpected {key}: the program takes {count or 'no'} argument{'s' * (count != 1)}: {_KEYS}"
            )
        if key in named:
            raise ArchiveError(f"{path!r} contains {key} with two element types")
        named[key] = member
    return named


_KEYS = "arg0, arg1 and so on"


class Stored:
    """Arrays of a file, each loaded once, on first access."""

    def __init__(self, found: Mapping[str, Member], most: int | None) -> None:
        self.found, self.most, self.taken = found, most, 0
        self.loaded: dict[str, Array] = {}

    def array(self, name: str, shape: Shape) -> Array:
        member = self.found[name]
        if not _fits(member.dims, shape):
            return unloaded(member)
        if name not in self.loaded:
            self.taken += member.bytes
            check_size(self.taken, self.most, f"the arguments up to {name}")
            self.loaded[name] = member.load()
        return from_bits(self.loaded[name], shape.dtype)


def _fits(dims: Dims, shape: Shape) -> bool:
    bounds = shape.dynamic or (False,) * shape.rank
    return len(dims) == shape.rank and all(
        size <= extent if is_bound else size == extent
        for size, extent, is_bound in zip(dims, shape.dims, bounds, strict=True)
    )


def unloaded(member: Member) -> Array:
    """An array of zeros with the type and extents of a member, which takes no memory."""
    try:
        return np.broadcast_to(np.zeros((), member.dtype), member.dims)
    except ValueError:
        raise ArchiveError(f"{member.name!r} is {member}, which is too large for an array") from None


def _device(stored: Stored, device: int, shapes: Sequence[AnyShape]) -> list[Any]:
    counter = itertools.count()
    return [map_leaves(lambda leaf: _filled(stored, device, leaf, counter), shape) for shape in shapes]


def _filled(stored: Stored, device: int, shape: Shape | TokenShape, counter: Iterator[int]) -> Any:
    if isinstance(shape, TokenShape):
        return None
    number = next(counter)
    for key in (f"d{device}_arg{number}", f"arg{number}"):
        if key in stored.found:
            return stored.array(key, shape)
    have = sorted(stored.found)
    shown = f"{', '.join(have[:_SHOWN])}{f' and {len(have) - _SHOWN:,} more' * (len(have) > _SHOWN)}"
    raise ArchiveError(
        f"argument {number} of device {device}, {shape}, is missing: the file contains neither d{device}_arg{number} "
        f"nor arg{number}{f', only {shown}' if have else ''}"
    )


_SHOWN = 20


_ITEM = re.compile(
    r"(?:d(?P<device>\d{1,9})_)?infeed(?P<item>\d{1,9})(?P<path>(?:_\d{1,9})*)(?::(?P<type>\w+))?", re.ASCII
)
_DEEPEST = 40

LeafPath: TypeAlias = tuple[int, ...]


@frozen
class InfeedItem:
    """An array of an infeed item that is not loaded, and the element type in its name, if any."""

    member: Member
    dtype: PrimitiveType | None

    def load(self) -> Array:
        found = self.member.load()
        return found if self.dtype is None else from_bits(found, self.dtype)


Parts: TypeAlias = Mapping[LeafPath, InfeedItem]


def read_infeed(path: str | os.PathLike[str], devices: int, most: int | None = None) -> list[list[Any]]:
    """The infeed items of each device: `d<device>_infeed<i>`, or `infeed<i>` where a device has none of its own.

    Element k of an item that is a tuple is `infeed<i>_<k>`; nested elements have further numbers. Items are numbered
    from 0. `most` limits the total number of bytes. All names are checked before an array is loaded.
    """
    with members(path) as stored:
        check_size(sum(each.bytes for each in stored.values()), most, "the items of the infeed")
        found = _items(stored, devices)
        common = found.get(None, {})
        items = [_counted(common | found.get(device, {}), device) for device in range(devices)]
        load = functools.cache(InfeedItem.load)
        return [[map_leaves(load, item) for item in each] for each in items]


def _items(stored: Mapping[str, Member], devices: int) -> dict[int | None, dict[int, dict[LeafPath, InfeedItem]]]:
    """The parts of each infeed item, by device, item number and tuple index."""
    found: dict[int | None, dict[int, dict[LeafPath, InfeedItem]]] = {}
    for key, member in stored.items():
        device, item, place, dtype = _item_of(key)
        if device is not None and device >= devices:
            raise ArchiveError(
                f"{key} is for device {device}, but the program has only {devices} device{'s' * (devices != 1)}"
            )
        parts = found.setdefault(device, {}).setdefault(item, {})
        if place in parts:
            raise ArchiveError(f"the file contains {key.partition(':')[0]} with two element types")
        parts[place] = InfeedItem(member, dtype)
    return found


def _item_of(key: str) -> tuple[int | None, int, LeafPath, PrimitiveType | None]:
    """The device of a name (None for all devices), the item number, the tuple index and the element type."""
    match = _ITEM.fullmatch(key)
    if match is None or (match["type"] and match["type"] not in PRIMITIVES):
        raise ArchiveError(f"{key[:60]!r} is not the name of an infeed item; expected d<device>_infeed<i> or infeed<i>")
    place = tuple(map(int, match["path"].split("_")[1:]))
    if len(place) > _DEEPEST:
        raise ArchiveError(f"{key[:60]!r} is nested in {len(place)} tuples; at most {_DEEPEST} are allowed")
    device = None if match["device"] is None else int(match["device"])
    return device, int(match["item"]), place, PRIMITIVES[match["type"]] if match["type"] else None


def _counted(items: Mapping[int, Parts], device: int) -> list[Any]:
    for number in range(len(items)):
        if number not in items:
            raise ArchiveError(
                f"infeed item {number} of device {device} is missing, but the file has item {max(items)}"
            )
    return [_joined(items[number], f"infeed{number}") for number in range(len(items))]


def _joined(parts: Parts, name: str) -> Any:
    """An infeed item: an array, or the tuple of its elements 0, 1, ..."""
    if () in parts:
        if len(parts) > 1:
            raise ArchiveError(f"{name} is both an array and a tuple")
        return parts[()]
    inside: dict[int, dict[LeafPath, InfeedItem]] = {}
    for place, part in parts.items():
        inside.setdefault(place[0], {})[place[1:]] = part
    for number in range(len(inside)):
        if number not in inside:
            raise ArchiveError(f"element {number} of {name} is missing, but the file has element {max(inside)}")
    return tuple(_joined(inside[number], f"{name}_{number}") for number in range(len(inside)))
