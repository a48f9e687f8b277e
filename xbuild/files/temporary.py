"""Temporary files, named by the process that created them; files of killed processes are removed later."""

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
    """A temporary folder, which is removed at the end of the block."""
    place = Path(tempfile.gettempdir())
    sweep(place)
    with tempfile.TemporaryDirectory(prefix=_prefix(), dir=place) as made:
        yield Path(made)


def file_beside(target: Path) -> tuple[int, str]:
    """The handle and the name of a temporary file in the folder of a target, which the file is to replace."""
    sweep(target.parent)
    return tempfile.mkstemp(prefix=_prefix(), dir=target.parent)


def folder_beside(target: Path) -> str:
    """The name of a temporary folder beside a target, which it is to become."""
    sweep(target.parent)
    return tempfile.mkdtemp(prefix=_prefix(), dir=target.parent)


def sweep(place: Path) -> None:
    """Remove temporary files in a folder that ended processes of this user on this machine left there."""
    if os.name != "posix":  # on Windows, os.kill with signal 0 ends the process
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
    """A hash of the machine and the PID namespace, in which process ids are valid."""
    space = ""
    with suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")
    return f"{zlib.crc32(f'{platform.node()} {space}'.encode()):08x}"


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # a process of another user
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
