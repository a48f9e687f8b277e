"""The items of a level: what each device may begin next, in which order, and the events that each item has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count

from attrs import frozen

from shape_inference import refuse

from ..checking.deadlock.level_run import Context
from ..checking.model.program import DeviceClass
from ..checking.scenarios import MOST_EVENTS, Scenarios, SimulatedEvent, TooLongError, Traces, order_parts
from ..core.graph import Instruction


@frozen
class Item:
    """A communicating instruction of an entry: the items before it, as a set of bits, and its events on the device."""

    instruction: Instruction
    before: int
    events: tuple[SimulatedEvent, ...]


@frozen
class Board:
    """The items of each device in one scenario; with one program for all, devices begin their items in one order."""

    items: Mapping[int, tuple[Item, ...]]
    is_common_order: bool


def board_of(context: Context, scenarios: Scenarios, scenario: int) -> Board:
    """The board of a scenario, by its number; raises too_many_states where devices communicate too often."""
    try:
        traces = scenarios.traces(context, scenarios.enumerated[scenario])
    except TooLongError:
        refuse("too_many_states", f"the devices communicate in more than {MOST_EVENTS:,} steps, too many for a page",
               "fewer trips of loops, or fewer calls")  # fmt: skip
    program = context.program
    items = {device: tuple(_items(program.class_of[device], traces, device)) for device in program.devices}
    return Board(items, program.spmd and len(program.devices) > 1)


def _items(each: DeviceClass, traces: Traces, device: int) -> Iterator[Item]:
    """The items of a device in recorded order, each with the events of the trace that are inside it."""
    before = order_parts(each.module.entry).before
    given = [i for i in each.order(each.module.entry) if i in before]
    number = {instruction: place for place, instruction in enumerate(given)}
    inside: dict[Instruction, list[SimulatedEvent]] = {instruction: [] for instruction in given}
    for event in traces[device]:
        path = event.site.path
        inside[path[0].instruction if path else event.site.instruction].append(event)
    for place, instruction in zip(count(), given, strict=False):
        earlier = [place - 1] if each.given and place else [number[one] for one in before[instruction]]
        yield Item(instruction, sum(1 << one for one in set(earlier)), tuple(inside[instruction]))
