"""The examples that come with the package: where they are, what each is about, which extras it wants, how it is run."""

from __future__ import annotations

import ast
import importlib.util
import re
import runpy
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import frozen

from .arrays import new_folder

_WANTED = re.compile(r'wanted\("(\w+)"\)')
_HELPERS = frozenset({"extras"})
_OF_THE_PROJECT = frozenset({"gallery"})  # draws the project's documentation
_OF_COMMANDS = frozenset({"lessons", "puzzles"})  # `xbuild learn` and `xbuild puzzle` list and copy these
_IGNORED = ("__pycache__", *_OF_THE_PROJECT, *_OF_COMMANDS)


@frozen
class ShippedExample:
    """A program to read and run: its name after `examples.`, a sentence about it, the extras that it wants."""

    name: str
    sentence: str
    extras: tuple[str, ...]


def folder() -> Path:
    """The folder of the examples: inside the installed package, or beside the package in a copy of the project."""
    package = Path(__file__).resolve().parents[1]
    return next(each for each in (package / "examples", package.parent / "examples") if (each / "ring.py").exists())


def examples() -> list[ShippedExample]:
    """All examples, by name."""
    return sorted(map(_example, _runnable(folder())), key=lambda each: each.name)


def _runnable(root: Path) -> Iterator[Path]:
    """The scripts, and the main modules of folders that have one; of another folder the scripts in it."""
    for path in sorted(root.iterdir()):
        if path.is_dir() and path.name not in _IGNORED:
            main = path / "__main__.py"
            yield from [main] if main.exists() else _runnable(path)
        elif path.suffix == ".py" and path.stem not in _HELPERS and path.stem != "__init__":
            yield path


def _example(path: Path) -> ShippedExample:
    parts = path.relative_to(folder()).with_suffix("").parts
    name = ".".join(part for part in parts if part != "__main__")
    return ShippedExample(name, _sentence(path), tuple(sorted({*_extras(path, set())})))


def _sentence(path: Path) -> str:
    """The head sentence of a module."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def _extras(path: Path, seen: set[Path]) -> Iterator[str]:
    """The extras that a module or an example that it imports wants."""
    if path in seen or not path.exists():
        return
    seen.add(path)
    text = path.read_text(encoding="utf-8")
    yield from _WANTED.findall(text)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "examples":
            for module in (node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)):
                yield from _extras(folder().parent.joinpath(*module.split(".")).with_suffix(".py"), seen)


def copy(into: Path) -> Path:
    """Copy the examples to a new folder `examples` inside this one, all of them or none; gives the new folder.

    Raises FileExistsError where there is such a folder, OSError where it cannot be written.
    """
    target = into / "examples"
    files = [each for each in sorted(folder().rglob("*")) if each.is_file()]
    copy_files({each.relative_to(folder()): each for each in files if not {*each.parts} & {*_IGNORED}}, target)
    return target


def copy_files(files: Mapping[Path, Path], target: Path) -> None:
    """Copy files, by their paths in it, to a new folder: all of them or none."""
    with new_folder(target) as made:
        for name, source in files.items():
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, made / name)


def run(name: str, arguments: list[str]) -> None:
    """Run an example as `python -m examples.NAME` does, from where it is installed."""
    given = sys.argv
    _make_importable()
    try:
        sys.argv = [f"examples.{name}", *arguments]
        runpy.run_module(f"examples.{name}", run_name="__main__", alter_sys=True)
    finally:
        sys.argv = given


def _make_importable() -> None:
    """Enter the examples as the package `examples`, as which they import each other."""
    root = folder()
    found = importlib.util.spec_from_file_location(
        "examples", root / "__init__.py", submodule_search_locations=[str(root)]
    )
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules["examples"] = module
    found.loader.exec_module(module)
