"""`xbuild shard`: the sharding of every value of a program, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from shape_inference import Shape, leaves
from shape_inference.escaping import in_line

from .. import shard as sharding
from ..core.graph import ModuleGroup
from ..costs.table import columns
from ..sharding.propagation import Conflict, Propagated, short
from .group import load, main, takes_target
from .support.candidates import instructions
from .support.saying import say, say_json


@main.command()
@takes_target
@click.option("--explain", "name", metavar="NAME", shell_complete=instructions, help="Why this value has its sharding.")
@click.option("--strategy", type=click.Choice(["shardy", "dialect"]), default="shardy", show_default=True,
              help="Shardy's fixed point, or the rule of MLIR's shard dialect.")  # fmt: skip
@click.option("--hlo", "as_hlo", is_flag=True, help="The program as HLO text, with the sharding of every value.")
@click.option("--json", "as_json", is_flag=True, help="All values, causes and conflicts as JSON, on stdout.")
def shard(target: str, name: str | None, strategy: str, as_hlo: bool, as_json: bool) -> None:
    """Propagate the shardings that a program states, and say how every value is cut.

    Nothing is run. Of each value stands where its sharding came from; `--explain NAME` follows that back to the line
    that states it.
    """
    program = load(target)
    if isinstance(program, ModuleGroup):
        raise click.UsageError("shardings are of one program for all devices, and this is one for each device")
    found = sharding.propagate(program, strategy=strategy)  # type: ignore[arg-type]
    if name is not None:
        answer = sharding.explain(found, name)
        say_json(answer.to_dict()) if as_json else say(str(answer))
    elif as_json:
        say_json(as_dict(found))
    else:
        say(found.module.to_hlo() if as_hlo else "\n".join(page(found)))


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
