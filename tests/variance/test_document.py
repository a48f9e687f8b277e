"""The document on meshes says what comes."""

from __future__ import annotations

import doctest
from pathlib import Path


def test_the_examples_of_the_document() -> None:
    file = Path(__file__).parents[2] / "docs" / "meshes.md"
    found = doctest.testfile(str(file), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted > 5
    assert found.failed == 0
