"""`xbuild step`: steps through a run in the terminal, forward and back."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import click

from ..traces import Trace
from ..traces.disk import is_trace
from .group import RUN_SECONDS, Amount, given, load, main, module_of, reported
from .keeping import refused_trace
from .run import DENORMALS, SEED, arguments_of
from .support.candidates import targets
from .support.partition_option import parts, say_not_partitioned, takes_partition
from .support.saying import say
from .trace import opened


@main.command()
@click.argument("target", metavar="TARGET|DIR", shell_complete=targets)
@takes_partition
@click.option(
    "--inputs",
    type=click.Path(exists=True, dir_okay=False),
    help="File of arguments, FILE.npz: d<device>_arg<i>, or arg<i> for every device.",
)
@click.option("--random", "seed", type=SEED, metavar="SEED", help="Seed of random arguments.")
@click.option(
    "--send-buffers",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="How many sends of a channel may go on before their recvs are posted.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Report values that were clamped, dropped or out of range, and where NaN or infinity is born.",
)
@click.option(
    "--denormals",
    type=DENORMALS,
    default="flush",
    help="Whether denormal numbers become zero, as in XLA:CPU, or are kept.",
    show_default=True,
)
@click.option("--max-seconds", type=Amount(), help="Limit on the seconds of the run.  [default: 3600]")
def step(target: str, inputs: str | None, seed: int | None, max_seconds: float | None, **options: Any) -> None:
    """Step through a run, forward and back, in the terminal.

    The run is that of the program TARGET, or one that `xbuild run --trace DIR` has kept. Commands go to an instruction,
    a trip of a loop, a device or a value, and show the program, the values, and which device waits for which; `help`
    lists them.

    Commands are read from the terminal, or from stdin; a script in which a command cannot be done ends with exit status
    1. Colours need the package rich, and are left out where NO_COLOR is set. A program that is refused is run until
    it is stuck.
    """
    from ..stepping import Shell

    if Path(target).is_dir() and is_trace(target):
        if wrong := given("inputs", "seed", "partition", "send_buffers", "strict", "denormals", "max_seconds"):
            raise click.UsageError(f"{wrong[0]} is for a run, and {target} is the trace of one that has been")
        found = opened(target)
    else:
        found = _run(target, inputs, seed, max_seconds, options)
    read = io.StringIO() if sys.stdin is None else sys.stdin  # stdin is None where it is closed
    typed = read.isatty()
    if typed and (watch := click.get_current_context().obj) is not None:
        watch.stop()  # a session at a terminal has no limit of time: the user can press Ctrl-C
    cut = None if (of_command := parts()) is None else of_command.partitioned
    shell = Shell(found, None if typed else read, sys.stdout, partitioned=cut)
    try:
        shell.cmdloop()
    except KeyboardInterrupt:
        say()
    raise SystemExit(int(shell.failed and not typed))


def _run(target: str, inputs: str | None, seed: int | None, seconds: float | None, options: dict[str, Any]) -> Trace:
    from ..running import Limits, Refused, trace

    program = module_of(load(target))
    say_not_partitioned(program, "run")
    arguments = arguments_of(program, inputs, seed)
    limits = Limits(seconds=RUN_SECONDS if seconds is None else seconds)
    with reported():
        try:
            return trace(program, arguments, limits=limits, **options)
        except Refused as refused:
            return refused_trace(program, arguments, refused.verdict, {}, limits=limits, **options)
