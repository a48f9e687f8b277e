"""Options of commands that keep a run: the step page, the folder of the trace, and limits for refused programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from attrs import define, field

from ..core.graph import Module, ModuleGroup
from ..traces import Trace, TraceError
from ..traces.folder import apart_from
from .group import Command
from .support.machines import known_machine
from .support.partition_option import parts

SECONDS, TRIPS = 3.0, 100_000
"""Default limits on the seconds and trips of the run of a refused program."""


def _is_page(asked: Any, attribute: Any, page: str | None) -> None:
    if page is None:
        return
    if Path(page).suffix not in (".html", ".htm"):
        raise click.UsageError(f"--page {page}: a page is a file of HTML; a name that ends in .html is wanted")
    in_a_folder(page)


def in_a_folder(path: str) -> None:
    """A usage error where the folder of a file that is to be written does not exist."""
    if not Path(path).absolute().parent.is_dir():
        raise click.UsageError(f"{path}: there is no such folder")


def apart(folder: str | None, *files: str | None) -> None:
    """A usage error where a file of the command stands in the folder of its trace."""
    if folder is None:
        return
    try:
        apart_from(Path(folder), [each for each in files if each])
    except TraceError as error:
        raise click.UsageError(str(error)) from None


def takes_source_root(command: Command) -> Command:
    """A decorator that adds the option --source-root to a command that writes a page."""
    told = "Folder of the source files that HLO text or a trace names, to be shown in the page.  [default: none]"
    return click.option("--source-root", type=click.Path(exists=True, file_okay=False), help=told)(command)


def takes_machine(command: Command) -> Command:
    """A decorator that adds the option --machine to a command that writes a page."""
    told = "A machine, as of `xbuild cost`: the lanes of the page are there in the proportions of modelled time, too."
    return click.option("--machine", metavar="NAME", callback=known_machine, help=told)(command)


@define
class Asked:
    """Where a run is kept (a page, a folder, both or neither), and how much of its values."""

    page: str | None = field(default=None, validator=_is_page)
    folder: str | None = None
    sampling: dict[str, int] = field(factory=dict)
    source_root: str | None = None
    machine: str | None = None

    def __bool__(self) -> bool:
        return self.page is not None or self.folder is not None

    @property
    def options(self) -> dict[str, Any]:
        if self.folder is not None:
            return {"origins": self.page is not None, "folder": self.folder, **self.sampling}
        return {"origins": True, "bytes": 1 << 30}

    def keep(self, found: Trace) -> None:
        """Write the page of a trace, if a page is asked for."""
        if self.page is None:
            return
        from ..pages import write_page

        cut = None if (of_command := parts()) is None else of_command.partitioned
        try:
            write_page(found, self.page, source_root=self.source_root, machine=self.machine, partitioned=cut)
        except OSError as error:
            raise click.UsageError(f"{self.page}: {error.strerror}") from None


def executed(program: Module | ModuleGroup, arguments: list[Any], asked: Asked, **options: Any) -> tuple[Any, Any]:
    """The results of a run and the StrictFailure that it ended with; raises what `execute` raises, after keeping it."""
    from ..running import Refused, Stopped, StrictFailure, execute, tracing

    if not asked:
        try:
            return execute(program, arguments, **options), None
        except StrictFailure as failure:
            return failure.results, failure
    try:
        found, end = _kept(tracing.traced, program, arguments, **asked.options, **options)
    except Refused as refused:
        asked.keep(_kept(refused_trace, program, arguments, refused.verdict, asked.options, **options))
        raise
    asked.keep(found)
    if isinstance(end, Stopped):
        raise end
    return found.results, end


def _kept(run: Any, *given: Any, **options: Any) -> Any:
    try:
        return run(*given, **options)
    except TraceError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.UsageError(f"{error.filename}: {error.strerror}") from None


def refused_trace(
    program: Module | ModuleGroup, arguments: list[Any], verdict: Any, options: dict[str, Any], **given: Any
) -> Trace:
    """The trace of a refused program, run in recorded order until it is stuck; empty where it cannot be run."""
    from attrs import evolve

    from ..running import Limits, trace, tracing

    limits = given.pop("limits", None) or Limits()
    seconds = SECONDS if limits.seconds is None else limits.seconds
    limits = evolve(limits, seconds=seconds, trips=TRIPS if limits.trips is None else limits.trips)
    try:
        return trace(program, arguments, check=False, limits=limits, **options, **given)
    except (TraceError, OSError):
        raise
    except Exception:  # a program that is refused for its structure may fail in any way
        found = tracing.without_run(program, verdict)
        if options.get("folder") is not None:
            found.save(options["folder"])
        return found
