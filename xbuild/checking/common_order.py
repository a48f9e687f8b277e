"""One order for all devices of one program, where the order that was found differs between them."""

from __future__ import annotations

import functools
import heapq
import operator
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TypeAlias

from attrs import evolve

from ..core.graph import Computation, Instruction
from ..properties.effects import PLAIN_CALLS, TRANSFERS, UNITS, communicates, communicates_itself, start_of
from ..properties.waiting import KINDS, in_sequence
from .deadlock.level_run import FIRST, RANK
from .model.program import Program
from .model.verdict import Order, Orders, Verdict

Runs: TypeAlias = Callable[[Program], bool]
Rank: TypeAlias = Callable[[Instruction], int]


def in_common_order(found: Verdict, program: Program, runs: Runs) -> Verdict:
    """The verdict with one order for all devices, since a compiled module has one, or a summary that says so.

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
    return _without(found)


def _candidates(orders: Mapping[int, Orders]) -> Iterator[Orders]:
    """The order of each device, with those of others for the computations that it does not enter."""
    every = {computation: order for each in orders.values() for computation, order in each}
    for own in dict.fromkeys(orders.values()):
        yield (*{**every, **dict(own)}.items(),)
    for rank in _ranks(orders):
        yield tuple((computation, by_rank(computation, rank)) for computation in every)


def _ranks(orders: Mapping[int, Orders]) -> Iterator[Rank]:
    """Ranks by kind, so that instructions that wait for nobody run early; then ranks by position on the devices."""
    places: dict[Instruction, list[int]] = {}
    for each in orders.values():
        for _, order in each:
            for place, instruction in enumerate(order):
                places.setdefault(instruction, []).append(place)
    yield _rank_of_kind
    waits = {i: n for each in dict.fromkeys(c for o in orders.values() for c, _ in o) for i, n in _partners(each)}
    yield lambda instruction: waits.get(instruction, -1)
    yield from (lambda instruction, of=of: of(places[instruction]) for of in (sum, max, min))


def by_rank(computation: Computation, rank: Rank) -> Order:
    """The order that keeps dependencies and takes, of the instructions that may come next, one of the least rank."""
    after, before = _dependencies(computation.instructions)
    number = {each: n for n, each in enumerate(computation.instructions)}
    ready = [(rank(each), n) for each, n in number.items() if not before[each]]
    heapq.heapify(ready)
    order: list[Instruction] = []
    while ready:
        order.append(computation.instructions[heapq.heappop(ready)[1]])
        for each in after[order[-1]]:
            before[each] -= 1
            if not before[each]:
                heapq.heappush(ready, (rank(each), number[each]))
    return tuple(order)


def _dependencies(instructions: Order) -> tuple[dict[Instruction, list[Instruction]], dict[Instruction, int]]:
    """For each instruction those that come after it, and the number of those that come before it."""
    after: dict[Instruction, list[Instruction]] = {each: [] for each in instructions}
    count: dict[Instruction, int] = {}
    last: dict[Hashable, Instruction] = {}
    for each in instructions:
        needs = {*each.operands, *each.control}
        if communicates_itself(each) and (sequence := in_sequence(each)) is not None:
            needs |= {last[sequence]} if sequence in last else set()
            last[sequence] = each
        count[each] = len(needs)
        for need in needs:
            after[need].append(each)
    return after, count


def _partners(computation: Computation) -> Iterator[tuple[Instruction, int]]:
    """For each half of a channel how many that communicate come before its partner, the other half."""
    before: dict[Instruction, int] = {}  # a set of bits
    halves: dict[Hashable, list[Instruction]] = {}
    for n, each in enumerate(computation.instructions):
        own = 1 << n if communicates_itself(each) else 0
        before[each] = functools.reduce(operator.or_, (before[i] for i in (*each.operands, *each.control)), own)
        if each.opcode in TRANSFERS:
            halves.setdefault((each.opcode, each.attributes.channel_id), []).append(each)
    for each in computation.instructions:
        half = start_of(each) if each.opcode == "recv_done" else each
        if half is not None and half.opcode in TRANSFERS:
            other = "recv" if each.opcode == "send" else "send"
            partners = halves.get((other, half.attributes.channel_id), ())
            yield each, 0 if each.opcode == "recv" else max((before[i].bit_count() for i in partners), default=0)


def _rank_of_kind(instruction: Instruction) -> int:
    if any(map(communicates, instruction.called)) and instruction.opcode in UNITS | PLAIN_CALLS:
        return len(FIRST)
    return RANK.get(KINDS.get(instruction.opcode, ""), -1)


def _without(found: Verdict) -> Verdict:
    """The verdict whose summary says that no common order was found."""
    more = "; each device has an order of its own there: none was found for all, and a compiled module has one"
    return evolve(found, summary=f"{found.summary}{more}")
