"""The program that tests of editing change."""

from __future__ import annotations

import pytest

import xbuild as xb
from tests.editing.edited_program import TEXT


@pytest.fixture
def module() -> xb.Module:
    return xb.parse_hlo(TEXT)
