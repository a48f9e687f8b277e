"""Faults of asynchronous pairs: each start has one done, of its kind, in its computation, and no other user."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...core.graph import Computation, Instruction
from ...properties.async_pairs import origin
from ...properties.effects import (
    DONE_OF,
    HALVES,
    START_OF,
    TRANSFERS,
    Path,
    begins_communication,
    communicates,
    grouped_in,
    notable,
    remembered,
    spelling,
    steps,
)
from ...properties.sites import Site, reached, sites_of
from ..model.describe import finding, named
from ..model.program import DeviceClass
from ..model.verdict import Finding

Dones = Mapping[Instruction | None, list[Site]]


def async_pair_faults(each: DeviceClass) -> Iterator[Finding]:
    """Every fault of the starts and dones of a program."""
    yield from _disallowed(each, sites_of(each.module.entry))
    if all(map(_is_usual, reached(each.module.entry))):
        return
    places = [*_places(each.module.entry, (), set())]
    dones: dict[Instruction | None, list[Site]] = {}
    for site in places:
        if site.instruction.opcode in START_OF:
            dones.setdefault(origin(site.instruction), []).append(site)
    for site in places:
        if site.instruction.opcode in DONE_OF:
            yield from _wrapped(each, site)
            yield from _completed(each, site, dones.get(site.instruction, []))
    for site in places:
        opcode = site.instruction.opcode
        if opcode in DONE_OF and not dones.get(site.instruction):
            yield from _without_done(each, site, places)
        elif opcode in START_OF and origin_opcode(site.instruction) not in DONE_OF:
            yield from _without_start(each, site, places, dones)
    yield from _misuses(each, places, dones)


@remembered
def _is_usual(computation: Computation) -> bool:
    """Whether all starts of a computation are transfers with one matching done each, so that no fault is possible."""
    begun: set[Instruction] = set()
    for instruction in notable(computation):
        if instruction.opcode in TRANSFERS:
            begun.add(instruction)
        elif instruction.opcode in HALVES:
            start = instruction.operands[0] if instruction.operands else instruction
            if start not in begun or not _is_its_done(start, instruction):
                return False
            begun.remove(start)
    return not begun


def _is_its_done(start: Instruction, done: Instruction) -> bool:
    mine, its = start.attributes, done.attributes
    return (
        TRANSFERS[start.opcode] == done.opcode
        and mine.channel_id == its.channel_id
        and mine.is_host_transfer == its.is_host_transfer
    )


@remembered
def _has_halves(computation: Computation) -> bool:
    return any(i.opcode in HALVES or any(map(_has_halves, i.called)) for i in notable(computation))


def _places(computation: Computation, path: Path, seen: set[Computation]) -> Iterator[Site]:
    """The first site of every start, update and done, whether it communicates or not."""
    seen.add(computation)
    for instruction in notable(computation):
        if instruction.opcode in HALVES:
            yield Site(path, instruction)
        for step in () if grouped_in(instruction) else steps(instruction):
            if step.computation not in seen and _has_halves(step.computation):
                yield from _places(step.computation, (*path, step), seen)


def origin_opcode(done: Instruction) -> str:
    """The opcode of what a done completes; nothing where it completes nothing."""
    found = origin(done)
    return "" if found is None else found.opcode


def is_pipelined(done: Instruction) -> bool:
    """Whether a done completes a pipelined transfer: its context comes from a tuple or a parameter."""
    if not done.operands or done.operands[0].opcode not in ("get_tuple_element", "parameter"):
        return False
    return done.opcode in TRANSFERS.values()


def _disallowed(each: DeviceClass, places: Sequence[Site]) -> Iterator[Finding]:
    for site in places:
        step = next((step for step in site.path if not step.is_followed), None) if site.path else None
        if step is not None:
            channel = getattr(site.instruction.attributes, "channel_id", None)
            yield finding(
                "disallowed_computation",
                f"{named(site.instruction)}{'' if channel is None else f' of channel {channel}'} stands in "
                f"{step.computation.name}, which {named(step.instruction)} applies to elements",
                (each.devices, site),
                cause_text="it runs any number of times; only entry, call, while, scan and conditional may communicate",
                repair_text=f"move {site.instruction.name} out of {step.computation.name}",
            )


def _wrapped(each: DeviceClass, start: Site) -> Iterator[Finding]:
    """The fault of an async-start whose computation communicates and is not one collective of parameters."""
    if start.instruction.opcode != "async_start" or begins_communication(start.instruction):
        return
    for called in filter(communicates, start.instruction.called):
        inside = [Site(start.path, i) for i in called.instructions if i.opcode != "parameter"]
        yield finding(
            "disallowed_computation",
            f"{named(start.instruction, start.path)} calls {called.name}, which communicates and has "
            f"{len(inside)} instructions: {', '.join(site.instruction.name for site in inside[:4])}",
            (each.devices, start),
            *((each.devices, site) for site in inside[:4]),
            cause_text="what is started is one collective, or a group of collectives and transfers with nothing else",
            repair_text=f"start each collective of {called.name} by itself, or call {called.name}",
        )


def _completed(each: DeviceClass, start: Site, dones: list[Site]) -> Iterator[Finding]:
    """Faults of the dones of a start: more than one, another kind, another computation, other attributes."""
    distinct = list({done.instruction: done for done in dones}.values())
    done = spelling(DONE_OF[start.instruction.opcode])
    if len(distinct) > 1:
        names = " and ".join(d.instruction.name for d in distinct)
        yield finding(
            "duplicate_done",
            f"{named(start.instruction)} has {len(distinct)} {done}s: {names}",
            *((each.devices, place) for place in (start, *distinct)),
            cause_text=f"one {done} completes each {spelling(start.instruction.opcode)}",
        )
        return
    for d in distinct:
        if START_OF[d.instruction.opcode] != start.instruction.opcode:
            yield _of_another_kind(each, start, d)
        elif d.path != start.path:
            yield _elsewhere(each, start, d)
        yield from _differing(each, start, d)


def _of_another_kind(each: DeviceClass, start: Site, done: Site) -> Finding:
    wanted = spelling(DONE_OF[start.instruction.opcode])
    return finding(
        "done_kind_mismatch",
        f"{named(start.instruction, start.path)} is completed by {named(done.instruction)}, and {wanted} is wanted",
        (each.devices, start),
        (each.devices, done),
        cause_text=f"{spelling(done.instruction.opcode)} completes {spelling(START_OF[done.instruction.opcode])} alone",
        repair_text=f"make {done.instruction.name} the {wanted} of {start.instruction.name}",
    )


def _elsewhere(each: DeviceClass, start: Site, done: Site) -> Finding:
    travels = ", or the context travels in the state of a loop" if start.instruction.opcode in TRANSFERS else ""
    return finding(
        "nest_mismatch",
        f"{named(start.instruction, start.path)} and its done {done} stand under different calls",
        (each.devices, start),
        (each.devices, done),
        cause_text=f"a start and its done stand in one computation{travels}",
        repair_text=f"move {done.instruction.name} to where {start.instruction.name} stands, its operand",
    )


def _differing(each: DeviceClass, start: Site, done: Site) -> Iterator[Finding]:
    """Faults of a done whose channel or host flag is not that of its start."""
    for kind, attribute, text in (
        ("done_channel_mismatch", "channel_id", "channel {}"),
        ("host_flag_mismatch", "is_host_transfer", "is_host_transfer={}"),
    ):
        first, second = (getattr(i.attributes, attribute, None) for i in (start.instruction, done.instruction))
        if first is not None and second is not None and first != second:
            yield finding(
                kind,
                f"{named(start.instruction)} has {text.format(first)} "
                f"and its done {done.instruction.name} has {text.format(second)}",
                (each.devices, start),
                (each.devices, done),
                repair_text=f"give {done.instruction.name} {text.format(first)}",
            )


def _without_done(each: DeviceClass, start: Site, places: Sequence[Site]) -> Iterator[Finding]:
    opcode = DONE_OF[start.instruction.opcode]
    lost = (p for p in places if p.instruction.opcode == opcode and origin_opcode(p.instruction) not in DONE_OF)
    if any(_may_belong(start, done) for done in lost):
        return  # the done has the finding, or the transfer is pipelined
    name, channel = start.instruction.name, getattr(start.instruction.attributes, "channel_id", None)
    is_transfer = start.instruction.opcode in TRANSFERS
    on = "" if channel is None else f" on channel {channel}"
    yield finding(
        "missing_done",
        f"{named(start.instruction, start.path)}{on} has no {spelling(opcode)}",
        (each.devices, start),
        cause_text=f"one {spelling(opcode)} completes each {spelling(start.instruction.opcode)}, on the same device",
        repair_text=f"add {spelling(opcode)}({name}){f', channel_id={channel}' if is_transfer else ''}",
    )


def _without_start(each: DeviceClass, done: Site, places: Sequence[Site], dones: Dones) -> Iterator[Finding]:
    opcode = START_OF[done.instruction.opcode]
    same = [p for p in places if p.instruction.opcode == opcode and _may_belong(p, done)]
    lonely = [p for p in same if not dones.get(p.instruction)]
    if is_pipelined(done.instruction) and same:
        return
    if lonely or (same and opcode in TRANSFERS):
        yield _elsewhere(each, (lonely or same)[0], done)
        return
    yield finding(
        "missing_start",
        f"{named(done.instruction, done.path)} completes no {spelling(opcode)}",
        (each.devices, done),
        repair_text=f"give it the {spelling(opcode)} that it completes as its operand",
    )


def _may_belong(start: Site, done: Site) -> bool:
    """Whether a done without a start may belong to this start: for transfers, whether it names its channel."""
    if start.instruction.opcode not in TRANSFERS:
        return True
    return start.channel == done.channel


def _misuses(each: DeviceClass, places: Sequence[Site], dones: Dones) -> Iterator[Finding]:
    """Faults of starts whose value is used by anything but an update or a done."""
    mine = {p.instruction: p for p in places if p.instruction.opcode not in (*TRANSFERS, *START_OF)}
    if not mine:
        return
    for computation in reached(each.module.entry):
        for user in computation.instructions:
            for operand in dict.fromkeys(user.operands):
                if operand in mine and user.opcode != "async_update" and user.opcode not in START_OF:
                    yield _misused(each, mine[operand], f"is used by {named(user)}", Site((), user))
        if computation.root in mine:
            yield _misused(each, mine[computation.root], f"is the root of {computation.name}")
    ends = {operand for p in places for operand in p.instruction.operands}
    for update, site in mine.items():
        if update.opcode == "async_update" and update not in ends and dones.get(origin(update)):
            yield _misused(each, site, "is an update that no async-done comes after")


def _misused(each: DeviceClass, start: Site, how: str, *users: Site) -> Finding:
    return finding(
        "start_misused",
        f"{named(start.instruction, start.path)} {how}",
        (each.devices, start),
        *((each.devices, user) for user in users),
        cause_text="what a start gives is not yet the result; its done gives that",
        repair_text=f"use the done of {start.instruction.name} instead",
    )
