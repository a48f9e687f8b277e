"""Validation of a trace's columns: the order of events, growing times, meetings whose members are in the group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core.attributes import Array
from ..core.graph import Instruction, Module, ModuleGroup
from ..properties.effects import START_OF, base_of, collective_in, start_of
from .columns import Column, within
from .data import Meeting, Spot, Transfer
from .forms import FormError
from .index import instruction_at
from .packed import Packed

CHUNK = {"device": Column(np.int32), "spot": Column(np.int32), "refs": Column(np.int64, (None, 2))}
TIME = {
    **{name: Column(np.int64) for name in ("time", "since", "count", "members", "met")},
    "meetings": Column(np.int64, (None, 6)), "transfers": Column(np.int64, (None, 5)),
}  # fmt: skip

_MOVES = 3
"""The greatest number of instructions into which HLO text expands an all-to-all, beside the all-to-all itself."""


def check_events(device: Array, spot: Array, spots: Sequence[Spot], program: Module | ModuleGroup) -> None:
    """Raise FormError unless the devices of events exist, and each device is at spots of its own program."""
    within(device, 0, program.num_devices, "device")
    if isinstance(program, Module) or not len(device):
        return
    modules = list(dict.fromkeys(program.modules.values()))
    owner = {i: number for number, m in enumerate(modules) for c in m.computations for i in c.instructions}
    of_spot = np.array([owner.get(each.instruction, -1) for each in spots], np.int64)
    of_device = np.array([modules.index(program.modules[n]) for n in range(program.num_devices)], np.int64)
    wrong = np.flatnonzero(of_spot[spot] != of_device[device])
    if wrong.size:
        at = int(wrong[0])
        raise FormError(f"event {at} is of device {device[at]}, at an instruction of another program")


def check_refs(refs: Array, begin: int, end: int, values: int, where: str) -> None:
    """Raise FormError unless refs names events of a chunk in ascending order, each with an existing value."""
    within(refs[:, 0], begin, end, f"{where}: events of refs")
    within(refs[:, 1], 0, values, f"{where}: values of refs")
    if (np.diff(refs[:, 0]) <= 0).any():
        raise FormError(f"{where}: refs does not name events in their order, each once")


def check_values(chunk: Mapping[str, Array], found: Packed, begin: int, spots: Sequence[Spot], where: str) -> None:
    """Raise FormError unless each value has the shape of its instruction; `begin` is the first event of the chunk."""
    refs, spot = chunk["refs"], chunk["spot"]
    within(spot, 0, len(spots), f"{where}: spot")
    if not len(refs):
        return
    pairs = np.stack([spot[refs[:, 0] - begin].astype(np.int64), refs[:, 1]], axis=1)
    is_tuple = np.array(["of" in kind for kind in found.kinds], bool)[found.kind[refs[:, 1]]]
    alike = np.stack([pairs[:, 0], found.kind[pairs[:, 1]]], axis=1)[~is_tuple]
    firsts = np.unique(alike, axis=0, return_index=True)[1]
    for number in (*np.flatnonzero(~is_tuple)[firsts].tolist(), *np.flatnonzero(is_tuple).tolist()):
        place, ref = pairs[number].tolist()
        instruction = spots[place].instruction
        if not found.fits(ref, instruction.shape):
            raise FormError(
                f"{where}: value {ref} of event {refs[number, 0]} is none of {instruction.name}, {instruction.shape}"
            )


def turns(device: Array, spot: Array) -> Array:
    """For each event, how often its device had been at its spot before."""
    pairs = device.astype(np.int64) << 32 | spot
    order = np.argsort(pairs, kind="stable")
    fresh = np.flatnonzero(np.diff(pairs[order], prepend=-1))
    found = np.empty(len(pairs), np.int64)
    found[order] = np.arange(len(pairs)) - np.repeat(fresh, np.diff(fresh, append=len(pairs)))
    return found


def own_time(device: Array) -> Array:
    """The time of each event as its number among the events of its device, from 1."""
    return turns(device, np.zeros_like(device)) + 1


def check_time(columns: Mapping[str, Array], device: Array, spot: Array) -> None:
    """Raise FormError unless `since` follows the previous event, `time` is no less, and `count` is right."""
    count = len(device)
    for name in ("time", "since", "count"):
        if len(columns[name]) != count:
            raise FormError(f"time.npz: {name} is of {len(columns[name]):,} events, the chunks have {count:,}")
    time, since = columns["time"], columns["since"]
    within(time, 1, 2 * count + 3, "time.npz: time")  # an event is at most two steps after another that there is
    order = np.argsort(device, kind="stable")
    fresh = np.diff(device[order], prepend=-1) != 0
    before = np.where(fresh, 0, np.concatenate([[0], time[order][:-1]]) if count else time)
    if (since[order] != before + 1).any() or (time < since).any():
        raise FormError("time.npz: the time of a device does not go on from one event to the next")
    if (columns["count"] != turns(device, spot)).any():
        raise FormError("time.npz: count does not tell how often a device has come to an instruction")


def meetings_of(columns: Mapping[str, Array], modules: Sequence[Module], device: Array, spot: Array,
                spots: Sequence[Spot], devices: int) -> list[Meeting]:  # fmt: skip
    """The meetings of the columns; refused where members are not of the group or an event precedes the last arrival."""
    rows, members, met = columns["meetings"], columns["members"], columns["met"]
    within(members, 0, devices, "time.npz: members")
    within(met, 0, len(device), "time.npz: met")
    within(rows[:, :4], 0, 1 << 31, "time.npz: meetings")
    ends = {}
    for name, column, width in (("members", members, 4), ("met", met, 5)):
        within(rows[:, width], 0, len(column) + 1, "time.npz: meetings")
        if rows[:, width].sum() != len(column):
            raise FormError(f"time.npz: meetings have {rows[:, width].sum():,} {name}, and {len(column):,} are there")
        ends[name] = np.cumsum(rows[:, width]).tolist()
    found, first, begun = [], 0, 0
    for row, end, done in zip(rows.tolist(), ends["members"], ends["met"], strict=True):
        instruction = instruction_at(modules, row[:3], "time.npz: meetings")
        meeting = Meeting(instruction, tuple(members[first:end].tolist()), row[3], tuple(met[begun:done].tolist()))
        _check_meeting(meeting, columns["time"], device, [spots[n].instruction for n in spot[met[begun:done]].tolist()])
        found.append(meeting)
        first, begun = end, done
    return found


def _check_meeting(meeting: Meeting, time: Array, device: Array, instructions: Sequence[Instruction]) -> None:
    came = device[list(meeting.events)].tolist() if meeting.events else []
    group = {*meeting.group}
    if len(group) < len(meeting.group) or len({*came}) < len(came) or not group.issuperset(came):
        raise FormError(f"time.npz: {meeting.instruction.name} is met by others than its group, or by one twice")
    if any(int(time[event]) < meeting.time for event in meeting.events):
        raise FormError(f"time.npz: {meeting.instruction.name} is over before all have come")
    collective = collective_in(meeting.instruction)
    for each in instructions:
        other = _met_in(each)
        if collective is None or other is None or base_of(other) != base_of(collective):
            raise FormError(f"time.npz: {each.name} gets no result of {meeting.instruction.name}")


def _met_in(instruction: Instruction) -> Instruction | None:
    """The collective of an event: its instruction, the one that it completes, or the one whose elements it moves."""
    for _ in range(_MOVES):
        if instruction.opcode not in ("reshape", "transpose") or not instruction.operands:
            break
        instruction = instruction.operands[0]
    asked = start_of(instruction) if instruction.opcode in START_OF else instruction
    return None if asked is None else collective_in(asked)


def transfers_of(columns: Mapping[str, Array], device: Array, opcodes: Sequence[str], devices: int) -> list[Transfer]:
    """Values that went from a send on one device to a recv-done on another; `opcodes` are those of the events."""
    rows = columns["transfers"]
    within(rows[:, 1:3], 0, devices, "time.npz: transfers")
    within(rows[:, 3:], 0, len(device), "time.npz: transfers")
    found = [Transfer(*row) for row in rows.tolist()]
    for each in found:
        ends = (each.source, each.target) == (int(device[each.send]), int(device[each.done]))
        if not ends or (opcodes[each.send], opcodes[each.done]) != ("send", "recv_done"):
            raise FormError(f"time.npz: events {each.send} and {each.done} are no send and recv-done of these devices")
    if len({each.done for each in found}) < len(found) or len({each.send for each in found}) < len(found):
        raise FormError("time.npz: transfers name an event twice")
    return found


def check_results(refs: Array, found: Packed, program: Module | ModuleGroup) -> None:
    """Raise FormError unless there is a result for each device, of the shape of the root of its program."""
    devices = program.num_devices
    if len(refs) != devices:
        raise FormError(f"results.npz: there are {len(refs)} results, and {devices} devices")
    within(refs, -1, len(found.kind), "results.npz: refs")
    modules: Any = [program] * devices if isinstance(program, Module) else [program.modules[n] for n in range(devices)]
    for number, (ref, module) in enumerate(zip(refs.tolist(), modules, strict=True)):
        if not found.fits(ref, module.entry.root.shape):
            raise FormError(f"results.npz: the result of device {number} is none of {module.entry.root.shape}")
