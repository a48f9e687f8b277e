"""`xbuild trace`: summary, queries and comparison of traces that `xbuild run --trace` has written."""

from __future__ import annotations

from typing import Any

import click
from attrs import frozen

from ..traces import Event, Trace, TraceError
from ..traces.compare import Comparison, Difference, compare_traces
from ..traces.saying import plain, said
from .answers.contents import overview as overview
from .answers.differing import differing
from .answers.elements import DEPTH, made_of
from .group import REFUSED, Amount, main, needs
from .keeping import Asked, takes_machine, takes_source_root
from .support.candidates import instructions
from .support.paths import distinct
from .support.saying import say, say_json


@main.command()
@click.argument("folders", nargs=-1, required=True, metavar="DIR [OTHER]")
@click.option(
    "--of",
    "name",
    metavar="NAME",
    shell_complete=instructions,
    help="Print the values of this instruction, for each execution on each device.",
)
@click.option("--device", type=click.IntRange(min=0), help="With --of: only on this device.")
@click.option("--turn", type=click.IntRange(min=0), help="With --of: only this execution; the first is 0.")
@click.option(
    "--devices",
    nargs=2,
    type=click.IntRange(min=0),
    metavar="A B",
    help="Compare two devices, and print the first value that differs.",
)
@click.option(
    "--element", metavar="I,J", help="With --of: from which elements this one was computed, and their numbers."
)
@click.option(
    "--depth",
    type=click.IntRange(min=1),
    default=DEPTH,
    show_default=True,
    help="With --element: ops that are followed back.",
)
@click.option("--differ", is_flag=True, help="Name the device whose values differ from those of the others.")
@click.option(
    "--apart", multiple=True, metavar="NAME", help="With --differ: an input that is meant to differ; repeatable."
)
@click.option(
    "--eps", type=Amount(), help="In a comparison: the difference of values that counts as equal.  [default: 0]"
)
@click.option("--page", type=click.Path(dir_okay=False), help="File for a page that replays the run, FILE.html.")
@takes_source_root
@takes_machine
@click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON.")
def trace(
    folders: tuple[str, ...],
    name: str | None,
    device: int | None,
    turn: int | None,
    devices: tuple[int, int] | None,
    element: str | None,
    depth: int,
    differ: bool,
    apart: tuple[str, ...],
    eps: float | None,
    page: str | None,
    source_root: str | None,
    machine: str | None,
    as_json: bool,
) -> None:
    """Answer questions to a run that `xbuild run --trace DIR` has kept.

    DIR alone: what is in it, and where the first NaN and the first infinity were born, with the way to them.

    DIR and OTHER, traces of two runs: the first value in which they differ; with --devices A B the first that device A
    of the one and B of the other have differently. Of one instruction with --of.

    With --differ all devices of one run are compared, and the one that differs from most others is named; inputs that
    are meant to differ are named with --apart. Exit status 1 where something differs.
    """
    if len(folders) > 2:
        raise click.UsageError("one trace is asked, or two are compared")
    compares = len(folders) == 2 or bool(devices)
    needs("--differ", differ, "apart")
    needs("--element I,J", element is not None, "depth")
    if differ and (compares or name is not None):
        raise click.UsageError("--differ compares all devices of one run, and takes neither --of, --devices nor OTHER")
    _agree(name, compares, differ, {"--device": device, "--turn": turn, "--element": element}, {"--eps": eps})
    distinct({f"DIR, {folder}": folder for folder in folders}, {"--page": page})
    needs("--page", page, "source_root", "machine")
    traces = [opened(folder) for folder in folders]
    if page is not None:
        _page(traces[0], page, source_root, machine)
    if name is not None and not any(_comes_to(each, name) for each in traces):
        raise click.UsageError(f"the run never came to {name!r}{_close(traces[0], name)}")
    if compares:
        sides = Sides(traces[0], traces[-1], *([*folders] if len(folders) == 2 else ["", ""]))
        _compare(sides, devices or None, eps or 0.0, name, as_json)
    elif differ:
        _differ(traces[0], apart, eps or 0.0, as_json)
    elif name is not None and element is not None:
        _print([made_of(traces[0], name, element, device, turn, depth)], as_json)
    elif name is not None:
        _print(_turns(traces[0], name, device, turn), as_json)
    elif page is None or as_json:
        _print([overview(traces[0])], as_json)


def _differ(found: Trace, names: tuple[str, ...], eps: float, as_json: bool) -> None:
    facts = differing(found, names, eps)
    say_json(facts) if as_json else say(facts["text"])
    if facts["odd"] is not None:
        raise SystemExit(REFUSED)


def _agree(name: str | None, compares: bool, differ: bool, of_one: dict[str, Any], of_two: dict[str, Any]) -> None:
    """A usage error where an option is given that has no effect in this use of the command."""
    for option, value in of_one.items():
        if value is not None and (name is None or compares):
            raise click.UsageError(f"{option} is for the values of one instruction, as in --of add.3 {option} {value}")
    for option, value in of_two.items():
        if value is not None and not (compares or differ):
            raise click.UsageError(f"{option} is for a comparison: --differ, --devices A B, or a second trace")


@frozen
class Sides:
    """Two traces that are compared, each with the name of its folder; the names are empty where both are one trace."""

    first: Trace
    second: Trace
    one: str
    other: str


def opened(folder: str) -> Trace:
    """The trace of a folder, in logical time."""
    try:
        return Trace.load(folder)
    except TraceError as error:
        raise click.UsageError(str(error)) from None


def _page(found: Trace, page: str, source_root: str | None, machine: str | None) -> None:
    from attrs import evolve

    from ..running import tracing

    Asked(page, source_root=source_root, machine=machine).keep(
        evolve(found, origins=tracing.origins_in(found), across=tracing.across_in(found))
    )


def _print(facts: list[dict[str, Any]], as_json: bool) -> None:
    """Print facts; turns without a kept value are only counted, if other turns have values."""
    if as_json:
        say_json(facts[0] if len(facts) == 1 and "events" in facts[0] else facts)
        return
    kept = [fact for fact in facts if fact.get("value", ()) is not None] or facts
    for fact in kept:
        say(fact["text"])
    if len(kept) < len(facts):
        say(f"{count(len(facts) - len(kept), 'more turn')} without a value that was kept")


def _turns(found: Trace, name: str, device: int | None, turn: int | None) -> list[dict[str, Any]]:
    """A row for each execution of an instruction on a device."""
    if device is not None:
        _check_device(found, device)
    rows = [_turn(found, event) for event in found.where(name, device=device, count=turn)]
    if not rows:
        which = "" if turn is None else f"a turn {turn} of "
        does = "no device comes" if device is None else f"device {device} never comes"
        raise click.UsageError(f"{does} to {which}{name}")
    return rows


def _turn(found: Trace, event: Event) -> dict[str, Any]:
    value = found.values.get(event.number)
    place = f"device {event.device}  step {event.time}  {found.standing(event.number)}"
    return {
        "device": event.device, "step": event.time, "turn": event.count, "trips": dict(found.trips(event.number)),
        "instruction": event.instruction.name, "value": plain(value), "text": f"{place}  {said(value)}",
    }  # fmt: skip


def _comes_to(found: Trace, name: str) -> bool:
    return any(spot.instruction.name == name for spot in found.spots)


def _check_device(found: Trace, device: int) -> None:
    if device >= found.num_devices:
        raise click.UsageError(f"device {device} is none of 0..{found.num_devices - 1}")


def _close(found: Trace, name: str) -> str:
    import difflib

    close = difflib.get_close_matches(name, {spot.instruction.name for spot in found.spots}, 1)
    return f"; did you mean {close[0]!r}?" if close else ""


_WHY = {True: "its operands are the same", False: "its operands differ already"}


def _compare(sides: Sides, devices: tuple[int, int] | None, eps: float, name: str | None, as_json: bool) -> None:
    for device, found in zip(devices or (), (sides.first, sides.second), strict=False):
        _check_device(found, device)
    compared = compare_traces(sides.first, sides.second, devices, eps, name)
    facts = _told(sides, compared)
    say_json(facts) if as_json else say(facts["text"])
    if compared.difference is not None:
        raise SystemExit(REFUSED)


def count(number: int, what: str) -> str:
    """The text of a count: `1 value`, `1,024 values`."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def _told(sides: Sides, found: Comparison) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "compared": found.compared, "alone": found.alone, "unkept": found.unkept, "difference": None,
    }  # fmt: skip
    one = sides.one or "the first"
    notes = [f"{count(found.alone, 'event')} of {one} without a counterpart"] if found.alone else []
    notes += [f"{found.unkept:,} more of which one side was not kept"] if found.unkept else []
    each = found.difference
    if each is None:
        same = f"the same: {count(found.compared, 'value')}" if found.compared else "nothing was compared"
        return facts | {"text": ", ".join([same, *notes])}
    told, lines = _difference(sides, each)
    lines.append("  " + ", ".join([f"{count(found.compared, 'value')} compared", *notes]))
    return facts | {"difference": told, "text": "\n".join(lines)}


def _difference(sides: Sides, each: Difference) -> tuple[dict[str, Any], list[str]]:
    """The facts and the lines of a first difference."""
    both = (sides.first, each.first, sides.one), (sides.second, each.second, sides.other)
    rows: list[dict[str, Any]] = [
        {"device": t[n].device, "step": t[n].time, "at": t.standing(n), "value": said(t.values.get(n)), "folder": where}
        for t, n, where in both
    ]
    shapes = [str(t[n].instruction.shape) for t, n, _ in both]
    where = "" if not each.index else f" at {list(each.index)}"
    apart = "" if each.apart is None else f", {each.apart:.6g} apart at most"
    unlike = f", {shapes[0]} and {shapes[1]}" if shapes[0] != shapes[1] else ""
    event = sides.first[each.first]
    is_input = event.instruction.opcode == "parameter" and not event.spot.path
    why = "an input of the program" if is_input else _WHY[each.cause]
    lines = [f"first difference: {rows[0]['at']}{where}{unlike}{apart}; {why}"]
    width = max(len(row["folder"]) for row in rows)
    for row in rows:
        folder = f"{row['folder'].ljust(width)}  " if width else ""
        lines.append(f"  {folder}device {row['device']}  step {row['step']}  {row['value']}")
    index = None if each.index is None else list(each.index)
    return {"index": index, "apart": each.apart, "operands_same": each.cause, "sides": rows}, lines
