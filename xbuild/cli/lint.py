"""`xbuild lint`: what is not an error in a program, but costs or surprises."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from shape_inference import XbuildError
from shape_inference.escaping import in_line

from ..core.graph import Module, ModuleGroup
from ..core.report_text import StyledText
from ..files import targets as target_files
from ..files.targets import is_dump
from ..linting import RULES
from ..linting.comments import Readable
from ..linting.linter import LEAST, MACHINE, LintReport, lint_program, report_lines
from ..timelines.machines import MACHINES
from ..timelines.machines import machine as named_machine
from .candidates import targets
from .group import REFUSED, counts_given, load, main, module_of, module_targets, report_target_errors
from .options import check_machine, shows_all, takes_all
from .outputs import MORE, report_width, say, say_json, say_lines


def _least(_: click.Context, parameter: click.Parameter, value: float) -> float:
    if not 0 <= value <= 100:
        raise click.BadParameter(f"{value:g} is not a percentage from 0 to 100.", param=parameter)
    return value / 100


def _source_root(_: click.Context, __: click.Parameter, value: str | None) -> Path | None:
    return None if value is None else Path(value)


@main.command()
@click.argument("target", metavar="TARGET [TARGETS]", nargs=-1, required=True, shell_complete=targets)
@click.option("--json", "as_json", is_flag=True, help="Print the facts of the report as JSON on stdout.")
@click.option(
    "--machine",
    metavar="NAME",
    default=MACHINE,
    show_default=True,
    callback=check_machine,
    help=f"Model the time on this machine: {', '.join(MACHINES)}, or a machine file.",
)
@click.option("--rule", "rules", multiple=True, type=click.Choice([*RULES]), metavar="RULE",
              help="Apply only this rule. Repeat the option for several rules.")  # fmt: skip
@click.option(
    "--least",
    type=float,
    default=LEAST * 100,
    show_default=True,
    metavar="PERCENT",
    callback=_least,
    help="Leave out costs below this share of the program's time, or of the bytes of its arguments.",
)
@click.option(
    "--source-root",
    type=click.Path(exists=True, file_okay=False),
    callback=_source_root,
    help="Read comments `# xbuild: allow RULE` in the source files in this folder, if the HLO text names them.  "
    "[default: none]",
)
@takes_all
def lint(
    target: tuple[str, ...], as_json: bool, machine: str, rules: tuple[str, ...], least: float, source_root: Path | None
) -> None:
    """Report what is not an error in a program but costs or surprises, with a fix.

    Each issue has the line of the user's code, a sentence, the bytes and the time that it costs on a machine, and a
    fix. A program that is annotated with shardings is partitioned first. `xbuild explain RULE` explains a rule, and
    docs/lint.md has an example of each.

    The comment `# xbuild: allow RULE` on the line of an issue allows it; a comment that allows nothing is reported.
    Comments are read in the files of a target FILE.py:NAME, and in those below --source-root.

    The exit status is 0 if there are no issues, and 1 if there are some.
    """
    found = named_machine(machine)
    applied = [RULES[name] for name in rules or RULES]
    several = [*_modules(target)]
    codes, reports = [], []
    for each in several:
        loaded = _load(each, is_alone=len(several) == 1)
        if isinstance(loaded, str):
            say(f"{each}  unread: {loaded}", err=as_json)
            codes.append(REFUSED)
            continue
        program, whole = loaded
        readable = Readable(target_files.file_of(each).endswith(".py"), source_root)
        report = lint_program(program, found, None, applied, least, readable, whole)
        codes.append(REFUSED if report.issues else 0)
        reports.append((each, report))
        if not as_json:
            _say_report(each, report, is_alone=len(several) == 1)
    if as_json:
        facts = [{"target": name, **report.to_dict()} for name, report in reports]
        say_json(facts[0] if len(several) == 1 and facts else facts)
    sys.exit(max(codes, default=0))


def _modules(given: tuple[str, ...]) -> Iterator[str]:
    """A target for each module; of a dump the last text of each."""
    for each in dict.fromkeys(given):
        yield from module_targets(each)


def _load(target: str, is_alone: bool) -> tuple[Module | ModuleGroup, Module | None] | str:
    """The program of a target, and that before XLA partitioned it if it is known.

    For one of several modules of a dump that cannot be read, the reason; the others are read on.
    """
    if target.rpartition(":")[0].endswith(".py") and not counts_given("stage"):
        with report_target_errors():
            program, whole = target_files.load_with_global(target)
        return module_of(program), whole if isinstance(whole, Module) else None
    if is_alone or not is_dump(target.partition("#")[0]):
        return module_of(load(target)), None
    try:
        return module_of(target_files.load(target, **counts_given("stage"))), None
    except (target_files.TargetError, XbuildError) as error:
        return str(error).partition("\n")[0]


def _say_report(target: str, report: LintReport, is_alone: bool) -> None:
    lines: list[Any] = [*report_lines(report, shows_all(), report_width(), MORE)]
    if not is_alone:
        lines = [(StyledText(in_line(target), "title"),), *(("  ", *line) if line else line for line in lines), ()]
    say_lines(lines)
