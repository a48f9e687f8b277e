"""The folder of compiled parts: private files of this user, each read only if its owner, mode and digest are right.

A file holds machine code, which runs in this process. So a file or folder that another user could have written is not
read, and the folder is bounded in size. A damaged file is removed, and its part is compiled again.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from attrs import define

from xbuild.files.temporary import file_beside

MOST_BYTES = 256 << 20
"""The bytes of all files together; the files that were not used for the longest time are removed first."""

MOST_OF_FILE = 64 << 20
"""The bytes of the largest file."""

_MAGIC = b"xbuild compiled part 1\n"
_DIGEST = hashlib.sha256().digest_size
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def cache_folder() -> Path:
    """The folder of compiled parts: `xbuild/compiled` in XDG_CACHE_HOME if it is set, else in the user's caches."""
    stated = os.environ.get("XDG_CACHE_HOME", "")
    home = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    return (Path(stated) if stated and Path(stated).is_absolute() else home) / "xbuild" / "compiled"


@define
class CompiledFolder:
    """The compiled parts by key. `trouble` says why the folder is not used, once this is known."""

    place: Path
    trouble: str = ""

    def read(self, key: str) -> bytes | None:
        """The compiled part of a key; None if no file has it, or the file cannot be trusted."""
        if not self._is_private():
            return None
        path = self._path(key)
        try:
            handle = os.open(path, _READ)
        except OSError:
            return None
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & _OTHERS:
                self.trouble = f"{path} is not a private file of this user, so it is not read"
                return None
            content = file.read(MOST_OF_FILE + 1) if found.st_size <= MOST_OF_FILE else b""
        body = content[len(_MAGIC) + _DIGEST :]
        if content[: len(_MAGIC) + _DIGEST] != _MAGIC + _digest(key, body):
            self.remove(key)
            return None
        with suppress(OSError):
            os.utime(path)
        return body

    def write(self, key: str, body: bytes) -> None:
        """Save a compiled part, completely or not at all, and remove old ones if all take too much space."""
        if len(body) + len(_MAGIC) + _DIGEST > MOST_OF_FILE or not self._is_private(make=True):
            return
        try:
            handle, name = file_beside(self._path(key))  # with mode 0600
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_MAGIC + _digest(key, body) + body)
                os.replace(name, self._path(key))
            except BaseException:
                with suppress(OSError):
                    os.unlink(name)
                raise
            self._make_room()
        except OSError as error:
            self.trouble = f"{self.place}: {error.strerror or error}; compiled parts are not saved"

    def remove(self, key: str) -> None:
        """Remove a compiled part that cannot be used."""
        with suppress(OSError):
            os.unlink(self._path(key))

    def _path(self, key: str) -> Path:
        return self.place / f"{key}.part"

    def _is_private(self, *, make: bool = False) -> bool:
        """Whether the folder exists, and is this user's alone; `make` makes it."""
        if not hasattr(os, "geteuid"):
            self.trouble = "compiled parts are saved only on systems with owners and modes of files"
            return False
        try:
            if make:
                self.place.parent.mkdir(parents=True, exist_ok=True)
                with suppress(FileExistsError):
                    os.mkdir(self.place, 0o700)
            found = os.lstat(self.place)
        except FileNotFoundError:
            return False
        except OSError as error:
            self.trouble = f"{self.place}: {error.strerror or error}; compiled parts are not saved"
            return False
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & _OTHERS:
            self.trouble = f"{self.place} is not a private folder of this user (mode 0700), so it is not used"
            return False
        return True

    def _make_room(self) -> None:
        """Remove the files that were not used for the longest time, until the rest is small enough."""
        files = sorted(self._files(), key=lambda each: each[1].st_mtime, reverse=True)
        total = 0
        for name, found in files:
            total += found.st_size
            if total > MOST_BYTES:
                with suppress(OSError):
                    os.unlink(name)

    def _files(self) -> Iterator[tuple[str, os.stat_result]]:
        with os.scandir(self.place) as entries:
            for entry in entries:
                if entry.name.endswith(".part"):
                    with suppress(OSError):
                        yield entry.path, entry.stat(follow_symlinks=False)


def _digest(key: str, body: bytes) -> bytes:
    """The digest of a file: a file under the name of another part is damaged, too."""
    return hashlib.sha256(key.encode() + body).digest()
