"""How much memory this process may take: that of the machine, or the limit of its control group (container)."""

from __future__ import annotations

import functools
import os
from pathlib import Path

_OF_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_UNKNOWN = 16 << 30


@functools.cache
def memory() -> int:
    """Bytes: those of the machine, or fewer where a control group (a container) has a limit."""
    return min([_of_machine(), *filter(None, map(_of_group, _OF_GROUPS))])


def _of_machine() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return _UNKNOWN


def _of_group(file: str) -> int | None:
    """The limit that a file of the kernel states; None where there is none."""
    try:
        return int(Path(file).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def held_bytes() -> int | None:
    """The bytes of data that this process has by now; None where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
