"""`xbuild trace`: the summary of a recorded run, queries about its values, and the comparison of two runs.

Sections:

    What a trace holds, and where its first NaN and its first infinity are born
    The first value in which a device differs from the others
    The elements from which an element was computed
    The command
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click
import numpy as np
from attrs import frozen

from shape_inference import Shape, TupleShape

from ..checking.model.program import devices_text
from ..properties.effects import spelling
from ..traces import Event, Trace, TraceError
from ..traces.questions import (
    Birth,
    Compared,
    EventDifference,
    Odd,
    TraceComparison,
    births,
    compare_traces,
    is_stated,
    odd_one,
)
from ..traces.summary import plain, said
from .candidates import instructions
from .group import REFUSED, Amount, main, require
from .options import PAGE, RunRecording, takes_machine, takes_source_root
from .outputs import check_distinct, say, say_json, say_written

# ----------------------------------------------------------------------------
# What a trace holds, and where its first NaN and its first infinity are born: `xbuild trace DIR`

MOST_SOURCES = 4
"""How many numbers that a NaN or an infinity was computed from are printed."""


def overview(trace: Trace) -> dict[str, Any]:
    """The summary of a trace: its events, values, stop, findings, and where its first NaN and infinity are born."""
    lines = [f"{len(trace):,} events on {trace.num_devices} devices, {trace.end:,} steps, {len(trace.values):,} values"]
    lines += [f"not recorded: {trace.left_out}"] if trace.left_out else []
    lines += [trace.stop["text"]] if trace.stop else []
    lines += [f"strict, {finding['text'].strip()}" for finding in trace.findings]
    all_births = births(trace)
    firsts = [
        next((birth for birth in all_births if birth.what == what and not is_stated(trace, birth)), None)
        for what in ("NaN", "infinity")
    ]
    born = [_birth_facts(trace, birth) for birth in firsts if birth is not None]
    lines += [facts["text"] for facts in born]
    if not born and trace.values:
        lines.append("no recorded value has a new NaN or infinity")
    return {
        "events": len(trace), "devices": trace.num_devices, "steps": trace.end, "values": len(trace.values),
        "left_out": trace.left_out, "stop": trace.stop, "findings": [*trace.findings], "born": born,
        "text": "\n".join(lines),
    }  # fmt: skip


def _birth_facts(trace: Trace, birth: Birth) -> dict[str, Any]:
    """The facts of the birth of a NaN or an infinity: its place, its source numbers, and the chain of elements."""
    from ..running import tracing

    event, walk = trace[birth.event], tracing.ProvenanceWalk(trace)
    way = walk.chain(birth)
    rows = [_chain_row(trace, place, walk.number(place)) for place in way]
    lines = [f"  device {row['device']}  {row['at']}  {row['value']}{_element_text(row)}" for row in rows]
    head = f"the first {birth.what} is born at step {event.time} on device {event.device}, in {rows[-1]['at']}"
    sources = walk.heaviest_sources(way[-1], MOST_SOURCES)
    of = [
        {"instruction": trace[source.place.event].instruction.name, "number": said(source.number)} for source in sources
    ]
    computed_from = f", from {', '.join(' '.join(source.values()) for source in of)}" if of else ""
    line = event.instruction.source
    text = "\n".join([f"{head}{computed_from}{f'    {line}' if line else ''}", *lines])
    return {"what": birth.what, "device": event.device, "step": event.time, "of": of, "chain": rows, "text": text}


def _chain_row(trace: Trace, place: Any, number: Any) -> dict[str, Any]:
    """The facts of an element of a chain, with its index if provenance knows the element."""
    event = trace[place.event]
    shape = event.instruction.shape
    if isinstance(shape, TupleShape) and place.part is not None:
        shape = shape.elements[place.part]
    index = None
    if place.element is not None and isinstance(shape, Shape) and shape.rank:
        index = [int(i) for i in np.unravel_index(place.element, shape.dims)]
    return {"device": event.device, "at": trace.standing(place.event), "value": said(trace.values.get(place.event)),
            "index": index, "number": None if index is None else said(number)}  # fmt: skip


def _element_text(row: dict[str, Any]) -> str:
    return "" if row["index"] is None else f"  at {row['index']}: {row['number']}"


# ----------------------------------------------------------------------------
# The first value in which a device differs from the others: `xbuild trace DIR --differ`

_MOST_GROUPS = 8


def find_odd_device(trace: Trace, names: Sequence[str], eps: float) -> dict[str, Any]:
    """The facts and the text; raises a usage error if a name is not a parameter of the program."""
    try:
        compared = odd_one(trace, names, eps)
    except KeyError as error:
        raise click.UsageError(
            f"--apart {error.args[0]}: the program has no parameter with this name{_parameters_hint(trace)}"
        ) from None
    if compared.odd is None:
        ignored = f", ignoring values that depend on {', '.join(names)}" if names else ""
        text = f"no device differs: compared {compared.values:,} values that should be equal{ignored}"
        return {"compared": compared.values, "odd": None, "text": text}
    odd = compared.odd
    event = trace[odd.common]
    facts = {
        "instruction": event.instruction.name, "at": trace.standing(odd.common), "step": event.time,
        "devices": list(odd.devices), "groups": [list(group) for group in odd.groups], "is_input": odd.is_input,
        "index": None if odd.index is None else list(odd.index), "apart": odd.gap,
    }  # fmt: skip
    return {"compared": compared.values, "odd": facts, "text": "\n".join(_odd_device_lines(trace, odd, compared))}


def _parameters_hint(trace: Trace) -> str:
    program = trace.program
    module = next(iter(program.modules.values())) if hasattr(program, "modules") else program
    names = [parameter.name for parameter in module.entry.parameters]
    return f"; it has {', '.join(names[:12])}{', ...' * (len(names) > 12)}" if names else ""


def _odd_device_lines(trace: Trace, odd: Odd, compared: Compared) -> Iterator[str]:
    event = trace[odd.common]
    source = f"    {event.instruction.source}" if event.instruction.source else ""
    yield f"{_odd_devices_text(odd)} in {trace.standing(odd.common)}, step {event.time}{source}"
    event_of = {trace[n].device: n for n in range(len(trace)) if _is_same_execution(trace, n, odd.common)}
    for group in odd.groups[:_MOST_GROUPS]:
        yield f"  {devices_text(group)}: {said(trace.values.get(event_of[group[0]]))}"
    if len(odd.groups) > _MOST_GROUPS:
        yield f"  and {len(odd.groups) - _MOST_GROUPS} more values on other devices"
    if odd.index is not None:
        yield f"  the first different element is {list(odd.index)}; the largest difference is {odd.gap:.6g}"
    yield f"  {_cause(odd)}"
    if odd.is_input and len(compared.inputs) > 1:
        yield f"  inputs that differ between devices: {', '.join(compared.inputs)}"


def _is_same_execution(trace: Trace, number: int, other: int) -> bool:
    """Whether two events, possibly on different devices, are the same execution of the same instruction."""
    one, two = trace.spots[int(trace.spot[number])], trace.spots[int(trace.spot[other])]
    same = one.path == two.path and one.instruction.name == two.instruction.name
    return same and int(trace.count[number]) == int(trace.count[other])


def _odd_devices_text(odd: Odd) -> str:
    if not odd.devices:
        return "devices differ, with no majority,"
    several, count = len(odd.devices) > 1, sum(map(len, odd.groups)) - len(odd.devices)
    return f"{devices_text(odd.devices)} differ{'s' * (not several)} from the other {count}"


def _cause(odd: Odd) -> str:
    if odd.is_input:
        return (
            "this value is an input of the run; if it should differ, pass --apart NAME to ignore values that "
            "depend on it"
        )
    if odd.is_meant:
        return "these devices compute the value with the same instruction from equal inputs"
    return (
        "the program itself treats these devices differently: look at the groups and device ids on which this "
        "value depends"
    )


# ----------------------------------------------------------------------------
# The elements, on all devices, from which an element was computed: `xbuild trace DIR --of NAME --element I,J`

DEPTH = 2
"""The default number of ops to follow back."""

_MOST_MOVES = 12
"""The maximum number of steps to follow that only move the number."""

MOST_ELEMENTS = 4
"""The maximum number of source elements to print for one element."""


def element_sources(
    trace: Trace, name: str, element: str, device: int | None, turn: int | None, depth: int
) -> dict[str, Any]:
    """The facts and the text: an element of an execution, by default the first, and what it was computed from."""
    from ..running import tracing

    event = next(trace.where(name, device=device, count=turn), None)
    if event is None:
        raise click.UsageError(
            f"the trace has no such execution of {name}; to list the executions, use --of {name} without other options"
        )
    walk = tracing.ProvenanceWalk(trace)
    tree = _element_tree(trace, walk, walk.place(event.number, _flat_index(event, element)), depth)
    return {**tree, "text": "\n".join(_element_lines(tree, 0))}


def _flat_index(event: Event, element: str) -> int:
    """The flat index of the element that a text such as `0,1` names."""
    shape = event.instruction.shape
    if not isinstance(shape, Shape):
        raise click.UsageError(f"--element needs an array, but {event.instruction.name} is {shape}")
    try:
        index = [int(word) for word in element.strip("[]").split(",") if word.strip()]
    except ValueError:
        index = []
    legal = len(index) == shape.rank and all(0 <= i < extent for i, extent in zip(index, shape.dims, strict=True))
    if not legal:
        raise click.UsageError(
            f"--element {element}: {event.instruction.name} is {shape}; expected an index for each dimension, such "
            f"as {','.join(str(max(extent - 1, 0)) for extent in shape.dims) or 'an empty string for a scalar'}"
        )
    return int(np.ravel_multi_index(index, shape.dims)) if index else 0


def _element_tree(trace: Trace, walk: Any, place: Any, depth: int, moves: int = _MOST_MOVES) -> dict[str, Any]:
    """The facts of an element, with those of the elements that it was computed from, `depth` ops deep.

    A step that only moves the number, such as a transfer or a tuple, does not count towards the depth.
    """
    event = trace[place.event]
    sources = walk.sources(place) if depth else []
    is_moved = moves > 0 and len(sources) == 1 and said(sources[0].number) == said(walk.number(place))
    depth, moves = (depth, moves - 1) if is_moved else (depth - 1, moves)
    shown = walk.heaviest_sources(place, MOST_ELEMENTS) if len(sources) > MOST_ELEMENTS else sources
    return {
        "instruction": event.instruction.name, "op": spelling(event.instruction.opcode), "device": event.device,
        "step": event.time, "at": trace.standing(place.event), "index": _index(event, place),
        "number": said(walk.number(place)), "sources": len(sources),
        "of": [_element_tree(trace, walk, source.place, depth, moves) for source in shown],
    }  # fmt: skip


def _index(event: Event, place: Any) -> list[int] | None:
    shape = event.instruction.shape
    if isinstance(shape, TupleShape) and place.part is not None:
        shape = shape.elements[place.part]
    if place.element is None or not isinstance(shape, Shape):
        return None
    return [int(i) for i in np.unravel_index(place.element, shape.dims)] if shape.rank else []


def _element_lines(node: dict[str, Any], level: int) -> Iterator[str]:
    index = "" if node["index"] == [] else " (all of it)" if node["index"] is None else str(node["index"])
    place = f"{node['at']}{index} on device {node['device']}, step {node['step']}"
    yield f"{'  ' * level}{node['number']}  {node['op']} {place}{_omitted_text(node)}"
    for source in node["of"]:
        yield from _element_lines(source, level + 1)


def _omitted_text(node: dict[str, Any]) -> str:
    omitted = node["sources"] - len(node["of"])
    return f", from {node['sources']} elements; the largest are" if omitted > 0 else ""


# ----------------------------------------------------------------------------
# The command


@main.command()
@click.argument("folders", nargs=-1, required=True, metavar="DIR [OTHER]")
@click.option(
    "--of",
    "name",
    metavar="NAME",
    shell_complete=instructions,
    help="Print the values of this instruction, for each execution on each device.",
)
@click.option("--device", type=click.IntRange(min=0), help="Print only the values on this device (requires --of).")
@click.option("--turn", type=click.IntRange(min=0), help="Print only this execution, counted from 0 (requires --of).")
@click.option(
    "--devices",
    nargs=2,
    type=click.IntRange(min=0),
    metavar="A B",
    help="Compare two devices, and print the first value that differs.",
)
@click.option(
    "--element", metavar="I,J", help="Print the elements from which this element was computed (requires --of)."
)
@click.option(
    "--depth",
    type=click.IntRange(min=1),
    default=DEPTH,
    show_default=True,
    help="Trace the element back through this many ops (requires --element).",
)
@click.option(
    "--differ", is_flag=True, help="Find the device whose values differ from the values on most other devices."
)
@click.option(
    "--apart",
    multiple=True,
    metavar="NAME",
    help="Expect this input to differ between devices (repeatable; requires --differ).",
)
@click.option(
    "--eps",
    type=Amount(),
    help="In a comparison, treat elements as equal if they differ by at most this amount.  [default: 0]",
)
@click.option("--page", type=click.Path(dir_okay=False), help="Write a page, FILE.html, that replays the run.")
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
    """Query a run that `xbuild run --trace DIR` recorded.

    With only DIR, print a summary of the trace. The summary states where the first NaN and the first infinity appear,
    and how they arise.

    If DIR and OTHER are the traces of two runs, print the first value that differs between the runs. With --devices
    A B, print the first value that differs between device A of DIR and device B of OTHER. To compare only one
    instruction, add --of.

    With --differ, compare all devices of one run, and report the device that differs from most others. To list inputs
    that should differ, use --apart. The exit status of a comparison is 1 if a value differs.
    """
    if len(folders) > 2:
        raise click.UsageError("expected one trace to query, or two to compare")
    compares = len(folders) == 2 or bool(devices)
    require("--differ", differ, "apart")
    require("--element I,J", element is not None, "depth")
    if differ and (compares or name is not None):
        raise click.UsageError("--differ compares all devices of one run; omit --of, --devices and OTHER")
    _check_options(name, compares, differ, {"--device": device, "--turn": turn, "--element": element}, {"--eps": eps})
    check_distinct({f"DIR, {folder}": folder for folder in folders}, {"--page": page})
    require("--page", page, "source_root", "machine")
    traces = [open_trace(folder) for folder in folders]
    if page is not None:
        _write_page(traces[0], page, source_root, machine)
        say_written(page, PAGE, err=as_json)
    if name is not None and not any(_executes(trace, name) for trace in traces):
        raise click.UsageError(f"the run never reached {name!r}{_did_you_mean(traces[0], name)}")
    if compares:
        pair = TracePair(traces[0], traces[-1], *([*folders] if len(folders) == 2 else ["", ""]))
        _compare(pair, devices or None, eps or 0.0, name, as_json)
    elif differ:
        _say_odd_device(traces[0], apart, eps or 0.0, as_json)
    elif name is not None and element is not None:
        _say_facts([element_sources(traces[0], name, element, device, turn, depth)], as_json)
    elif name is not None:
        _say_facts(_executions(traces[0], name, device, turn), as_json)
    elif page is None or as_json:
        _say_facts([overview(traces[0])], as_json)


def _say_odd_device(trace: Trace, names: tuple[str, ...], eps: float, as_json: bool) -> None:
    facts = find_odd_device(trace, names, eps)
    say_json(facts) if as_json else say(facts["text"])
    if facts["odd"] is not None:
        raise SystemExit(REFUSED)


def _check_options(
    name: str | None, compares: bool, differ: bool, of_one: dict[str, Any], of_two: dict[str, Any]
) -> None:
    """Raise a usage error for an option that has no effect in this use of the command."""
    for option, value in of_one.items():
        if value is not None and (name is None or compares):
            raise click.UsageError(
                f"{option} applies only to the values of one instruction: --of add.3 {option} {value}"
            )
    for option, value in of_two.items():
        if value is not None and not (compares or differ):
            raise click.UsageError(
                f"{option} applies only to a comparison: use --differ, --devices A B, or a second trace"
            )


@frozen
class TracePair:
    """Two traces to compare, each with the name of its folder; the names are empty if both are one trace."""

    first: Trace
    second: Trace
    one: str
    other: str


def open_trace(folder: str) -> Trace:
    """The trace in a folder."""
    try:
        return Trace.load(folder)
    except TraceError as error:
        raise click.UsageError(str(error)) from None


def _write_page(trace: Trace, page: str, source_root: str | None, machine: str | None) -> None:
    from attrs import evolve

    from ..running import tracing

    RunRecording(page, source_root=source_root, machine=machine).write_page(
        evolve(trace, origins=tracing.origins_in(trace), across=tracing.across_in(trace))
    )


def _say_facts(facts: list[dict[str, Any]], as_json: bool) -> None:
    """Print facts; executions without a recorded value are only counted, if others have values."""
    if as_json:
        say_json(facts[0] if len(facts) == 1 and "events" in facts[0] else facts)
        return
    recorded = [fact for fact in facts if fact.get("value", ()) is not None] or facts
    for fact in recorded:
        say(fact["text"])
    if len(recorded) < len(facts):
        say(f"{_counted(len(facts) - len(recorded), 'more execution')} without a recorded value")


def _executions(trace: Trace, name: str, device: int | None, turn: int | None) -> list[dict[str, Any]]:
    """A row for each execution of an instruction on a device."""
    if device is not None:
        _check_device(trace, device)
    rows = [_execution_row(trace, event) for event in trace.where(name, device=device, count=turn)]
    if not rows:
        which = "" if turn is None else f"execution {turn} of "
        does = "no device reaches" if device is None else f"device {device} never reaches"
        raise click.UsageError(f"{does} {which}{name}")
    return rows


def _execution_row(trace: Trace, event: Event) -> dict[str, Any]:
    value = trace.values.get(event.number)
    place = f"device {event.device}  step {event.time}  {trace.standing(event.number)}"
    return {
        "device": event.device, "step": event.time, "turn": event.count, "trips": dict(trace.trips(event.number)),
        "instruction": event.instruction.name, "value": plain(value), "text": f"{place}  {said(value)}",
    }  # fmt: skip


def _executes(trace: Trace, name: str) -> bool:
    return any(spot.instruction.name == name for spot in trace.spots)


def _check_device(trace: Trace, device: int) -> None:
    if device >= trace.num_devices:
        raise click.UsageError(f"the trace has no device {device}; the devices are 0..{trace.num_devices - 1}")


def _did_you_mean(trace: Trace, name: str) -> str:
    import difflib

    close = difflib.get_close_matches(name, {spot.instruction.name for spot in trace.spots}, 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _compare(pair: TracePair, devices: tuple[int, int] | None, eps: float, name: str | None, as_json: bool) -> None:
    for device, trace in zip(devices or (), (pair.first, pair.second), strict=False):
        _check_device(trace, device)
    comparison = compare_traces(pair.first, pair.second, devices, eps, name)
    facts = _comparison_facts(pair, comparison)
    say_json(facts) if as_json else say(facts["text"])
    if comparison.difference is not None:
        raise SystemExit(REFUSED)


def _counted(number: int, noun: str) -> str:
    """The text of a count: `1 value`, `1,024 values`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _comparison_facts(pair: TracePair, comparison: TraceComparison) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "compared": comparison.compared, "alone": comparison.alone, "unkept": comparison.unkept, "difference": None,
    }  # fmt: skip
    one = pair.one or "the first trace"
    notes = [f"{_counted(comparison.alone, 'event')} of {one} without a counterpart"] if comparison.alone else []
    notes += [f"{comparison.unkept:,} more not recorded on one side"] if comparison.unkept else []
    if comparison.difference is None:
        count = _counted(comparison.compared, "value")
        same = f"the same: {count}" if comparison.compared else "nothing was compared"
        return facts | {"text": ", ".join([same, *notes])}
    difference, lines = _first_difference(pair, comparison.difference)
    lines.append("  " + ", ".join([f"{_counted(comparison.compared, 'value')} compared", *notes]))
    return facts | {"difference": difference, "text": "\n".join(lines)}


_CAUSES = {True: "its operands are the same", False: "its operands already differ"}


def _first_difference(pair: TracePair, difference: EventDifference) -> tuple[dict[str, Any], list[str]]:
    """The facts and the lines of the first difference."""
    both = (pair.first, difference.first, pair.one), (pair.second, difference.second, pair.other)
    rows: list[dict[str, Any]] = [
        {"device": t[n].device, "step": t[n].time, "at": t.standing(n), "value": said(t.values.get(n)), "folder": where}
        for t, n, where in both
    ]
    shapes = [str(t[n].instruction.shape) for t, n, _ in both]
    index = None if difference.index is None else list(difference.index)
    at_index = f" at {index}" if index else ""
    gap = "" if difference.apart is None else f", largest difference {difference.apart:.6g}"
    unlike = f", {shapes[0]} and {shapes[1]}" if shapes[0] != shapes[1] else ""
    event = pair.first[difference.first]
    is_input = event.instruction.opcode == "parameter" and not event.spot.path
    why = "an input of the program" if is_input else _CAUSES[difference.cause]
    lines = [f"first difference: {rows[0]['at']}{at_index}{unlike}{gap}; {why}"]
    width = max(len(row["folder"]) for row in rows)
    for row in rows:
        folder = f"{row['folder'].ljust(width)}  " if width else ""
        lines.append(f"  {folder}device {row['device']}  step {row['step']}  {row['value']}")
    facts = {"index": index, "apart": difference.apart, "operands_same": difference.cause, "sides": rows}
    return facts, lines
