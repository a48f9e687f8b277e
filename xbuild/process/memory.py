"""The memory that is available to this process: that of the machine, or the limit of its control group."""

from __future__ import annotations

import functools
import os
from pathlib import Path

_OF_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_UNKNOWN = 16 << 30


@functools.cache
def memory() -> int:
    """The bytes of memory of the machine, or the limit of the control group (container) if it is lower."""
    return min([_of_machine(), *filter(None, map(_of_group, _OF_GROUPS))])


def _of_machine() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return _UNKNOWN


def _of_group(file: str) -> int | None:
    """The memory limit in a file of the kernel; None without a limit."""
    try:
        return int(Path(file).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def held_bytes() -> int | None:
    """The current bytes of data of this process; None where the system does not report them."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
