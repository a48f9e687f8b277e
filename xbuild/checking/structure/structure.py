"""Faults of each program alone: cycles, schedules that violate dependencies, asynchronous pairs, global programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from shape_inference import AnyShape, compatible
from shape_inference.types import leaves

from ...core.graph import Computation, Instruction
from ...properties.order import linear, predecessors
from ...properties.sites import Site, reached
from ..model.describe import finding, named
from ..model.program import DeviceClass, Program
from ..model.verdict import Finding
from .async_pairs import async_pair_faults


def structure_faults(program: Program) -> list[Finding]:
    """Every fault of a program by itself, each program once."""
    found: list[Finding] = [fault for each in program.classes for fault in _global(each)]
    if found:
        return found
    for each in program.classes:
        found += _orders(each)
    for each in program.freed().classes:
        broken = [*_cycles(each)]
        found = [*broken, *found]
        if not broken:
            found += async_pair_faults(each)
    return found


# Custom calls that split global arrays into those of each device, and join them.
_CUTS = ("xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape", "SPMDFullToShardShape", "SPMDShardToFullShape")


def _global(each: DeviceClass) -> Iterator[Finding]:
    """The first place that shows a program of all devices together, which XLA's partitioner has not split yet."""
    for computation in reached(each.module.entry):
        for instruction in computation.instructions:
            if instruction.opcode == "custom_call" and instruction.attributes.custom_call_target in _CUTS:
                wholes = (leaf for operand in instruction.operands for leaf in leaves(operand.shape))
                pairs = zip(wholes, leaves(instruction.shape), strict=False)
                cut = next((pair for pair in pairs if not compatible(*pair)), None)
                if cut is not None:
                    yield _not_partitioned(each, instruction, *cut)
                    return


def _not_partitioned(each: DeviceClass, instruction: Instruction, before: AnyShape, after: AnyShape) -> Finding:
    return finding(
        "not_partitioned",
        f"{named(instruction)} makes {after.plain()} of {before.plain()}: the program is still that of all devices",
        (each.devices, Site((), instruction)),
        cause_text=f"XLA's partitioner replaces {instruction.attributes.custom_call_target}, and has not run",
        repair_text="xb.shard.partition(module).run(*arrays) runs it, xb.from_jax(f, *args) has XLA partition it; "
        "XLA dumps its program of a device after its pass spmd-partitioning",
    )


def _cycles(each: DeviceClass) -> Iterator[Finding]:
    for computation in reached(each.module.entry):
        if linear(computation) is None:
            cycle = _cycle(computation)
            names = " -> ".join(i.name for i in (*cycle, cycle[0]))
            yield finding(
                "cycle",
                f"the instructions {names} of {computation.name} use each other in a cycle",
                *((each.devices, Site((), i)) for i in cycle),
                cause_text="an instruction runs after its operands and control predecessors, so these can never run",
            )


def _cycle(computation: Computation) -> list[Instruction]:
    """A cycle: each instruction is an operand or control predecessor of the one before it."""
    place = {instruction: n for n, instruction in enumerate(computation.instructions)}
    users, missing = predecessors(computation, place)
    ready = [n for n, count in enumerate(missing) if not count]
    while ready:
        for user in users[ready.pop()]:
            missing[user] -= 1
            if not missing[user]:
                ready.append(user)
    walk = [next(n for n, count in enumerate(missing) if count)]
    while walk[-1] not in walk[:-1]:
        current = computation.instructions[walk[-1]]
        walk.append(next(place[p] for p in (*current.operands, *current.control) if p in place and missing[place[p]]))
    return [computation.instructions[n] for n in walk[walk.index(walk[-1]) : -1]]


def _orders(each: DeviceClass) -> Iterator[Finding]:
    """Faults of a given schedule: instructions that are missing, repeated, or before what they depend on."""
    if not each.given:
        return
    for computation in reached(each.module.entry):
        order = each.order(computation)
        place = {instruction: n for n, instruction in enumerate(order)}
        if linear(computation) is not None:
            yield from _incomplete(each, computation, order)
            for instruction in order:
                for role, before in (
                    *(("operand", o) for o in instruction.operands),
                    *(("control", c) for c in instruction.control),
                ):
                    if place.get(before, -1) > place[instruction]:
                        yield _too_early(each, instruction, before, role)


def _too_early(each: DeviceClass, instruction: Instruction, before: Instruction, role: str) -> Finding:
    what = "its operand" if role == "operand" else "its control predecessor"
    return finding(
        "bad_schedule",
        f"the schedule has {instruction.name} before {what} {before.name}",
        (each.devices, Site((), instruction)),
        (each.devices, Site((), before)),
        repair_text=f"move {before.name} before {instruction.name}",
    )


def _incomplete(each: DeviceClass, computation: Computation, order: tuple[Instruction, ...]) -> Iterator[Finding]:
    counts, members = Counter(order), set(computation.instructions)
    for instruction in dict.fromkeys((*computation.instructions, *order)):
        if counts[instruction] != int(instruction in members):
            problem = "does not have" if counts[instruction] == 0 else f"has {counts[instruction]} times"
            yield finding(
                "bad_schedule",
                f"the schedule {problem} {instruction.name} of {computation.name}",
                (each.devices, Site((), instruction)),
            )
