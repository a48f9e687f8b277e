"""`xbuild trace DIR --differ`: the text of the first value in which a device differs from the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from ...checking.model.program import devices_text
from ...traces import Trace
from ...traces.questions.majority import Compared, Odd, odd_one
from ...traces.saying import said

_MOST_GROUPS = 8


def differing(found: Trace, names: Sequence[str], eps: float) -> dict[str, Any]:
    """The facts and the text; a usage error where a name is none of the program's parameters."""
    try:
        compared = odd_one(found, names, eps)
    except KeyError as error:
        raise click.UsageError(f"--apart {error.args[0]}: the program has no such parameter{_inputs(found)}") from None
    if compared.odd is None:
        passed = f", apart from what follows from {', '.join(names)}" if names else ""
        text = f"no device differs: {compared.values:,} values are as the program makes them{passed}"
        return {"compared": compared.values, "odd": None, "text": text}
    odd = compared.odd
    event = found[odd.common]
    facts = {
        "instruction": event.instruction.name, "at": found.standing(odd.common), "step": event.time,
        "devices": list(odd.devices), "groups": [list(group) for group in odd.groups], "is_input": odd.is_input,
        "index": None if odd.index is None else list(odd.index), "apart": odd.gap,
    }  # fmt: skip
    return {"compared": compared.values, "odd": facts, "text": "\n".join(_lines(found, odd, compared))}


def _inputs(found: Trace) -> str:
    program = found.program
    module = next(iter(program.modules.values())) if hasattr(program, "modules") else program
    names = [each.name for each in module.entry.parameters]
    return f"; it has {', '.join(names[:12])}{', ...' * (len(names) > 12)}" if names else ""


def _lines(found: Trace, odd: Odd, compared: Compared) -> Iterator[str]:
    event = found[odd.common]
    source = f"    {event.instruction.source}" if event.instruction.source else ""
    yield f"{_who(odd)} in {found.standing(odd.common)}, step {event.time}{source}"
    of = {found[n].device: n for n in range(len(found)) if _is_turn(found, n, odd.common)}
    for group in odd.groups[:_MOST_GROUPS]:
        yield f"  {devices_text(group)}: {said(found.values.get(of[group[0]]))}"
    if len(odd.groups) > _MOST_GROUPS:
        yield f"  and {len(odd.groups) - _MOST_GROUPS} more values on other devices"
    if odd.index is not None:
        yield f"  the first element that differs is {list(odd.index)}, and the greatest difference {odd.gap:.6g}"
    yield f"  {_reason(odd)}"
    if odd.is_input and len(compared.inputs) > 1:
        yield f"  inputs that differ between devices: {', '.join(compared.inputs)}"


def _is_turn(found: Trace, number: int, other: int) -> bool:
    one, two = found.spots[int(found.spot[number])], found.spots[int(found.spot[other])]
    same = one.path == two.path and one.instruction.name == two.instruction.name
    return same and int(found.count[number]) == int(found.count[other])


def _who(odd: Odd) -> str:
    if not odd.devices:
        return "devices differ, none of them from most others,"
    several, count = len(odd.devices) > 1, sum(map(len, odd.groups)) - len(odd.devices)
    return f"{devices_text(odd.devices)} differ{'s' * (not several)} from the other {count}"


def _reason(odd: Odd) -> str:
    if odd.is_input:
        return "an input of the run; where it is meant to differ, --apart NAME passes over what follows from it"
    return "the program makes these devices equal where their inputs are" if odd.is_meant else _TREATED


_TREATED = "the program itself treats these devices otherwise than most: look at the groups and ids on the way there"
