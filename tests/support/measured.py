"""Tables of what real XLA does that are measured on one jaxlib, and hold for no newer one."""

from __future__ import annotations

from importlib.metadata import version

import pytest

MEASURED = (0, 10)
"""The jaxlib of docs/cost.md and of `tests.oracle.deviations`."""


def is_newer_jaxlib() -> bool:
    """Whether the installed jaxlib is newer than the tables."""
    return tuple(map(int, version("jaxlib").split(".")[:2])) > MEASURED


def require_measured_jaxlib() -> None:
    """Skip the test where there is no jaxlib, or one that is newer than the tables."""
    pytest.importorskip("jaxlib")
    if is_newer_jaxlib():
        pytest.skip(f"the table is that of jaxlib {'.'.join(map(str, MEASURED))}, and {version('jaxlib')} is installed")
