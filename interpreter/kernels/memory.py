"""Memory of arrays: how much of what a run frees stays with the process for the next array."""

from __future__ import annotations

from functools import cache

import numpy as np

_LARGEST = (32 << 20) - (1 << 16)
"""The largest block by which glibc adapts its thresholds, less room for its header."""


@cache
def keep_freed_memory() -> None:
    """Let glibc keep up to 64 MB of freed memory instead of returning it to the system after each array.

    glibc returns freed memory at a threshold that starts at 128 KB and rises to twice the size of the largest block
    that the process has freed, up to 64 MB. Below the threshold, each new array costs a page fault for every 4 KB, more
    than an elementwise op on it. One block that is never touched raises the threshold; on other platforms it does
    nothing.

    Source: mallopt(3), M_MMAP_THRESHOLD.
    """
    np.empty(_LARGEST, np.uint8)
