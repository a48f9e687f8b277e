"""Resources that running processes take, with those that they have started."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path


def family(process: int) -> list[int]:
    """A process and those that it has started, and so on."""
    found = [process]
    for each in found:
        with suppress(OSError):  # the process has ended
            for thread in os.listdir(f"/proc/{each}/task"):
                found += map(int, _text(Path(f"/proc/{each}/task/{thread}/children")).split())
    return found


def peak(process: int) -> float:
    """The most memory that a process and those that it has started have had, in MB, each at a time of its own.

    `ru_maxrss` counts what a process has shared with its parent, too.
    """
    found = (re.search(r"VmHWM:\s+(\d+) kB", _text(Path(f"/proc/{each}/status"))) for each in family(process))
    return sum(int(match[1]) / 1024 for match in found if match)


def seconds_of(process: int) -> float:
    """The seconds of the processor that a process has taken, with those that it has started and waited for."""
    told = _text(Path(f"/proc/{process}/stat")).rpartition(")")[2].split()
    return sum(map(int, told[11:15])) / os.sysconf("SC_CLK_TCK") if told else 0.0


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii", errors="replace")
    except OSError:  # the process has ended
        return ""
