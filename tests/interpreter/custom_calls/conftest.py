"""Functions that a test registers are gone after it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from xbuild.core.callbacks import CALLBACKS


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """What a test registers is gone after it."""
    known = dict(CALLBACKS)
    yield
    CALLBACKS.clear()
    CALLBACKS.update(known)
