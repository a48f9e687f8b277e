"""How a deadlock case becomes programs of xbuild: names are adapted here, data are made, and nothing else.

What data decide (trips, branches) comes from a parameter `data`, one number for each decision; where a case says that
an infeed, replica-id or an all-reduce comes before, from its value. What no builder records is made by hand.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from attrs import frozen

import xbuild as xb
from tests.conformance.deadlock_cases.data import Case, data_of, decisions, fed, number_of, settled
from tests.conformance.deadlock_cases.writer import Writer


@frozen
class Prepared:
    """A case as a program, and what its devices are fed."""

    program: xb.Module | xb.ModuleGroup
    inputs: list[list[Any]]
    infeed: dict[int, list[Any]]


def prepared(case: Case) -> Prepared:
    """The programs of a case: one module where all devices have the same, else one for each."""
    devices = {name: number_of(case, name) for name in case["programs"]}
    modules = {
        number: _module(case, name, number) for name, number in sorted(devices.items(), key=lambda pair: pair[1])
    }
    written = {json.dumps(settled(case["programs"][name], name), sort_keys=True) for name in devices}
    alike = len(written) == 1 and len(devices) == case["devices"]
    program: xb.Module | xb.ModuleGroup = modules[0] if alike else xb.ModuleGroup(modules)
    inputs = [[np.array(data_of(case, name), np.int32)] for name in sorted(devices, key=devices.__getitem__)]
    feeds = {number: [fed(case, name)] * case.get("infeed", {}).get(name, 0) for name, number in devices.items()}
    return Prepared(program, inputs, feeds)


def _module(case: Case, device: str, number: int) -> xb.Module:
    items = case["programs"][device]
    slots = {id(item): n for n, item in enumerate(decisions(items))}
    builder = xb.Builder(f"program_{device}" if case["devices"] > 1 else "program")
    writer = Writer(case, device, number, builder, slots)
    data = writer.record(xb.ops.parameter, builder, number=0, shape=xb.s32[len(slots) + 1], name="data")
    return xb.Module(
        builder.name,
        writer.computation(items, data),
        num_replicas=case["devices"],
        is_scheduled=case["schedule"] == "given",
    )
