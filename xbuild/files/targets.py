"""Programs that a command line names: `FILE.py:NAME`, a file of text, `-`, a dump, or a folder with a file per device.

Of a file or dump of several modules `FILE.hlo#2`, `FILE.hlo#NAME` or `FOLDER#NAME` names one.
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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from shape_inference import XbuildError
from shape_inference.escaping import Harmless

from ..core.graph import Computation, Module, ModuleGroup, Source, module_in
from ..core.identifiers import short_path
from .arrays import ArchiveError, kind_of, read_text
from .programs import is_of_jax

if TYPE_CHECKING:
    from .dumps import DumpedModule

MOST_TEXT = 4 << 30
"""The limit of bytes of text that is read; a sparse file may have any size."""

_PLAIN = (".hlo", ".mlir", ".txt", ".mlirbc", ".pb")
TEXTS = (*_PLAIN, *(f"{suffix}.gz" for suffix in _PLAIN))
"""The suffixes of files of text, of MLIR bytecode and of HLO protos, plain and compressed by gzip."""

Program: TypeAlias = Computation | Module | ModuleGroup
MOST_NAMED = 12
STDIN = "-"
"""The target that names stdin."""
_stdin_read: tuple[Any, bytes] | None = None
_OF_SEVERAL = re.compile(r"(.+\.(?:hlo|mlir|txt|mlirbc|pb)(?:\.gz)?)#([^#/\\]+)", re.DOTALL)
_OF_DEVICE = re.compile(r"device(\d+)\.(?:hlo|mlir|txt|mlirbc|pb)(?:\.gz)?")
_HEADER = 1 << 16
"""The bytes of a text in which its header is expected."""
_FOR_SEVERAL = re.compile(rb"\bnum_(?:partitions|replicas) ?= ?(?!1\b)\d")
_KINDS = (Computation, Module, ModuleGroup)
_ROOT = Path(__file__).resolve().parents[2]
_OURS = tuple(f"{_ROOT / package}{os.sep}" for package in ("xbuild", "shape_inference", "interpreter"))


class TargetError(Harmless, ValueError):
    """The error for a target that names no program; the message lists programs that exist."""


class UserError(Harmless):
    """The error for an exception of a user's file; the message is the traceback with the user's lines only.

    `error` is the exception, and `source` the innermost of these lines; both are None for a call of sys.exit.
    """

    def __init__(self, message: str, error: BaseException | None = None) -> None:
        super().__init__(message)
        self.error, self.source = error, None if error is None else _user_line(error)


def load(
    target: str,
    replicas: int | None = None,
    partitions: int | None = None,
    shapes: Mapping[str, int] | None = None,
    stage: str = "",
    *,
    is_global: bool = False,
) -> Program:
    """The program that a target names, of a text with these counts, and these sizes of dimensions that it leaves open.

    `stage` is that of the text of a dump; with `is_global` what JAX lowers is not partitioned. TargetError where the
    target names none, UserError where its file raises.
    """
    path, one = split_target(target)
    is_folder = bool(path) and Path(path).is_dir()
    if stage and (not is_folder or is_of_devices(path)):
        raise TargetError(f"--stage applies only to dump folders, got the target {target!r}")
    if path == STDIN or (path.endswith(TEXTS) and not is_folder):
        return _read_program(Path(path), replicas, partitions, shapes, one)
    if is_folder and not is_of_devices(path):
        return _read_program(_text_in_dump(target, stage), replicas, partitions, shapes)
    if replicas is not None or partitions is not None or shapes:
        raise TargetError(f"--replicas, --partitions and --shape apply only to text files, got the target {target!r}")
    if is_folder:
        return _read_folder(Path(path))
    path, colon, name = target.rpartition(":") if not target.endswith(".py") else (target, "", "")
    if not path.endswith(".py"):
        forms = "FILE.hlo, FILE.mlir, FILE.txt, FILE.pb, FILE.py:NAME, a folder, or - for stdin"
        raise TargetError(f"{target!r} is not a target: expected {forms}")
    module = _run(_existing(Path(path)))
    if not colon:
        names = _candidates(module)
        whole = f"to check every program that the script compiles, run `xbuild guard {target}`"
        raise TargetError(f"{target!r} is a Python file; expected {target}:NAME{_it_has(names)}; {whole}")
    return _program(module, path, name, is_global)


def load_with_global(target: str) -> tuple[Program, Program | None]:
    """The program of FILE.py:NAME, and for several partitions that before XLA partitioned it; the file runs once.

    TargetError where the target names none, UserError where its file raises.
    """
    path, _, name = target.rpartition(":")
    module = _run(_existing(Path(path)))
    program = _program(module, path, name, is_global=False)
    is_partitioned = isinstance(program, Module) and program.num_partitions > 1
    return program, _program(module, path, name, is_global=True) if is_partitioned else None


def load_with_compiled(target: str) -> tuple[Program, Program]:
    """The global program of FILE.py:NAME, which JAX lowers, and the program that XLA compiles from it.

    NAME is a jitted function without arguments, a Traced or a Lowered, a pair of a Lowered and its Compiled, a pair of
    a function and a tuple of its arguments, or a function without arguments that returns one of these. TargetError
    where the target names none, UserError where its file raises.
    """
    path, name, parts = _jax_objects_of(target)
    if len(parts) == 1 or isinstance(parts[1], tuple):
        from .jax_functions import lowered_and_compiled

        function, arguments = parts[0], parts[1] if len(parts) > 1 else ()
        lowered, compiled = _of_users_function(lambda: lowered_and_compiled(function, arguments, {}), path, name)
        return lowered, compiled
    before, after = (_converted(part, path, name, is_global=True) for part in parts)
    return before, after


def dump_passes_of(target: str, folder: str) -> None:
    """Compile the function of FILE.py:NAME; XLA writes the text after each pass into a folder.

    Targets and errors are those of `load_with_compiled`.
    """
    from .jax_functions import dump_passes

    path, name, parts = _jax_objects_of(target)
    arguments = parts[1] if len(parts) > 1 and isinstance(parts[1], tuple) else ()
    _of_users_function(lambda: dump_passes(parts[0], arguments, {}, folder), path, name)


def _jax_objects_of(target: str) -> tuple[str, str, tuple[Any, ...]]:
    """The file and the name in FILE.py:NAME, and what it names: a function, (function, arguments) or a pair."""
    path, _, name = target.rpartition(":")
    if not path.endswith(".py"):
        raise TargetError(
            f"{target!r} names one program; expected a second program, a dump folder, or FILE.py:NAME of a JAX function"
        )
    module = _run(_existing(Path(path)))
    found = _named(module, path, name)
    if not is_of_jax(found) and callable(found):
        found = _call(found, name)
    parts = found if isinstance(found, tuple) else (found,)
    is_pair = len(parts) == 2 and (isinstance(parts[1], tuple) or is_of_jax(parts[1]))
    if parts and is_of_jax(parts[0]) and (len(parts) == 1 or is_pair):
        return path, name, parts
    raise TargetError(
        f"{path}:{name} is of type {type(found).__name__}; expected a jitted function without arguments, a traced or "
        "lowered JAX function, (lowered, compiled), or (function, arguments)"
    )


def load_file(
    target: str,
    replicas: int | None = None,
    partitions: int | None = None,
    shapes: Mapping[str, int] | None = None,
    **_: Any,
) -> Program:
    """The program of a file of text or of a folder, which runs no code; TargetError for any other target."""
    path, _one = split_target(target)
    if not path.endswith(TEXTS) and not Path(path).is_dir():
        advice = (
            "import the file and pass its program"
            if ".py" in path
            else "expected FILE.hlo, FILE.mlir, FILE.txt or FILE.pb"
        )
        raise TargetError(f"{target!r} is not the path of a program: {advice}")
    return load(target, replicas, partitions, shapes)


def file_of(target: str) -> str:
    """The file or folder that a target names."""
    path, colon, _ = target.rpartition(":")
    return path if colon and path.endswith(".py") else split_target(target)[0]


def split_target(target: str) -> tuple[str, str]:
    """The file of a target and, after `#`, the number or name of one of its modules, or an empty text."""
    match = _OF_SEVERAL.fullmatch(target)
    if match is None or Path(target).exists():
        folder, mark, one = target.partition("#")
        return (folder, one) if mark and one and not Path(target).exists() and _is_folder(folder) else (target, "")
    return match[1], match[2]


def _is_folder(path: str) -> bool:
    return path == STDIN or (bool(path) and Path(path).is_dir())


def module_targets(target: str) -> list[str]:
    """A target for each module of a file or dump; only the target itself if it names one program."""
    path, one = split_target(target)
    if not one and is_dump(path):
        keys = [module.key for module in modules_in_folder(path)]
        return [f"{path}#{key}" for key in keys] if len(keys) > 1 else [target]
    if one or (path != STDIN and (not path.endswith(TEXTS) or not Path(path).is_file())):
        return [target]
    from ..text.reader import modules_in

    count = len(modules_in(text_of_file(Path(path))))
    return [f"{path}#{number}" for number in range(1, count + 1)] if count > 1 else [target]


def is_dump(path: str) -> bool:
    """Whether a path is a folder with programs of any names, as XLA, JAX and the guard write them."""
    return bool(path) and Path(path).is_dir() and not is_of_devices(path)


def is_of_devices(folder: str) -> bool:
    """Whether a folder has a file for each device."""
    return any(_OF_DEVICE.fullmatch(each.name) for each in Path(folder).iterdir())


def modules_in_folder(folder: str) -> list[DumpedModule]:
    """The modules of a dump; TargetError if it has none."""
    from .dumps import dumps_in, modules_of_dump

    modules = modules_of_dump(Path(folder))
    if not modules and (inner := dumps_in(Path(folder))):
        raise TargetError(
            f"the folder {folder!r} contains no program, but folders with dumps: pass {shortened([*map(str, inner)])}"
        )
    if not modules:
        raise TargetError(
            f"the folder {folder!r} contains no program; expected device0.hlo, device1.hlo and so on, or a dump from "
            "XLA, JAX or `xbuild guard` (module_0001.jit_f.before_optimizations.txt, jax_ir0000_jit_f_compile.mlir)"
        )
    return modules


def module_in_dump(target: str) -> DumpedModule:
    """The module of a dump that FOLDER#NAME or FOLDER#NUMBER names; without a name it must be the only module."""
    folder, one = split_target(target)
    modules = modules_in_folder(folder)
    has = f"{folder} has {len(modules)} module{'s' * (len(modules) != 1)}: {shortened([each.key for each in modules])}"
    if not one and len(modules) > 1:
        main = _main_module(modules)
        raise TargetError(f"{has}; select one module, as in {folder}#{main.key}")
    chosen = [each for n, each in enumerate(modules, 1) if one in ("", each.key, str(n))]
    if not chosen:
        raise TargetError(f"no module matches {one!r}{_did_you_mean(one, [each.key for each in modules])}: {has}")
    return chosen[0]


def main_module_in_dump(folder: str) -> DumpedModule:
    """The module of a dump with the largest program, of those for several devices if there are any."""
    return _main_module(modules_in_folder(folder))


def _main_module(modules: Sequence[DumpedModule]) -> DumpedModule:
    return max(modules, key=lambda each: _rank(each.stages[-1].path))


def _rank(path: Path) -> tuple[bool, int]:
    """The rank of a text among those of a dump: programs for several devices first, then by size."""
    if not path.is_file():  # a pipe would block
        return False, 0
    try:
        with path.open("rb") as file:
            head = file.read(_HEADER)
        return _FOR_SEVERAL.search(head) is not None, path.stat().st_size
    except OSError:  # the command that is given this module says so
        return False, 0


def first_and_last(target: str) -> tuple[Program, Program]:
    """The programs of the first and the last text of a module of a dump; TargetError if it has only one text."""
    module = module_in_dump(target)
    if len(module.stages) < 2:
        raise TargetError(
            f"{module.key} has only the text {module.stages[0].path.name}; expected one text from before "
            "its optimizations and one from after them, as XLA writes with --xla_dump_to"
        )
    first, last = (load(str(module.stages[place].path), is_global=True) for place in (0, -1))
    return first, last


def _text_in_dump(target: str, stage: str) -> Path:
    """The file of a module of a dump, at a stage."""
    module = module_in_dump(target)
    found = module.stage(stage)
    if found is None:
        names = shortened([*dict.fromkeys(each.name for each in module.stages)])
        folder, _ = split_target(target)
        raise TargetError(f"{folder}#{module.key} has no stage {stage!r}; it has {names}")
    return found.path


def _existing(path: Path) -> Path:
    if not path.is_file():
        if path.exists():
            raise TargetError(f"{str(path)!r} is {kind_of(path)}; expected a file")
        siblings = [each.name for each in path.parent.glob(f"*{path.suffix}")] if path.parent.is_dir() else []
        raise TargetError(f"there is no file {str(path)!r}{_did_you_mean(path.name, siblings)}")
    return path


def text_of_file(path: Path) -> str:
    """The text of a file, or of stdin; bytecode and protos are converted."""
    from ..stablehlo.reading.either import as_text

    try:
        if str(path) == STDIN:
            return as_text(_read_stdin(), "<stdin>")
        return as_text(read_text(_existing(path), MOST_TEXT), short_path(str(path)))
    except ArchiveError as error:
        raise TargetError(str(error)) from None


def _read_stdin() -> bytes:
    """What stdin has; it is read once, since a command may ask for its modules and then for each of them."""
    global _stdin_read
    if _stdin_read is None or _stdin_read[0] is not sys.stdin:
        _stdin_read = (sys.stdin, sys.stdin.buffer.read(MOST_TEXT))
    return _stdin_read[1]


def _read_program(
    path: Path,
    replicas: int | None = None,
    partitions: int | None = None,
    shapes: Mapping[str, int] | None = None,
    one: str = "",
) -> Module:
    """A module of a file; the user's lines are those that its metadata and tables of frames name."""
    from ..stablehlo.reading.either import parse

    text = _part_of(text_of_file(path), path, one)
    file = "<stdin>" if str(path) == STDIN else short_path(str(path))
    try:
        return parse(text, file, origins=True, replicas=replicas, partitions=partitions, shapes=shapes)
    except ValueError as error:
        if isinstance(error, XbuildError):
            raise
        raise TargetError(str(error)) from None


def _part_of(text: str, path: Path, one: str) -> str:
    """The text of one module of a file, with the lines before it blank; TargetError where the target names none."""
    from ..text.reader import modules_in

    found = modules_in(text)
    if len(found) < 2 and not one:
        return text
    numbered = [f"{number} {name}" for number, (name, _) in enumerate(found, 1)]
    has = f"{path} has {len(found)} module{'s' * (len(found) != 1)}: {shortened(numbered)}"
    if not one:
        raise TargetError(f"{has}; select one module, as in {path}#1")
    chosen = [part for n, (name, part) in enumerate(found, 1) if one == str(n)]
    chosen = chosen or [part for name, part in found if name == one]
    if len(chosen) != 1:
        raise TargetError(f"{'no module' if not chosen else 'more than one module'} matches {one!r}: {has}")
    return chosen[0]


def shortened(names: list[str]) -> str:
    return ", ".join([*names[:MOST_NAMED], f"... {len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else names)


def _read_folder(path: Path) -> ModuleGroup:
    """The module group of a folder with the files device0.hlo, device1.hlo, ..., one for each device."""
    found = sorted((int(named[1]), each) for each in path.iterdir() if (named := _OF_DEVICE.fullmatch(each.name)))
    if not found or [device for device, _ in found] != [*range(len(found))]:
        have = ", ".join(each.name for _, each in found) or "no device files"
        raise TargetError(f"the folder {str(path)!r} has {have}; expected device0.hlo, device1.hlo and so on")
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
        raise UserError(own_traceback(error), error) from None
    except SystemExit as end:
        raise UserError(
            f"{what} calls sys.exit({'' if end.code is None else repr(end.code)}) and provides no program"
        ) from None


def own_traceback(error: BaseException) -> str:
    """The traceback of an error without the frames of xbuild and of the import system."""
    told = traceback.TracebackException.from_exception(error)
    told.stack = traceback.StackSummary.from_list(frame for frame in told.stack if _is_users(frame.filename))
    told.__cause__ = told.__context__ = None
    return "".join(told.format()).rstrip()


def _user_line(error: BaseException) -> Source | None:
    """The innermost line of the user on the traceback of an error."""
    rows = [row for row in traceback.extract_tb(error.__traceback__) if _is_users(row.filename)]
    return Source(rows[-1].filename, rows[-1].lineno or 0, rows[-1].name) if rows else None


def _is_users(file: str) -> bool:
    return not file.startswith(("<frozen importlib", *_OURS))


def _program(module: ModuleType, path: str, name: str, is_global: bool) -> Program:
    found = _converted(_named(module, path, name), path, name, is_global)
    if not isinstance(found, _KINDS) and callable(found):
        found = _converted(_call(found, name), path, name, is_global)
    if not isinstance(found, _KINDS):
        raise TargetError(
            f"{path}:{name} is {_description(found)}; expected a Computation, Module or ModuleGroup, "
            "or a lowered or compiled JAX function"
        )
    return found


def _named(module: ModuleType, path: str, name: str) -> Any:
    """The value of a name of a user's file; TargetError where the file has none."""
    if name not in vars(module):
        names = _candidates(module)
        raise TargetError(f"{path} has no {name!r}{_did_you_mean(name, names) or _it_has(names)}")
    return vars(module)[name]


def _converted(value: Any, path: str, name: str, is_global: bool) -> Any:
    """The program of a value of a user's file, which may be text or come from JAX."""
    if not is_of_jax(value):
        return module_in(value)
    return _of_users_function(lambda: module_in(value, is_global=is_global), path, name)


def _of_users_function(lower: Callable[[], Any], path: str, name: str) -> Any:
    """What JAX makes of a user's function; TargetError if it needs arguments, UserError if it raises."""
    from .jax_functions import NeedsArgumentsError

    try:
        return lower()
    except NeedsArgumentsError as error:
        raise TargetError(f"{path}:{name}: {error.sentence(name)}") from None
    except XbuildError:
        raise
    except Exception as error:  # of a user's function, which JAX traces
        raise UserError(own_traceback(error), error) from None


def _call(function: Callable[..., Any], name: str) -> Any:
    required = _required_parameters(function)
    if required:
        shown = ", ".join(required)
        raise TargetError(
            f"{name} takes {shown}; expected a function without arguments, such as one that returns "
            f"jax.jit({name}).lower({shown})"
        )
    return _guarded(function, name)


def _required_parameters(function: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    free = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in free]


def _candidates(module: ModuleType) -> list[str]:
    return [name for name, value in vars(module).items() if not name.startswith("_") and _is_candidate(value, module)]


def _it_has(names: list[str]) -> str:
    return f"; it has {', '.join(names)}" if names else "; it has no computation, module or module group"


def _is_candidate(value: Any, module: ModuleType) -> bool:
    if isinstance(value, _KINDS) or isinstance(getattr(value, "module", None), Module) or is_of_jax(value):
        return True
    return inspect.isfunction(value) and value.__module__ == module.__name__ and not _required_parameters(value)


def _did_you_mean(name: str, names: list[str]) -> str:
    close = difflib.get_close_matches(name, names, 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _description(value: Any) -> str:
    text = repr(value)
    return f"{text[:60]}{'…' * (len(text) > 60)}, of type {type(value).__name__}"
