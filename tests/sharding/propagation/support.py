"""Programs in HLO text with shardings in short, and what propagation makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xbuild as xb
from xbuild.sharding.propagation import Propagated, propagate, short
from xbuild.sharding.sharding import Axis, DimSharding, Sharding

MESH = xb.Mesh(a=2, b=2, c=4)


def stated(text: str, mesh: xb.Mesh = MESH) -> Sharding:
    """A sharding from words for its dimensions: axes joined by +, `?` for open, `p1` for a priority, - for none.

    Words that begin with `replicated=` or `unreduced=` name axes; `a:(1)2` is a part of an axis.
    """
    dims, extra = [], {}
    for word in text.split():
        key, _, value = word.partition("=")
        if value:
            extra[key] = _axes(value, mesh)
            continue
        body, _, priority = word.partition("p")
        axes = _axes(body.rstrip("?").strip("-"), mesh)
        dims.append(DimSharding(axes, body.endswith("?"), int(priority or 0)))
    return Sharding(mesh, tuple(dims), **extra)


def _axes(text: str, mesh: xb.Mesh) -> tuple[Axis, ...]:
    found = []
    for each in filter(None, text.split("+")):
        name, _, part = each.partition(":(")
        pre, _, size = part.partition(")")
        found.append(Axis(name, int(size), int(pre)) if part else Axis(name, mesh.size(name)))
    return tuple(found)


def program(body: str, shardings: Mapping[str, str], others: str = "", mesh: xb.Mesh = MESH) -> xb.Module:
    """A program of these lines, whose last one is the root, with these shardings by name."""
    *lines, root = [line for line in body.strip().splitlines() if line.strip()]
    text = "\n".join(["HloModule m", others, "ENTRY e {", *lines, "ROOT " + root.strip(), "}"])
    return xb.shard.annotated(xb.parse_hlo(text), {name: stated(each, mesh) for name, each in shardings.items()})


def found(
    body: str, shardings: Mapping[str, str], others: str = "", mesh: xb.Mesh = MESH, **options: Any
) -> Propagated:
    return propagate(program(body, shardings, others, mesh), mesh=mesh, **options)


def cuts(result: Propagated, *names: str) -> list[str]:
    """The shardings of values in short, of tuples that of each leaf."""
    texts = []
    for name in names:
        each = result.sharding(name)
        texts += [short(one) for one in (each if isinstance(each, tuple) else (each,))]
    return texts
