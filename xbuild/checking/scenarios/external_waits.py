"""External waits: infeed items, callbacks of the host, and transfers whose context travels through a loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from shape_inference.escaping import in_line

from ...core.graph import Computation, Instruction
from ...properties.effects import (
    FEEDS,
    PLAIN_CALLS,
    TRANSFERS,
    communicates_itself,
    has_side_effect,
    is_with_host,
    notable,
    start_of,
)
from ...properties.host import host_function_of
from ...properties.sites import Site, feeds_of, reached, sites_of
from ...properties.waiting import events_of
from ..deadlock.level_run import Context
from ..model.describe import finding, named
from ..model.program import DeviceClass, devices_text
from ..model.verdict import Finding
from ..structure.async_pairs import is_pipelined

_DONES = frozenset(TRANSFERS.values())


def external_wait_findings(context: Context, asks: Callable[[int], bool] = lambda device: True) -> Iterator[Finding]:
    """A finding for each wait that no device ends; `asks`: whether a device takes items of its infeed at all."""
    for each in context.program.freed().classes:
        yield from _infeeds(context, each, asks)
        yield from _callbacks(context, each)
        for site in sites_of(each.module.entry):
            if site.instruction.opcode in _DONES and is_pipelined(site.instruction):
                yield finding(
                    "data_dependent",
                    f"if {site} takes what another trip has started than the other side counts on",
                    (each.devices, site),
                    cause="TRAVELLING",
                    cause_text="its context travels in the state of a loop, so which transfer it is hangs on the trips",
                )


def _infeeds(context: Context, each: DeviceClass, asks: Callable[[int], bool]) -> Iterator[Finding]:
    """The finding for infeeds without a stated number of items, or inside loops and conditionals."""
    places = [site for site in feeds_of(each.module.entry) if events_of(site.instruction)]
    repeated = [site for site in places if any(step.instruction.opcode not in PLAIN_CALLS for step in site.path)]
    if not repeated and (not places or context.infeed is not None):
        return
    asking = [device for device in each.devices if asks(device)]
    if not asking:
        return
    one = f"{'one of ' * (len(asking) > 1)}{devices_text(asking)}"
    items = f"fewer than {len(places)} item{'s' * (len(places) != 1)}"
    yield finding(
        "data_dependent",
        f"if the infeed of {one} has {'fewer items than are asked for' if repeated else items}",
        *((each.devices, site) for site in repeated or places),
        cause="STARVED",
        cause_text="a device whose infeed is empty waits for ever, and so does who waits for that device",
        repair_text="" if repeated else "say how many items each device gets: check(..., infeed=...)",
    )


def _callbacks(context: Context, each: DeviceClass) -> Iterator[Finding]:
    """The findings for callbacks before communication: devices that wait there wait for the callback."""
    computations = reached(each.module.entry)
    if len(context.program.devices) < 2 or not any(_has_callback(c) for c in computations):
        return
    found: dict[Instruction, None] = {}
    for computation in computations:
        order, meets = each.order(computation), False
        for instruction in reversed(order):
            inside = [i for called in instruction.called for c in reached(called) for i in c.instructions]
            meets = meets or _meets(instruction)
            if meets and _is_callback(instruction):
                found[instruction] = None
            if meets:
                found |= dict.fromkeys(filter(_is_callback, inside))
    for instruction in reversed(found):
        yield finding(
            "data_dependent",
            f"if {_callback(instruction)} does not return on one of {devices_text(each.devices)}",
            (each.devices, Site((), instruction)),
            cause_text="a callback of the host may take for ever",
        )


def _has_callback(computation: Computation) -> bool:
    return any(_is_callback(i) for i in notable(computation) if i.opcode in ("custom_call", "recv_done"))


def _is_callback(instruction: Instruction) -> bool:
    """Whether a function of the host has to return before the program goes on here."""
    return has_side_effect(instruction) or (instruction.opcode == "recv_done" and is_with_host(instruction))


def _callback(instruction: Instruction) -> str:
    """The function that has to return, in words."""
    start = start_of(instruction) if instruction.opcode == "recv_done" else None
    function = None if start is None else host_function_of(start)
    label = "" if function is None else f" {in_line(function.label)!r}"
    return named(instruction) if start is None else f"the host function{label}, whose result {instruction.name} takes,"


def _meets(instruction: Instruction) -> bool:
    """Whether an instruction, or what it calls, communicates with devices."""
    sites = (site.instruction for called in instruction.called for site in sites_of(called))
    found = (*((instruction,) if communicates_itself(instruction) else ()), *sites)
    return any(i.opcode not in FEEDS and not is_with_host(i) for i in found)
