"""`xbuild show`: prints a program as HLO text, as StableHLO text, or as the Python that the interpreter runs."""

from __future__ import annotations

from collections.abc import Iterator

import click

from ..core.graph import Computation, Module, ModuleGroup
from ..files.targets import Program
from .candidates import instructions
from .group import load, main, module_targets, options_used, require, takes_target
from .outputs import say

_STYLE = (
    "Set the style of HLO text: percent adds % to names, full adds layouts and metadata, and "
    "typed adds types on a mesh."
)


@main.command()
@takes_target
@click.option("--plan", is_flag=True, help="Print the Python source that the interpreter runs.")
@click.option(
    "--engine",
    type=click.Choice(["interpreter", "auto"]),
    default="interpreter",
    show_default=True,
    help="With auto, also print which parts jaxlib would compile, and why not the rest (requires --plan).",
)
@click.option("--stablehlo", is_flag=True, help="Print StableHLO text, which JAX and XLA read.")
@click.option(
    "--locations", is_flag=True, help="Print the names and source lines of the program (requires --stablehlo)."
)
@click.option(
    "--only",
    type=click.Choice(["collectives"]),
    help="Print only communicating instructions, and count all other instructions.",
)
@click.option(
    "--style", type=click.Choice(["short", "percent", "full", "typed"]), default="short", show_default=True, help=_STYLE
)
@click.option(
    "--replication",
    "as_replication",
    is_flag=True,
    help="Print which devices hold equal values, and why; with --all, for every value.",
)
@click.option(
    "--why",
    metavar="NAME",
    shell_complete=instructions,
    help="Explain why devices may hold different values for this instruction (requires --replication).",
)
@click.option("--all", "every", is_flag=True, help="Print every value, without reasons (requires --replication).")
@click.option(
    "--replicated",
    metavar="N",
    type=int,
    multiple=True,
    help="Assume that parameter N has the same value on all devices (repeatable; requires --replication).",
)
def show(
    target: str,
    plan: bool,
    engine: str,
    stablehlo: bool,
    locations: bool,
    only: str | None,
    style: str,
    as_replication: bool,
    why: str | None,
    every: bool,
    replicated: tuple[int, ...],
) -> None:
    """Print a program as HLO text, StableHLO text or Python, or show which devices hold equal values."""
    require("--stablehlo", stablehlo, "locations")
    require("--plan", plan, "engine")
    require("--replication", as_replication, "replicated", "why", "every")
    if as_replication:
        _show_replication(target, why, every, replicated)
        return
    if plan and (options := options_used("only", "style")):
        raise click.UsageError(f"{options[0]} applies to HLO text, but --plan prints Python")
    if stablehlo and (options := options_used("only", "style", "plan")):
        raise click.UsageError(f"{options[0]} does not apply to the StableHLO text that --stablehlo prints")
    if only and options_used("style"):
        raise click.UsageError("--style applies to the full text, but --only prints a part of the text")
    modules = module_targets(target)
    for place, module in enumerate(modules):
        say(f"{chr(10) * bool(place)}// ----- {module}\n" if len(modules) > 1 else "", nl=False)
        for heading, part in _device_programs(load(module)):
            say(heading, nl=False)
            text = part.to_stablehlo(locations=locations) if stablehlo else _text(part, plan, engine, only, style)
            say(text.rstrip("\n"))


_MOST_VALUES = 30
"""Rows of the short table of --replication."""


def _show_replication(target: str, why: str | None, every: bool, replicated: tuple[int, ...]) -> None:
    from ..checking import replication
    from ..checking.replication_summary import summary_lines

    if options := options_used("plan", "only", "style", "stablehlo"):
        raise click.UsageError(f"{options[0]} applies to the text of the program, but --replication prints a table")
    program = load(target)
    module = Module(program.name, program) if isinstance(program, Computation) else program
    values = replication(module, dict.fromkeys(replicated, True))
    try:
        if why is not None:
            say(values.why(why))
        else:
            say(str(values) if every else "\n".join(summary_lines(values, _MOST_VALUES)))
    except KeyError as error:
        raise click.UsageError(str(error.args[0])) from None


def _device_programs(program: Program) -> Iterator[tuple[str, Computation | Module]]:
    """The program, or the program of each device below a line with its number."""
    if not isinstance(program, ModuleGroup):
        yield "", program
        return
    for place, (device, module) in enumerate(program.modules.items()):
        yield f"{chr(10) * bool(place)}// device {device}\n", module


def _text(part: Computation | Module, plan: bool, engine: str, only: str | None, style: str) -> str:
    from ..text.printer import computation_text, module_text, skeleton_text

    if plan:
        from ..running import auto, plan_source

        if engine == "auto":
            return auto.choice_of(part).plan_source()
        return plan_source(part.entry if isinstance(part, Module) else part)
    if only:
        return skeleton_text(part)
    return module_text(part, style) if isinstance(part, Module) else computation_text(part, style)
