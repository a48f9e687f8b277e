"""`xbuild check` on dump folders: a line for each module, and whether the processes of a job compiled the same."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
from attrs import evolve, frozen

import xbuild
from shape_inference import XbuildError
from shape_inference.escaping import in_line

from ..core.graph import Module
from ..core.issues import Issue
from ..core.report_text import join_words
from ..files import targets as target_files
from ..files.dumps import DumpedModule, Stage
from ..sharding.unpartitioned import annotated_devices, is_per_device_in_part
from ..stablehlo.reading.either import is_mlir
from .formats import REFUSAL, issues_of
from .group import REFUSED, counts_given, module_of
from .options import PARTITION, Waiting, partition_target
from .outputs import prints_document, say, say_styled, styled

MOST_NAMES = 5
"""The most modules that a notice names."""
_COLOURS = {"ok": "green", "depends": "yellow"}


@frozen
class CheckedText:
    """A text of a module of a dump: the program and the verdict, or the sentence why none was read.

    A program of which a part is for each device is partitioned first, as `is_partitioned` says; it has no verdict if
    xbuild cannot partition it.
    """

    folder: str
    module: DumpedModule
    stage: Stage
    program: Module | None
    verdict: xbuild.Verdict | None
    error: Exception | None = None
    is_partitioned: bool = False

    @property
    def target(self) -> str:
        return f"{self.folder}#{self.module.key}"

    @property
    def compared(self) -> str | Module:
        """The program that was checked: the text of the dump, or the module if xbuild has partitioned it."""
        if self.is_partitioned and self.program is not None:
            return self.program
        return target_files.text_of_file(self.stage.path)

    @property
    def problem(self) -> str:
        """The first line of the error with which the text is refused; empty if it is read."""
        return "" if self.error is None else str(self.error).partition("\n")[0]

    @property
    def issues(self) -> tuple[Issue, ...]:
        if self.verdict is not None:
            return self.verdict.issues
        if self.error is not None:
            return issues_of(self.error, str(self.stage.path))
        return (Issue("not_partitioned", "note", self.not_partitioned),)

    @property
    def not_partitioned(self) -> str:
        """What is said about a program that has no verdict before it is partitioned."""
        assert self.program is not None
        return f"not partitioned yet: annotated for {annotated_devices(self.program)} devices"

    def to_dict(self) -> dict[str, Any]:
        """The name, the stage and the verdict as plain data."""
        place = {"name": self.module.name, "stage": self.stage.name}
        if self.verdict is not None:
            return {**place, **self.verdict.to_dict()}
        return {**place, **(REFUSAL if self.error is not None else {"kind": "not_partitioned", "refused": False})}


@frozen
class ProcessComparison:
    """What the dumps of several processes have in common: the processes, the number of equal modules, sentences."""

    processes: tuple[int, ...]
    alike: int
    sentences: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"numbers": list(self.processes), "alike": self.alike, "differences": list(self.sentences)}


@frozen
class DumpsChecked:
    """The exit code of some dumps, their texts, how their processes compare, and what is wrong with the job."""

    code: int = 0
    texts: tuple[CheckedText, ...] = ()
    processes: ProcessComparison | None = None
    issues: tuple[tuple[str, Issue], ...] = ()


def check_dumps(folders: Sequence[str], waiting: Waiting, strict: bool, all_stages: bool) -> DumpsChecked:
    """Check each module of these dumps, and compare the processes; prints lines, unless a document has the result.

    `waiting` are the arguments of the check that say how devices wait.
    """
    stage = click.get_current_context().meta.get("xbuild.stage") or ""
    dumps = {folder: target_files.modules_in_folder(folder) for folder in folders}
    checked: list[CheckedText] = []
    for folder, modules in dumps.items():
        texts = [(module, each) for module in modules for each in stages_of(module, stage, all_stages)]
        if not texts:
            names = [*dict.fromkeys(each.name for module in modules for each in module.stages)]
            raise click.UsageError(
                f"no module in {folder} has a stage {stage!r}; the stages are {target_files.shortened(names)}"
            )
        if len(folders) > 1 and not prints_document():
            say(f"{folder}: {_count(len(modules))}")
        width = max(len(label_of(module, each, all_stages)) for module, each in texts)
        for module, each in texts:
            result = _check(folder, module, each, waiting)
            checked.append(result)
            if not prints_document():
                _say_line(label_of(module, each, all_stages).ljust(width), result)
    codes = [_code(each, strict) for each in checked]
    _say_notices(checked)
    code, compared, issues = (0, None, ()) if all_stages else _compare_processes(checked, strict)
    return DumpsChecked(max([*codes, code]), tuple(checked), compared, tuple(issues))


def stages_of(module: DumpedModule, stage: str, all_stages: bool) -> list[Stage]:
    """The stages of a module that a command reads: all, or the named one; none if the module lacks it."""
    if all_stages:
        return module.stages
    found = module.stage(stage)
    return [] if found is None else [found]


def label_of(module: DumpedModule, stage: Stage, all_stages: bool) -> str:
    """How a line names a module, and its stage if all are read."""
    if not all_stages:
        return in_line(module.key)
    return in_line(f"{module.key}  {stage.pipeline}{': ' if stage.pipeline else ''}{stage.name}")


def read_stage(stage: Stage) -> Module:
    """The program of a text of a dump, partitioned with --partition; raises TargetError and XbuildError."""
    program = module_of(target_files.load(str(stage.path), **counts_given()))
    assert isinstance(program, Module)
    is_partitioned = click.get_current_context().meta.get(PARTITION) and annotated_devices(program)
    return partition_target(program) if is_partitioned else program


def _check(folder: str, module: DumpedModule, stage: Stage, waiting: Waiting) -> CheckedText:
    try:
        program = read_stage(stage)
        verdict = xbuild.check(program, **waiting)
        if verdict.refused and is_per_device_in_part(program):
            return _check_partitioned(CheckedText(folder, module, stage, program, None), waiting)
        return CheckedText(folder, module, stage, program, verdict)
    except (target_files.TargetError, XbuildError) as error:
        return CheckedText(folder, module, stage, None, None, error)


def _check_partitioned(checked: CheckedText, waiting: Waiting) -> CheckedText:
    """Check the program of each device instead of a global program; the given text if xbuild cannot partition it."""
    assert checked.program is not None
    try:
        program = partition_target(checked.program)
        verdict = xbuild.check(program, **waiting)
    except XbuildError:
        return checked
    return evolve(checked, program=program, verdict=verdict, is_partitioned=True)


def _code(checked: CheckedText, strict: bool) -> int:
    verdict = checked.verdict
    if verdict is None:
        return REFUSED if checked.error is not None else 0
    return REFUSED if verdict.refused or (strict and verdict.kind == "depends") else 0


def _say_line(label: str, checked: CheckedText) -> None:
    if checked.program is not None and checked.verdict is None:
        say_styled(f"{label}  ", styled(checked.not_partitioned, fg="yellow"))
    elif checked.verdict is None:
        say_styled(f"{label}  ", styled(f"unread: {checked.problem}", fg="red"))
    else:
        first = str(checked.verdict).partition("\n")[0]
        say_styled(f"{label}  ", styled(first, fg=_COLOURS.get(checked.verdict.kind, "red")))


def _say_notices(checked: Sequence[CheckedText]) -> None:
    """Say how to see a report, and how to check what is not partitioned yet."""
    refused = next((each for each in checked if each.verdict is not None and each.verdict.refused), None)
    if refused is not None:
        say(f"notice: xbuild check {shlex.quote(refused.target)} prints the report", err=True)
    which, be, them = _named(each for each in checked if each.is_partitioned)
    if which:
        say(f"notice: {which} {be} not partitioned yet, so xbuild has partitioned {them}", err=True)
    which, be, them = _named(each for each in checked if each.program is not None and annotated_devices(each.program))
    if which:
        say(f"notice: {which} {be} checked as a global program; --partition partitions {them} first", err=True)


def _named(checked: Iterable[CheckedText]) -> tuple[str, str, str]:
    """What a sentence calls the modules of these texts, their verb and their pronoun; empty without texts."""
    names = [*dict.fromkeys(in_line(each.module.key) for each in checked)]
    which = join_words(names) if len(names) <= MOST_NAMES else f"{len(names)} modules"
    return which if names else "", *(("is", "it") if len(names) == 1 else ("are", "them"))


# ----------------------------------------------------------------------------
# The processes of a job


def _compare_processes(
    checked: Sequence[CheckedText], strict: bool
) -> tuple[int, ProcessComparison | None, Sequence[tuple[str, Issue]]]:
    """Say whether the processes of a job compiled the same programs; returns the exit code, and issues with targets."""
    programs = _programs_by_process(checked)
    processes = sorted({process for by_process in programs.values() for process in by_process})
    if len(processes) < 2:
        return 0, None, ()
    code, alike, apart = 0, 0, Counter[str]()
    sentences: list[str] = []
    issues: list[tuple[str, Issue]] = []
    for name, by_process in programs.items():
        modules = {process: text.program for process, text in by_process.items() if text.program is not None}
        devices = max((module.num_devices for module in modules.values()), default=1)
        lacking = [process for process in processes if process not in by_process]
        if lacking and devices > 1:
            sentences.append(only_compiled_by(name, by_process, lacking))
            issues.append((min(by_process.items())[1].target, Issue("mismatch", "warning", sentences[-1])))
            code = REFUSED if strict else code
        elif lacking:
            apart[_processes(sorted(by_process))] += 1
        if lacking or len(modules) < len(processes):
            continue
        texts = {process: by_process[process].compared for process in modules}
        if devices > 1 and any(isinstance(text, str) and is_mlir(text) for text in texts.values()):
            continue  # lowered, not compiled: a check of the job needs the collectives of the partitioner
        found = xbuild.guard.compare_programs(dict.fromkeys(modules, name), texts, devices)
        if not found.groups or devices == 1:
            alike += 1
            continue
        target = min(by_process.items())[1].target
        sentences.append(str(found))
        issues.append((target, Issue("mismatch", "warning", str(found))))
        if found.is_refused and found.verdict is not None:
            sentences.append(str(found.verdict))
            issues += [(target, issue) for issue in found.verdict.issues]
            code = REFUSED
    rest = "".join(f"; {_count(number)} only in {of}" for of, number in apart.items())
    if not prints_document():
        say("\n".join([*sentences, f"{_count(alike)} identical in {_processes(processes)}{rest}"]))
    return code, ProcessComparison(tuple(processes), alike, tuple(sentences)), issues


def only_compiled_by(name: str, having: Iterable[int], lacking: Iterable[int]) -> str:
    """The sentence on a program of several devices that only some processes of a job compiled."""
    return (
        f"only {_processes(sorted(having))} compiled {name}: if it spans devices of {_processes(sorted(lacking))}, "
        "it waits for them forever"
    )


def _count(number: int) -> str:
    return f"{number} module{'s' * (number != 1)}"


def _programs_by_process(checked: Sequence[CheckedText]) -> dict[str, dict[int, CheckedText]]:
    """The modules by name, then by process: the number of a folder process_N, else that of the dump's place."""
    places = {folder: place for place, folder in enumerate(dict.fromkeys(each.folder for each in checked))}
    stated = {(each.folder, each.module.process) for each in checked}
    has_numbers = len({process for _, process in stated}) == len(stated)
    programs: dict[str, dict[int, CheckedText]] = {}
    for each in checked:
        process = each.module.process
        number = process if process is not None and (has_numbers or len(places) == 1) else places[each.folder]
        name = Path(each.module.key).name
        programs.setdefault(name, {}).setdefault(number, each)
    return programs


def _processes(numbers: Sequence[int]) -> str:
    names = join_words(map(str, numbers))
    return f"process{'es' * (len(numbers) > 1)} {names}"
