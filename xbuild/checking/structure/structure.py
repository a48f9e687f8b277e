"""Faults of each program by itself: cycles, schedules that violate dependencies, asynchronous pairs.

Sections:

    Asynchronous pairs: starts and dones
    All faults of one program
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from shape_inference import AnyShape, compatible
from shape_inference.trees import leaves

from ...core.graph import Computation, Instruction
from ...core.report_text import join_words
from ...process.progress import over
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
    origin,
    remembered,
    spelling,
    steps,
)
from ...properties.order import linear, predecessors
from ...properties.placement import CUTS, target_of
from ...properties.sites import Site, reached, sites_of
from ..model.describe import finding, named
from ..model.program import DeviceClass, GridProgram
from ..model.verdict import Finding

# ----------------------------------------------------------------------------
# Asynchronous pairs: each start has one done, of its kind, in its computation, and no other user

Dones = Mapping[Instruction | None, list[Site]]


def async_pair_faults(device_class: DeviceClass) -> Iterator[Finding]:
    """Every fault of the starts and dones of a program."""
    yield from _find_disallowed(device_class, sites_of(device_class.module.entry))
    if all(map(_is_usual, reached(device_class.module.entry))):
        return
    places = [*_halves(device_class.module.entry, (), set())]
    dones: dict[Instruction | None, list[Site]] = {}
    for site in places:
        if site.instruction.opcode in START_OF:
            dones.setdefault(origin(site.instruction), []).append(site)
    for site in places:
        if site.instruction.opcode in DONE_OF:
            yield from _check_wrapped(device_class, site)
            yield from _check_dones(device_class, site, dones.get(site.instruction, []))
    for site in places:
        opcode = site.instruction.opcode
        if opcode in DONE_OF and not dones.get(site.instruction):
            yield from _find_missing_done(device_class, site, places)
        elif opcode in START_OF and origin_opcode(site.instruction) not in DONE_OF:
            yield from _find_missing_start(device_class, site, places, dones)
    yield from _find_misuses(device_class, places, dones)


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


def _halves(computation: Computation, path: Path, seen: set[Computation]) -> Iterator[Site]:
    """The first site of every start, update and done, whether it communicates or not."""
    seen.add(computation)
    for instruction in notable(computation):
        if instruction.opcode in HALVES:
            yield Site(path, instruction)
        for step in () if grouped_in(instruction) else steps(instruction):
            if step.computation not in seen and _has_halves(step.computation):
                yield from _halves(step.computation, (*path, step), seen)


def origin_opcode(done: Instruction) -> str:
    """The opcode of the start that a done completes; empty if it completes none."""
    start = origin(done)
    return "" if start is None else start.opcode


def is_pipelined(done: Instruction) -> bool:
    """Whether a done completes a pipelined transfer: its context comes from a tuple or a parameter."""
    if not done.operands or done.operands[0].opcode not in ("get_tuple_element", "parameter"):
        return False
    return done.opcode in TRANSFERS.values()


def _find_disallowed(device_class: DeviceClass, places: Sequence[Site]) -> Iterator[Finding]:
    for site in places:
        step = next((step for step in site.path if not step.is_followed), None) if site.path else None
        if step is not None:
            channel = getattr(site.instruction.attributes, "channel_id", None)
            yield finding(
                "disallowed_computation",
                f"{named(site.instruction)}{'' if channel is None else f' of channel {channel}'} is in "
                f"{step.computation.name}, which {named(step.instruction)} applies to each element",
                (device_class.devices, site),
                cause_text=(
                    "such a computation may run any number of times; communication is allowed only in the entry "
                    "computation and in computations that a call, while, scan or conditional runs"
                ),
                repair_text=f"move {site.instruction.name} out of {step.computation.name}",
            )


def _check_wrapped(device_class: DeviceClass, start: Site) -> Iterator[Finding]:
    """The fault of an async-start whose computation communicates and is not one collective of its parameters."""
    if start.instruction.opcode != "async_start" or begins_communication(start.instruction):
        return
    for called in filter(communicates, start.instruction.called):
        inside = [Site(start.path, i) for i in called.instructions if i.opcode != "parameter"]
        yield finding(
            "disallowed_computation",
            f"{named(start.instruction, start.path)} calls {called.name}, which communicates and has "
            f"{len(inside)} instructions: {', '.join(site.instruction.name for site in inside[:4])}",
            (device_class.devices, start),
            *((device_class.devices, site) for site in inside[:4]),
            cause_text="an async-start wraps one collective, or a group, fusion or call with collectives",
            repair_text=f"start each collective of {called.name} separately, or call {called.name}",
        )


def _check_dones(device_class: DeviceClass, start: Site, dones: list[Site]) -> Iterator[Finding]:
    """Faults of the dones of a start: several, of another kind, in another computation, with other attributes."""
    distinct = list({done.instruction: done for done in dones}.values())
    done = spelling(DONE_OF[start.instruction.opcode])
    if len(distinct) > 1:
        names = join_words(d.instruction.name for d in distinct)
        yield finding(
            "duplicate_done",
            f"{named(start.instruction)} has {len(distinct)} {done}s: {names}",
            *((device_class.devices, place) for place in (start, *distinct)),
            cause_text=f"exactly one {done} completes each {spelling(start.instruction.opcode)}",
        )
        return
    for d in distinct:
        if START_OF[d.instruction.opcode] != start.instruction.opcode:
            yield _kind_finding(device_class, start, d)
        elif d.path != start.path:
            yield _nest_finding(device_class, start, d)
        yield from _compare_attributes(device_class, start, d)


def _kind_finding(device_class: DeviceClass, start: Site, done: Site) -> Finding:
    expected = spelling(DONE_OF[start.instruction.opcode])
    return finding(
        "done_kind_mismatch",
        f"{named(start.instruction, start.path)} is completed by {named(done.instruction)}; expected {expected}",
        (device_class.devices, start),
        (device_class.devices, done),
        cause_text=f"{spelling(done.instruction.opcode)} completes only {spelling(START_OF[done.instruction.opcode])}",
        repair_text=f"make {done.instruction.name} the {expected} of {start.instruction.name}",
    )


def _nest_finding(device_class: DeviceClass, start: Site, done: Site) -> Finding:
    travels = ", unless a loop-carried value is the context" if start.instruction.opcode in TRANSFERS else ""
    return finding(
        "nest_mismatch",
        f"{named(start.instruction, start.path)} and its done {done} are inside different calls",
        (device_class.devices, start),
        (device_class.devices, done),
        cause_text=f"a start and its done must be in the same computation{travels}",
        repair_text=f"move {done.instruction.name} to the computation of {start.instruction.name}, its operand",
    )


def _compare_attributes(device_class: DeviceClass, start: Site, done: Site) -> Iterator[Finding]:
    """Faults of a done whose channel or host flag differs from that of its start."""
    for kind, attribute, text in (
        ("done_channel_mismatch", "channel_id", "channel {}"),
        ("host_flag_mismatch", "is_host_transfer", "is_host_transfer={}"),
    ):
        first, second = (getattr(i.attributes, attribute, None) for i in (start.instruction, done.instruction))
        if first is not None and second is not None and first != second:
            yield finding(
                kind,
                f"{named(start.instruction)} has {text.format(first)}, but its done {done.instruction.name} has "
                f"{text.format(second)}",
                (device_class.devices, start),
                (device_class.devices, done),
                repair_text=f"give {done.instruction.name} {text.format(first)}",
            )


def _find_missing_done(device_class: DeviceClass, start: Site, places: Sequence[Site]) -> Iterator[Finding]:
    opcode = DONE_OF[start.instruction.opcode]
    open_dones = (p for p in places if p.instruction.opcode == opcode and origin_opcode(p.instruction) not in DONE_OF)
    if any(_may_belong(start, done) for done in open_dones):
        return  # the done has the finding, or the transfer is pipelined
    name, channel = start.instruction.name, getattr(start.instruction.attributes, "channel_id", None)
    is_transfer = start.instruction.opcode in TRANSFERS
    on = "" if channel is None else f" on channel {channel}"
    yield finding(
        "missing_done",
        f"{named(start.instruction, start.path)}{on} has no {spelling(opcode)}",
        (device_class.devices, start),
        cause_text=(
            f"exactly one {spelling(opcode)} on the same device completes each {spelling(start.instruction.opcode)}"
        ),
        repair_text=f"add {spelling(opcode)}({name}){f', channel_id={channel}' if is_transfer else ''}",
    )


def _find_missing_start(
    device_class: DeviceClass, done: Site, places: Sequence[Site], dones: Dones
) -> Iterator[Finding]:
    opcode = START_OF[done.instruction.opcode]
    candidates = [p for p in places if p.instruction.opcode == opcode and _may_belong(p, done)]
    unused = [p for p in candidates if not dones.get(p.instruction)]
    if is_pipelined(done.instruction) and candidates:
        return
    if unused or (candidates and opcode in TRANSFERS):
        yield _nest_finding(device_class, (unused or candidates)[0], done)
        return
    yield finding(
        "missing_start",
        f"{named(done.instruction, done.path)} completes no {spelling(opcode)}",
        (device_class.devices, done),
        repair_text=f"make the {spelling(opcode)} that it completes its operand",
    )


def _may_belong(start: Site, done: Site) -> bool:
    """Whether a done without a start may belong to this start: for transfers, whether it names its channel."""
    if start.instruction.opcode not in TRANSFERS:
        return True
    return start.channel == done.channel


def _find_misuses(device_class: DeviceClass, places: Sequence[Site], dones: Dones) -> Iterator[Finding]:
    """Faults of starts whose value is used by anything other than an update or a done."""
    mine = {p.instruction: p for p in places if p.instruction.opcode not in (*TRANSFERS, *START_OF)}
    if not mine:
        return
    for computation in reached(device_class.module.entry):
        for user in computation.instructions:
            for operand in dict.fromkeys(user.operands):
                if operand in mine and user.opcode != "async_update" and user.opcode not in START_OF:
                    yield _misuse_finding(device_class, mine[operand], f"is used by {named(user)}", Site((), user))
        if computation.root in mine:
            yield _misuse_finding(device_class, mine[computation.root], f"is the root of {computation.name}")
    ends = {operand for p in places for operand in p.instruction.operands}
    for update, site in mine.items():
        if update.opcode == "async_update" and update not in ends and dones.get(origin(update)):
            yield _misuse_finding(device_class, site, "is an async-update without a later async-done")


def _misuse_finding(device_class: DeviceClass, start: Site, misuse: str, *users: Site) -> Finding:
    return finding(
        "start_misused",
        f"{named(start.instruction, start.path)} {misuse}",
        (device_class.devices, start),
        *((device_class.devices, user) for user in users),
        cause_text="the done, not the start, returns the result",
        repair_text=f"use the done of {start.instruction.name} instead",
    )


# ----------------------------------------------------------------------------
# All faults of one program: cycles, schedules that violate dependencies, asynchronous pairs, global programs


def structure_faults(program: GridProgram) -> list[Finding]:
    """Every fault of a program by itself, for each program."""
    found: list[Finding] = [fault for device_class in program.classes for fault in _find_global_program(device_class)]
    if found:
        return found
    for device_class in program.classes:
        found += _check_schedule(device_class)
    for each in program.without_orders().classes:
        broken = [*_find_cycles(each)]
        found = [*broken, *found]
        if not broken:
            found += async_pair_faults(each)
    return found


def _find_global_program(device_class: DeviceClass) -> Iterator[Finding]:
    """The first place that shows a global program, which XLA's partitioner has not split yet."""
    for computation in over(reached(device_class.module.entry), "looking for faults", "computations"):
        for instruction in computation.instructions:
            if instruction.opcode == "custom_call" and target_of(instruction) in CUTS:
                global_leaves = (leaf for operand in instruction.operands for leaf in leaves(operand.shape))
                pairs = zip(global_leaves, leaves(instruction.shape), strict=False)
                changed = next((pair for pair in pairs if not compatible(*pair)), None)
                if changed is not None:
                    yield _not_partitioned(device_class, instruction, *changed)
                    return


def _not_partitioned(device_class: DeviceClass, instruction: Instruction, before: AnyShape, after: AnyShape) -> Finding:
    return finding(
        "not_partitioned",
        f"{named(instruction)} turns {before.plain()} into {after.plain()}, so this is still the global program",
        (device_class.devices, Site((), instruction)),
        cause_text=f"XLA's partitioner, which has not run yet, replaces {instruction.attributes.custom_call_target}",
        repair_text=(
            "partition it, with the option --partition or with xb.shard.partition(module); or let XLA partition it: "
            "xb.from_jax(f, *args) does this, and XLA dumps the program of one device after its pass spmd-partitioning"
        ),
    )


def _find_cycles(device_class: DeviceClass) -> Iterator[Finding]:
    for computation in reached(device_class.module.entry):
        if linear(computation) is None:
            cycle = _a_cycle(computation)
            names = " -> ".join(i.name for i in (*cycle, cycle[0]))
            yield finding(
                "cycle",
                f"the instructions {names} of {computation.name} use each other in a cycle",
                *((device_class.devices, Site((), i)) for i in cycle),
                cause_text=(
                    "an instruction runs after its operands and control predecessors, so none of these "
                    "instructions can ever run"
                ),
            )


def _a_cycle(computation: Computation) -> list[Instruction]:
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


def _check_schedule(device_class: DeviceClass) -> Iterator[Finding]:
    """Faults of a given schedule: instructions that are missing, repeated, or before what they depend on."""
    if not device_class.given:
        return
    for computation in reached(device_class.module.entry):
        order = device_class.order(computation)
        place = {instruction: n for n, instruction in enumerate(order)}
        if linear(computation) is not None:
            yield from _compare_members(device_class, computation, order)
            for instruction in order:
                for role, before in (
                    *(("operand", o) for o in instruction.operands),
                    *(("control", c) for c in instruction.control),
                ):
                    if place.get(before, -1) > place[instruction]:
                        yield _order_finding(device_class, instruction, before, role)


def _order_finding(device_class: DeviceClass, instruction: Instruction, before: Instruction, role: str) -> Finding:
    what = "its operand" if role == "operand" else "its control predecessor"
    return finding(
        "bad_schedule",
        f"the schedule places {instruction.name} before {what} {before.name}",
        (device_class.devices, Site((), instruction)),
        (device_class.devices, Site((), before)),
        repair_text=f"move {before.name} before {instruction.name}",
    )


def _compare_members(
    device_class: DeviceClass, computation: Computation, order: tuple[Instruction, ...]
) -> Iterator[Finding]:
    counts, members = Counter(order), set(computation.instructions)
    for instruction in dict.fromkeys((*computation.instructions, *order)):
        if counts[instruction] != int(instruction in members):
            problem = "does not have" if counts[instruction] == 0 else f"has {counts[instruction]} times"
            yield finding(
                "bad_schedule",
                f"the schedule {problem} {instruction.name} of {computation.name}",
                (device_class.devices, Site((), instruction)),
            )
