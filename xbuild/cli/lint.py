"""`xbuild lint`: valid code that is costly or surprising."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from attrs import frozen

from shape_inference import XbuildError
from shape_inference.escaping import in_line

from ..core.graph import Module, ModuleGroup
from ..core.report_text import Line, StyledText, wrapped
from ..files import targets as target_files
from ..files.dumps import Stage
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
    help="Also read comments in the source files in this folder that the HLO text mentions.  [default: none]",
)
@takes_all
def lint(target: tuple[str, ...], machine: str, rules: tuple[str, ...], least: float, source_root: str | None) -> None:
    """Report valid code that is costly or surprising, with a fix.

    Each issue shows your source line, an explanation, the cost in bytes and in time on a machine, and a fix. If a
    program has sharding annotations, the command partitions it first. `xbuild explain RULE` explains a rule, and
    docs/lint.md has an example of each rule.

    To allow an issue, put the comment `# xbuild: allow RULE` on its line. A comment that does not apply to any issue is
    reported. The command reads comments in the files of a target FILE.py:NAME, and in the files below --source-root.

    For a dump folder, the command reports on the last stage of each module (with --all, on every stage), and names the
    modules without issues last. If one of
    several programs cannot be read, the command reports the error and continues.

    The exit status is 0 if the command finds no issues, and 1 if it finds any or cannot read one of several programs.
    """
    applied = [RULES[name] for name in rules or RULES]
    root = None if source_root is None else Path(source_root)
    texts = [*_texts(target)]
    is_alone = len(texts) == 1
    results: list[Result] = []
    clean: list[str] = []
    code = 0
    for each in texts:
        readable = Readable(target_files.file_of(each.target).endswith(".py"), root)
        try:
            program, whole = _load(each)
            report = lint_program(program, named_machine(machine), None, applied, least, readable, whole)
        except (TargetError, UserError, XbuildError) as error:
            _say_unread(each, error, is_alone)
            code = REFUSED
            results.append((each.target, REFUSAL, issues_of(error, each.target)))
            continue
        code = code if report else REFUSED
        results.append((each.target, report.to_dict(), report.issues))
        if report and each.is_of_dump and not (is_alone or report.notes or report.allowed or shows_all()):
            clean.append(each.title)
        elif not prints_document():
            say_lines([*_lines(each.title, report, is_alone)])
    if clean and not prints_document():
        say_lines(_clean_lines(clean, sum(each.is_of_dump for each in texts)))
    if prints_document():
        say_programs(results)
    sys.exit(code)


@frozen
class _Text:
    """A program to lint: its target, the title of its report, and the text of a dump that it is, if --all names it."""

    target: str
    title: str
    stage: Stage | None = None

    @property
    def is_of_dump(self) -> bool:
        return self.stage is not None or is_dump(self.target.partition("#")[0])


def _texts(targets: Sequence[str]) -> Iterator[_Text]:
    """The modules of the targets; with --all, every text of those that are dumps."""
    for each in dict.fromkeys(targets):
        if shows_all() and is_dump(each):
            from .dumps import label_of, stages_of

            for module in target_files.modules_in_folder(each):
                for stage in stages_of(module, "", all_stages=True):
                    yield _Text(str(stage.path), f"{each}#{label_of(module, stage, all_stages=True)}", stage)
        else:
            yield from (_Text(module, module) for module in module_targets(each))


def _load(text: _Text) -> tuple[Module | ModuleGroup, Module | None]:
    """The program, and that before XLA partitioned it if it is known."""
    if text.stage is not None:
        from .dumps import read_stage

        return read_stage(text.stage), None
    if text.target.rpartition(":")[0].endswith(".py"):
        program, whole = target_files.load_with_global(text.target)
        return module_of(program), whole if isinstance(whole, Module) else None
    return module_of(read_target(text.target)), None


def _say_unread(text: _Text, error: TargetError | UserError | XbuildError, is_alone: bool) -> None:
    """Report one of several programs that cannot be read: on one line for a dump, else in full on stderr.

    Ends the command if there is only one, or if the target names no program.
    """
    if isinstance(error, TargetError) and (is_alone or not text.is_of_dump):
        raise click.UsageError(str(error)) from None
    if is_alone:
        raise refuse(error, text.target) from None
    if not text.is_of_dump:
        say(str(error), err=True)
    elif not prints_document():
        say(f"{text.title}  unread: {str(error).partition(chr(10))[0]}")


def _clean_lines(titles: Sequence[str], count: int) -> list[Line]:
    """One paragraph for the modules of dumps without issues, after those with issues."""
    names = [in_line(each.partition("#")[2] or each) for each in titles]
    clean = f"clean: {len(names)} of {count} modules have nothing to report: {', '.join(names)}"
    return [(StyledText(line, "good"),) for line in wrapped(clean, report_width())]


def _lines(title: str, report: LintReport, is_alone: bool) -> Iterator[Line]:
    """The lines of a report; below its title if there are several."""
    lines = report_lines(report, shows_all(), report_width(), MORE)
    if is_alone:
        yield from lines
        return
    yield (StyledText(in_line(title), "title"),)
    yield from (("  ", *line) if line else line for line in lines)
    yield ()
