"""Reader of the folder of a trace: validates all files when the folder is opened, and reads values on demand.

Sections:

    The index of a trace as JSON
    Validation of columns
    Reader of a trace's folder
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, field

from ..core.attributes import Array
from ..core.graph import Computation, Instruction, KeptSource, Module, ModuleGroup
from ..process.limits import DEEPEST
from ..properties.effects import START_OF, base_of, collective_in, start_of
from .data import Spot, Trace, TracedMeeting, Transfer
from .folder import FORMAT, TraceError
from .forms import FormError, anything, boolean, listed, loads, mapping, number, optional, parts, record, refuse, text
from .pool import POOL, Column, Packed, columns, packed, text_of, within

# ----------------------------------------------------------------------------
# The index of a trace as JSON
#
# Its form, and the check of what it states against the programs.

IDLE = 1 << 16
"""The number by which the devices of a program may exceed the events of its trace."""

_FILES = 10**9 - 1
_WORDS = optional(text)
_DEVICE = number(0, (1 << 31) - 1)
_WAIT = record({"device": _DEVICE, "instruction": text, "waits_for": text, "behind": _WORDS}, anything)
_FAULT = record(
    {"message": text, "explanation": _WORDS, "repair": _WORDS, "note": _WORDS, "cycle": listed(_WAIT)}, anything
)
_VERDICT = record(
    {"kind": text, "refused": boolean, "text": text, "findings": listed(_FAULT),
     "repair": optional(record({"text": text}, anything))}, anything,
)  # fmt: skip
_STATE = record(
    {"device": _DEVICE, "ended": boolean, "stands_at": _WORDS, "instruction": _WORDS, "waits_for": _WORDS,
     "missing": listed(_DEVICE), "trips": listed(number()), "source": _WORDS, "cause": boolean}, anything,
)  # fmt: skip
_STOP = record(
    {"kind": text, "message": text, "text": text, "cause": _WORDS, "let_through": _WORDS, "repair": _WORDS,
     "parting": listed(text), "devices": listed(_STATE)}, anything,
)  # fmt: skip
_FINDING = record(
    {"kind": text, "what": text, "text": text, "event": optional(number()), "index": optional(listed(number())),
     "values": mapping(text), "further": number(), "device": _DEVICE}, anything,
)  # fmt: skip
_SPOT = record(
    {"at": listed(number(), 3), "path": listed(text),
     "source": optional(parts(text, number(-(1 << 31)), text, text))},
)  # fmt: skip
_BEGUN = {
    "format": text, "finished": boolean, "programs": number(1, _FILES), "group": optional(mapping(number())),
    "events": number(), "chunks": number(0, _FILES), "spots": listed(_SPOT), "verdict": optional(_VERDICT),
}  # fmt: skip
_ENDED = {"stop": optional(_STOP), "left_out": text, "findings": listed(_FINDING), "results": boolean}


def read_index(place: Path) -> dict[str, Any]:
    """The index of a folder; FormError where it does not have the form of an index."""
    index: Any = loads(text_of(place / "index.json"), "index.json")
    if not isinstance(index, dict) or index.get("format") != FORMAT:
        raise FormError(f"index.json has an unknown format; expected {FORMAT!r}")
    boolean(index.get("finished"), "index.finished")
    record(_BEGUN | _ENDED if index["finished"] else _BEGUN)(index, "index")
    return index


def program_of(modules: Sequence[Module], group: Mapping[str, int] | None, events: int) -> Module | ModuleGroup:
    """The program of all devices; FormError where devices are missing, or far outnumber the events."""
    if group is None:
        if len(modules) > 1:
            raise FormError(f"index.group is null, but the trace has {len(modules)} programs")
        program: Module | ModuleGroup = modules[0]
    else:
        if [*group] != [str(device) for device in range(len(group))] or not group:
            raise FormError("index.group must list the devices 0, 1, 2 and so on")
        for device, which in group.items():
            number(0, len(modules) - 1)(which, f"index.group[{device}]")
        program = ModuleGroup({int(device): modules[which] for device, which in group.items()})
    if program.num_devices > events + IDLE:
        raise FormError(f"the program is for {program.num_devices:,} devices, but the trace has only {events:,} events")
    return program


def instruction_at(modules: Sequence[Module], at: Sequence[int], where: str) -> Instruction:
    """The instruction at a place, given by the numbers of the program, the computation and the row."""
    module, computation, row = at
    number(0, len(modules) - 1)(module, f"{where}[0]")
    computations = modules[module].computations
    number(0, len(computations) - 1)(computation, f"{where}[1]")
    instructions = computations[computation].instructions
    number(0, len(instructions) - 1)(row, f"{where}[2]")
    return instructions[row]


def spots_of(modules: Sequence[Module], told: Sequence[Mapping[str, Any]]) -> list[Spot]:
    """The spots of an index in the loaded programs; source lines are those of the program that was run."""
    paths = Paths(modules)
    found = []
    for place, each in enumerate(told):
        where = f"index.spots[{place}]"
        instruction = instruction_at(modules, each["at"], f"{where}.at")
        paths.check(each["at"][0], tuple(each["path"]), instruction, f"{where}.path")
        if each["source"]:
            object.__setattr__(instruction, "where", KeptSource(*each["source"]))
        found.append(Spot(instruction, tuple(each["path"])))
    return found


class Paths:
    """The computations that the calls of a path lead to, each path looked up once."""

    def __init__(self, modules: Sequence[Module]) -> None:
        self.modules = modules
        self._known: dict[tuple[int, tuple[str, ...]], frozenset[Computation]] = {}
        self._homes: dict[Computation, frozenset[Instruction]] = {}

    def check(self, module: int, path: tuple[str, ...], instruction: Instruction, where: str) -> None:
        """FormError where a path does not lead to an instruction."""
        if len(path) > DEEPEST:
            raise FormError(f"{where} has {len(path)} calls; at most {DEEPEST} are allowed")
        if not any(instruction in self._home(each) for each in self._reached(module, path)):
            raise refuse(where, " in ".join(reversed(path)), f"a path to {instruction.name}")

    def _home(self, computation: Computation) -> frozenset[Instruction]:
        if computation not in self._homes:
            self._homes[computation] = frozenset(computation.instructions)
        return self._homes[computation]

    def _reached(self, module: int, path: tuple[str, ...]) -> frozenset[Computation]:
        """The computations at the end of a path; each prefix of the path is looked up once."""
        done = next(n for n in range(len(path), -1, -1) if n == 0 or (module, path[:n]) in self._known)
        found = self._known[module, path[:done]] if done else frozenset({self.modules[module].entry})
        for end in range(done, len(path)):
            found = frozenset(called for each in found for called in _called(each, path[end]))
            self._known[module, path[: end + 1]] = found
        return found


def _called(computation: Computation, label: str) -> Iterable[Computation]:
    """The computations that an instruction calls, given by its label in a path."""
    name, _, branch = label.partition(" branch ")
    instruction = computation._by_name.get(name)
    if instruction is None:
        return ()
    if not branch:
        return instruction.called
    return instruction.called[int(branch) :][:1] if branch.isdecimal() and len(branch) < 10 else ()


def check_told(index: Mapping[str, Any], devices: int) -> None:
    """Raise FormError unless the report of a stop names existing devices, each once."""
    states = [state["device"] for state in (index.get("stop") or {}).get("devices", ())]
    if len({*states}) < len(states) or any(device >= devices for device in states):
        raise FormError(f"index.stop.devices lists a device twice, or more devices than the program has: {devices}")


# ----------------------------------------------------------------------------
# Validation of columns
#
# The order of events, growing times, meetings whose members are in the group.

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
        raise FormError(f"event {at} on device {device[at]} refers to an instruction in a different program")


def check_refs(refs: Array, begin: int, end: int, values: int, where: str) -> None:
    """Raise FormError unless refs names events of a chunk in ascending order, each with an existing value."""
    within(refs[:, 0], begin, end, f"{where}: events of refs")
    within(refs[:, 1], 0, values, f"{where}: values of refs")
    if (np.diff(refs[:, 0]) <= 0).any():
        raise FormError(f"{where}: refs must list each event once, in order")


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
    for row in (*np.flatnonzero(~is_tuple)[firsts].tolist(), *np.flatnonzero(is_tuple).tolist()):
        place, ref = pairs[row].tolist()
        instruction = spots[place].instruction
        if not found.fits(ref, instruction.shape):
            raise FormError(
                f"{where}: value {ref} of event {refs[row, 0]} does not have the shape of {instruction.name}, "
                f"{instruction.shape}"
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
            raise FormError(f"time.npz: {name} has {len(columns[name]):,} events, but the chunks have {count:,}")
    time, since = columns["time"], columns["since"]
    within(time, 1, 2 * count + 3, "time.npz: time")  # an event is at most two steps after another that there is
    order = np.argsort(device, kind="stable")
    fresh = np.diff(device[order], prepend=-1) != 0
    before = np.where(fresh, 0, np.concatenate([[0], time[order][:-1]]) if count else time)
    if (since[order] != before + 1).any() or (time < since).any():
        raise FormError("time.npz: the time of a device does not increase from one event to the next")
    if (columns["count"] != turns(device, spot)).any():
        raise FormError("time.npz: count must be the number of times that a device has reached an instruction")


def meetings_of(columns: Mapping[str, Array], modules: Sequence[Module], device: Array, spot: Array,
                spots: Sequence[Spot], devices: int) -> list[TracedMeeting]:  # fmt: skip
    """The meetings of the columns; refused where members are not of the group or an event precedes the last arrival."""
    rows, members, met = columns["meetings"], columns["members"], columns["met"]
    within(members, 0, devices, "time.npz: members")
    within(met, 0, len(device), "time.npz: met")
    within(rows[:, :4], 0, 1 << 31, "time.npz: meetings")
    ends = {}
    for name, column, width in (("members", members, 4), ("met", met, 5)):
        within(rows[:, width], 0, len(column) + 1, "time.npz: meetings")
        if rows[:, width].sum() != len(column):
            counted = f"{rows[:, width].sum():,}"
            raise FormError(f"time.npz: meetings counts {counted} entries of {name}, but {name} has {len(column):,}")
        ends[name] = np.cumsum(rows[:, width]).tolist()
    found, first, begun = [], 0, 0
    for row, end, done in zip(rows.tolist(), ends["members"], ends["met"], strict=True):
        instruction = instruction_at(modules, row[:3], "time.npz: meetings")
        meeting = TracedMeeting(
            instruction, tuple(members[first:end].tolist()), row[3], tuple(met[begun:done].tolist())
        )
        _check_meeting(meeting, columns["time"], device, [spots[n].instruction for n in spot[met[begun:done]].tolist()])
        found.append(meeting)
        first, begun = end, done
    return found


def _check_meeting(meeting: TracedMeeting, time: Array, device: Array, instructions: Sequence[Instruction]) -> None:
    came = device[list(meeting.events)].tolist() if meeting.events else []
    group = {*meeting.group}
    if len(group) < len(meeting.group) or len({*came}) < len(came) or not group.issuperset(came):
        raise FormError(
            f"time.npz: {meeting.instruction.name} has a participant outside its group, or lists a participant twice"
        )
    if any(int(time[event]) < meeting.time for event in meeting.events):
        raise FormError(f"time.npz: {meeting.instruction.name} ends before all participants have reached it")
    collective = collective_in(meeting.instruction)
    for each in instructions:
        other = _met_in(each)
        if collective is None or other is None or base_of(other) != base_of(collective):
            raise FormError(f"time.npz: {each.name} does not return the result of {meeting.instruction.name}")


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
            raise FormError(
                f"time.npz: events {each.send} and {each.done} are not a send and recv-done of these devices"
            )
    if len({each.done for each in found}) < len(found) or len({each.send for each in found}) < len(found):
        raise FormError("time.npz: transfers contains an event twice")
    return found


def check_results(refs: Array, found: Packed, program: Module | ModuleGroup) -> None:
    """Raise FormError unless there is a result for each device, of the shape of the root of its program."""
    devices = program.num_devices
    if len(refs) != devices:
        raise FormError(f"results.npz: expected {devices} results, one for each device, got {len(refs)}")
    within(refs, -1, len(found.kind), "results.npz: refs")
    modules: Any = [program] * devices if isinstance(program, Module) else [program.modules[n] for n in range(devices)]
    for device, (ref, module) in enumerate(zip(refs.tolist(), modules, strict=True)):
        if not found.fits(ref, module.entry.root.shape):
            raise FormError(f"results.npz: the result of device {device} does not have shape {module.entry.root.shape}")


# ----------------------------------------------------------------------------
# Reader of a trace's folder
#
# All files are validated when the folder is opened; values are read on demand.

_HELD = 4
"""The greatest number of chunks of values in memory."""

_INTERRUPTED = (
    "the run was interrupted or is still running: events after the last chunk are missing, and the times of "
    "different devices are not comparable"
)


def load(folder: str | os.PathLike[str]) -> Trace:
    """The trace of a folder; that of an interrupted run as far as it was written. TraceError where there is none."""
    place = Path(folder)
    try:
        return _loaded(place, read_index(place))
    except FileNotFoundError as error:
        name = Path(error.filename).name
        why = "index.json is missing" if name == "index.json" else f"{name} is missing, although index.json lists it"
        raise TraceError(f"{os.fspath(place)!r} is not a trace: {why}") from None
    except NotADirectoryError:
        raise TraceError(f"{os.fspath(place)!r} is a file; expected the folder of a trace") from None
    except OSError as error:
        where = error.filename or os.fspath(place)
        raise TraceError(f"{os.fspath(place)!r} is not a readable trace: {where}: {error.strerror}") from None
    except (RecursionError, MemoryError):
        raise TraceError(f"the trace in {os.fspath(place)!r} does not fit in memory") from None
    except ValueError as error:  # FormError, or an error of the reader of HLO text
        raise TraceError(f"{os.fspath(place)!r} is not a readable trace: {error}") from error


def _loaded(place: Path, index: dict[str, Any]) -> Trace:
    is_finished = index["finished"]
    _check_files(place, index)
    modules = [_module(place / f"program-{number}.hlo") for number in range(index["programs"])]
    program = program_of(modules, index["group"], index["events"])
    check_told(index, program.num_devices)
    spots = spots_of(modules, index["spots"])
    values = Chunks(place, index["chunks"])
    device, spot = values.checked(spots, index["events"])
    check_events(device, spot, spots, program)
    times = _times(place, modules, device, spot, spots, program.num_devices) if is_finished else _own(device, spot)
    _check_findings(index.get("findings", ()), device)
    return Trace(
        program,
        spots,
        device,
        spot,
        **times,
        values=values,
        left_out=index["left_out"] if is_finished else _INTERRUPTED,
        verdict=index["verdict"],
        stop=index.get("stop"),
        findings=index.get("findings", ()),
        results=_results(place, program) if is_finished and index["results"] else None,
    )


def _check_files(place: Path, index: Mapping[str, Any]) -> None:
    """Raise FormError where a finished trace has files of chunks or programs that its index does not count."""
    for name in os.listdir(place) if index["finished"] else ():
        match = re.fullmatch(r"(program|chunk)-(\d{1,9})\.(?:hlo|npz)", name)
        if match and int(match[2]) >= index[f"{match[1]}s"]:
            raise FormError(f"{name} exists, but index.json lists only {index[f'{match[1]}s']} {match[1]}s")


def _module(path: Path) -> Module:
    from ..text.reader import parse_hlo

    return parse_hlo(text_of(path), path.name)


def _own(device: Array, spot: Array) -> dict[str, Any]:
    """The times of an interrupted run, in which each device counts its own events."""
    time = own_time(device)
    return {"time": time, "since": time, "count": turns(device, spot)}


def _times(
    place: Path, modules: Sequence[Module], device: Array, spot: Array, spots: Sequence[Spot], devices: int
) -> dict[str, Any]:
    found: dict[str, Any] = columns(place / "time.npz", TIME)
    check_time(found, device, spot)
    opcodes = [each.instruction.opcode for each in spots]
    of_events = [opcodes[number] for number in spot.tolist()] if len(found["transfers"]) else []
    return {
        **{name: found[name] for name in ("time", "since", "count")},
        "meetings": meetings_of(found, modules, device, spot, spots, devices),
        "transfers": transfers_of(found, device, of_events, devices),
    }


def _check_findings(findings: Sequence[Mapping[str, Any]], device: Array) -> None:
    """Raise FormError unless the event of each finding is of the device of the finding."""
    for place, each in enumerate(findings):
        event = each["event"]
        if event is not None and (event >= len(device) or int(device[event]) != each["device"]):
            raise FormError(f"index.findings[{place}].event is {event}; expected an event of its device")


def _results(place: Path, program: Any) -> list[Any]:
    found = columns(place / "results.npz", {"refs": Column(np.int64), **POOL})
    values = packed(found, "results.npz")
    check_results(found["refs"], values, program)
    return [None if ref < 0 else values[ref] for ref in found["refs"].tolist()]


def values_of(folder: Path, count: int) -> Chunks:
    """The values of a trace of `count` chunks that this process has written itself."""
    found = Chunks(folder, count)
    for chunk in range(count):
        found.note(chunk, columns(found.path(chunk), CHUNK | POOL)["refs"])
    return found


@define(eq=False)
class Chunks(Mapping[int, Any]):
    """The values of a trace by number of the event; a few chunks are in memory at a time."""

    folder: Path
    count: int
    _where: dict[int, tuple[int, int]] = field(factory=dict)
    _held: OrderedDict[int, Packed] = field(factory=OrderedDict)

    def path(self, number: int) -> Path:
        return self.folder / f"chunk-{number:05}.npz"

    def note(self, number: int, refs: Array) -> None:
        """Record the events whose values a chunk holds."""
        self._where |= {event: (number, ref) for event, ref in refs.tolist()}

    def checked(self, spots: Sequence[Spot], events: int) -> tuple[Array, Array]:
        """The devices and spots of all events; FormError where a chunk is invalid."""
        devices, sites, begin = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)], 0
        for chunk in range(self.count):
            found, where = columns(self.path(chunk), CHUNK | POOL), self.path(chunk).name
            values = packed(found, where)
            end = begin + len(found["device"])
            if len(found["spot"]) != len(found["device"]):
                raise FormError(f"{where}: the columns `device` and `spot` have different numbers of entries")
            check_refs(found["refs"], begin, end, len(values.kind), where)
            check_values(found, values, begin, spots, where)
            self.note(chunk, found["refs"])
            devices.append(found["device"])
            sites.append(found["spot"])
            begin = end
        if begin != events:
            raise FormError(f"index.events is {events:,}, but the chunks have {begin:,}")
        return np.concatenate(devices), np.concatenate(sites)

    def __getitem__(self, event: int) -> Any:
        chunk, ref = self._where[event]
        values = self._held.pop(chunk, None)
        if values is None:
            values = self._read(chunk)
        self._held[chunk] = values
        while len(self._held) > _HELD:
            self._held.popitem(last=False)
        return values[ref]

    def _read(self, chunk: int) -> Packed:
        path = self.path(chunk)
        try:
            return packed(columns(path, CHUNK | POOL), path.name)
        except (FormError, OSError) as error:
            raise TraceError(f"{os.fspath(path)!r} has changed since the trace was opened: {error}") from None

    def __iter__(self) -> Iterator[int]:
        return iter(self._where)

    def __len__(self) -> int:
        return len(self._where)
