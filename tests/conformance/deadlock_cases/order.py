"""The order in which the items of a deadlock case are recorded: each after what it depends on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import xbuild as xb
from tests.conformance.deadlock_cases.data import Item


def in_dependency_order(items: Sequence[Item], late: list[tuple[str, str]]) -> Iterator[Item]:
    """Each item after what it needs; what a cycle makes impossible is noted as coming late."""
    by_name = {item["name"]: item for item in items}
    done: set[str] = set()

    def visit(item: Item, above: tuple[str, ...]) -> Iterator[Item]:
        for dep in item["deps"]:
            if dep in above:
                late.append((item["name"], dep))
            elif dep in by_name and dep not in done:
                yield from visit(by_name[dep], (*above, dep))
        if item["name"] not in done:
            done.add(item["name"])
            yield item

    for item in items:
        if item["name"] not in done:
            yield from visit(item, (item["name"],))


def come_after(instruction: xb.Instruction, before: xb.Instruction) -> None:
    """Close a cycle, which nothing that records could."""
    object.__setattr__(instruction, "control", (*instruction.control, before))
