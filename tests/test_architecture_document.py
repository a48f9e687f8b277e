"""Documents of the design name files that exist, and functions, classes and tables that these files define."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# A document, and the folder that its paths may start from, besides the root of the repository.
DOCUMENTS = {"docs/architecture.md": ROOT, "docs/checker.md": ROOT / "xbuild" / "checking"}
_FILE = re.compile(r"`([\w./-]+\.(?:py|pyi|md|toml))`")
_FOLDER = re.compile(r"`([\w.-]+(?:/[\w.-]+)*/)`")
# "`path.py` (`name`, `other`)", and "`name` of `path.py`" or "`name` in `path.py`".
_NAMES = r"`@?[\w.]+`(?:,\s+`@?[\w.]+`)*"
_BEFORE = re.compile(rf"`([\w./-]+\.py)`\s+\(({_NAMES})")
_AFTER = re.compile(rf"({_NAMES})\s+(?:of|in)\s+`([\w./-]+\.py)`")
_NAME = re.compile(r"`@?([\w.]+)`")


def find(document: str, path: str) -> Path:
    """The file or folder that a document names."""
    beside = DOCUMENTS[document] / path
    return beside if beside.exists() else ROOT / path


@functools.cache
def defined_names(path: Path) -> frozenset[str]:
    """Functions, methods, classes, variables and parameters that a file defines, at any depth."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
    return frozenset(names)


def missing_files(document: str, text: str) -> list[str]:
    paths = [match[1] for pattern in (_FILE, _FOLDER) for match in pattern.finditer(text)]
    return [path for path in paths if not find(document, path).exists()]


def names_with_files(text: str) -> Iterator[tuple[str, str]]:
    """Each path with a name that the document says is defined there."""
    groups = [(match[1], match[2]) for match in _BEFORE.finditer(text)]
    groups += [(match[2], match[1]) for match in _AFTER.finditer(text)]
    for path, names in groups:
        yield from ((path, name) for name in _NAME.findall(names) if not name.endswith(".py"))


def missing_names(document: str, text: str) -> list[tuple[str, str]]:
    named = [(path, name, find(document, path)) for path, name in names_with_files(text)]
    return [
        (path, name) for path, name, file in named if file.exists() and not {*name.split(".")} <= defined_names(file)
    ]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_path_exists(document: str) -> None:
    assert missing_files(document, (ROOT / document).read_text()) == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_name_is_defined_in_its_file(document: str) -> None:
    text = (ROOT / document).read_text()
    assert len(list(names_with_files(text))) > 10, "the patterns find the names"
    assert missing_names(document, text) == []


def test_a_wrong_path_and_a_wrong_name_are_reported() -> None:
    text = (
        "See `xbuild/core/op.py` (`opcodes`, `no_such_name`, `Schema.read`) and `xbuild/core/none.py`, `xbuild/none/`."
    )
    assert missing_files("docs/architecture.md", text) == ["xbuild/core/none.py", "xbuild/none/"]
    assert missing_names("docs/architecture.md", text) == [("xbuild/core/op.py", "no_such_name")]
    assert missing_names("docs/architecture.md", "`nothing` of `xbuild/core/op.py`") == [
        ("xbuild/core/op.py", "nothing")
    ]
    assert missing_files("docs/checker.md", "`deadlock/levels.py` and `deadlock/none.py`") == ["deadlock/none.py"]
