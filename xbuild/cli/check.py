"""`xbuild check`: the verdict on a program."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import frozen

import xbuild
from shape_inference import XbuildError

from ..checking.model.verdict import report_lines
from ..core.issues import Issue
from ..files.targets import TargetError, UserError, is_dump
from .candidates import targets
from .formats import REFUSAL, issues_of, say_programs, say_result
from .group import REFUSED, load, main, module_of, module_targets, read_target, require
from .options import (
    PAGE,
    RunRecording,
    Waiting,
    check_folder_exists,
    partition_parts,
    shows_all,
    takes_all,
    takes_format,
    takes_partition,
    takes_runtime,
    takes_send_buffers,
    takes_source_root,
    trace_refused,
)
from .outputs import MORE, check_distinct, prints_document, report_width, say, say_lines, say_written, target_input
from .run import SEED, load_arguments
from .viz import format_of, takes_theme, write, write_folder

if TYPE_CHECKING:
    from ..runtimes.record import Runtime


@main.command()
@click.argument("target", metavar="TARGET [TARGETS]", nargs=-1, required=True, shell_complete=targets)
@takes_partition
@takes_format
@takes_send_buffers
@takes_runtime
@click.option(
    "--picture",
    type=click.Path(dir_okay=False),
    help="Draw the verdict, with a lane for each device, and write the picture to this .svg or .txt file.",
)
@click.option(
    "--page",
    type=click.Path(dir_okay=False),
    help="Write a page, FILE.html, that replays a run until it ends or is stuck.",
)
@takes_source_root
@click.option(
    "--repair",
    type=click.Path(),
    metavar="PATH",
    help="Write the repaired program to FILE.hlo, or to a folder if devices run different programs.",
)
@click.option(
    "--random",
    "seed",
    type=SEED,
    metavar="SEED",
    help="Set the seed of the random arguments (requires --page).  [default: 0]",
)
@takes_theme
@click.option(
    "--strict",
    is_flag=True,
    help='Also exit with status 1 for the verdict "depends", and for modules that only some processes compiled.',
)
@takes_all
def check(
    target: tuple[str, ...],
    send_buffers: int,
    runtime: Runtime | None,
    picture: str | None,
    theme: str,
    page: str | None,
    source_root: str | None,
    repair: str | None,
    seed: int | None,
    strict: bool,
) -> None:
    """Report whether a program can deadlock, and how to fix it, without running it.

    The report goes to stdout, or to stderr if the program is refused. With --format json, sarif or github, the results
    for all targets form one document on stdout, and lines such as "wrote FILE" go to stderr. The exit status is 0 for
    the verdicts "ok" and "depends" (1 for "depends" with --strict), and 1 for "error" and "deadlock".

    The words "no schedule can deadlock" apply to every order that respects operands and control edges, so a compiler
    may reorder the program. The words "the recorded order runs to completion" and "the given schedule runs to
    completion" apply only to that order; another order may deadlock. See `xbuild explain verdict`.

    With --runtime, devices wait as that runtime makes them wait: the verdict applies to the recorded order, and a
    report names the rule of the runtime. docs/checker.md lists the runtimes.

    For a dump folder with several modules, the command prints one line for the last stage of each module (with
    --all, one line for every stage). To print the full report on one module, use FOLDER#NAME. If modules in the folders
    process_0 and process_1, or in several dump folders, have the same name, the command treats them as programs that
    different processes of one job run. For such modules, it also reports whether the processes compiled the same
    programs, and whether the job would hang.

    If a program has been lowered but not yet partitioned, and part of it is written per device, as in `jax.shard_map`,
    xbuild partitions the program first and says so; with --partition, xbuild partitions any annotated program.

    With --page, the command runs the program in its recorded order until the run ends or is stuck. With --repair, the
    command writes the program with a schedule that runs to completion: the order that the report suggests or, if the
    program has no schedule, the order that the check found.
    """
    require("--picture", picture, "theme")
    require("--page", page, "seed", "source_root")
    several = module_targets(target, "picture", "page", "repair")
    folders = [each for each in target if is_dump(each)]
    all_stages = shows_all() and bool(folders)
    waiting = {"send_buffers": send_buffers, "runtime": runtime}
    if len(several) > 1 or all_stages:
        from .dumps import CheckedText, DumpsChecked, check_dumps

        single = [each for each in several if each.partition("#")[0] not in folders]
        dumps = check_dumps(folders, waiting, strict, all_stages) if folders else DumpsChecked()
        rest = [_check_module(module, waiting) for module in single]
        checked: list[CheckedText | ProgramChecked] = [*dumps.texts, *rest]
        if prints_document():
            processes = {} if dumps.processes is None else {"processes": dumps.processes.to_dict()}
            results = [(each.target, each.to_dict(), each.issues) for each in checked]
            say_programs(results, processes, others=dumps.issues)
        sys.exit(max([dumps.code, *(each.exit_code(strict) for each in rest)]))
    form, recording = _picture_format(picture), RunRecording(page, source_root=source_root)
    check_distinct(target_input(target[0]), {"--picture": picture, "--page": page, "--repair": repair})
    program = module_of(load(target[0]))
    if repair is not None:
        _check_repair_path(program, Path(repair))
    program, verdict = _checked(program, waiting)
    arguments = [] if page is None else load_arguments(program, None, seed or 0)
    if page is not None:
        options = recording.options
        recording.write_page(trace_refused(program, arguments, verdict, options, **waiting))
        say_written(page, PAGE)
    if picture is not None:
        write(xbuild.viz(verdict, theme=theme).render(form), picture)
    if not say_result(target[0], verdict.to_dict(), verdict.issues):
        _say_report(verdict)
    _say_notices(verdict)
    if repair is not None:
        _write_repaired(verdict, repair)
    sys.exit(_exit_code(verdict, strict))


@frozen
class ProgramChecked:
    """One of several programs: its target and name, the verdict or the error with which it is refused."""

    target: str
    name: str = ""
    verdict: xbuild.Verdict | None = None
    error: Exception | None = None

    @property
    def issues(self) -> tuple[Issue, ...]:
        if self.verdict is not None:
            return self.verdict.issues
        return () if self.error is None else issues_of(self.error, self.target)

    def to_dict(self) -> dict[str, Any]:
        """The name and the verdict as plain data."""
        return {"name": self.name or None, **(REFUSAL if self.verdict is None else self.verdict.to_dict())}

    def exit_code(self, strict: bool) -> int:
        return REFUSED if self.verdict is None else _exit_code(self.verdict, strict)


def _check_module(target: str, waiting: Waiting) -> ProgramChecked:
    """Check one of several programs; prints its report below a line with its name, unless a document will have it."""
    try:
        program = module_of(read_target(target))
    except TargetError as error:
        raise click.UsageError(str(error)) from None
    except (UserError, XbuildError) as error:
        say(str(error), err=True)
        return ProgramChecked(target, error=error)
    program, verdict = _checked(program, waiting)
    name = program.name if isinstance(program, xbuild.Module) else ""
    if not prints_document():
        say(f"{target}  {name}".rstrip(), err=verdict.refused)
        _say_report(verdict)
    _say_notices(verdict)
    return ProgramChecked(target, name, verdict)


def _checked(
    program: xbuild.Module | xbuild.ModuleGroup, waiting: Waiting
) -> tuple[xbuild.Module | xbuild.ModuleGroup, xbuild.Verdict]:
    """A program and its verdict; a program that is in part for each device is partitioned, if xbuild can do that."""
    verdict = xbuild.check(program, **waiting)
    partitioned = None if verdict or not isinstance(program, xbuild.Module) else partition_parts(program)
    if partitioned is None:
        return program, verdict
    return partitioned, xbuild.check(partitioned, **waiting)


def _exit_code(verdict: xbuild.Verdict, strict: bool) -> int:
    return REFUSED if verdict.refused or (strict and verdict.kind == "depends") else 0


def _say_report(verdict: xbuild.Verdict) -> None:
    err = verdict.refused
    say_lines(report_lines(verdict, shows_all(), report_width(err=err), MORE), err=err)


def _say_notices(verdict: xbuild.Verdict) -> None:
    if verdict.kind == "ok" and verdict.scope != "every":
        say(f"notice: {_ONE_ORDER}", err=True)
    if any("not partitioned yet" in note for note in verdict.notes):
        say("notice: --partition partitions the program first", err=True)
    if verdict.may_hang:
        say(
            "notice: `xbuild run` runs the program on given arguments, and reports a deadlock instead of hanging",
            err=True,
        )


def _check_repair_path(program: xbuild.Module | xbuild.ModuleGroup, path: Path) -> None:
    """Raise a usage error unless the path can be written as a target: a file for one program, a folder for several."""
    if isinstance(program, xbuild.Module):
        if path.is_dir() or path.suffix not in (".hlo", ".txt"):
            raise click.UsageError(
                f"--repair {path}: the target is one program for all devices, so the repair needs a .hlo file"
            )
    elif path.exists() and not path.is_dir():
        raise click.UsageError(
            f"--repair {path} is a file; the target has one program for each device, so the repair needs a folder"
        )
    elif path.exists() and (names := sorted(os.listdir(path))):
        raise click.UsageError(
            f"--repair {path} contains {names[0]!r}; the target has one program for each device, so the repair "
            "needs a new or empty folder"
        )
    else:
        check_folder_exists(str(path))


def _write_repaired(verdict: xbuild.Verdict, path: str) -> None:
    """Write the repaired program: one program to a file, the programs of several devices to a folder."""
    try:
        program = xbuild.repaired(verdict)
    except ValueError:
        say(f"notice: {path} was not written: {_no_repair_reason(verdict)}", err=True)
        return
    if isinstance(program, xbuild.Module):
        write(program.to_hlo(), path)
    else:
        names = {f"device{device}.hlo": module.to_hlo() for device, module in program.modules.items()}
        write_folder(names, Path(path))
        say_written(path, f"{len(names)} files, one program for each device")
    if verdict.repair is None:
        say(f"notice: {_SCHEDULED[verdict.refused]}", err=True)


_SCHEDULED = {
    True: "the program had no schedule: the file gives instructions that waited for each other separate tokens, and "
    "states a schedule that runs to completion",
    False: "the program had no schedule; the file states one that runs to completion",
}
"""What was written for a program without a schedule, by whether it was refused."""


def _no_repair_reason(verdict: xbuild.Verdict) -> str:
    if verdict.kind == "ok":
        return "the program needs no repair"
    if verdict.kind == "depends":
        return "in every order, data decide whether the program hangs; the report says what to change in the program"
    return "no other order avoids the deadlock; the report says what to change in the program"


def _picture_format(picture: str | None) -> str:
    form = format_of(picture)
    if form not in ("svg", "txt"):
        raise click.UsageError(f"a verdict can be drawn as svg or txt, not as {form}")
    return form


_ONE_ORDER = "another order of the same instructions may deadlock; see `xbuild explain ok` for what this verdict means"
