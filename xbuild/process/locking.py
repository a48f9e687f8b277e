"""File locks that end with the process that holds them, and identification of processes for systems without locks."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path
from typing import Literal

NO_LOCKS = frozenset(
    getattr(errno, name, -1) for name in ("ENOLCK", "ENOSYS", "ENOTSUP", "EOPNOTSUPP", "EINVAL", "EPROTONOSUPPORT")
)
"""The error numbers of file systems without locks."""


def locked(handle: int) -> Literal["ours", "taken", "unknown"]:
    """Take the lock of a file without waiting; the result is `unknown` where locks are not supported."""
    try:
        _lock(handle)
    except (ImportError, AttributeError):
        return "unknown"
    except OSError as error:
        return "unknown" if error.errno in NO_LOCKS else "taken"
    return "ours"


def _lock(handle: int) -> None:
    if os.name == "nt":
        import msvcrt

        os.lseek(handle, 1 << 30, os.SEEK_SET)  # beyond the end of the file, since a locked range cannot be read
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        finally:
            os.lseek(handle, 0, os.SEEK_SET)
        return
    import fcntl

    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def this_process() -> str:
    """The host, id and start time of this process as one word."""
    return f"{socket.gethostname() or '-'}/{os.getpid()}/{_start(os.getpid())}".replace(" ", "_")


def is_running(process: str) -> bool:
    """Whether a process, as `this_process` named it, still runs; True for a process of another host."""
    host, number, start = ["", "", "", *process.rsplit("/", 2)][-3:]
    if not number.isdecimal():
        return False
    if host != this_process().rsplit("/", 2)[0]:
        return True
    return _is_there(int(number)) and _start(int(number)) == start


def _is_there(number: int) -> bool:
    if os.name == "nt":  # os.kill would end the process
        return True
    try:
        os.kill(number, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def _start(number: int) -> str:
    """The start time of a process in ticks since boot; `-` where it is unknown."""
    try:
        told = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "-"
    return told.rpartition(")")[2].split()[19]
