"""The command line: show, check, run and draw programs; explain ops and refusals."""

from __future__ import annotations

import difflib
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np

import xbuild
from shape_inference import Shape, XbuildError, infer

from . import archive, targets
from .explanations import EXPLANATIONS
from .graph import Computation, Module, ModuleGroup
from .names import NAMES
from .op import OPS, Schema
from .targets import Program

Command = TypeVar("Command", bound=Callable[..., Any])

REFUSED = 1


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="xbuild-hlo", prog_name="xbuild")
@click.pass_context
def main(context: click.Context) -> None:
    """Build, read, check, run and see XLA programs.

    TARGET is FILE.py:NAME (a Computation, Module or ModuleGroup, or a function of no arguments that returns one), or
    FILE.hlo. Exit codes: 0 ok, 1 the program is refused or stops, 2 the command is used wrongly.
    """
    if os.environ.get("NO_COLOR"):
        context.color = False


def _target(command: Command) -> Command:
    return click.argument("target")(command)


def _load(target: str) -> Program:
    try:
        return targets.load(target)
    except targets.TargetError as error:
        raise click.UsageError(str(error)) from None
    except targets.UserError as error:
        raise _stop(str(error)) from None
    except XbuildError as error:
        raise _stop(str(error)) from None


def _stop(report: str) -> SystemExit:
    click.echo(report, err=True)
    return SystemExit(REFUSED)


def _module(program: Program) -> Module | ModuleGroup:
    return Module(program.name, program) if isinstance(program, Computation) else program


def _entries(program: Module | ModuleGroup) -> list[Computation]:
    """The entry of each device's program."""
    if isinstance(program, Module):
        return [program.entry] * program.num_devices
    return [program.modules[device].entry for device in sorted(program.modules)]


@main.command()
@_target
@click.option("--plan", is_flag=True, help="The Python source that the interpreter runs.")
@click.option("--only", type=click.Choice(["collectives"]), help="What devices do together, the rest counted.")
@click.option("--style", type=click.Choice(["short", "percent", "full"]), default="short", help="Of HLO text.")
def show(target: str, plan: bool, only: str | None, style: str) -> None:
    """Print a program as HLO text."""
    program = _load(target)
    for heading, part in _parts(program):
        click.echo(heading, nl=False)
        click.echo(_shown(part, plan, only, style).rstrip("\n"))


def _parts(program: Program) -> Iterator[tuple[str, Computation | Module]]:
    if not isinstance(program, ModuleGroup):
        yield "", program
        return
    for place, (device, module) in enumerate(program.modules.items()):
        yield f"{chr(10) * bool(place)}// device {device}\n", module


def _shown(part: Computation | Module, plan: bool, only: str | None, style: str) -> str:
    from .text.printer import computation_text, module_text
    from .text.skeleton import skeleton_text

    if plan:
        from interpreter import plan_source

        return plan_source(part.entry if isinstance(part, Module) else part)
    if only:
        return skeleton_text(part)
    return module_text(part, style) if isinstance(part, Module) else computation_text(part, style)


@main.command()
@_target
@click.option("--json", "as_json", is_flag=True, help="The facts of the report as JSON, on stdout.")
@click.option("--send-buffers", type=click.IntRange(min=0), default=0, help="How far sends may run ahead.")
def check(target: str, as_json: bool, send_buffers: int) -> None:
    """Say whether a program can deadlock.

    The report is on stdout, and on stderr where the program is refused.
    """
    verdict = xbuild.check(_module(_load(target)), send_buffers=send_buffers)
    if as_json:
        click.echo(json.dumps(verdict.to_dict(), indent=2))
    else:
        click.echo(_coloured(str(verdict), verdict.kind), err=verdict.refused)
    if verdict.kind == "depends":
        click.echo("notice: data decides whether this program comes to an end; the run will show it", err=True)
    sys.exit(REFUSED if verdict.refused else 0)


_COLOURS = {"ok": "green", "depends": "yellow"}


def _coloured(report: str, kind: str) -> str:
    first, line, rest = report.partition("\n")
    return click.style(first, fg=_COLOURS.get(kind, "red"), bold=True) + line + rest


@main.command()
@_target
@click.option("--inputs", type=click.Path(exists=True, dir_okay=False), help="npz: d<device>_arg<i>, or arg<i>.")
@click.option("--random", "seed", type=int, metavar="SEED", help="Random arguments instead.")
@click.option("--outputs", type=click.Path(dir_okay=False, writable=True), help="npz: d<device>_out<i>.")
@click.option("--send-buffers", type=click.IntRange(min=0), default=0, help="How far sends may run ahead.")
@click.option("--max-trips", type=click.IntRange(min=0), help="Trips of any one loop.")
@click.option("--max-seconds", type=click.FloatRange(min=0), help="Seconds in all.")
@click.option("--max-bytes", type=click.IntRange(min=0), help="Bytes of any one value.")
def run(
    target: str,
    inputs: str | None,
    seed: int | None,
    outputs: str | None,
    send_buffers: int,
    max_trips: int | None,
    max_seconds: float | None,
    max_bytes: int | None,
) -> None:
    """Check a program, run it on all its devices, and print what came out."""
    from interpreter import Limits, execute

    program = _module(_load(target))
    given: dict[str, Any] = {"trips": max_trips, "seconds": max_seconds, "bytes": max_bytes}
    limits = Limits(**{key: value for key, value in given.items() if value is not None})
    arguments = _arguments(program, inputs, seed)
    with _reported():
        results = execute(program, arguments, send_buffers=send_buffers, limits=limits)
    shapes = [entry.root.shape for entry in _entries(program)]
    if outputs:
        archive.write_results(outputs, results, shapes)
    for line in _summary(results, shapes):
        click.echo(line)


@contextmanager
def _reported() -> Iterator[None]:
    """A run that is refused or stops ends with its report on stderr."""
    from interpreter import Refused, Stopped

    try:
        yield
    except (Refused, Stopped, XbuildError) as report:
        raise _stop(str(report)) from None
    except KeyboardInterrupt:
        raise _stop("interrupted before the run had begun") from None


def _arguments(program: Module | ModuleGroup, inputs: str | None, seed: int | None) -> list[list[Any]]:
    parameters = [[p.shape for p in entry.parameters] for entry in _entries(program)]
    if inputs and seed is not None:
        raise click.UsageError("--inputs and --random are both given; one is wanted")
    if inputs:
        try:
            return archive.read_arguments(inputs, parameters)
        except archive.ArchiveError as error:
            raise click.UsageError(str(error)) from None
    if seed is None and any(map(archive.count_leaves, parameters)):
        raise click.UsageError("the program has parameters: --inputs FILE.npz or --random SEED is wanted")
    return archive.random_arguments(seed or 0, parameters)


def _summary(results: list[Any], shapes: list[Any]) -> Iterator[str]:
    rows = [
        (f"device {device}", f"out{number}", str(shape), _numbers(np.asarray(leaf), shape))
        for device, (result, whole) in enumerate(zip(results, shapes, strict=True))
        for number, (leaf, shape) in enumerate(archive.leaf_values(result, whole))
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    for row in rows:
        yield "  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]))


def _numbers(array: Any, shape: Shape) -> str:
    """The elements where they are few, else the least, the mean and the largest."""
    if array.size <= 8:
        return " ".join(np.array2string(array, separator=", ", max_line_width=10**6).split())
    if shape.dtype.kind == "complex":
        return f"mean of magnitudes {np.abs(array).mean():.6g}"
    wide = array.astype(np.float64)
    with np.errstate(all="ignore"):
        return f"min {wide.min():.6g}  mean {wide.mean():.6g}  max {wide.max():.6g}"


@main.command()
@_target
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="FILE.svg, .png, .pdf, .dot or .txt; else text.")
@click.option("--seconds", type=click.FloatRange(min=0), default=10.0, help="How long the layout may take.")
def viz(target: str, output: str | None, seconds: float) -> None:
    """Draw a program."""
    from .viz import FORMS
    from .viz import viz as draw
    from .viz.engine import DrawingError

    if output and Path(output).suffix.removeprefix(".").lower() not in FORMS:
        raise click.UsageError(f"{output!r} is no picture; a name that ends in one of {', '.join(FORMS)} is wanted")
    program = _load(target)
    try:
        if output:
            click.echo(str(draw(program, Path(output), seconds=seconds)))
        else:
            click.echo(draw(program, "txt"), nl=False)
    except DrawingError as error:
        raise _stop(str(error)) from None


@main.command()
def ops() -> None:
    """List the ops: how each is called, what reads it, and its name in XlaBuilder."""
    rows = [(_signature(schema), _status(opcode), NAMES[opcode].xla_builder) for opcode, schema in sorted(OPS.items())]
    width = max(len(row[1]) for row in rows)
    for signature, status, xla_builder in rows:
        click.echo(f"{status:<{width}}  {signature}{f'  ({xla_builder})' if xla_builder else ''}")


def _signature(schema: Schema) -> str:
    return f"{NAMES[schema.opcode].name}{inspect.signature(schema.declaration)}".replace("'", "")


def _status(opcode: str) -> str:
    """Which readings the op has: `shape` infers it, `value` runs it (a rule, or the plan itself)."""
    from interpreter.facts import COLLECTIVES
    from interpreter.rules import compute, planned

    is_planned = opcode == "parameter" or (opcode in planned and opcode not in COLLECTIVES)
    readings = (("shape", opcode in infer), ("value", opcode in compute or is_planned))
    return " ".join(word if has else "-" * len(word) for word, has in readings)


@main.command()
@click.argument("word", metavar="KIND-or-OP")
def explain(word: str) -> None:
    """Say what an op does, or what a kind of refusal means."""
    opcode = word.strip("_").replace("-", "_")
    if opcode in OPS:
        names = NAMES[opcode]
        also = f", XlaBuilder's {names.xla_builder}" if names.xla_builder else ""
        click.echo(f"xb.{_signature(OPS[opcode])}\n{names.spelling} in HLO text{also}\n")
        click.echo(inspect.cleandoc(OPS[opcode].declaration.__doc__ or ""))
    elif word in EXPLANATIONS:
        click.echo(f"{word}: {EXPLANATIONS[word]}")
    else:
        close = difflib.get_close_matches(word, [*OPS, *EXPLANATIONS], 1)
        hint = f"; did you mean {close[0]!r}?" if close else "; `xbuild ops` lists the ops"
        raise click.UsageError(f"{word!r} is neither an op nor a kind of refusal{hint}")
