"""`xbuild lint`: valid code that is costly or surprising."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from shape_inference import XbuildError
from shape_inference.escaping import in_line

from ..core.graph import Module, ModuleGroup
from ..core.report_text import Line, StyledText
from ..files import targets as target_files
from ..files.targets import TargetError, UserError, is_dump
from ..linting import RULES
from ..linting.comments import Readable
from ..linting.linter import LEAST, MACHINE, LintReport, lint_program, report_lines
from ..timelines.machines import MACHINES
from ..timelines.machines import machine as named_machine
from .candidates import targets
from .formats import REFUSAL, Result, issues_of, say_programs
from .group import REFUSED, main, module_of, module_targets, read_target, refuse
from .options import check_machine, shows_all, takes_all, takes_format
from .outputs import MORE, prints_document, report_width, say, say_lines

NOTE_OF_RULES = "Apply only this rule. Repeat the option to apply several rules."


def _share(_: click.Context, parameter: click.Parameter, value: float) -> float:
    if not 0 <= value <= 100:  # false for NaN
        raise click.BadParameter(f"{value:g} is not a percentage from 0 to 100.", param=parameter)
    return value / 100


@main.command()
@click.argument("target", metavar="TARGET [TARGETS]", nargs=-1, required=True, shell_complete=targets)
@takes_format
@click.option(
    "--machine",
    metavar="NAME",
    default=MACHINE,
    show_default=True,
    callback=check_machine,
    help=f"Model the time on a machine: {', '.join(MACHINES)}, or a machine file.",
)
@click.option("--rule", "rules", multiple=True, type=click.Choice([*RULES]), metavar="RULE", help=NOTE_OF_RULES)
@click.option(
    "--least",
    type=float,
    default=LEAST * 100,
    show_default=True,
    metavar="PERCENT",
    callback=_share,
    help="Omit issues whose cost is below this share of the program's time, or of the bytes of its arguments.",
)
@click.option(
    "--source-root",
    type=click.Path(exists=True, file_okay=False),
    help="Also read comments in source files from this folder that the HLO text names.  [default: none]",
)
@takes_all
def lint(target: tuple[str, ...], machine: str, rules: tuple[str, ...], least: float, source_root: str | None) -> None:
    """Report valid code that is costly or surprising, with a fix.

    Each issue shows your source line, an explanation, the cost in bytes and in time on a machine, and a fix. A program
    that is annotated with shardings is partitioned first. `xbuild explain RULE` explains a rule, and docs/lint.md has
    an example of each rule.

    To allow an issue, put the comment `# xbuild: allow RULE` on its line. A comment that does not apply to any issue is
    reported. The command reads comments in the files of a target FILE.py:NAME, and in the files below --source-root.

    The exit status is 0 if the command finds no issues, and 1 if it finds any.
    """
    applied = [RULES[name] for name in rules or RULES]
    root = None if source_root is None else Path(source_root)
    several = [module for each in dict.fromkeys(target) for module in module_targets(each)]
    results: list[Result] = []
    code = 0
    for each in several:
        loaded = _load(each, is_alone=len(several) == 1)
        if isinstance(loaded, XbuildError | TargetError):
            code = REFUSED
            results.append((each, REFUSAL, issues_of(loaded, each)))
            if not prints_document():
                say(f"{each}  unread: {str(loaded).partition(chr(10))[0]}")
            continue
        program, whole = loaded
        readable = Readable(target_files.file_of(each).endswith(".py"), root)
        report = lint_program(program, named_machine(machine), None, applied, least, readable, whole)
        code = code if report else REFUSED
        results.append((each, report.to_dict(), report.issues))
        if not prints_document():
            say_lines([*_lines(each, report, is_alone=len(several) == 1)])
    if prints_document():
        say_programs(results)
    sys.exit(code)


def _load(target: str, is_alone: bool) -> tuple[Module | ModuleGroup, Module | None] | XbuildError | TargetError:
    """The program of a target, and that before XLA partitioned it if it is known.

    For one of several modules of a dump that cannot be read, the error; the others are read on.
    """
    try:
        if target.rpartition(":")[0].endswith(".py"):
            program, whole = target_files.load_with_global(target)
            return module_of(program), whole if isinstance(whole, Module) else None
        return module_of(read_target(target)), None
    except TargetError as error:
        if not is_alone and is_dump(target.partition("#")[0]):
            return error
        raise click.UsageError(str(error)) from None
    except (UserError, XbuildError) as error:
        if isinstance(error, XbuildError) and not is_alone and is_dump(target.partition("#")[0]):
            return error
        raise refuse(error, target) from None


def _lines(target: str, report: LintReport, is_alone: bool) -> Iterator[Line]:
    """The lines of a report; below its target if there are several."""
    lines = report_lines(report, shows_all(), report_width(), MORE)
    if is_alone:
        yield from lines
        return
    yield (StyledText(in_line(target), "title"),)
    yield from (("  ", *line) if line else line for line in lines)
    yield ()
