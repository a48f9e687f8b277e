"""`xbuild equivalent`: whether two programs compute the same function, whatever the rounding."""

from __future__ import annotations

import sys

import click

import xbuild

from .group import REFUSED, load, main, module_of, reported
from .run import SEED
from .support.candidates import targets
from .support.saying import say, say_json


@main.command()
@click.argument("one", metavar="TARGET", shell_complete=targets)
@click.argument("other", metavar="OTHER", shell_complete=targets)
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON, on stdout.")
@click.option("--seed", type=SEED, metavar="SEED", default=0, show_default=True, help="Seed of the random inputs.")
@click.option("--strict", is_flag=True, help="Exit status 1 for the verdict undecided, too.")
def equivalent(one: str, other: str, as_json: bool, seed: int, strict: bool) -> None:
    """Say whether two programs compute the same function, whatever the rounding.

    Both are evaluated on random inputs over prime fields, where arithmetic is exact. The programs have as many devices
    and the same arrays; or TARGET is global and OTHER partitioned: the devices hold the parts that its shardings say,
    as `xbuild shard --partitioned` writes them, else whole arrays or equal parts of one dimension in the order of the
    devices. `xb.equivalent` takes other layouts.

    \b
    xbuild equivalent before.hlo after.hlo
    xbuild equivalent net.py:step net.py:fused --strict

    Exit status: 0 for equal and undecided (1 with --strict for undecided), 1 for different or a program is refused.
    """
    with reported():
        found = xbuild.equivalent(module_of(load(one)), module_of(load(other)), seed=seed)
    if as_json:
        say_json(found.to_dict())
    else:
        say(str(found))
    sys.exit(REFUSED if found.kind == "different" or (strict and found.kind == "undecided") else 0)
