"""Temporary files, named after the process that made them; those of processes that were killed are removed later."""

from __future__ import annotations

import os
import platform
import re
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

_NAME = re.compile(r"\.xbuild-([0-9a-f]{8})-(\d{1,10})-\w+")


@contextmanager
def folder() -> Iterator[Path]:
    """A folder for as long as it is used, among the system's temporary ones."""
    place = Path(tempfile.gettempdir())
    sweep(place)
    with tempfile.TemporaryDirectory(prefix=_prefix(), dir=place) as made:
        yield Path(made)


def file_beside(target: Path) -> tuple[int, str]:
    """An open file, and its name, in the folder of a target, whose place it is to take."""
    sweep(target.parent)
    return tempfile.mkstemp(prefix=_prefix(), dir=target.parent)


def sweep(place: Path) -> None:
    """Remove what processes of this user on this machine made in a folder and did not live to remove."""
    if os.name != "posix":  # elsewhere to ask for a process may end it
        return
    with suppress(OSError), os.scandir(place) as entries:
        for each in entries:
            match = _NAME.fullmatch(each.name)
            if match and match[1] == _machine() and not _lives(int(match[2])):
                _remove(each)


def _prefix() -> str:
    return f".xbuild-{_machine()}-{os.getpid()}-"


@cache
def _machine() -> str:
    """The machine, or the container, within which the ids of processes are valid."""
    space = ""
    with suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")
    return f"{zlib.crc32(f'{platform.node()} {space}'.encode()):08x}"


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True


def _remove(entry: os.DirEntry[str]) -> None:
    """Remove a file or folder of this user that is no link; another process may remove it at the same time."""
    with suppress(OSError):
        if entry.is_symlink() or entry.stat(follow_symlinks=False).st_uid != os.getuid():
            return
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            os.unlink(entry.path)
