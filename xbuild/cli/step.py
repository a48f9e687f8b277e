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
from .group import RUN_SECONDS, Amount, load, main, module_of, options_used, report_failures
from .options import (
    partition_or_warn,
    partitioned_target,
    takes_partition,
    takes_runtime,
    takes_send_buffers,
    trace_refused,
)
from .outputs import say
from .run import DENORMALS, SEED, load_arguments
from .trace import open_trace


@main.command()
@click.argument("target", metavar="TARGET|DIR", shell_complete=targets)
@takes_partition
@click.option(
    "--inputs",
    type=click.Path(exists=True, dir_okay=False),
    help="Read the arguments d<device>_arg<i>, or arg<i> for every device, from FILE.npz.",
)
@click.option("--random", "seed", type=SEED, metavar="SEED", help="Generate random arguments from this seed.")
@takes_send_buffers
@takes_runtime
@click.option(
    "--strict",
    is_flag=True,
    help="Report clamped, dropped and out-of-range values, and the place where a NaN or infinity first appears.",
)
@click.option(
    "--denormals",
    type=DENORMALS,
    default="flush",
    help="Flush denormal numbers to zero, as XLA does, or keep them.",
    show_default=True,
)
@click.option("--max-seconds", type=Amount(), help="Limit the run to this many seconds.  [default: 3600]")
def step(target: str, inputs: str | None, seed: int | None, max_seconds: float | None, **options: Any) -> None:
    """Step through a run, forward and back, in the terminal.

    The command runs TARGET, or opens a run that `xbuild run --trace DIR` recorded. At the prompt, you can go to an
    instruction, a trip of a loop, a device or a value. You can also print the program, the values, and the devices that
    each device waits for. Type `help` to list the commands.

    Commands come from the terminal or, in a script, from stdin. If a command in a script fails, the exit status is 1.
    Colours need the package rich; to turn them off, set NO_COLOR. A refused program runs until it is stuck.
    """
    from ..stepping import Shell

    if Path(target).is_dir() and is_trace(target):
        of_a_run = "inputs", "seed", "partition", "send_buffers", "runtime", "strict", "denormals", "max_seconds"
        if wrong := options_used(*of_a_run):
            raise click.UsageError(
                f"{wrong[0]} has no effect here: {target} is a trace, so the run is already recorded"
            )
        recorded = open_trace(target)
    else:
        recorded = _run(target, inputs, seed, max_seconds, options)
    read = io.StringIO() if sys.stdin is None else sys.stdin  # stdin is None where it is closed
    is_interactive = read.isatty()
    if is_interactive and (limit := click.get_current_context().obj) is not None:
        limit.stop()  # a session at a terminal has no time limit: the user can press Ctrl-C
    split = partitioned_target()
    partitioned = None if split is None else split.partitioned
    shell = Shell(recorded, None if is_interactive else read, sys.stdout, partitioned=partitioned)
    try:
        shell.cmdloop()
    except KeyboardInterrupt:
        say()
    raise SystemExit(int(shell.failed and not is_interactive))


def _run(target: str, inputs: str | None, seed: int | None, seconds: float | None, options: dict[str, Any]) -> Trace:
    from ..checking import Refused
    from ..running import Limits, trace

    program = partition_or_warn(module_of(load(target)), "run")
    arguments = load_arguments(program, inputs, seed)
    limits = Limits(seconds=RUN_SECONDS if seconds is None else seconds)
    with report_failures():
        try:
            return trace(program, arguments, limits=limits, **options)
        except Refused as refused:
            return trace_refused(program, arguments, refused.verdict, {}, limits=limits, **options)
