"""`xbuild show`: prints a program as HLO text, as StableHLO text, or as the plan that the interpreter runs."""

from __future__ import annotations

from collections.abc import Iterator

import click

from ..core.graph import Computation, Module, ModuleGroup
from ..files.targets import Program
from .group import each_of, given, load, main, needs, takes_target
from .support.candidates import instructions
from .support.saying import say

_STYLE = "How HLO text is spelled: short, with % before names, in full (layouts, metadata), or with types on a mesh."


@main.command()
@takes_target
@click.option("--plan", is_flag=True, help="Print the Python source that the interpreter runs.")
@click.option("--stablehlo", is_flag=True, help="Print StableHLO text, as JAX and XLA read it.")
@click.option("--locations", is_flag=True, help="In StableHLO text, print names and lines of the program.")
@click.option(
    "--only", type=click.Choice(["collectives"]), help="Print communicating instructions, and count the others."
)
@click.option(
    "--style", type=click.Choice(["short", "percent", "full", "typed"]), default="short", show_default=True, help=_STYLE
)
@click.option("--replication", "asks", is_flag=True, help="Print beside each value on which devices it is equal.")
@click.option(
    "--why",
    metavar="NAME",
    shell_complete=instructions,
    help="With --replication: why devices may hold different values of this instruction.",
)
@click.option(
    "--replicated",
    metavar="N",
    type=int,
    multiple=True,
    help="With --replication: parameter N is equal on all devices; repeatable.",
)
def show(
    target: str,
    plan: bool,
    stablehlo: bool,
    locations: bool,
    only: str | None,
    style: str,
    asks: bool,
    why: str | None,
    replicated: tuple[int, ...],
) -> None:
    """Print a program: as HLO or StableHLO text, as the Python that runs, or with devices of equal values."""
    needs("--stablehlo", stablehlo, "locations")
    needs("--replication", asks, "replicated", "why")
    if asks:
        _show_replication(target, why, replicated)
        return
    if plan and (found := given("only", "style")):
        raise click.UsageError(f"{found[0]} is for HLO text, and --plan is Python")
    if stablehlo and (found := given("only", "style", "plan")):
        raise click.UsageError(f"{found[0]} is not for StableHLO text, and --stablehlo is given")
    if only and given("style"):
        raise click.UsageError("--style is for the whole text, and --only is given")
    found = each_of(target)
    for place, each in enumerate(found):
        say(f"{chr(10) * bool(place)}// ----- {each}\n" if len(found) > 1 else "", nl=False)
        for heading, part in _parts(load(each)):
            say(heading, nl=False)
            text = part.to_stablehlo(locations=locations) if stablehlo else _shown(part, plan, only, style)
            say(text.rstrip("\n"))


def _show_replication(target: str, why: str | None, replicated: tuple[int, ...]) -> None:
    from ..checking import replication

    if found := given("plan", "only", "style", "stablehlo"):
        raise click.UsageError(f"{found[0]} is for the text of the program, and --replication is a table")
    program = load(target)
    module = Module(program.name, program) if isinstance(program, Computation) else program
    values = replication(module, dict.fromkeys(replicated, True))
    try:
        say(str(values) if why is None else values.why(why))
    except KeyError as error:
        raise click.UsageError(str(error.args[0])) from None


def _parts(program: Program) -> Iterator[tuple[str, Computation | Module]]:
    if not isinstance(program, ModuleGroup):
        yield "", program
        return
    for place, (device, module) in enumerate(program.modules.items()):
        yield f"{chr(10) * bool(place)}// device {device}\n", module


def _shown(part: Computation | Module, plan: bool, only: str | None, style: str) -> str:
    from ..text.writing.printer import computation_text, module_text
    from ..text.writing.skeleton import skeleton_text

    if plan:
        from ..running import plan_source

        return plan_source(part.entry if isinstance(part, Module) else part)
    if only:
        return skeleton_text(part)
    return module_text(part, style) if isinstance(part, Module) else computation_text(part, style)
