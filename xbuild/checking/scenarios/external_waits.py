"""What a program waits for that no device gives: items of the infeed, the end of a callback, a travelling state."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from shape_inference import TupleShape

from ...core.graph import Computation, Instruction
from ...properties.effects import FEEDS, TRANSFERS, acts, has_side_effect, notable
from ...properties.sites import Site, feeds_of, reached, sites_of
from ..deadlock.run import Context
from ..model.describe import finding, named
from ..model.program import DeviceClass, devices_text
from ..model.verdict import Finding
from ..structure.async_pairs import is_pipelined

_DONES = frozenset(TRANSFERS.values())


def outside(context: Context, asks: Callable[[int], bool] = lambda device: True) -> Iterator[Finding]:
    """The conditions that only the run can tell, each in words; `asks`: whether a device comes to its infeed at all."""
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


def reads(instruction: Instruction) -> bool:
    """Whether an infeed takes an item at all: that of an empty tuple does not."""
    return instruction.opcode == "infeed" and instruction.attributes.shape != TupleShape()


def _infeeds(context: Context, each: DeviceClass, asks: Callable[[int], bool]) -> Iterator[Finding]:
    """Infeeds of which nobody has said how many items there are, or that run nobody knows how often."""
    places = [site for site in feeds_of(each.module.entry) if reads(site.instruction)]
    repeated = [site for site in places if any(step.instruction.opcode not in ("call", "fusion") for step in site.path)]
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
    """Functions of the host after which a device still has to meet another: who waits there may wait for ever."""
    computations = reached(each.module.entry)
    if len(context.program.devices) < 2 or not any(_has_side_effect(c) for c in computations):
        return
    found: dict[Instruction, None] = {}
    for computation in computations:
        order, meets = each.order(computation), False
        for instruction in reversed(order):
            is_callback = has_side_effect(instruction)
            inside = [i for called in instruction.called for c in reached(called) for i in c.instructions]
            meets = meets or _meets(instruction)
            if meets and is_callback:
                found[instruction] = None
            if meets:
                found |= dict.fromkeys(i for i in inside if has_side_effect(i))
    for instruction in reversed(found):
        yield finding(
            "data_dependent",
            f"if {named(instruction)} does not return on one of {devices_text(each.devices)}",
            (each.devices, Site((), instruction)),
            cause_text="a callback of the host may take for ever",
        )


def _has_side_effect(computation: Computation) -> bool:
    return any(has_side_effect(i) for i in notable(computation) if i.opcode == "custom_call")


def _meets(instruction: Instruction) -> bool:
    """Whether other devices take part in it, or in what it calls."""
    sites = (site.instruction for called in instruction.called for site in sites_of(called))
    return any(i.opcode not in FEEDS for i in (*((instruction,) if acts(instruction) else ()), *sites))
