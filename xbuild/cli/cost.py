"""`xbuild cost`: what a program costs each device, and when each device does what on a machine."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

import xbuild

from ..core.issues import Issue
from ..core.report_text import MOST_ROWS, StyledText
from ..costs.report import short
from ..files.arrays import replacing
from ..timelines import Timeline
from ..timelines.machines import MACHINES
from .formats import say_programs, say_result
from .group import load, main, module_targets, require, stop, takes_target
from .options import (
    check_machine,
    partition_or_warn,
    partitioned_target,
    takes_format,
    takes_partition,
)
from .outputs import check_distinct, prints_document, say, say_lines, say_written, target_input

_MACHINE = f"Model the time of a run on a machine: {', '.join(MACHINES)}, or a machine file."


def _calibrate(context: click.Context, _: click.Parameter, is_set: bool) -> None:
    """Print the machine file of this machine, and end the command."""
    if is_set:
        from ..timelines.machines import calibrate

        say(json.dumps(calibrate().to_dict(), indent=2))
        context.exit()


@main.command()
@takes_target
@takes_partition
@takes_format
@click.option("--by", type=click.Choice(["scope", "op", "axis"]), help="Sum the costs by scope, op or mesh axis.")
@click.option(
    "--top", type=click.IntRange(min=1), help="Limit each table to this many rows.  [default: 10; all with --json]"
)
@click.option("--machine", metavar="NAME", callback=check_machine, help=_MACHINE)
@click.option("--timeline", is_flag=True, help="Print only the timeline (requires --machine).")
@click.option(
    "--trace",
    type=click.Path(dir_okay=False),
    help="Write events for ui.perfetto.dev to this file (requires --machine).",
)
@click.option(
    "--chakra",
    type=click.Path(file_okay=False),
    help="Write Chakra traces for ASTRA-sim to this folder (requires --machine).",
)
@click.option(
    "--goal",
    type=click.Path(dir_okay=False),
    help="Write a GOAL schedule for LogGOPSim to this file (requires --machine).",
)
@click.option(
    "--page",
    type=click.Path(dir_okay=False),
    help="Write a page with the picture and all tables to this file (requires --machine).",
)
@click.option("--calibrate", is_flag=True, is_eager=True, expose_value=False, callback=_calibrate,
              help="Measure this machine, and print a machine file (takes no TARGET).")  # fmt: skip
def cost(
    target: str,
    by: str | None,
    top: int | None,
    machine: str | None,
    timeline: bool,
    **files: str | None,
) -> None:
    """Count the FLOPs, bytes, memory and communication of each device, and model the time on a machine.

    For a dump folder with several modules, the command prints one line for each; FOLDER#NAME selects one.

    The command does not run the program. Every trip of a loop is counted. A loop whose trip count is unknown counts as
    one trip and is marked with a question mark. The timeline models instructions with the machine's roofline, and
    collectives with latency and bandwidth. Use the timeline for bounds and comparisons, not to predict milliseconds.

    \b
    Examples:
      xbuild cost step.hlo --by scope --top 20
      xbuild cost step.hlo --machine h100 --page step.html
      xbuild cost --calibrate > here.json
      xbuild cost step.hlo --machine here.json
    """
    require("--machine", machine, "timeline", *files)
    check_distinct(
        {**target_input(target), "--machine": machine}, {f"--{option}": path for option, path in files.items()}
    )
    modules = module_targets(target, "by", "top", "machine")
    if len(modules) > 1:
        _say_modules(modules)
        return
    program = load(target)
    program = partition_or_warn(program, "counted")
    mesh = None if (split := partitioned_target()) is None else split.partitioned.mesh
    modelled = None if machine is None else xbuild.timeline(program, machine, mesh=mesh)
    counted = modelled.cost if modelled is not None else xbuild.cost(program, mesh=mesh)
    _write_files(modelled, **files)
    if prints_document():
        more = {} if modelled is None else {"timeline": modelled.to_dict()}
        issues = [*counted.issues, *(() if modelled is None else _memory_issues(modelled))]
        say_result(target, {**counted.to_dict(by, top), **more}, issues)  # type: ignore[arg-type]
        return
    if not timeline:
        _say_table(counted.table(by, top or MOST_ROWS))  # type: ignore[arg-type]
    if modelled is not None:
        if not timeline:
            say()
        _say_table(modelled.table(top or MOST_ROWS))


def _say_modules(modules: Sequence[str]) -> None:
    """Print one line for each module of a dump, or all costs as one document."""
    costs = [(each, xbuild.cost(partition_or_warn(load(each), "counted"))) for each in modules]
    if prints_document():
        say_programs([(each, counted.to_dict(), list(counted.issues)) for each, counted in costs])
        return
    say_lines([(str(counted).partition("\n")[0],) for _, counted in costs])
    say(f"notice: xbuild cost {shlex.quote(modules[0])} prints the tables", err=True)


def _memory_issues(modelled: Timeline) -> Iterator[Issue]:
    """A warning if a device holds more bytes than the machine has, at the line of the largest array at the peak."""
    memory, holds = modelled.cost.memory, modelled.machine.memory
    if holds is not None and memory.reserved > holds:
        largest = max(memory.alive, key=lambda each: each.bytes, default=None)
        yield Issue(
            rule="peak_memory",
            level="warning",
            message=f"a device needs {short(memory.reserved, 'B')} of memory, but {modelled.machine.name} has "
            f"{short(holds, 'B')}",
            source=largest.source if largest else None,
            instructions=(largest.instruction.name,) if largest else (),
            devices=(modelled.cost.memory_device,),
            facts={"bytes": memory.reserved, "memory": holds},
        )


def _say_table(table: str) -> None:
    """Print a report: its first line in bold, and the headings of its columns dim."""
    first, *lines = table.split("\n")
    headings = {number + 1 for number, line in enumerate(lines) if line and not line.startswith(" ")}
    say_lines(
        [
            (StyledText(first, "title"),),
            *((StyledText(line, "dim" if number in headings else "title" if number + 1 in headings else ""),)
              for number, line in enumerate(lines)),
        ]
    )  # fmt: skip


def _write_files(
    modelled: Timeline | None, trace: str | None, chakra: str | None, goal: str | None, page: str | None
) -> None:
    """Write the requested files; a file that cannot be written ends the command."""
    from ..timelines.exports import write_chakra, write_goal, write_trace

    writers: tuple[tuple[Any, str | None], ...] = (
        (write_trace, trace), (write_chakra, chakra), (write_goal, goal), (_write_page, page),
    )  # fmt: skip
    for write, path in writers:
        if modelled is not None and path is not None:
            try:
                write(modelled, path)
            except OSError as error:
                raise stop(f"cost: cannot write {path}: {error.strerror}") from None
            say_written(path)


def _write_page(modelled: Timeline, path: str) -> None:
    """Write a page: pictures of the timeline and of the memory, then the tables of time and cost."""
    from ..pictures.html import page
    from ..pictures.time_lanes import memory_svg, time_picture, time_svg

    picture = time_picture(modelled)
    svg = time_svg(picture) + memory_svg(modelled.cost.memory, modelled.machine.memory)
    text = page(svg, f"{modelled}\n\n{modelled.cost}", "auto", picture.headline)
    with replacing(Path(path)) as file:
        file.write(text.encode())
