"""What the data of a deadlock case are: which device is which, and the number behind each decision that data make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

Item = Mapping[str, Any]
Case = Mapping[str, Any]

HOST = "host"


def number_of(case: Case, name: str) -> int:
    """The device of a program; the host's program is one more."""
    return case["devices"] if name == HOST else int(name)


def settled(items: Sequence[Item], device: str) -> Any:
    """A program with the decisions of one device written into it, where they are constants."""
    return [
        {
            key: settled(value, device)
            if key in ("condition", "body", "to_apply")
            else [settled(branch, device) for branch in value]
            if key == "branches"
            else value.get(device)
            if key in ("trips", "taken") and item.get(f"{key}_known")
            else value
            for key, value in item.items()
        }
        for item in items
    ]


def decisions(items: Sequence[Item]) -> Iterator[Item]:
    """The loops, conditionals and reductions of data that take a place in `data`, in order."""
    for item in items:
        if not item.get("trips_known", True) or not item.get("taken_known", True):
            yield item
        for inner in (item.get("condition", ()), item.get("body", ()), *item.get("branches", ())):
            yield from decisions(inner)


def decided(item: Item, device: str) -> int:
    return int(item.get("trips", item.get("taken", {})).get(device, 0))


def data_of(case: Case, device: str) -> list[int]:
    """The numbers that decide on a device, and last whether its callback hangs."""
    hangs = int(device in case.get("callback_hangs", ()))
    return [*(decided(item, device) for item in decisions(case["programs"][device])), hangs]


def fed(case: Case, device: str) -> np.int32:
    """What every item of a device's infeed is: the decision that hangs on it."""
    items = case["programs"][device]
    feeds = {item["name"] for item in items if item["op"] == "infeed"}
    hanging = [item for item in decisions(items) if feeds & set(item["deps"])]
    return np.int32(decided(hanging[0], device) if hanging else 0)
