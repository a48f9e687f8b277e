"""Programs that a command line names: `FILE.py:NAME`, a file of text, or a folder with a file for each device.

Of a file of several modules `FILE.hlo#2` or `FILE.hlo#NAME` names one.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from shape_inference import XbuildError
from shape_inference.escaping import Harmless

from ..core.graph import Computation, Module, ModuleGroup, module_in
from ..core.identifiers import short_path
from ..text.reading.parts import modules_in
from .npz import ArchiveError, kind_of, read_text

MOST_TEXT = 4 << 30
"""The limit of bytes of text that is read; a sparse file may have any size."""

_PLAIN = (".hlo", ".mlir", ".txt", ".mlirbc")
TEXTS = (*_PLAIN, *(f"{suffix}.gz" for suffix in _PLAIN))
"""The suffixes of files of text, and of MLIR bytecode, plain and compressed by gzip."""

Program: TypeAlias = Computation | Module | ModuleGroup
MOST_NAMED = 12
_OF_SEVERAL = re.compile(r"(.+\.(?:hlo|mlir|txt|mlirbc)(?:\.gz)?)#([^#/\\]+)", re.DOTALL)
_OF_DEVICE = re.compile(r"device(\d+)\.(?:hlo|mlir|txt|mlirbc)(?:\.gz)?")
_KINDS = (Computation, Module, ModuleGroup)
_ROOT = Path(__file__).resolve().parents[2]
_OURS = tuple(f"{_ROOT / package}{os.sep}" for package in ("xbuild", "shape_inference", "interpreter"))


class TargetError(Harmless):
    """The error for a target that names no program; the message lists programs that exist."""


class UserError(Harmless):
    """The error for an exception of the user's file; the message is the traceback with the user's lines only."""


def load(
    target: str,
    replicas: int | None = None,
    partitions: int | None = None,
    shapes: Mapping[str, int] | None = None,
) -> Program:
    """The program that a target names, of a text with these counts, and these sizes of dimensions that it leaves open.

    TargetError where the target names none, UserError where its file raises.
    """
    path, one = split_target(target)
    if path.endswith(TEXTS) and not Path(path).is_dir():
        return _read_program(Path(path), replicas, partitions, shapes, one)
    if replicas is not None or partitions is not None or shapes:
        raise TargetError(f"--replicas, --partitions and --shape are for text, and the target is {target!r}")
    if target and Path(target).is_dir():
        return _read_folder(Path(target))
    path, colon, name = target.rpartition(":") if not target.endswith(".py") else (target, "", "")
    if not path.endswith(".py"):
        raise TargetError(f"{target!r} is no target: FILE.hlo, FILE.mlir, FILE.txt, FILE.py:NAME or a folder is wanted")
    module = _run(_existing(Path(path)))
    if not colon:
        names = _candidates(module)
        raise TargetError(f"{target!r} is a file of programs: {target}:NAME is wanted{_it_has(names)}")
    return _program(module, path, name)


def file_of(target: str) -> str:
    """The file or folder that a target names."""
    path, colon, _ = target.rpartition(":")
    return path if colon and path.endswith(".py") else split_target(target)[0]


def split_target(target: str) -> tuple[str, str]:
    """The file of a target and, after `#`, the number or name of one of its modules, else nothing."""
    found = _OF_SEVERAL.fullmatch(target)
    return (target, "") if found is None or Path(target).exists() else (found[1], found[2])


def each_of(target: str) -> list[str]:
    """A target for each module of a file of several; the target alone where it names one program."""
    path, one = split_target(target)
    if one or not path.endswith(TEXTS) or not Path(path).is_file():
        return [target]
    count = len(modules_in(_text_of(Path(path))))
    return [f"{path}#{number}" for number in range(1, count + 1)] if count > 1 else [target]


def _existing(path: Path) -> Path:
    if not path.is_file():
        if path.exists():
            raise TargetError(f"{str(path)!r} is {kind_of(path)}, and a file is wanted")
        siblings = [each.name for each in path.parent.glob(f"*{path.suffix}")] if path.parent.is_dir() else []
        raise TargetError(f"there is no file {str(path)!r}{_did_you_mean(path.name, siblings)}")
    return path


def _text_of(path: Path) -> str:
    from ..stablehlo.reading.bytecode import as_text

    try:
        return as_text(read_text(_existing(path), MOST_TEXT), short_path(str(path)))
    except ArchiveError as error:
        raise TargetError(str(error)) from None


def _read_program(
    path: Path,
    replicas: int | None = None,
    partitions: int | None = None,
    shapes: Mapping[str, int] | None = None,
    one: str = "",
) -> Module:
    """A module of a file; lines of the user's program are those that its metadata and tables of frames name."""
    from ..stablehlo.reading.either import parse

    text, file = _part_of(_text_of(path), path, one), short_path(str(path))
    try:
        return parse(text, file, origins=True, replicas=replicas, partitions=partitions, shapes=shapes)
    except ValueError as error:
        if isinstance(error, XbuildError):
            raise
        raise TargetError(str(error)) from None


def _part_of(text: str, path: Path, one: str) -> str:
    """The text of one module of a file, with the lines before it blank; TargetError where the target names none."""
    found = modules_in(text)
    if len(found) < 2 and not one:
        return text
    numbered = [f"{number} {name}" for number, (name, _) in enumerate(found, 1)]
    has = f"{path} has {len(found)} module{'s' * (len(found) != 1)}: {shortened(numbered)}"
    if not one:
        raise TargetError(f"{has}; this command takes one, as in {path}#1")
    chosen = [part for n, (name, part) in enumerate(found, 1) if one == str(n)]
    chosen = chosen or [part for name, part in found if name == one]
    if len(chosen) != 1:
        raise TargetError(f"{'no module' if not chosen else 'more than one module'} is {one!r}: {has}")
    return chosen[0]


def shortened(names: list[str]) -> str:
    return ", ".join([*names[:MOST_NAMED], f"... {len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else names)


def _read_folder(path: Path) -> ModuleGroup:
    """The module group of a folder with the files device0.hlo, device1.hlo, ..., one for each device."""
    found = sorted((int(named[1]), each) for each in path.iterdir() if (named := _OF_DEVICE.fullmatch(each.name)))
    if not found or [device for device, _ in found] != [*range(len(found))]:
        have = ", ".join(each.name for _, each in found) or "none of these"
        raise TargetError(f"the folder {str(path)!r} has {have}; device0.hlo, device1.hlo and so on are wanted")
    return ModuleGroup({device: _read_program(each) for device, each in found})


def _run(path: Path) -> ModuleType:
    """Import a file with its folder on the path, as `python FILE` does; if it imports from its package, in that."""
    folder, names = _package(path.resolve())
    if len(names) > 1 and _imports_from(names[0], path):
        return _run_in_package(path, folder, names)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    loader = spec.loader
    assert loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules.setdefault(path.stem, module)
    _guarded(lambda: loader.exec_module(module), str(path))
    return module


def _package(path: Path) -> tuple[Path, list[str]]:
    """The folder of the outermost package of a file, and the names from this package to the file."""
    folder, names = path.parent, [path.stem]
    while (folder / "__init__.py").is_file():
        folder, names = folder.parent, [folder.name, *names]
    return folder, names


def _imports_from(package: str, path: Path) -> bool:
    """Whether a file imports relatively, or from this package by name."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return False
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return any(node.level or (node.module or "").partition(".")[0] == package for node in imports)


def _run_in_package(path: Path, folder: Path, names: list[str]) -> ModuleType:
    """Import a file as `python -m` does from the folder of its outermost package."""
    sys.path.insert(0, str(folder))
    found: ModuleType = _guarded(lambda: importlib.import_module(".".join(names)), str(path))
    return found


def _guarded(runs: Callable[[], Any], what: str) -> Any:
    """The result of user code; raises UserError if the code raises an exception or calls sys.exit."""
    try:
        return runs()
    except Exception as error:
        raise UserError(own_traceback(error)) from None
    except SystemExit as end:
        raise UserError(
            f"{what} calls sys.exit({'' if end.code is None else repr(end.code)}) and gives no program"
        ) from None


def own_traceback(error: BaseException) -> str:
    """The traceback of an error without the frames of xbuild and of the import system."""
    told = traceback.TracebackException.from_exception(error)
    told.stack = traceback.StackSummary.from_list(frame for frame in told.stack if _is_users(frame.filename))
    told.__cause__ = told.__context__ = None
    return "".join(told.format()).rstrip()


def _is_users(file: str) -> bool:
    return not file.startswith(("<frozen importlib", *_OURS))


def _program(module: ModuleType, path: str, name: str) -> Program:
    if name not in vars(module):
        names = _candidates(module)
        raise TargetError(f"{path} has no {name!r}{_did_you_mean(name, names) or _it_has(names)}")
    found = module_in(vars(module)[name])
    if not isinstance(found, _KINDS) and callable(found):
        found = module_in(_called(found, name))
    if not isinstance(found, _KINDS):
        raise TargetError(f"{path}:{name} is {_described(found)}; a Computation, Module or ModuleGroup is wanted")
    return found


def _called(function: Callable[..., Any], name: str) -> Any:
    wanted = _needed(function)
    if wanted:
        raise TargetError(f"{name} takes {', '.join(wanted)}; a function of no arguments is wanted")
    return _guarded(function, name)


def _needed(function: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    free = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in free]


def _candidates(module: ModuleType) -> list[str]:
    return [each for each, value in vars(module).items() if not each.startswith("_") and _is_candidate(value, module)]


def _it_has(names: list[str]) -> str:
    return f"; it has {', '.join(names)}" if names else "; it has no computation, module or group"


def _is_candidate(value: Any, module: ModuleType) -> bool:
    if isinstance(module_in(value), _KINDS):
        return True
    return inspect.isfunction(value) and value.__module__ == module.__name__ and not _needed(value)


def _did_you_mean(name: str, names: list[str]) -> str:
    close = difflib.get_close_matches(name, names, 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _described(value: Any) -> str:
    text = repr(value)
    return f"{text[:60]}{'…' * (len(text) > 60)}, of type {type(value).__name__}"
