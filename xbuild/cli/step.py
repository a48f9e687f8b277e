"""`xbuild step`: steps through a run in the terminal, forward and back."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import click

from ..traces import Trace
from ..traces.disk import is_trace
from .candidates import targets
from .group import RUN_SECONDS, Amount, given, load, main, module_of, reported
from .keeping import refused_trace
from .run import DENORMALS, SEED, arguments_of
from .saying import say
from .trace import opened


@main.command()
@click.argument("target", metavar="TARGET|DIR", shell_complete=targets)
@click.option(
    "--inputs", type=click.Path(exists=True, dir_okay=False), help="FILE.npz of arguments: d<device>_arg<i>, or arg<i>."
)
@click.option("--random", "seed", type=SEED, metavar="SEED", help="Random arguments from this seed.")
@click.option(
    "--send-buffers",
    type=click.IntRange(min=0),
    default=0,
    help="Sends of a channel that may go on before their recvs are posted.",
)
@click.option("--strict", is_flag=True, help="Report what was clamped, dropped, out of range, or born NaN or inf.")
@click.option(
    "--denormals",
    type=DENORMALS,
    default="flush",
    help="Whether denormal numbers become zero, as in XLA, or are kept.",
    show_default=True,
)
@click.option("--max-seconds", type=Amount(), help="Limit on the seconds of the run.  [default: 3600]")
def step(target: str, inputs: str | None, seed: int | None, max_seconds: float | None, **options: Any) -> None:
    """Run a program, or open the trace of a folder, and go through it: forward and back, to an instruction, a trip, a
    device, a value; with the program around, the values, and who waits for whom. `help` lists the commands.

    They are read from the terminal, in colour where rich is installed and NO_COLOR is not set, or from stdin; a script
    in which one of them cannot be done ends with 1. A program that is refused is run until it is stuck.
    """
    from ..stepping import Shell

    if Path(target).is_dir() and is_trace(target):
        if wrong := given("inputs", "seed", "send_buffers", "strict", "denormals", "max_seconds"):
            raise click.UsageError(f"{wrong[0]} is for a run, and {target} is the trace of one that has been")
        found = opened(target)
    else:
        found = _run(target, inputs, seed, max_seconds, options)
    read = io.StringIO() if sys.stdin is None else sys.stdin  # stdin is None where it is closed
    typed = read.isatty()
    if typed and (watch := click.get_current_context().obj) is not None:
        watch.stop()  # a session at a terminal has no limit of time: the user can press Ctrl-C
    shell = Shell(found, None if typed else read, sys.stdout)
    try:
        shell.cmdloop()
    except KeyboardInterrupt:
        say()
    raise SystemExit(int(shell.failed and not typed))


def _run(target: str, inputs: str | None, seed: int | None, seconds: float | None, options: dict[str, Any]) -> Trace:
    from ..running import Limits, Refused, trace

    program = module_of(load(target))
    arguments = arguments_of(program, inputs, seed)
    limits = Limits(seconds=RUN_SECONDS if seconds is None else seconds)
    with reported():
        try:
            return trace(program, arguments, limits=limits, **options)
        except Refused as refused:
            return refused_trace(program, arguments, refused.verdict, {}, limits=limits, **options)
