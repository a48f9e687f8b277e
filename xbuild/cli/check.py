"""`xbuild check`: the verdict on a program."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

import xbuild
from shape_inference.escaping import printable

from .group import REFUSED, each_of, load, main, module_of, needs, takes_target
from .keeping import Asked, in_a_folder, refused_trace, takes_source_root
from .run import SEED, arguments_of
from .support.partition_option import takes_partition
from .support.paths import distinct, target_of
from .support.saying import painted, say, say_json, say_painted
from .viz import form_of, takes_theme, write, write_folder


@main.command()
@takes_target
@takes_partition
@click.option("--json", "as_json", is_flag=True, help="Print the facts of the report as JSON, on stdout.")
@click.option(
    "--send-buffers",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="How many sends of a channel may go on before their recvs are posted.",
)
@click.option(
    "--picture",
    type=click.Path(dir_okay=False),
    help="File for a picture of the verdict, .svg or .txt, with a lane for each device.",
)
@click.option(
    "--page",
    type=click.Path(dir_okay=False),
    help="File for a page, FILE.html, that replays a run up to where it ends or is stuck.",
)
@takes_source_root
@click.option(
    "--repair",
    metavar="PATH",
    help="File for the program in the repaired order, FILE.hlo; a folder where devices run different programs.",
)
@click.option(
    "--random", "seed", type=SEED, metavar="SEED", help="Seed of the random arguments for --page.  [default: 0]"
)
@takes_theme
@click.option("--strict", is_flag=True, help="Exit status 1 for the verdict depends, too.")
def check(
    target: str,
    as_json: bool,
    send_buffers: int,
    picture: str | None,
    theme: str,
    page: str | None,
    source_root: str | None,
    repair: str | None,
    seed: int | None,
    strict: bool,
) -> None:
    """Say whether a program can deadlock, and what mends it, without running it.

    The report is on stdout, and on stderr where the program is refused. Names of files that are written are on stdout,
    and with --json on stderr. Exit status: 0 for ok and depends (1 with --strict for depends), 1 for error and
    deadlock.

    "no schedule can deadlock" holds for every order that keeps the operands and control edges, so that a compiler may
    reorder the program. "the recorded order runs to its end" and "the given schedule runs to its end" hold for that
    order alone: another one may deadlock. `xbuild explain verdict` says more.

    With --page the program is run in the order in which it stands, until it ends or is stuck. With --repair it is
    written as a schedule that runs: in the order that the report suggests, or, where the program has no schedule, in
    the one that the check has found.
    """
    needs("--picture", picture, "theme")
    needs("--page", page, "seed", "source_root")
    found = each_of(target, "as_json", "picture", "page", "repair")
    if len(found) > 1:
        sys.exit(max([_check_named(each, send_buffers, strict) for each in found]))
    form, asked = _form(picture), Asked(page, source_root=source_root)
    distinct(target_of(target), {"--picture": picture, "--page": page, "--repair": repair})
    program = module_of(load(target))
    if repair is not None:
        _check_place(program, Path(repair))
    arguments = [] if page is None else arguments_of(program, None, seed or 0)
    verdict = xbuild.check(program, send_buffers=send_buffers)
    if page is not None:
        asked.keep(refused_trace(program, arguments, verdict, asked.options, send_buffers=send_buffers))
        say(page, err=as_json)
    if picture is not None:
        write(xbuild.viz(verdict, theme=theme).render(form), picture, err=as_json)
    if as_json:
        say_json(verdict.to_dict())
    else:
        _say_report(verdict)
    _say_what_decides(verdict)
    if repair is not None:
        _write_repaired(verdict, repair, as_json)
    sys.exit(_exit_code(verdict, strict))


def _check_named(target: str, send_buffers: float, strict: bool) -> int:
    """Print the report of one module of several, below a line with its name; gives the exit code for it."""
    try:
        program = module_of(load(target))
    except SystemExit as end:
        return int(end.code or 0)
    verdict = xbuild.check(program, send_buffers=send_buffers)
    name = program.name if isinstance(program, xbuild.Module) else ""
    say(f"{target}  {name}".rstrip(), err=verdict.refused)
    _say_report(verdict)
    _say_what_decides(verdict)
    return _exit_code(verdict, strict)


def _exit_code(verdict: xbuild.Verdict, strict: bool) -> int:
    return REFUSED if verdict.refused or (strict and verdict.kind == "depends") else 0


def _say_report(verdict: xbuild.Verdict) -> None:
    say_painted(_coloured(str(verdict), verdict.kind), err=verdict.refused)


def _say_what_decides(verdict: xbuild.Verdict) -> None:
    if verdict.kind == "ok" and verdict.scope != "every":
        say(f"notice: {_ONE_ORDER}", err=True)
    if any("not partitioned yet" in note for note in verdict.notes):
        say("notice: with --partition what each device runs is checked", err=True)
    if verdict.kind == "depends":
        say("notice: data decides whether this program comes to an end; the run will show it", err=True)


def _check_place(program: xbuild.Module | xbuild.ModuleGroup, path: Path) -> None:
    """A usage error unless the path can be written as a target: a file for one program, a folder for several."""
    if isinstance(program, xbuild.Module):
        if path.is_dir() or path.suffix not in (".hlo", ".txt"):
            raise click.UsageError(f"--repair {path}: one program is for all devices; a file FILE.hlo is wanted")
    elif path.exists() and not path.is_dir():
        raise click.UsageError(f"--repair {path} is a file; there is a program for each device, and a folder is wanted")
    elif path.exists() and (names := sorted(os.listdir(path))):
        raise click.UsageError(
            f"--repair {path} holds {names[0]!r}; there is a program for each device, "
            "and a new or empty folder is wanted"
        )
    else:
        in_a_folder(str(path))


def _write_repaired(verdict: xbuild.Verdict, path: str, as_json: bool) -> None:
    """Write the repaired program: one program to a file, the programs of several devices to a folder."""
    try:
        found = xbuild.repaired(verdict)
    except ValueError:
        say(f"notice: {path} is not written: {_unmended(verdict)}", err=True)
        return
    if isinstance(found, xbuild.Module):
        write(found.to_hlo(), path, err=as_json)
    else:
        names = {f"device{device}.hlo": module.to_hlo() for device, module in found.modules.items()}
        write_folder(names, Path(path))
        for name in names:
            say(str(Path(path) / name), err=as_json)
    if verdict.repair is None:
        say(f"notice: {_MENDED[verdict.refused]}", err=True)


_MENDED = {
    True: "the program had no schedule: instructions that waited for each other got tokens of their own, and the order "
    "that now runs is written as a schedule",
    False: "the program had no schedule; the order that runs is written as one",
}


def _unmended(verdict: xbuild.Verdict) -> str:
    if verdict.kind == "ok":
        return "the program needs no repair"
    if verdict.kind == "depends":
        return "no order changes what the data decide; the report says what to change in the program"
    return "no other order mends it; the report says what to change in the program"


def _form(picture: str | None) -> str:
    form = form_of(picture)
    if form not in ("svg", "txt"):
        raise click.UsageError(f"a verdict is drawn as svg or txt, not as {form}")
    return form


_ONE_ORDER = "another order of the same instructions may deadlock; `xbuild explain ok` says what this verdict promises"

_COLOURS = {"ok": "green", "depends": "yellow"}


def _coloured(report: str, kind: str) -> str:
    first, line, rest = report.partition("\n")
    return painted(first, fg=_COLOURS.get(kind, "red"), bold=True) + line + printable(rest)
