"""`xbuild equivalent`: whether two programs compute the same function, up to rounding."""

from __future__ import annotations

import re
import sys
from typing import Any

import click

import xbuild

from ..sharding.unpartitioned import is_device_form_of
from .candidates import targets
from .formats import say_result
from .group import LIMIT, REFUSED, load, main, module_of, report_failures
from .options import shows_all, takes_all, takes_format
from .outputs import MORE, report_width, say, say_lines
from .run import SEED

_LIMITS = ("limit_seconds", "limit_bytes")
"""The reasons of a verdict that mean that the command reached its limit."""
_DOMAIN = re.compile(r"(?P<number>\d+)=(?:(?P<name>[a-z]+)|[\[(]?(?P<low>[^:,]+)[:,](?P<high>[^:,\])]+)[\])]?)")


def _parse_domains(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> dict[int, Any]:
    """The domains by the numbers of their arguments."""
    domains: dict[int, Any] = {}
    for text in texts:
        match = _DOMAIN.fullmatch(text)
        ends = None if match is None else (match["low"], match["high"])
        try:
            domain = None if match is None or ends is None else match["name"] or tuple(map(float, ends))
        except (TypeError, ValueError):
            domain = None
        if match is None or domain is None:
            raise click.BadParameter(f"{text!r}: expected N=KIND, such as 0=positive, or N=LOW:HIGH, such as 1=-1:1")
        if int(match["number"]) in domains:
            raise click.BadParameter(f"{text!r}: argument {match['number']} already has a domain")
        domains[int(match["number"])] = domain
    return domains


def _parse_rows(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, Any]:
    """The dimensions of rows by the targets of custom calls."""
    rows: dict[str, Any] = {}
    for text in texts:
        target, _, dims = text.rpartition("=")
        if not target or not all(dim.isdecimal() and dim.isascii() for dim in dims.split(",")):
            raise click.BadParameter(f"{text!r}: expected TARGET=DIMENSIONS, such as AwsNeuronRmsNorm=1,2")
        rows[target] = tuple(map(int, dims.split(",")))
    return rows


def _parse_pairs(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, Any]:
    """The constants of OTHER by those of TARGET."""
    pairs: dict[str, Any] = {}
    for text in texts:
        name, _, other = text.partition("=")
        if not name.strip("%") or not other.strip("%"):
            raise click.BadParameter(f"{text!r}: expected NAME=OTHER, such as constant.22=constant.31")
        pairs[name.strip("%")] = other.strip("%")
    return pairs


_EXTENTS = {"auto": None, "full": False, "smaller": True}


def takes_domain(command: Any) -> Any:
    """A decorator that adds the option --domain to a command that compares programs."""
    kinds = "positive, nonnegative, negative, nonpositive, nonzero, unit or LOW:HIGH"
    sentence = f"Restrict argument N to a domain: {kinds}."
    return click.option("--domain", "domains", multiple=True, metavar="N=KIND", callback=_parse_domains, help=sentence)(
        command
    )


def exit_code(verdict: xbuild.Equivalence, strict: bool) -> int:
    """The exit status of a command whose verdict this is."""
    if any(reason.endswith(_LIMITS) for reason in verdict.undecided):
        return LIMIT
    return REFUSED if verdict.kind == "different" or (strict and verdict.kind == "undecided") else 0


@main.command()
@click.argument("one", metavar="TARGET", shell_complete=targets)
@click.argument("other", metavar="OTHER", shell_complete=targets)
@click.option(
    "--seed", type=SEED, metavar="SEED", default=0, show_default=True, help="Set the seed of the random inputs."
)
@click.option("--strict", is_flag=True, help='Also exit with status 1 for the verdict "undecided".')
@takes_domain
@click.option(
    "--rows",
    multiple=True,
    metavar="TARGET=DIMS",
    callback=_parse_rows,
    help="Assume that custom calls with this target process each row along these dimensions independently, as in "
    "Norm=1,2.",
)
@click.option(
    "--constant",
    "constants",
    multiple=True,
    metavar="NAME=OTHER",
    callback=_parse_pairs,
    help="Assume that two constants with omitted elements are equal: NAME in the first program, OTHER in the second.",
)
@click.option(
    "--extents",
    type=click.Choice([*_EXTENTS]),
    default="auto",
    show_default=True,
    help="Compare at full extents, or at smaller ones that lead to the same verdict; auto uses smaller ones for large "
    "programs.",
)
@takes_all
@takes_format
def equivalent(
    one: str,
    other: str,
    seed: int,
    strict: bool,
    domains: dict[int, Any],
    rows: dict[str, Any],
    constants: dict[str, Any],
    extents: str,
) -> None:
    """Report whether two programs compute the same function, up to rounding.

    The command evaluates both programs on random inputs over prime fields, where arithmetic is exact, and runs them in
    floating point. Both programs must have the same number of devices and the same arrays, unless one is a global
    program and the other is its partitioned form; the order of these two is free.

    The shardings in a partitioned program determine the shard of each device; `xbuild shard --partitioned` writes them.
    If it has no shardings, each device holds the full array or an equal part of one dimension, in device order. The
    function `xb.equivalent` accepts other layouts.

    \b
    Examples:
      xbuild equivalent before.hlo after.hlo
      xbuild equivalent net.py:step net.py:fused --strict
      xbuild equivalent one.hlo two.hlo --domain 0=positive --domain 1=-1:1
      xbuild equivalent one.hlo two.hlo --rows AwsNeuronRmsNorm=1,2
      xbuild equivalent one.hlo two.hlo --constant constant.22=constant.31

    The exit status is 0 for the verdicts "equal" and "undecided" (1 for "undecided" with --strict), 1 for "different"
    or if a program is refused, 3 if the command reaches its limit on seconds or bytes, and 130 after Ctrl-C.
    """
    with report_failures("interrupted, without a verdict"):
        programs = [module_of(load(target, is_global=True)) for target in (one, other)]
        if is_device_form_of(*programs):
            say(f"notice: {other} is a global program, so they are compared in this order: {other}, {one}", err=True)
        verdict = xbuild.equivalent(
            *programs,
            seed=seed,
            domain=domains,
            rowwise=rows,
            constants=constants,
            reduce_extents=_EXTENTS[extents],
            names=(one, other),
        )
    if not say_result(one, {"other": other, **verdict.to_dict()}, verdict.issues):
        say_lines(verdict.lines(shows_all(), report_width(), MORE))
    sys.exit(exit_code(verdict, strict))
