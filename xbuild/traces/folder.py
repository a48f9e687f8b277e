"""The folder of a trace: recognises the trace's own files, and lets one run at a time write them."""

from __future__ import annotations

import os
import re
import stat
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from attrs import define

from shape_inference.escaping import Harmless

from ..process.locking import is_running, locked, this_process

FORMAT = "xbuild trace 2"
JOURNAL = "xbuild-trace.txt"
"""The journal of a trace: its format, its run, and for each file a line before writing, then one with its size."""

_OWN = re.compile(r"index\.json|program-\d{1,9}\.hlo|chunk-\d{5,9}\.npz|time\.npz|results\.npz")
_PART = ".part"
_LARGEST = 1 << 26
_CLOSED = "closed"


class TraceError(Harmless):
    """Raised if a folder has no readable trace, or has files that are not of a trace."""


@define(eq=False)
class Folder:
    """A folder to which this process alone writes a trace, until the folder is closed."""

    path: Path
    run: str
    _handle: int
    _has_lock: bool = False
    _is_begun: bool = False

    @staticmethod
    def claim(path: Path) -> Folder:
        """Claim a folder that is empty or holds only a trace, and empty it; otherwise TraceError without a change."""
        path.mkdir(parents=True, exist_ok=True)
        names = os.listdir(path)
        if names and JOURNAL not in names:
            raise _is_foreign(path, min(names), "")
        handle, is_new = _opened(path, path / JOURNAL)
        found = Folder(path, uuid.uuid4().hex, handle)
        found._has_lock = _has_lock(path, handle)
        try:
            found._empty()
        except TraceError:
            if is_new:
                (path / JOURNAL).unlink(missing_ok=True)
            raise
        found._is_begun = True
        return found

    def _empty(self) -> None:
        """Remove the files of the trace in the folder; TraceError where there are other files."""
        own = _own_files(self.path, _text(self._handle))
        for name in own:
            os.unlink(self.path / name)
        os.ftruncate(self._handle, 0)
        os.lseek(self._handle, 0, os.SEEK_SET)
        self._note(f"{FORMAT} {self.run} {this_process()}")

    def _note(self, line: str) -> None:
        os.write(self._handle, f"{line}\n".encode())

    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        """A file of the trace, open for writing; an interrupted write leaves the file as it was before."""
        if not self._has_lock and self.run not in _header(_text(self._handle)):
            raise TraceError(f"another run now uses {os.fspath(self.path)!r}")
        part = self.path / f"{name}{_PART}"
        self._note(name)
        try:
            with open(part, "xb") as file:
                yield file
            size = part.stat().st_size
            os.replace(part, self.path / name)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        self._note(f"{name} {size}")

    def close(self) -> None:
        """Release the folder."""
        handle, self._handle = self._handle, -1
        if handle < 0:
            return
        try:
            if self._is_begun:
                os.write(handle, f"{_CLOSED}\n".encode())
        except OSError:  # the disk may be full; closing the file releases the lock all the same
            pass
        finally:
            os.close(handle)

    __del__ = close


def _opened(folder: Path, journal: Path) -> tuple[int, bool]:
    """The journal, open for reading and writing, and whether it is new; TraceError for a link, a pipe or a folder."""
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        return os.open(journal, flags | os.O_CREAT | os.O_EXCL, 0o666), True
    except FileExistsError:
        pass
    try:
        handle = os.open(journal, flags)
    except OSError as error:
        raise _is_foreign(folder, JOURNAL, f", which cannot be opened: {error.strerror}") from None
    told = os.fstat(handle)
    if not stat.S_ISREG(told.st_mode) or told.st_nlink > 1:
        os.close(handle)
        raise _is_foreign(folder, JOURNAL, ", which is not a regular file")
    return handle, False


def _has_lock(path: Path, handle: int) -> bool:
    """Whether this process holds the lock; TraceError where another process does."""
    state = locked(handle)
    text = _text(handle)
    lines = text.split("\n")
    is_open = bool(_header(text)) and _CLOSED not in lines
    if state == "taken" or (state == "unknown" and is_open and is_running(_header(text).split()[-1])):
        raise TraceError(
            f"another run is writing to {os.fspath(path)!r}: wait until that run ends, or choose a different folder"
        )
    return state == "ours"


def _text(handle: int) -> str:
    size = os.fstat(handle).st_size
    os.lseek(handle, 0, os.SEEK_SET)
    return os.read(handle, min(size, _LARGEST)).decode(errors="replace")


def _header(text: str) -> str:
    """The first line of a journal where it is complete and valid, else empty."""
    first, newline, _ = text.partition("\n")
    return first if newline and re.fullmatch(rf"{FORMAT} [0-9a-f]{{32}} \S+", first) else ""


def _own_files(path: Path, text: str) -> list[str]:
    """The files of the trace in a folder, the index first; TraceError if the folder holds other files."""
    names = sorted(each for each in os.listdir(path) if each != JOURNAL)
    if text and not _header(text):
        raise _is_foreign(path, JOURNAL, ", which is not part of a trace")
    sizes = _sizes(text)
    for name in names:
        if name.removesuffix(_PART) not in sizes:
            raise _is_foreign(path, name, "")
        told, size = (path / name).lstat(), sizes.get(name)
        if not stat.S_ISREG(told.st_mode) or (size is not None and size != told.st_size):
            raise _is_foreign(path, name, ", which has changed since the trace was written")
    return sorted(names, key=lambda name: name != "index.json")


def _sizes(text: str) -> dict[str, int | None]:
    """The files that a journal names, each with its size, or None where its writing was not completed."""
    found: dict[str, int | None] = {}
    for line in text.split("\n")[1:-1]:
        name, _, size = line.partition(" ")
        if _OWN.fullmatch(name) and (not size or size.isdecimal()):
            found[name] = int(size) if size else None
    return found


def _is_foreign(path: Path, name: str, why: str) -> TraceError:
    return TraceError(
        f"{os.fspath(path)!r} contains {name!r}{why}: a trace needs its own folder and replaces only another trace; "
        "nothing was removed"
    )


def apart_from(path: Path, files: Sequence[Any]) -> None:
    """Raise TraceError where a file of a run is inside the folder of its trace; the message names the file."""
    if not path.is_dir():
        return
    inside = {(told.st_dev, told.st_ino): name for name in os.listdir(path) if (told := _told(path / name))}
    for file in files:
        told, place = _told(Path(file)), Path(file).resolve()
        same = told is not None and (told.st_dev, told.st_ino) in inside
        if same or path.resolve() in (place, *place.parents):
            raise TraceError(
                f"{os.fspath(file)!r} is in {os.fspath(path)!r}, but a trace needs its own folder; nothing was removed"
            )


def _told(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except (OSError, ValueError):
        return None
