"""`xbuild cost`: what a program costs each device."""

from __future__ import annotations

import click

import xbuild

from .group import load, main, takes_target
from .support.saying import say, say_json


@main.command()
@takes_target
@click.option("--json", "as_json", is_flag=True, help="All rows and sums as JSON, on stdout.")
@click.option("--by", type=click.Choice(["scope", "op", "axis"]), help="Sums by scope, by op, or by collective axis.")
@click.option("--top", type=click.IntRange(min=1), default=8, show_default=True, help="How many rows of a table.")
def cost(target: str, as_json: bool, by: str | None, top: int) -> None:
    """Say what a program costs each device: FLOPs, bytes, collectives.

    Nothing is run. A loop counts as often as it runs; where that is not known it counts as one trip, and a question
    mark says so.
    """
    found = xbuild.cost(load(target))
    if as_json:
        say_json(found.to_dict())
    else:
        say(found.table(by, top))  # type: ignore[arg-type]
