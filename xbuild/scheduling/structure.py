"""What must hold in each program alone: no cycle, a schedule that its operands allow, a done for each start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ..graph import Computation, Instruction
from .describe import finding, named
from .effects import DONE_OF, START_OF, Site, reached, sites_of, spelling
from .program import Class, Program, linear, predecessors
from .verdict import Finding


def structure(program: Program) -> list[Finding]:
    """Every fault of a program by itself, each program once."""
    found: list[Finding] = []
    for each in program.classes:
        found += _orders(each)
    for each in program.freed().classes:
        broken = [*_cycles(each)]
        found = [*broken, *found]
        if not broken:
            found += _halves(each)
    return found


def _cycles(each: Class) -> Iterator[Finding]:
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
    """Instructions that need each other, each the operand of the one before it, the first of them of the last."""
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


def _orders(each: Class) -> Iterator[Finding]:
    """A schedule that is given has every instruction once, after its operands and control predecessors."""
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


def _too_early(each: Class, instruction: Instruction, before: Instruction, role: str) -> Finding:
    what = "its operand" if role == "operand" else "its control predecessor"
    return finding(
        "bad_schedule",
        f"the schedule has {instruction.name} before {what} {before.name}",
        (each.devices, Site((), instruction)),
        (each.devices, Site((), before)),
        repair_text=f"move {before.name} before {instruction.name}",
    )


def _incomplete(each: Class, computation: Computation, order: tuple[Instruction, ...]) -> Iterator[Finding]:
    counts, members = Counter(order), set(computation.instructions)
    for instruction in dict.fromkeys((*computation.instructions, *order)):
        if counts[instruction] != int(instruction in members):
            problem = "does not have" if counts[instruction] == 0 else f"has {counts[instruction]} times"
            yield finding(
                "bad_schedule",
                f"the schedule {problem} {instruction.name} of {computation.name}",
                (each.devices, Site((), instruction)),
            )


def _halves(each: Class) -> Iterator[Finding]:
    """Each start with its one done, and nothing of all this where no order holds."""
    places = sites_of(each.module.entry)
    yield from _disallowed(each, places)
    dones: dict[Instruction, list[Site]] = {}
    for site in places:
        if site.instruction.opcode in START_OF:
            for operand in site.instruction.operands[:1]:
                dones.setdefault(operand, []).append(site)
    for site in places:
        if site.instruction.opcode in DONE_OF:
            yield from _duplicates(each, site, dones.get(site.instruction, []))
    for site in places:
        if site.instruction.opcode in DONE_OF and not dones.get(site.instruction):
            yield from _without_done(each, site, places)
        elif site.instruction.opcode in START_OF and not starts_of(site.instruction):
            yield from _without_start(each, site, places)


def starts_of(done: Instruction) -> tuple[Instruction, ...]:
    """The start that a done completes: its operand (none where that is no start)."""
    return tuple(o for o in done.operands[:1] if o.opcode == START_OF[done.opcode])


def is_pipelined(done: Instruction) -> bool:
    """Whether its context comes out of a state, so that the start stands elsewhere."""
    return bool(done.operands) and not starts_of(done) and done.operands[0].opcode in ("get_tuple_element", "parameter")


def _disallowed(each: Class, places: Sequence[Site]) -> Iterator[Finding]:
    for site in places:
        step = next((step for step in site.path if not step.is_followed), None)
        if step is not None:
            channel = getattr(site.instruction.attributes, "channel_id", None)
            yield finding(
                "disallowed_computation",
                f"{named(site.instruction)}{'' if channel is None else f' of channel {channel}'} stands in "
                f"{step.computation.name}, which {named(step.instruction)} applies to elements",
                (each.devices, site),
                cause_text="it runs any number of times; only entry, call, while and conditional may communicate",
                repair_text=f"move {site.instruction.name} out of {step.computation.name}",
            )


def _duplicates(each: Class, start: Site, dones: list[Site]) -> Iterator[Finding]:
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
        yield from _differing(each, start, d)


def _differing(each: Class, start: Site, done: Site) -> Iterator[Finding]:
    """A done says the same channel and host flag as its start."""
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


def _without_done(each: Class, start: Site, places: Sequence[Site]) -> Iterator[Finding]:
    done = DONE_OF[start.instruction.opcode]
    if any(p.instruction.opcode == done and not starts_of(p.instruction) and _same_channel(p, start) for p in places):
        return  # told from the done's side, or the context travels in a state
    name, channel = start.instruction.name, getattr(start.instruction.attributes, "channel_id", None)
    on = "" if channel is None else f" on channel {channel}"
    yield finding(
        "missing_done",
        f"{named(start.instruction, start.path)}{on} has no {spelling(done)}",
        (each.devices, start),
        cause_text=f"one {spelling(done)} completes each {spelling(start.instruction.opcode)}, on the same device",
        repair_text=f"add {spelling(done)}({name}){f', channel_id={channel}' if channel is not None else ''}",
    )


def _without_start(each: Class, done: Site, places: Sequence[Site]) -> Iterator[Finding]:
    start = START_OF[done.instruction.opcode]
    same = [p for p in places if p.instruction.opcode == start and _same_channel(p, done)]
    if is_pipelined(done.instruction) and same:
        return
    if same:
        yield finding(
            "nest_mismatch",
            f"{named(same[0].instruction, same[0].path)} and its done {done} stand under different calls",
            (each.devices, same[0]),
            (each.devices, done),
            cause_text="a start and its done stand in one computation, or the context travels in the state of a loop",
            repair_text=f"move {done.instruction.name} to where {same[0].instruction.name} stands, its operand",
        )
        return
    yield finding(
        "missing_start",
        f"{named(done.instruction, done.path)} completes no {spelling(start)}",
        (each.devices, done),
        repair_text=f"give it the {spelling(start)} that it completes as its operand",
    )


def _same_channel(a: Site, b: Site) -> bool:
    return getattr(a.instruction.attributes, "channel_id", None) == getattr(
        b.instruction.attributes, "channel_id", None
    )
