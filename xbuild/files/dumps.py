"""Dump folders: the modules of a folder that XLA, JAX or the guard wrote, each with its texts in the order of stages.

XLA (`--xla_dump_to`) writes a file before and after its optimizations and, with `--xla_dump_hlo_pass_re`, after passes;
JAX (`JAX_DUMP_IR_TO`) writes what it lowers; `xbuild guard --report` writes what was compiled, in a folder
`process_N` for each process. Users may give the folders of processes other names, such as `rank0` and `host-1`. Other
files of these folders (buffer assignments, LLVM IR, jaxprs) are no programs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from attrs import define, field, frozen

_SUFFIX = r"\.(?P<suffix>txt|hlo\.pb|hlo|pb)(?:\.gz)?"
_OF_XLA = re.compile(
    r"(?:\d+\.)?module_(?P<number>\d+)\.(?P<name>.+?)\."
    r"(?P<stage>before_optimizations|(?:sm_[\d.]+a?_gpu_|[A-Za-z0-9]+_)?after_optimizations"
    rf"(?:_(?:before|after)_buffer_assignment)?|(?P<place>\d{{4}})\.(?P<pass>.+?)){_SUFFIX}"
)
_OF_JAX = re.compile(r"jax_ir(?P<number>\d+)_(?P<name>.+?)(?:_(?:compile|lower|export))?\.mlir(?:bc)?(?:\.gz)?")
_PLAIN = re.compile(r"(?P<name>.+?)\.(?:hlo|mlir|mlirbc|hlo\.pb)(?:\.gz)?")
_OF_PROCESS = re.compile(r"(?:process|proc|rank|host|worker|task)[_.-]?(\d{1,9})", re.ASCII)
_PASS = re.compile(r"(?P<pipeline>.*?)\.after_(?P<name>.+?)(?:\.before_(?P<following>.+))?")

BEFORE, AFTER, LOWERED = "before", "after", "lowered"


@frozen
class Stage:
    """A text of a module: `name` is "lowered", "before", "after", or the pass after which it was written.

    `following` is the next pass of the pipeline.
    """

    name: str
    path: Path
    pipeline: str = ""
    following: str = ""


@define
class DumpedModule:
    """A module of a dump; `key` names it in its folder, and `process` is the number of the folder of its process."""

    name: str
    number: int
    process: int | None = None
    stages: list[Stage] = field(factory=list)
    key: str = ""

    def stage(self, name: str) -> Stage | None:
        """The stage of this name, the last one if there are several; without a name, the last of all."""
        if not name:
            return self.stages[-1]
        named = [each for each in self.stages if name in (each.name, each.pipeline)]
        if not named and name == BEFORE:
            named = [each for each in self.stages if each.name == LOWERED]
        if not named and name == AFTER:
            named = [each for each in self.stages if each.name not in (BEFORE, LOWERED)]
        return named[-1] if named else None


def modules_of_dump(folder: Path) -> list[DumpedModule]:
    """The modules of a folder in the order of compilation; none if it is not a dump.

    A name that several modules have is followed by .2, .3 in their keys; the modules of processes are named
    process_N/NAME.
    """
    modules = [*_modules_in(folder, None)]
    for process, inner in processes_of(folder):
        modules += _modules_in(inner, process)
    seen: Counter[str] = Counter()
    for module in modules:
        name = module.name if module.process is None else f"process_{module.process}/{module.name}"
        seen[name] += 1
        module.key = name if seen[name] == 1 else f"{name}.{seen[name]}"
    return modules


def processes_of(folder: Path) -> list[tuple[int, Path]]:
    """The folders of processes in a folder, such as process_0 and rank1, with their numbers."""
    named = ((_OF_PROCESS.fullmatch(each.name), each) for each in folder.iterdir() if each.is_dir())
    return sorted((int(match[1]), each) for match, each in named if match)


def dumps_in(folder: Path) -> list[Path]:
    """The folders in a folder that are dumps, whatever their names."""
    return [each for each in sorted(folder.iterdir()) if each.is_dir() and _modules_in(each, None)]


def _modules_in(folder: Path, process: int | None) -> list[DumpedModule]:
    files = sorted(each for each in folder.iterdir() if not each.is_dir() or each.is_symlink())
    compiled, rest = _modules_of_xla(files, process)
    lowered = [*_modules_of_jax(rest, process)]
    for module in _without_partner(lowered, compiled):
        compiled.append(module)
    return [*compiled, *_plain_modules(rest, process)]


def _modules_of_xla(files: Iterable[Path], process: int | None) -> tuple[list[DumpedModule], list[Path]]:
    """The modules that XLA wrote, and the other files."""
    rest: list[Path] = []
    texts: dict[int, list[tuple[tuple[int, str], bool, Stage]]] = {}
    names: dict[int, str] = {}
    for path in files:
        match = _OF_XLA.fullmatch(path.name)
        if match is None:
            rest.append(path)
            continue
        number = int(match["number"])
        names.setdefault(number, match["name"])
        stage, place = _stage_of_xla(match, path)
        texts.setdefault(number, []).append((place, match["suffix"] != "txt", stage))
    modules = []
    for number in sorted(texts):
        stages: dict[tuple[int, str], Stage] = {}
        for place, _, stage in sorted(texts[number], key=lambda text: text[:2]):
            stages.setdefault(place, stage)  # text precedes the proto of the same stage
        modules.append(DumpedModule(names[number], number, process, [*stages.values()]))
    return modules, rest


def _stage_of_xla(match: re.Match[str], path: Path) -> tuple[Stage, tuple[int, str]]:
    """The stage of a file of XLA, and its place among those of the module."""
    if match["place"] is None:
        is_before = match["stage"].startswith(BEFORE)
        return Stage(BEFORE if is_before else AFTER, path), (-1 if is_before else 1 << 30, match["stage"])
    found = _PASS.fullmatch(match["pass"])
    name, pipeline, following = (
        (match["pass"], "", "") if found is None else found.group("name", "pipeline", "following")
    )
    return Stage(name, path, pipeline, following or ""), (int(match["place"]), "")


def _modules_of_jax(files: Iterable[Path], process: int | None) -> Iterator[DumpedModule]:
    for path in files:
        if match := _OF_JAX.fullmatch(path.name):
            yield DumpedModule(match["name"], int(match["number"]), process, [Stage(LOWERED, path)])


def _without_partner(lowered: Iterable[DumpedModule], compiled: Iterable[DumpedModule]) -> Iterator[DumpedModule]:
    """Lowered modules that XLA did not write; the others become a stage of what it wrote, by name and order."""
    partners: dict[str, list[DumpedModule]] = {}
    for module in compiled:
        partners.setdefault(module.name, []).append(module)
    for module in lowered:
        same = partners.get(module.name)
        if same:
            same.pop(0).stages[:0] = module.stages
        else:
            yield module


def _plain_modules(files: Iterable[Path], process: int | None) -> Iterator[DumpedModule]:
    """Files of one module each, such as those of a guard."""
    for number, path in enumerate(files):
        match = None if _OF_JAX.fullmatch(path.name) else _PLAIN.fullmatch(path.name)
        if match is not None:
            yield DumpedModule(match["name"], number, process, [Stage(AFTER, path)])
