"""The command group `xbuild`, and functions that its commands share: limits, loading of a target, exit codes."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from shape_inference import XbuildError

from ..core.graph import Computation, Module, ModuleGroup
from ..files import targets as programs
from ..files.targets import Program
from .support.candidates import targets
from .support.late import LateCommands
from .support.partition_option import PARTITION, partitioned
from .support.saying import INTERRUPTED, ended, say
from .support.watch import LIMIT, TimeIsOver, limited

Command = TypeVar("Command", bound=Callable[..., Any])

REFUSED = 1


class Amount(click.FloatRange):
    """The type of an option that takes a number of 0 or more; NaN is refused, since no comparison with it holds."""

    def __init__(self) -> None:
        super().__init__(min=0)

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        found = super().convert(value, parameter, context)
        return self.fail(f"{value} is not a number.", parameter, context) if math.isnan(found) else found


SECONDS = 300.0
RUN_SECONDS = 3600.0
"""Default limits on the seconds of a command that reads, checks or draws, and of one that runs a program."""

STARTING = 15
"""Seconds for the start of JAX, which do not count as seconds of a run."""

_MAX_SECONDS = "Limit on the seconds of the command; at the limit it ends with exit status 3."
_MAX_BYTES = "Limit on the memory that the command takes.  [default: half of the machine's]"


def _count_option(name: str) -> click.Option:
    """An option of every command with a target; `load` finds what it is given."""

    def keep(context: click.Context, _: click.Parameter, value: int | None) -> None:
        context.meta[f"xbuild.{name}"] = value

    told = f"Number of {name} of a program in HLO text.  [default: what its header, groups and pairs state]"
    return click.Option(
        [f"--{name}"], type=click.IntRange(min=1), metavar="N", expose_value=False, callback=keep, help=told
    )


def _metavar(kind: object) -> str | None:
    """The word for the value of an option in its help: N for a whole number, X for any; else click's word."""
    return "N" if isinstance(kind, click.IntRange) else "X" if isinstance(kind, click.FloatRange) else None


_SIZE = re.compile(r"([A-Za-z_][\w.]*)=(\d{1,9})", re.ASCII)


def _shape_option() -> click.Option:
    """The option that states the size of a dimension that a text leaves open."""

    def keep(context: click.Context, _: click.Parameter, values: tuple[str, ...]) -> None:
        found = [_SIZE.fullmatch(each) for each in values]
        for value, match in zip(values, found, strict=True):
            if match is None:
                raise click.BadParameter(f"{value!r}: NAME=SIZE is wanted, such as b=4 or arg0.1=4")
        context.meta["xbuild.shapes"] = {match[1]: int(match[2]) for match in found if match}

    told = "Size of a dimension that StableHLO text leaves open, as b=4 or, by argument and dimension, arg0.1=4."
    return click.Option(["--shape"], multiple=True, metavar="NAME=SIZE", expose_value=False, callback=keep, help=told)


class Limited(click.Command):
    """A command with --max-seconds and --max-bytes; a command that declares --max-seconds itself runs a program.

    Such a run ends by itself with a report; the watch of the command allows more time, so that the report is written.
    """

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        if any(each.name == "target" for each in self.params):
            self.params += [*(_count_option(name) for name in ("replicas", "partitions")), _shape_option()]
        for each in self.params:
            if isinstance(each, click.Option) and each.metavar is None and not each.is_flag:
                each.metavar = _metavar(each.type)
        self.runs = any(each.name == "max_seconds" for each in self.params)
        if not self.runs:
            seconds = click.Option(
                ["--max-seconds"], type=Amount(), metavar="S", default=SECONDS, show_default=True, help=_MAX_SECONDS
            )
            limit = click.IntRange(min=0)
            self.params += [seconds, click.Option(["--max-bytes"], type=limit, metavar="N", help=_MAX_BYTES)]

    def invoke(self, context: click.Context) -> Any:
        from ..process.memory import memory

        taken = context.params if self.runs else {key: context.params.pop(key) for key in ("max_seconds", "max_bytes")}
        seconds = RUN_SECONDS if taken["max_seconds"] is None else taken["max_seconds"]
        most = memory() if self.runs else memory() // 2 if taken["max_bytes"] is None else taken["max_bytes"]
        slack = 1 + seconds / 10 + STARTING * (context.params.get("engine", "interpreter") != "interpreter")
        context.obj = None
        try:
            with limited(seconds, most, slack if self.runs else 0) as context.obj:
                return super().invoke(context)
        except XbuildError as error:
            raise stop(str(error)) from None
        except TimeIsOver as over:
            said = str(over)
        except MemoryError:
            said = _no_memory(most, self.runs)
        except RecursionError:
            said = "stopped: the program is nested deeper than can be followed [nested_too_deep]"
        say(said, err=True)
        raise SystemExit(LIMIT)


def _no_memory(most: int, runs: bool) -> str:
    way = "what it keeps is smaller with --trace-bytes" if runs else f"--max-bytes {most * 2} gives more"
    what = f"the command would take more than {most:,} bytes of memory, and is not finished"
    return f"stopped: {what} [limit_bytes]\n  {way}"


class _Group(click.Group):
    """A command that cannot write, or is interrupted, ends with a sentence; a closed pipe is click's."""

    command_class = Limited

    def enter_late(self, table: Mapping[str, tuple[str, str]]) -> None:
        """Enter commands by name, each with the module that has it and the first sentence of its help."""
        self.commands = LateCommands({name: module for name, (module, _) in table.items()})
        self.sentences = {name: told for name, (_, told) in table.items()}

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands, each with the whole first sentence of its help; no module of a command is imported."""
        rows = [(name, self.sentences[name]) for name in self.list_commands(context)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def main(self, *given: Any, standalone_mode: bool = True, **named: Any) -> Any:
        run = partial(super().main, *given, standalone_mode=False, **named)
        if not standalone_mode:
            return run()
        sys.exit(ended(run))


def given(*parameters: str) -> list[str]:
    """The options among these parameters that were given on the command line, as they are spelled there."""
    context = click.get_current_context()
    spelled = {each.name: each.opts[-1] for each in context.command.params}
    return [spelled[p] for p in parameters if context.get_parameter_source(p) is ParameterSource.COMMANDLINE]


def needs(wanted: str, is_there: object, *parameters: str) -> None:
    """A usage error where one of these options is given without the option that it refines."""
    if not is_there and (found := given(*parameters)):
        raise click.UsageError(f"{found[0]} has no effect without {wanted}")


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="xbuild-hlo", prog_name="xbuild")
@click.pass_context
def main(context: click.Context) -> None:
    """Read, check, run, draw and explain XLA programs.

    TARGET is FILE.py:NAME (a Computation, Module or ModuleGroup, or a function of no arguments that returns one),
    FILE.hlo, FILE.mlir or FILE.txt (what XLA or JAX print), or a folder with device0.hlo, device1.hlo and
    so on. Of a file of several modules FILE.hlo#2 or FILE.hlo#NAME is one; check and show take them in turn without
    that.

    Exit codes: 0 ok, 1 the program is refused or stops, 2 the command is used wrongly, 3 the command has come to its
    limit of seconds or bytes, 130 it is interrupted where no run can tell of it.

    `xbuild explain WORD` says what any word of a report means; `xbuild completion bash` prints a script that completes
    commands in a shell.
    """
    if os.environ.get("NO_COLOR"):
        context.color = False


def takes_target(command: Command) -> Command:
    """A decorator that adds the argument TARGET to a command."""
    return click.argument("target", shell_complete=targets)(command)


def load(target: str) -> Program:
    """The program that a target names; the command ends where the target names none."""
    meta = click.get_current_context().meta
    counts = {key: meta[f"xbuild.{key}"] for key in ("replicas", "partitions", "shapes") if meta.get(f"xbuild.{key}")}
    try:
        found = programs.load(target, **counts)
    except programs.TargetError as error:
        raise click.UsageError(str(error)) from None
    except programs.UserError as error:
        raise stop(str(error)) from None
    except XbuildError as error:
        raise stop(str(error)) from None
    _say_counts(found)
    return partitioned(found) if click.get_current_context().meta.get(PARTITION) else found


def each_of(target: str, *single: str) -> list[str]:
    """A target for each module of a file of several; a usage error where an option of one program is given."""
    try:
        found = programs.each_of(target)
    except programs.TargetError as error:
        raise click.UsageError(str(error)) from None
    if len(found) > 1 and (options := given(*single)):
        raise click.UsageError(f"{options[0]} is of one program, and {target} has {len(found)}, as in {found[0]}")
    return found


def _say_counts(program: Program) -> None:
    """Tell on stderr of counts that no header states."""
    sentence = program.annotations.get("inferred_counts") if isinstance(program, Module) else None
    if sentence:
        say(f"{sentence}; the header states none, and --replicas and --partitions say otherwise", err=True)


def stop(report: str) -> SystemExit:
    """Print a report on stderr; gives the exception that ends the command with the exit code for a refused program."""
    say(report, err=True)
    return SystemExit(REFUSED)


@contextmanager
def reported() -> Iterator[None]:
    """Inside, a run that is refused or stops ends the command, with its report on stderr."""
    from ..running import Refused, Stopped

    try:
        yield
    except (Refused, Stopped, XbuildError) as report:
        raise stop("\n".join([str(report), *getattr(report, "__notes__", ())])) from None
    except KeyboardInterrupt:
        say("interrupted, before the run had begun or after its end", err=True)
        raise SystemExit(INTERRUPTED) from None


def module_of(program: Program) -> Module | ModuleGroup:
    """The program as a module; a computation becomes the module of one device."""
    return Module(program.name, program) if isinstance(program, Computation) else program


def entries(program: Module | ModuleGroup) -> list[Computation]:
    """The entry of each device's program."""
    if isinstance(program, Module):
        return [program.entry] * program.num_devices
    return [program.modules[device].entry for device in sorted(program.modules)]
