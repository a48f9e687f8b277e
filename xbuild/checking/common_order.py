"""One order for all devices of one program, where the order that was found differs between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from attrs import evolve

from ..properties.sites import Site
from .model.describe import finding
from .model.program import Program, devices_text
from .model.verdict import Orders, Verdict

Runs = Callable[[Program], bool]


def in_common_order(found: Verdict, program: Program, runs: Runs) -> Verdict:
    """The verdict with one order for all devices, since a compiled module has one; `depends` where none was found.

    `runs` says whether a program whose orders are given runs to its end with all data. Verdicts other than ok, and
    programs that differ between devices, stay as they are.
    """
    if found.kind != "ok" or found.scope != "found" or not program.spmd:
        return found
    orders: dict[int, Orders] = {device: found.reordered.get(device, ()) for device in program.devices}
    if len({*orders.values()}) == 1:
        return found
    for candidate in _candidates(orders):
        common = dict.fromkeys(program.devices, candidate)
        if runs(program.ordered(common)):
            entry = program.classes[0].module.entry
            order = dict(candidate).get(entry, entry.instructions)
            return evolve(found, reordered=common, schedule=dict.fromkeys(program.devices, order))
    return _without(found, program, orders)


def _candidates(orders: Mapping[int, Orders]) -> Iterator[Orders]:
    """The order of each device, with those of others for the computations that it does not enter."""
    every = {computation: order for each in orders.values() for computation, order in each}
    for own in dict.fromkeys(orders.values()):
        yield (*{**every, **dict(own)}.items(),)


def _without(found: Verdict, program: Program, orders: Mapping[int, Orders]) -> Verdict:
    first = orders[program.devices[0]]
    others = [device for device, order in orders.items() if order != first]
    told = finding(
        "data_dependent",
        f"no order was found in which all devices run: {devices_text(others)} would have to run in another order than "
        f"device {program.devices[0]}, and a compiled module has one order",
        (program.devices, Site((), program.classes[0].module.entry.root)),
        cause="ORDERS_DIFFER",
        cause_text="not every order in which all devices could run was tried",
        repair_text="give the program a schedule, or let sends and recvs go by different channels or buffers",
    )
    return evolve(found, kind="depends", findings=(told,), summary="")
