"""`xbuild hang`: from the dumps of a stuck job to the ranks that caused it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click

import xbuild
from shape_inference import XbuildError
from shape_inference.escaping import in_line

from ..core.report_text import labelled
from ..files import targets as target_files
from ..files.dumps import DumpedModule
from ..files.targets import Program
from ..hangs import Diagnosis, DumpError, diagnose, read_job
from ..hangs.collecting import HOW
from ..hangs.page import page_text
from ..hangs.programs import ProgramFindings, best_program
from ..hangs.reading import find_program
from ..hangs.records import StuckJob
from ..hangs.redaction import redact_job
from ..stablehlo.reading.either import is_mlir
from ..text.reader import parse_hlo
from .candidates import targets
from .dumps import only_compiled_by
from .formats import VERSION
from .group import REFUSED, load, main, module_of, module_targets, read_target
from .options import check_page, shows_all, takes_all
from .outputs import MORE, check_distinct, report_width, say, say_json, say_lines, write_atomically


@main.command()
@click.argument("dumps", nargs=-1, metavar="DUMPS...", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--page", type=click.Path(dir_okay=False), metavar="FILE.html", help="Also write a page about the job.")
@click.option(
    "--program",
    metavar="TARGET",
    shell_complete=targets,
    help="Show where in this program each rank is, and whether healthy machines would hang, too.",
)
@click.option("--redact", is_flag=True, help="Replace paths, hosts and names in the report and the page.")
@click.option("--how", type=click.Choice([*HOW]), help="Print how to take dumps, and read none.")
@takes_all
def hang(
    dumps: tuple[str, ...], as_json: bool, page: str | None, program: str | None, redact: bool, how: str | None
) -> None:
    """Find the ranks that caused a hang, from the dumps of the stuck job.

    DUMPS are files, or folders with the dumps of all ranks. A dump can come from PyTorch's Flight Recorder (pickle or
    JSON), NCCL RAS (text or JSON) or NCCL Inspector, or be a log of XLA, of `xbuild guard` or of a launcher, or a TPU
    digest. The rank of a dump is the number in its file name. Pickles are read without being executed.

    The report names the ranks at fault, with the line of your code where they are, and the ranks that wait because
    of them, and states what the dumps cannot show.

    With --program, the report also shows where in the program each rank is, why the next collective is missing, and how
    to fix it. TARGET is a program, a dump folder, or the folder of `xbuild guard --report`; if it
    contains several modules, the one that best matches the dumps is used. Programs among DUMPS are used as TARGET.

    The exit status is 1 if ranks are at fault, or a collective is incomplete or failed; else it is 0.

    \b
    Examples:
      xbuild hang dumps/
      xbuild hang dumps/ launcher.log --page hang.html --redact
      xbuild hang stderr.log --program step.hlo
      xbuild hang --how torch
    """
    if how is not None:
        if dumps:
            raise click.UsageError("--how reads no dumps; use it alone")
        say(HOW[how], nl=False)
        return
    if not dumps:
        raise click.UsageError(
            "name the dumps, or the folder that holds them; `xbuild hang --how torch` says how to take dumps"
        )
    if redact and program is not None:
        raise click.UsageError("--redact and --program cannot be used together: the program contains names and paths")
    if page is not None:
        check_page(page)
        check_distinct({f"DUMPS, {path}": path for path in dumps}, {"--page": page})
    for path in dumps:
        if not Path(path).exists():
            raise click.UsageError(f"{path}: no such file or folder")
    try:
        job = read_job(dumps)
    except DumpError as error:
        raise click.UsageError(str(error)) from None
    found = diagnose(redact_job(job) if redact else job)
    taken = find_program(job, dumps) if program is None and job.programs and not redact else None
    beside = None
    if taken is not None:
        try:
            beside = _find_in_program(found, taken, read_target)
        except (click.UsageError, target_files.TargetError, target_files.UserError, XbuildError) as error:
            found.job.add_limit(f"{taken} is not used as --program: {str(error).partition(chr(10))[0]}")
            taken = None
    elif program is not None:
        beside = _find_in_program(found, program)
    if as_json:
        more = {} if beside is None else {"program": beside.to_dict()}
        say_json({"schema": f"xbuild.hang/{VERSION}", **found.to_dict(), **more})
    else:
        say_lines(found.lines(shows_all(), report_width(), MORE))
        if beside is not None:
            say_lines([(), *beside.lines(report_width())])
        for notice in _notices(job, program, taken, redact):
            say_lines(labelled("note", notice, report_width(), "dim"))
    if page is not None:
        write_atomically(Path(page), page_text(found, [] if beside is None else [(), *beside.lines()]))
        say(f"wrote {page}", err=as_json)
    sys.exit(REFUSED if found.roots or job.rendezvous or job.guarded or job.is_failed else 0)


def _notices(job: StuckJob, program: str | None, taken: str | None, redact: bool) -> Iterator[str]:
    """What the report says about --program at its end."""
    if taken is not None:
        yield f"{in_line(taken)} is used as --program"
    elif redact and job.programs:
        yield "the programs among DUMPS are not used with --redact, because they contain names and paths"
    elif program is None and not _names_lines(job):
        yield "with the program, --program TARGET names the instruction and the line where the ranks are"


def _names_lines(job: StuckJob) -> bool:
    """Whether the dumps themselves name lines of the user."""
    return any(each.report for each in job.guarded) or {*job.formats} <= {"Flight Recorder", "log of a launcher"}


def _find_in_program(found: Diagnosis, target: str, read: Callable[[str], Program] = load) -> ProgramFindings:
    """The findings in the program of a target, or in the module of a dump that fits best."""
    beside = best_program(found, (module_of(read(each)) for each in module_targets(target)))
    folder = target_files.split_target(target)[0]
    if target_files.is_dump(folder):
        _compare_processes(found, beside, folder)
    return beside


def _compare_processes(found: Diagnosis, beside: ProgramFindings, folder: str) -> None:
    """Add what only some processes of a dump compiled, and how the programs differ that have the name of this one."""
    by_name: dict[str, dict[int, DumpedModule]] = {}
    for module in target_files.modules_in_folder(folder):
        if module.process is not None:
            by_name.setdefault(module.name, {})[module.process] = module
    everyone = {process for modules in by_name.values() for process in modules}
    late = {root.rank for root in found.roots}
    for each, modules in by_name.items():
        lacking = everyone - modules.keys()
        if lacking and module_of(read_target(str(min(modules.items())[1].stages[-1].path))).num_devices > 1:
            beside.processes += (only_compiled_by(each, modules, lacking),)
            beside.processes_hang |= bool(late) and late <= modules.keys()  # those that still run are in it
    name = beside.name
    modules = by_name.get(name, {})
    if len(modules) < 2:
        return
    texts = {process: target_files.text_of_file(module.stages[-1].path) for process, module in modules.items()}
    if any(is_mlir(text) for text in texts.values()):
        return
    devices = max(parse_hlo(text, f"<process {process}>").num_devices for process, text in texts.items())
    compared = xbuild.guard.compare_programs(dict.fromkeys(texts, name), texts, devices)
    if compared.groups:
        first = "" if compared.verdict is None else _first_line(compared.verdict)
        beside.processes_hang |= compared.is_refused
        beside.processes += (str(compared), *([first] if compared.is_refused else []))


def _first_line(verdict: xbuild.Verdict) -> str:
    """The first line of a report, with the source line of the first instruction that it names."""
    first = str(verdict).partition("\n")[0]
    sources = [each.source for found in verdict.findings[:1] for each in found.instructions if each.source is not None]
    return f"{first}, {sources[0]}" if sources else first
