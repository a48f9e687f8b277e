"""`xbuild trace`: what a kept run can tell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click

from ..trace import Trace, TraceError
from ..trace.births import births, chain
from ..trace.compare import Comparison, compare_traces
from ..trace.saying import plain, said
from .group import REFUSED, main


@main.command()
@click.argument("folders", nargs=-1, required=True, metavar="DIR [OTHER]")
@click.option("--of", "name", metavar="NAME", help="An instruction: its value at each turn on each device.")
@click.option("--device", type=click.IntRange(min=0), help="Of one device alone.")
@click.option("--turn", type=click.IntRange(min=0), help="At this turn alone, from 0.")
@click.option("--devices", nargs=2, type=click.IntRange(min=0), metavar="A B", help="Where two devices first differ.")
@click.option("--eps", type=click.FloatRange(min=0), default=0.0, help="How far apart values may be.")
@click.option("--page", type=click.Path(dir_okay=False), help="FILE.html: the run, step by step.")
@click.option("--json", "as_json", is_flag=True, help="The facts as JSON.")
def trace(
    folders: tuple[str, ...],
    name: str | None,
    device: int | None,
    turn: int | None,
    devices: tuple[int, int] | None,
    eps: float,
    page: str | None,
    as_json: bool,
) -> None:
    """Ask a trace that `xbuild run --trace DIR` has kept.

    Alone: what is in it, and where the first NaN and the first infinity were born, with the way to them. With a second
    trace, of another program or another run: the first value in which they differ. Exit code 1 where they do.
    """
    if len(folders) > 2 or (len(folders) == 2 and name):
        raise click.UsageError("one trace is asked, or two are compared")
    traces = [opened(folder) for folder in folders]
    if page is not None:
        _page(traces[0], page)
    if len(traces) == 2 or devices:
        _compare(traces[0], traces[-1], devices or None, eps, as_json)
    elif name is not None:
        _print(list(_turns(traces[0], name, device, turn)), as_json)
    elif page is None or as_json:
        _print([overview(traces[0])], as_json)


def opened(folder: str) -> Trace:
    """The trace of a folder, in logical time."""
    try:
        return Trace.load(folder)
    except TraceError as error:
        raise click.UsageError(str(error)) from None


def _page(found: Trace, page: str) -> None:
    from attrs import evolve

    from interpreter.tracing import across_in, origins_in

    from .keeping import Asked

    Asked(page).keep(evolve(found, origins=origins_in(found), across=across_in(found)))


def _print(facts: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(facts[0] if len(facts) == 1 and "events" in facts[0] else facts, indent=2))
        return
    for fact in facts:
        click.echo(fact["text"])


def _turns(found: Trace, name: str, device: int | None, turn: int | None) -> Iterator[dict[str, Any]]:
    """A row for each time that a device came to an instruction."""
    if not any(spot.instruction.name == name for spot in found.spots):
        raise click.UsageError(f"the run never came to {name!r}{_close(found, name)}")
    for event in found.where(name, device=device, count=turn):
        value = found.values.get(event.number)
        place = f"device {event.device}  step {event.time}  {found.standing(event.number)}"
        yield {
            "device": event.device, "step": event.time, "turn": event.count, "trips": dict(found.trips(event.number)),
            "instruction": name, "value": plain(value), "text": f"{place}  {said(value)}",
        }  # fmt: skip


def _close(found: Trace, name: str) -> str:
    import difflib

    close = difflib.get_close_matches(name, {spot.instruction.name for spot in found.spots}, 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def overview(found: Trace) -> dict[str, Any]:
    """What is in a trace."""
    told = [f"{len(found):,} events on {found.num_devices} devices, {found.end:,} steps, {len(found.values):,} values"]
    told += [f"not kept: {found.left_out}"] if found.left_out else []
    told += [found.stop["text"]] if found.stop else []
    told += [f"strict, {finding['text'].strip()}" for finding in found.findings]
    born = births(found)
    firsts = [next((birth for birth in born if birth.what == what), None) for what in ("NaN", "infinity")]
    odd = [_birth(found, birth) for birth in firsts if birth is not None]
    told += [each["text"] for each in odd] or (["no NaN or infinity is born in what was kept"] if found.values else [])
    return {
        "events": len(found), "devices": found.num_devices, "steps": found.end, "values": len(found.values),
        "left_out": found.left_out, "stop": found.stop, "findings": [*found.findings], "born": odd,
        "text": "\n".join(told),
    }  # fmt: skip


def _birth(found: Trace, birth: Any) -> dict[str, Any]:
    """A NaN or an infinity: where it is born, and the way to it."""
    event = found[birth.event]
    rows = [{"device": found[n].device, "at": found.standing(n), "value": said(found.values.get(n))}
            for n in chain(found, birth.event)]  # fmt: skip
    lines = [f"  device {row['device']}  {row['at']}  {row['value']}" for row in rows]
    head = f"the first {birth.what} is born at step {event.time} on device {event.device}, in {rows[-1]['at']}"
    source = event.instruction.source
    text = "\n".join([f"{head}{f'    {source}' if source else ''}", *lines])
    return {"what": birth.what, "device": event.device, "step": event.time, "chain": rows, "text": text}


_WHY = {True: "its operands are the same", False: "its operands differ already"}


def _compare(a: Trace, b: Trace, devices: tuple[int, int] | None, eps: float, as_json: bool) -> None:
    for device in devices or ():
        if device >= a.num_devices:
            raise click.UsageError(f"device {device} is none of 0..{a.num_devices - 1}")
    found = compare_traces(a, b, devices, eps)
    facts = _told(a, b, found)
    click.echo(json.dumps(facts, indent=2) if as_json else facts["text"])
    if found.difference is not None:
        raise SystemExit(REFUSED)


def _told(a: Trace, b: Trace, found: Comparison) -> dict[str, Any]:
    alone = f", {found.alone:,} have no counterpart" if found.alone else ""
    facts: dict[str, Any] = {"compared": found.compared, "alone": found.alone, "difference": None}
    each = found.difference
    if each is None:
        return facts | {"text": f"the same: {found.compared:,} events{alone}"}
    sides = [
        {"device": t[n].device, "step": t[n].time, "at": t.standing(n), "value": said(t.values.get(n))}
        for t, n in ((a, each.first), (b, each.second))
    ]
    where = "" if not each.index else f" at {list(each.index)}"
    apart = "" if each.apart is None else f", {each.apart:.6g} apart at most"
    is_input = a[each.first].instruction.opcode == "parameter" and not a[each.first].spot.path
    why = "an input of the program" if is_input else _WHY[each.cause]
    lines = [f"first difference: {sides[0]['at']}{where}{apart}; {why}"]
    lines += [f"  device {side['device']}  step {side['step']}  {side['value']}" for side in sides]
    lines.append(f"  {found.compared:,} events compared{alone}")
    index = None if each.index is None else list(each.index)
    told = {"index": index, "apart": each.apart, "operands_same": each.cause, "sides": sides}
    return facts | {"difference": told, "text": "\n".join(lines)}
