"""Reader of the folder of a trace: all files are validated when the folder is opened, and values are read on demand."""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, field

from ..core.attributes import Array
from ..core.graph import Module
from .checking import (
    CHUNK,
    TIME,
    check_events,
    check_refs,
    check_results,
    check_time,
    check_values,
    meetings_of,
    own_time,
    transfers_of,
    turns,
)  # fmt: skip
from .columns import Column, columns, text_of
from .data import Spot, Trace
from .folder import TraceError
from .forms import FormError
from .index import check_told, program_of, read_index, spots_of
from .packed import POOL, Packed, packed

_HELD = 4
"""The greatest number of chunks of values in memory."""

_INTERRUPTED = (
    "the run was cut off, or still goes on: what came after the last chunk is missing, and time is each device's own"
)


def load(folder: str | os.PathLike[str]) -> Trace:
    """The trace of a folder; that of an interrupted run as far as it was written. TraceError where there is none."""
    place = Path(folder)
    try:
        return _loaded(place, read_index(place))
    except FileNotFoundError as error:
        name = Path(error.filename).name
        why = "there is no index.json" if name == "index.json" else f"there is no {name}, which index.json tells of"
        raise TraceError(f"{os.fspath(place)!r} holds no trace: {why}") from None
    except NotADirectoryError:
        raise TraceError(f"{os.fspath(place)!r} is a file, and a trace is a folder") from None
    except OSError as error:
        where = error.filename or os.fspath(place)
        raise TraceError(f"{os.fspath(place)!r} holds no trace that can be read: {where}: {error.strerror}") from None
    except (RecursionError, MemoryError):
        raise TraceError(f"{os.fspath(place)!r} holds a trace that takes more memory than there is") from None
    except ValueError as error:  # FormError, or an error of the reader of HLO text
        raise TraceError(f"{os.fspath(place)!r} holds no trace that can be read: {error}") from error


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
            raise FormError(f"{name} is there, and index.json tells of {index[f'{match[1]}s']} {match[1]}s")


def _module(path: Path) -> Module:
    from ..text.reading.reader import parse_hlo

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
            raise FormError(f"index.findings[{place}].event is {event}, and an event of its device is wanted")


def _results(place: Path, program: Any) -> list[Any]:
    found = columns(place / "results.npz", {"refs": Column(np.int64), **POOL})
    values = packed(found, "results.npz")
    check_results(found["refs"], values, program)
    return [None if ref < 0 else values[ref] for ref in found["refs"].tolist()]


def values_of(folder: Path, count: int) -> Chunks:
    """The values of a trace of `count` chunks that this process has written itself."""
    found = Chunks(folder, count)
    for number in range(count):
        found.note(number, columns(found.path(number), CHUNK | POOL)["refs"])
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
        for number in range(self.count):
            found, where = columns(self.path(number), CHUNK | POOL), self.path(number).name
            values = packed(found, where)
            end = begin + len(found["device"])
            if len(found["spot"]) != len(found["device"]):
                raise FormError(f"{where}: device and spot are not of as many events")
            check_refs(found["refs"], begin, end, len(values.kind), where)
            check_values(found, values, begin, spots, where)
            self.note(number, found["refs"])
            devices.append(found["device"])
            sites.append(found["spot"])
            begin = end
        if begin != events:
            raise FormError(f"index.events is {events:,}, and the chunks have {begin:,}")
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
