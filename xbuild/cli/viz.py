"""`xbuild viz`: draws a program."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ..core.graph import Computation, Module
from ..files.results import replacing, umask
from ..files.targets import Program
from .group import Amount, Command, given, load, main, needs, stop, takes_target
from .support.candidates import instructions
from .support.machines import known_machine
from .support.partition_option import takes_partition
from .support.paths import distinct, target_of, text_of
from .support.saying import say

_DATA = "File of JSON with numbers or texts by instruction name, shown in colour; or `cost` (FLOPs), `cost=bytes`."
COST = "cost"
"""The data that is no file: the FLOPs of each instruction."""

COSTS = {COST: ("flops", "FLOPs"), "cost=flops": ("flops", "FLOPs"), "cost=bytes": ("bytes", "bytes")}
"""Words for data that is no file: which figure of `xbuild cost` they lay over boxes, and its name in the legend."""

_SECONDS = "Limit on the seconds that graphviz takes, for png and pdf."


def takes_theme(command: Command) -> Command:
    """A decorator that adds the option --theme to a command that draws."""
    kind = click.Choice(["auto", "light", "dark"])
    told = "Colours of the picture; auto follows the viewer's system."
    return click.option("--theme", type=kind, default="auto", show_default=True, help=told)(command)


_OF_MACHINE = "Machine of --timeline: v5e, h100 and so on, or a machine file."


@main.command()
@takes_target
@takes_partition
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    help="File for the picture: .svg, .html, .png, .pdf, .dot, .mmd or .txt.  [default: text on stdout]",
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
    help="With --around: how many operands and users away instructions are drawn.",
)
@click.option(
    "--paths",
    nargs=2,
    metavar="A B",
    shell_complete=instructions,
    help="Draw what is on the paths from instruction A to instruction B.",
)
@click.option(
    "--only", type=click.Choice(["collectives"]), help="Draw communicating instructions, and fold the others."
)
@click.option(
    "--fold", multiple=True, metavar="NAME", help="Draw this computation or scope as one box; may be repeated."
)
@click.option(
    "--max-nodes",
    type=click.IntRange(min=1),
    help="Number of boxes above which parts are folded.  [default: 300, in .mmd 120]",
)
@click.option("--data", type=click.Path(dir_okay=False), help=_DATA)
@click.option("--data-name", help="Name of the data in the legend.  [default: the file's name]")
@click.option("--replication", is_flag=True, help="Show in each box how many groups of devices hold different values.")
@click.option("--timeline", is_flag=True, help="Draw the time line on --machine, in real proportions (svg, html, txt).")
@click.option("--machine", metavar="NAME", callback=known_machine, help=_OF_MACHINE)
@click.option("--seconds", type=Amount(), default=5.0, show_default=True, help=_SECONDS)
def viz(target: str, output: str | None, **view: Any) -> None:
    """Draw a program, or a part of it, as a picture, a page or text."""
    from ..pictures import ViewError

    needs("--around NAME", view["around"], "radius")
    needs("--data FILE.json", view["data"], "data_name")
    needs("-o FILE.png or .pdf", output and output.endswith((".png", ".pdf")), "seconds")

    needs("--timeline", view["timeline"], "machine")
    distinct({**target_of(target), "--data": None if view["data"] in COSTS else view["data"]}, {"-o": output})
    if view["timeline"]:
        _draw_timeline(target, output, **view)
        return
    if view["replication"] and view["data"]:
        raise click.UsageError("--data and --replication both give the boxes their colour")
    view |= _data(view["data"], view["data_name"])
    try:
        content, notes = _drawn(target, output, view)
    except ViewError as error:
        raise click.UsageError(str(error)) from None
    for note in notes:
        say(f"notice: {note}", err=True)
    write(content, output)


def _drawn(target: str, output: str | None, view: dict[str, Any]) -> tuple[str | bytes, tuple[str, ...]]:
    """The picture in the format of the file's name, and notes on the parts of the program that it leaves out."""
    from ..pictures import Drawing, most_boxes
    from ..pictures.formats.engine import DrawingError
    from ..pictures.showing import shown
    from ..pictures.views.views import View

    form = form_of(output)
    view["max_nodes"] = view["max_nodes"] or most_boxes(form)
    program = load(target)
    del view["timeline"], view["machine"]
    if view.pop("replication"):
        view |= _counted(program)
    if isinstance(view["data"], str):
        view["data"] = _cost(program, COSTS[view["data"]][0])
    try:
        laid = {name: view.pop(name) for name in ("data", "data_name") if name in view}
        seconds, theme = view.pop("seconds"), view.pop("theme")
        drawing = Drawing(shown(program, View(**view, unfolds=form == "html"), **laid), seconds, theme)
        return drawing.render(form), drawing.notes
    except DrawingError as error:
        raise stop(str(error)) from None


def _draw_timeline(target: str, output: str | None, machine: str | None, theme: str, **view: Any) -> None:
    """Write the picture of a time line; a usage error where the machine is missing, or the format is none of its."""
    from ..pictures import viz as picture_of
    from ..timelines import timeline

    if machine is None:
        raise click.UsageError("--timeline needs --machine NAME, such as v5e or h100, or a machine file")
    if spare := [each for each in given(*view) if each not in ("--timeline", "--seconds")]:
        raise click.UsageError(f"{spare[0]} is of the picture of a program, and not of a time line")
    form = form_of(output)
    if form not in ("svg", "html", "txt"):
        raise click.UsageError(f"{output}: a time line is drawn as svg, html or txt")
    write(picture_of(timeline(load(target), machine), form, theme=theme), output)  # type: ignore[arg-type]


def _cost(program: Program, figure: str) -> dict[Any, Any]:
    """A figure of each instruction that has some, in all its executions, as data of the picture."""
    from ..costs import cost

    return {row.instruction: number for row in cost(program).rows if (number := getattr(row, figure))}


def _counted(program: Program) -> dict[str, Any]:
    """The number of groups of devices with equal values, for each instruction, as data of the picture."""
    from ..checking import replication

    module = Module(program.name, program) if isinstance(program, Computation) else program
    return {"data": replication(module).counts(), "data_name": "groups of devices with equal values"}


def _data(file: str | None, name: str | None) -> dict[str, Any]:
    """The data that is shown in the boxes, and its name in the legend."""
    if file in COSTS and not Path(file).exists():
        return {"data": file, "data_name": name or COSTS[file][1]}
    if file is None:
        return {"data": None, "data_name": "data"}
    try:
        found = json.loads(text_of(file), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{file}: no data: {error}") from None
    if not isinstance(found, dict):
        raise click.UsageError(f'{file}: an object is wanted, as {{"add.3": 12}}, not {type(found).__name__}')
    return {"data": found, "data_name": name or Path(file).stem}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    for name, count in Counter(name for name, _ in pairs).items():
        if count > 1:
            raise ValueError(f"{name!r} is there {count} times")
    return found


def form_of(output: str | None) -> str:
    """The format by the ending of a file's name; text for a picture on the terminal."""
    from ..pictures import form_of as form_of_path

    try:
        return "txt" if output is None else form_of_path(output)
    except ValueError:
        endings = "svg, html, png, pdf, dot, mmd, txt"
        raise click.UsageError(f"{output!r} is no picture; a name that ends in one of {endings} is wanted") from None


def write(content: str | bytes, output: str | None, err: bool = False) -> None:
    """Write the output of a command to a file, whole or not at all, and print the file's name; or print the output."""
    if output is None:
        say(content if isinstance(content, str) else content.decode(), nl=False)
        return
    try:
        with replacing(Path(output)) as file:
            file.write(content if isinstance(content, bytes) else content.encode())
    except OSError as error:
        raise click.UsageError(f"{output}: {error.strerror}") from None
    say(output, err=err)


def write_folder(contents: Mapping[str, str], folder: Path) -> None:
    """Write files into a new or empty folder: all of them, or none."""
    place = folder.absolute()
    try:
        made = Path(tempfile.mkdtemp(dir=place.parent, prefix=f".{place.name}.", suffix=".tmp"))
        try:
            for name, content in contents.items():
                (made / name).write_text(content, encoding="utf-8")
            made.chmod(0o777 & ~umask())
            if place.is_dir():
                place.rmdir()
            made.rename(place)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except OSError as error:
        raise click.UsageError(f"{folder}: {error.strerror}") from None
