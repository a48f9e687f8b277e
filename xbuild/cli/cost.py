"""`xbuild cost`: what a program costs each device, and when each would do what on a machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

import xbuild

from ..files.results import replacing
from ..timelines import Timeline
from .group import load, main, needs, stop, takes_target
from .support.machines import known_machine
from .support.partition_option import parts, say_not_partitioned, takes_partition
from .support.paths import distinct, target_of
from .support.saying import say, say_json

_MACHINE = "Lay the program out in time on a machine: v4, v5e, v5p, v6e, a100, h100, b200, or a machine file."


def _calibrate(context: click.Context, _: click.Parameter, is_given: bool) -> None:
    """Print the machine file of this machine, and end the command."""
    if is_given:
        from ..timelines.calibration import calibrated

        say(json.dumps(calibrated().to_dict(), indent=2))
        context.exit()


@main.command()
@takes_target
@takes_partition
@click.option("--json", "as_json", is_flag=True, help="All rows and sums as JSON, on stdout.")
@click.option("--by", type=click.Choice(["scope", "op", "axis"]), help="Sums by scope, by op, or by collective axis.")
@click.option("--top", type=click.IntRange(min=1), help="How many rows of a table: 8, and with --json all.")
@click.option("--machine", metavar="NAME", callback=known_machine, help=_MACHINE)
@click.option("--timeline", is_flag=True, help="With --machine: the time line alone.")
@click.option("--trace", type=click.Path(dir_okay=False), help="With --machine: trace events for ui.perfetto.dev.")
@click.option("--chakra", type=click.Path(file_okay=False), help="With --machine: Chakra traces, for ASTRA-sim.")
@click.option("--goal", type=click.Path(dir_okay=False), help="With --machine: a GOAL schedule, for LogGOPSim.")
@click.option("--page", type=click.Path(dir_okay=False), help="With --machine: a page of the picture and all tables.")
@click.option("--calibrate", is_flag=True, is_eager=True, expose_value=False, callback=_calibrate,
              help="Measure this machine and print a machine file, without a target.")  # fmt: skip
def cost(
    target: str,
    as_json: bool,
    by: str | None,
    top: int | None,
    machine: str | None,
    timeline: bool,
    **files: str | None,
) -> None:
    """Say what a program costs each device: FLOPs, bytes, memory, collectives; on a machine when each does what.

    Nothing is run. A loop counts as often as it runs; where that is not known it counts as one trip, and a question
    mark says so. A time line takes each instruction at the roofline of the machine and each collective by alpha and
    beta: it bounds and ranks, and predicts no milliseconds.

    \b
    xbuild cost step.hlo --by scope --top 20
    xbuild cost step.hlo --machine h100 --page step.html
    xbuild cost --calibrate > here.json
    xbuild cost step.hlo --machine here.json
    """
    needs("--machine", machine, "timeline", *files)
    distinct({**target_of(target), "--machine": machine}, {f"--{option}": path for option, path in files.items()})
    program = load(target)
    say_not_partitioned(program, "counted")
    mesh = None if (of_command := parts()) is None else of_command.partitioned.mesh
    laid = None if machine is None else xbuild.timeline(program, machine, mesh=mesh)
    found = laid.cost if laid is not None else xbuild.cost(program, mesh=mesh)
    _write(laid, **files)
    if as_json:
        more = {} if laid is None else {"timeline": laid.to_dict()}
        say_json({**found.to_dict(by, top), **more})  # type: ignore[arg-type]
        return
    if not timeline:
        say(found.table(by, top or 8))  # type: ignore[arg-type]
    if laid is not None:
        say(("" if timeline else "\n") + laid.table(top or 8))


def _write(laid: Timeline | None, trace: str | None, chakra: str | None, goal: str | None, page: str | None) -> None:
    """Write the files that are asked for; a file that cannot be written ends the command."""
    from ..timelines.formats.chakra import write_chakra
    from ..timelines.formats.chrome import write_trace
    from ..timelines.formats.goal import write_goal

    writers: tuple[tuple[Any, str | None], ...] = (
        (write_trace, trace), (write_chakra, chakra), (write_goal, goal), (_write_page, page),
    )  # fmt: skip
    for write, place in writers:
        if laid is not None and place is not None:
            try:
                write(laid, place)
            except OSError as error:
                raise stop(f"cost: {place} cannot be written: {error.strerror}") from None


def _write_page(laid: Timeline, place: str) -> None:
    """Write a page: pictures of the time line and of its memory, its tables, and those of the counts."""
    from ..pictures.formats.framing import page
    from ..pictures.svg.memory_curve import memory_svg
    from ..pictures.svg.time_lanes import time_svg
    from ..pictures.timelines.laying import time_picture

    picture = time_picture(laid)
    drawn = time_svg(picture) + memory_svg(laid.cost.memory, laid.machine.memory)
    text = page(drawn, f"{laid}\n\n{laid.cost}", "auto", picture.headline)
    with replacing(Path(place)) as file:
        file.write(text.encode())
