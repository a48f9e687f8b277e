"""`xbuild viz`: draws a program."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ..core.graph import Computation, Module
from ..files.arrays import new_folder, replacing
from ..files.targets import Program
from .candidates import instructions
from .group import Amount, load, main, options_used, require, stop, takes_target
from .options import Command, check_machine, takes_partition
from .outputs import check_distinct, read_data, say, say_written, target_input

_DATA = (
    "Colour instructions by `cost` (FLOPs), by `cost=bytes`, or by a JSON file that maps their names to numbers "
    "or strings."
)

COSTS = {"cost": ("flops", "FLOPs"), "cost=flops": ("flops", "FLOPs"), "cost=bytes": ("bytes", "bytes")}
"""The values of --data that are not files: the attribute of a row of `xbuild cost`, and its name in the legend."""

_SECONDS = "Limit graphviz to this many seconds (for png and pdf)."


def takes_theme(command: Command) -> Command:
    """A decorator that adds the option --theme to a command that draws."""
    kind = click.Choice(["auto", "light", "dark"])
    sentence = "Set the colours of the picture; auto follows the viewer's system setting."
    return click.option("--theme", type=kind, default="auto", show_default=True, help=sentence)(command)


_MACHINE = "Model the timeline on this machine, such as v5e, h100 or a machine file (requires --timeline)."


@main.command()
@takes_target
@takes_partition
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    help="Write the picture to this file: .svg, .html, .png, .pdf, .dot, .mmd or .txt.  [default: text on stdout]",
)
@takes_theme
@click.option(
    "--around", metavar="NAME", shell_complete=instructions, help="Draw the neighbourhood of this instruction."
)
@click.option(
    "--radius",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    help="Follow operands and users for this many steps (requires --around).",
)
@click.option(
    "--paths",
    nargs=2,
    metavar="A B",
    shell_complete=instructions,
    help="Draw only the paths from instruction A to instruction B.",
)
@click.option(
    "--only",
    type=click.Choice(["collectives"]),
    help="Draw communicating instructions, and fold all other instructions.",
)
@click.option("--fold", multiple=True, metavar="NAME", help="Draw this computation or scope as one box (repeatable).")
@click.option(
    "--max-nodes",
    type=click.IntRange(min=1),
    help="Draw at most this many boxes, and fold a larger program.  [default: 300; 120 for .mmd]",
)
@click.option("--data", type=click.Path(dir_okay=False), help=_DATA)
@click.option("--data-name", help="Show this name for the data in the legend.  [default: the file's name]")
@click.option(
    "--replication", is_flag=True, help="Show, in each box, how many groups of devices hold different values."
)
@click.option("--timeline", is_flag=True, help="Draw the timeline to scale, as svg, html or txt (requires --machine).")
@click.option("--machine", metavar="NAME", callback=check_machine, help=_MACHINE)
@click.option("--seconds", type=Amount(), default=5.0, show_default=True, help=_SECONDS)
def viz(target: str, output: str | None, **view: Any) -> None:
    """Draw a program, or a part of it, as a picture, a page or text."""
    from ..pictures import ViewError

    require("--around NAME", view["around"], "radius")
    require("--data FILE.json", view["data"], "data_name")
    require("-o FILE.png or .pdf", output and output.endswith((".png", ".pdf")), "seconds")
    require("--timeline", view["timeline"], "machine")
    check_distinct({**target_input(target), "--data": None if view["data"] in COSTS else view["data"]}, {"-o": output})
    if view["timeline"]:
        _draw_timeline(target, output, **view)
        return
    if view["replication"] and view["data"]:
        raise click.UsageError("--data and --replication both colour the boxes: use only one")
    view |= _read_overlay(view["data"], view["data_name"])
    try:
        content, notes = _draw(target, output, view)
    except ViewError as error:
        raise click.UsageError(str(error)) from None
    for note in notes:
        say(f"notice: {note}", err=True)
    write(content, output)


def _draw(target: str, output: str | None, view: dict[str, Any]) -> tuple[str | bytes, tuple[str, ...]]:
    """The picture in the format of the file's name, and notes on the parts of the program that it omits."""
    from ..pictures import Drawing, most_boxes
    from ..pictures.graphviz import DrawingError
    from ..pictures.showing import picture_of
    from ..pictures.views import View

    form = format_of(output)
    view["max_nodes"] = view["max_nodes"] or most_boxes(form)
    program = load(target)
    del view["timeline"], view["machine"]
    if view.pop("replication"):
        view |= _replication_overlay(program)
    if isinstance(view["data"], str):
        view["data"] = _cost_overlay(program, COSTS[view["data"]][0])
    try:
        overlay = {name: view.pop(name) for name in ("data", "data_name") if name in view}
        seconds, theme = view.pop("seconds"), view.pop("theme")
        drawing = Drawing(picture_of(program, View(**view, unfolds=form == "html"), **overlay), seconds, theme)
        return drawing.render(form), drawing.notes
    except DrawingError as error:
        raise stop(str(error)) from None


def _draw_timeline(target: str, output: str | None, machine: str | None, theme: str, **view: Any) -> None:
    """Draw a timeline; raises a usage error if the machine is missing, or a timeline has no such format."""
    from ..pictures import viz as draw
    from ..timelines import timeline

    if machine is None:
        raise click.UsageError("--timeline needs --machine NAME, such as v5e or h100, or a machine file")
    if unused := [option for option in options_used(*view) if option not in ("--timeline", "--seconds")]:
        raise click.UsageError(f"{unused[0]} applies to the picture of a program, not to a timeline")
    form = format_of(output)
    if form not in ("svg", "html", "txt"):
        raise click.UsageError(f"{output}: a timeline can be drawn as svg, html or txt")
    write(draw(timeline(load(target), machine), form, theme=theme), output)  # type: ignore[arg-type]


def _cost_overlay(program: Program, attribute: str) -> dict[Any, Any]:
    """The cost of each instruction that has one, in all its executions, as data over the boxes."""
    from ..costs import cost

    return {row.instruction: number for row in cost(program).rows if (number := getattr(row, attribute))}


def _replication_overlay(program: Program) -> dict[str, Any]:
    """The number of groups of devices with equal values, for each instruction, as data over the boxes."""
    from ..checking import replication

    module = Module(program.name, program) if isinstance(program, Computation) else program
    return {"data": replication(module).counts(), "data_name": "groups of devices with equal values"}


def _read_overlay(file: str | None, name: str | None) -> dict[str, Any]:
    """The data over the boxes, and its name in the legend; a string in place of data names a cost."""
    if file in COSTS and not Path(file).exists():
        return {"data": file, "data_name": name or COSTS[file][1]}
    if file is None:
        return {"data": None, "data_name": "data"}
    try:
        data = json.loads(read_data(file), object_pairs_hook=_refuse_duplicates)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{file}: invalid data: {error}") from None
    if not isinstance(data, dict):
        raise click.UsageError(f'{file}: expected an object, such as {{"add.3": 12}}, got {type(data).__name__}')
    return {"data": data, "data_name": name or Path(file).stem}


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for name, count in Counter(name for name, _ in pairs).items():
        if count > 1:
            raise ValueError(f"the name {name!r} occurs {count} times; expected each name once")
    return dict(pairs)


def format_of(output: str | None) -> str:
    """The format that the ending of a file's name states; text for a picture on the terminal."""
    from ..pictures import form_of as form_of_path

    try:
        return "txt" if output is None else form_of_path(output)
    except ValueError:
        endings = "svg, html, png, pdf, dot, mmd, txt"
        raise click.UsageError(f"{output!r}: expected a file name that ends in one of {endings}") from None


def write(content: str | bytes, output: str | None) -> None:
    """Write the output of a command to a file, completely or not at all, and print its name; or print the output."""
    if output is None:
        say(content if isinstance(content, str) else content.decode(), nl=False)
        return
    try:
        with replacing(Path(output)) as file:
            file.write(content if isinstance(content, bytes) else content.encode())
    except OSError as error:
        raise click.UsageError(f"{output}: {error.strerror}") from None
    say_written(output)


def write_folder(contents: Mapping[str, str], folder: Path) -> None:
    """Write files into a new or empty folder: all of them, or none."""
    try:
        with new_folder(folder) as temporary:
            for name, content in contents.items():
                (temporary / name).write_text(content, encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"{folder}: {error.strerror}") from None
