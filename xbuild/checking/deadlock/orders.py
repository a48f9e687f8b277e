"""Orders of all instructions of computations, made from orders of their items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from attrs import define, field

from ...core.graph import Computation, Instruction
from ...properties.order import linear
from ...properties.sites import Site, reached
from ..model.program import Program
from ..model.verdict import Order, Orders
from .skeleton import Skeleton


@define(eq=False)
class Recorder:
    """Orders of computations that differ from the recorded ones; `torn` is a call that an order leaves and reenters."""

    program: Program
    torn: Instruction | None = None
    _found: dict[int, dict[Computation, Order]] = field(factory=dict)
    _made: dict[Any, dict[Computation, Order]] = field(factory=dict)

    def record(
        self, device: int, computation: Computation, depth: int, skeleton: Skeleton, order: Sequence[int]
    ) -> None:
        """Keep the order of a computation, and of those flattened into it, in which a device runs its items."""
        if skeleton.given or all(n == number for n, number in enumerate(order)):
            return
        key = (computation, skeleton, tuple(order))
        if key not in self._made:
            made = self._made[key] = {}
            self._place(made, computation, depth, [skeleton.items[n] for n in order])
        for each, found in self._made[key].items():
            known = self._found.setdefault(device, {}).setdefault(each, found)
            if known != found:
                self.torn = found[-1]

    def _place(self, made: dict[Computation, Order], computation: Computation, depth: int, items: list[Site]) -> None:
        anchors: list[Instruction] = []
        for anchor, group in groupby(items, lambda item: _anchor(item, depth)):
            inner = list(group)
            if anchor in anchors:
                self.torn = anchor
            anchors.append(anchor)
            if len(inner[0].path) > depth:
                self._place(made, inner[0].path[depth].computation, depth + 1, inner)
        made[computation] = arranged(computation, dict.fromkeys(anchors))

    def orders(self) -> Mapping[int, Orders]:
        """For each device the computations that it must run in another order than the recorded one."""
        mended: dict[Computation, dict[Computation, Order]] = {}
        found: dict[int, Orders] = {}
        for device, each in self.program.class_of.items():
            if each.module.entry not in mended:
                mended[each.module.entry] = _mended(each.module.entry)
            orders = dict(each.orders) if each.given else {**mended[each.module.entry], **self._found.get(device, {})}
            changed = tuple((c, order) for c, order in orders.items() if order != c.instructions)
            if changed:
                found[device] = changed
        return found


def _anchor(item: Site, depth: int) -> Instruction:
    return item.path[depth].instruction if len(item.path) > depth else item.instruction


def _mended(entry: Computation) -> dict[Computation, Order]:
    """An order for each computation whose recorded order violates dependencies."""
    orders = {computation: linear(computation) for computation in reached(entry)}
    return {c: order for c, order in orders.items() if order is not None and order != c.instructions}


def arranged(computation: Computation, anchors: Mapping[Instruction, None]) -> Order:
    """All instructions, the anchors in this order, each after its dependencies, the rest in recorded order."""
    recorded = linear(computation) or computation.instructions
    place = {instruction: n for n, instruction in enumerate(recorded)}
    found: dict[Instruction, None] = {}
    for target in (*anchors, *recorded):
        stack = [target]
        needed: set[Instruction] = set()
        while stack:
            instruction = stack.pop()
            if instruction not in found and instruction not in needed and instruction in place:
                needed.add(instruction)
                stack += (*instruction.operands, *instruction.control)
        found |= dict.fromkeys(sorted(needed, key=place.__getitem__))
    return tuple(found)
