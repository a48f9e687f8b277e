"""`xbuild shard`: the sharding of every value of a program, and why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from shape_inference import Shape, XbuildError, leaves
from shape_inference.escaping import in_line

from .. import shard as sharding
from ..core.graph import Module, ModuleGroup
from ..costs.table import columns
from ..sharding.propagation import Conflict, Propagated, short
from .group import given, load, main, needs, takes_target
from .support import partitioned
from .support.candidates import instructions, targets
from .support.paths import distinct, target_of
from .support.saying import say, say_json
from .viz import form_of, takes_theme, write

_PICTURE = "File for a picture, .svg or .html: the program before and after, or with --explain the tiles of the value."


@main.command()
@takes_target
@click.argument("others", metavar="[--compare OTHERS]", nargs=-1, shell_complete=targets)
@click.option("--explain", "name", metavar="NAME", shell_complete=instructions,
              help="Why this value has its sharding, or why this collective is inserted.")  # fmt: skip
@click.option("--strategy", type=click.Choice(["shardy", "dialect"]), default="shardy", show_default=True,
              help="Shardy's fixed point, or the rule of MLIR's shard dialect.")  # fmt: skip
@click.option("--hlo", "as_hlo", is_flag=True, help="The program as HLO text, with the sharding of every value.")
@click.option("--partitioned", "as_spmd", is_flag=True, help="The program that each device runs, as HLO text.")
@click.option("--json", "as_json", is_flag=True, help="All values, causes and communications as JSON, on stdout.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help=_PICTURE)
@takes_theme
@click.option("--compare", is_flag=True, help="Costs beside those of OTHER targets, or other NAMEs of this file.")
@click.option("--machine", metavar="NAME", default="h100", show_default=True, help="The machine of the times.")
def shard(
    target: str,
    name: str | None,
    others: tuple[str, ...],
    compare: bool,
    machine: str,
    output: str | None,
    theme: str,
    **how: Any,
) -> None:
    """Propagate the shardings that a program states, and say how every value is cut and what is communicated.

    Nothing is run. Of each value stands where its sharding came from; `--explain NAME` follows that back to the line
    that states it. Of each collective that partitioning inserts stand the reason and the time on the machine; of one
    `--explain NAME` tells which stated shardings avoid it. `xbuild shard TARGET --compare A B` puts the costs of
    several shardings side by side; a name is one of the file of TARGET.
    """
    refuse_two_ways("compare", "name", "as_hlo", "as_spmd")
    refuse_two_ways("as_json", "as_hlo", "as_spmd")
    for each in ("compare", "as_hlo", "as_spmd", "as_json"):
        refuse_two_ways("output", each)
    needs("-o FILE", output, "theme")
    distinct(target_of(target), {"-o": output})
    if others and not compare:
        raise click.UsageError(f"{others[0]} is a second target, and without --compare one is wanted")
    if compare:
        several = [target, *(beside(target, each) for each in others)]
        say_costs(several, how["strategy"], machine, how["as_json"])
        return
    found = sharding.propagate(single(target), strategy=how["strategy"])
    if output is not None:
        write(picture_of(found, name, form_of(output), theme), output)
        return
    if name is not None:
        explained(found, name, how["as_json"])
    elif how["as_hlo"]:
        say(found.module.to_hlo())
    else:
        show(found, machine, how["as_spmd"], how["as_json"])


def explained(found: Propagated, name: str, as_json: bool) -> None:
    """Print why a value has its sharding and what was inserted for it; or why a collective was inserted, and which
    shardings avoid it.
    """
    parts: sharding.Partitioned | Propagated
    try:
        parts = sharding.partition(found)
    except XbuildError:
        parts = found  # what cannot be partitioned is explained all the same
    answer, advice = sharding.explain(parts, name), partitioned.advice(parts, name)
    if as_json:
        say_json({**answer.to_dict(), **({"advice": [each.to_dict() for each in advice]} if advice else {})})
    else:
        say("\n".join([str(answer), *(f"  {each}" for each in advice)]))


def show(found: Propagated, machine: str, as_spmd: bool, as_json: bool) -> None:
    """Print the page, the data, or the partitioned program."""
    if as_spmd:
        say(sharding.partition(found).module.to_hlo())
        return
    parts: sharding.Partitioned | str
    try:
        parts = sharding.partition(found)
    except XbuildError as error:
        parts = str(error).splitlines()[0]
    if as_json:
        inserted = {"refused": parts} if isinstance(parts, str) else partitioned.as_dict(parts, machine)
        say_json({**as_dict(found), "partitioned": inserted})
        return
    below = [f"not partitioned: {parts}"] if isinstance(parts, str) else partitioned.lines(parts, machine)
    say("\n".join([*page(found), "", *below]))


def picture_of(found: Propagated, name: str | None, form: str, theme: str) -> str | bytes:
    """The picture of a partition, or of the tiles of one value with the reasons of its sharding."""
    from ..pictures import Drawing
    from ..pictures.showing import shown
    from ..pictures.tiles import tile_picture
    from ..pictures.views.views import View

    if name is None:
        return Drawing(shown(sharding.partition(found), View()), theme=theme).render(form)
    if form not in ("svg", "html", "txt"):
        raise click.UsageError(f"tiles are drawn as svg, html or txt, not as {form}")
    leaf = _first_cut(found.sharding(name))
    report = str(sharding.explain(found, name, leaf=leaf)).partition("\n")[2]
    return Drawing(tile_picture(sharding.tiling(found, name, leaf=leaf), report), theme=theme).render(form)


def _first_cut(shardings: Any) -> int:
    """The number of the first array of a tuple that is cut; 0 where none is, and for an array."""
    several = shardings if isinstance(shardings, tuple) else ()
    return next((n for n, each in enumerate(several) if getattr(each, "cut_axes", ())), 0)


def single(target: str) -> Module:
    """The one program of a target; a usage error where there is one for each device."""
    program = load(target)
    if isinstance(program, ModuleGroup):
        raise click.UsageError("shardings are of one program for all devices, and this is one for each device")
    return program if isinstance(program, Module) else Module(program.name, program)


def beside(target: str, other: str) -> str:
    """A target, or a name in the file of the first target, as a target."""
    file, colon, _ = target.rpartition(":")
    is_name = bool(colon) and other.isidentifier() and not Path(other).exists()
    return f"{file}:{other}" if is_name else other


def say_costs(several: list[str], strategy: Any, machine: str, as_json: bool) -> None:
    """Print what the shardings of several targets cost, side by side."""
    if len(several) < 2:
        raise click.UsageError("--compare puts TARGET beside others, and none is given: xbuild shard A --compare B C")
    rows = [partitioned.costs(single(each), strategy, machine) for each in several]
    if as_json:
        say_json([{"target": each, "machine": machine, **row} for each, row in zip(several, rows, strict=True)])
    else:
        say("\n".join(partitioned.table([Path(each).name.rpartition(":")[2] for each in several], rows, machine)))


def refuse_two_ways(*ways: str) -> None:
    """A usage error where two options are given of which each says what is printed."""
    if len(found := given(*ways)) > 1:
        raise click.UsageError(f"{found[0]} and {found[1]} are both given, and each is an answer of its own")


def page(found: Propagated) -> Iterator[str]:
    """The lines of the page."""
    rows = [row for row in _rows(found) if row["kind"] != "scalar"]
    cut = sum(row["is_cut"] for row in rows)
    mesh = " x ".join(f"{axis}={size}" for axis, size in found.mesh.sizes)
    yield f"{in_line(found.module.name)}: mesh {mesh}, {len(rows)} arrays, {cut} of them cut"
    yield from columns(
        ("value", "in", "shape", "sharding", "why"),
        ((row["name"], row["computation"], row["shape"], row["sharding"], row["why"]) for row in rows),
    )
    if found.conflicts:
        yield ""
        yield f"resharded, since values do not fit each other ({len(found.conflicts)})"
        yield from (f"  {in_line(each.sentence())}" for each in found.conflicts)


def as_dict(found: Propagated) -> dict[str, Any]:
    """The page as plain data."""
    return {
        "module": found.module.name,
        "mesh": dict(found.mesh.sizes),
        "strategy": found.strategy,
        "values": list(_rows(found)),
        "conflicts": [_clash(each) for each in found.conflicts],
    }


def _clash(conflict: Conflict) -> dict[str, Any]:
    axes = {name: [axis.name for axis in own] for name, own in conflict.axes}
    return {"at": conflict.at, "op": conflict.what, "rule": conflict.rule, "factor": conflict.factor, "axes": axes}


def _rows(found: Propagated) -> Iterator[dict[str, Any]]:
    """A row for each array that an instruction gives; elements of tuples are those of what made them."""
    entry = found.module.entry.name
    for computation, instruction in found.homes():
        if instruction.opcode in ("tuple", "get_tuple_element") and instruction.name != found.module.entry.root.name:
            continue
        own = found.shardings.get(instruction, ())
        each = own if isinstance(own, tuple) else (own,)
        for leaf, (shape, one) in enumerate(zip(leaves(instruction.shape), each, strict=False)):
            if isinstance(shape, Shape):
                cause = found.cause_of(instruction, leaf)
                yield {
                    "name": instruction.name + (f"[{leaf}]" if isinstance(own, tuple) else ""),
                    "computation": "" if computation == entry else computation,
                    "shape": str(shape.plain()),
                    "sharding": short(one),
                    "kind": cause.kind if shape.rank else "scalar",
                    "is_cut": any(dim.axes for dim in getattr(one, "dims", ())),
                    "why": _why(cause),
                    "source": cause.source,
                    "line": None if cause.where is None else str(cause.where),
                }


def _why(cause: Any) -> str:
    if cause.kind != "propagated":
        return "" if cause.kind == "whole" else str(cause.kind)
    last = cause.steps[-1]
    return f"from {last.source}, by {last.what} {last.at} (level {last.level})"
