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
from .group import load, main, takes_target
from .support import partitioned
from .support.candidates import instructions, targets
from .support.saying import say, say_json


@main.command()
@takes_target
@click.option(
    "--explain",
    "name",
    metavar="NAME",
    shell_complete=instructions,
    help="Why this value has its sharding, or why this collective is inserted.",
)
@click.option("--strategy", type=click.Choice(["shardy", "dialect"]), default="shardy", show_default=True,
              help="Shardy's fixed point, or the rule of MLIR's shard dialect.")  # fmt: skip
@click.option("--hlo", "as_hlo", is_flag=True, help="The program as HLO text, with the sharding of every value.")
@click.option("--partitioned", "as_spmd", is_flag=True, help="The program that each device runs, as HLO text.")
@click.option("--json", "as_json", is_flag=True, help="All values, causes and communications as JSON, on stdout.")
@click.option("--compare", "others", metavar="TARGET", multiple=True, shell_complete=targets,
              help="Costs beside another TARGET, or another NAME of this file; may be repeated.")  # fmt: skip
@click.option("--machine", metavar="NAME", default="h100", show_default=True, help="The machine of the times.")
def shard(target: str, name: str | None, others: tuple[str, ...], machine: str, **how: Any) -> None:
    """Propagate the shardings that a program states, and say how every value is cut and what is communicated.

    Nothing is run. Of each value stands where its sharding came from; `--explain NAME` follows that back to the line
    that states it. Of each collective that partitioning inserts stand the reason and the time on the machine; of one
    `--explain NAME` tells which stated shardings avoid it. `--compare TARGET` puts the costs of several shardings side
    by side.
    """
    if others:
        compare([target, *(beside(target, each) for each in others)], machine, how["as_json"])
        return
    found = sharding.propagate(single(target), strategy=how["strategy"])
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
        say(sharding.partition(found.module, propagate=False, mesh=found.mesh).module.to_hlo())
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


def compare(several: list[str], machine: str, as_json: bool) -> None:
    """Print what the shardings of several targets cost, side by side."""
    rows = [partitioned.costs(single(each), machine) for each in several]
    if as_json:
        say_json([{"target": each, "machine": machine, **row} for each, row in zip(several, rows, strict=True)])
    else:
        say("\n".join(partitioned.table([Path(each).name.rpartition(":")[2] for each in several], rows, machine)))


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
