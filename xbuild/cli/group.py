"""The command `xbuild`, and what its commands share: a target that is loaded, a report that ends in an exit code."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from shape_inference import XbuildError

from .. import targets
from ..graph import Computation, Module, ModuleGroup
from ..targets import Program

Command = TypeVar("Command", bound=Callable[..., Any])

REFUSED = 1


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="xbuild-hlo", prog_name="xbuild")
@click.pass_context
def main(context: click.Context) -> None:
    """Build, read, check, run and see XLA programs.

    TARGET is FILE.py:NAME (a Computation, Module or ModuleGroup, or a function of no arguments that returns one),
    FILE.hlo, or a folder with device0.hlo, device1.hlo and so on. Exit codes: 0 ok, 1 the program is refused or stops, 2 the command is used wrongly.
    """
    if os.environ.get("NO_COLOR"):
        context.color = False


def takes_target(command: Command) -> Command:
    """The argument TARGET of a command."""
    return click.argument("target")(command)


def load(target: str) -> Program:
    """The program that a target names; the command ends where there is none."""
    try:
        return targets.load(target)
    except targets.TargetError as error:
        raise click.UsageError(str(error)) from None
    except targets.UserError as error:
        raise stop(str(error)) from None
    except XbuildError as error:
        raise stop(str(error)) from None


def stop(report: str) -> SystemExit:
    """The end of a command whose program is refused or stops: its report on stderr, and the exit code for it."""
    click.echo(report, err=True)
    return SystemExit(REFUSED)


@contextmanager
def reported() -> Iterator[None]:
    """A run that is refused or stops ends with its report on stderr."""
    from interpreter import Refused, Stopped

    try:
        yield
    except (Refused, Stopped, XbuildError) as report:
        raise stop("\n".join([str(report), *getattr(report, "__notes__", ())])) from None
    except KeyboardInterrupt:
        raise stop("interrupted before the run had begun") from None


def module_of(program: Program) -> Module | ModuleGroup:
    """A computation as the module of one device."""
    return Module(program.name, program) if isinstance(program, Computation) else program


def entries(program: Module | ModuleGroup) -> list[Computation]:
    """The entry of each device's program."""
    if isinstance(program, Module):
        return [program.entry] * program.num_devices
    return [program.modules[device].entry for device in sorted(program.modules)]
