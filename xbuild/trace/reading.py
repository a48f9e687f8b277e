"""A trace that stands in a folder, read back: columns at once, values when they are asked for."""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, field

from ..archive import ArchiveError, opened
from ..attributes import Array
from ..graph import Instruction, KeptSource, Module, ModuleGroup
from .data import Meeting, Spot, Trace, Transfer
from .disk import FORMAT, TraceError
from .pool import Packed

_HELD = 4
"""How many chunks of values are held at a time."""

_INTERRUPTED = (
    "the run was cut off, or still goes on: what came after the last chunk is missing, and time is each device's own"
)


def load(folder: str | os.PathLike[str]) -> Trace:
    """The trace of a folder; one that was cut off is read as far as it goes. TraceError where there is none."""
    place = Path(folder)
    try:
        return _loaded(place, _index(place))
    except (ArchiveError, OSError, KeyError, IndexError, TypeError, ValueError) as error:
        why = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else error
        raise TraceError(f"{os.fspath(place)!r} holds no trace that can be read: {why}") from error


def _index(place: Path) -> dict[str, Any]:
    try:
        index: dict[str, Any] = json.loads((place / "index.json").read_bytes())
    except FileNotFoundError:
        raise TraceError(f"{os.fspath(place)!r} holds no trace: there is no index.json") from None
    except NotADirectoryError:
        raise TraceError(f"{os.fspath(place)!r} is a file, and a trace is a folder") from None
    except ValueError:
        raise TraceError(f"{os.fspath(place)!r} holds no trace that can be read: index.json is no JSON") from None
    if not isinstance(index, dict) or index.get("format") != FORMAT:
        raise TraceError(f"{os.fspath(place)!r} holds no trace of this form: {FORMAT!r} is read")
    return index


def _loaded(place: Path, index: dict[str, Any]) -> Trace:
    modules = [_module(place / f"program-{number}.hlo") for number in range(index["programs"])]
    group = index["group"]
    program = modules[0] if group is None else ModuleGroup({int(d): modules[n] for d, n in group.items()})
    spots = [_spot(modules, each) for each in index["spots"]]
    values = Chunks(place, index["chunks"])
    device, spot = values.columns()
    time = _time(place, modules, device) if index["finished"] else _own_time(device, spot)
    left_out = index.get("left_out", _INTERRUPTED)
    return Trace(
        program,
        spots,
        device,
        spot,
        **time,
        values=values,
        left_out=left_out,
        verdict=index["verdict"],
        stop=index.get("stop"),
        findings=index.get("findings") or (),
        results=_results(place),
    )


def _module(path: Path) -> Module:
    from ..text.reader import parse_hlo

    return parse_hlo(path.read_text(encoding="utf-8"))


def _at(modules: Sequence[Module], at: Sequence[int]) -> Instruction:
    module, computation, row = at
    return modules[module].computations[computation].instructions[row]


def _spot(modules: Sequence[Module], told: Mapping[str, Any]) -> Spot:
    """The spot in the program that was read; its lines are those of the program that was run."""
    instruction = _at(modules, told["at"])
    if told["source"]:
        object.__setattr__(instruction, "where", KeptSource(*told["source"]))
    return Spot(instruction, tuple(told["path"]))


def _own_time(device: Array, spot: Array) -> dict[str, Array]:
    """Each device counts its own events."""
    time = np.empty(len(device), np.int64)
    for number in np.unique(device):
        of_it = device == number
        time[of_it] = np.arange(1, of_it.sum() + 1)
    seen: dict[tuple[int, int], int] = {}
    count = np.empty(len(device), np.int64)
    for number, site in enumerate(zip(device.tolist(), spot.tolist(), strict=True)):
        count[number] = seen[site] = seen.get(site, -1) + 1
    return {"time": time, "since": time, "count": count}


def _time(place: Path, modules: Sequence[Module], device: Array) -> dict[str, Any]:
    with opened(place / "time.npz") as file:
        columns = {name: file[name] for name in file.files}
    found: dict[str, Any] = {name: columns[name] for name in ("time", "since", "count")}
    if any(len(column) != len(device) for column in found.values()):
        raise ValueError(f"time.npz is of {len(columns['time'])} events, the chunks have {len(device)}")
    rows = columns["meetings"]
    groups, events = (_parts(columns[name], rows[:, width]) for name, width in (("members", 4), ("met", 5)))
    found["meetings"] = [
        Meeting(_at(modules, row[:3]), group, row[3], met)
        for row, group, met in zip(rows.tolist(), groups, events, strict=True)
    ]
    found["transfers"] = [Transfer(*row) for row in columns["transfers"].tolist()]
    return found


def _parts(column: Array, lengths: Array) -> list[tuple[int, ...]]:
    ends = [*accumulate(lengths.tolist(), initial=0)]
    numbers = column.tolist()
    return [tuple(numbers[a:b]) for a, b in pairwise(ends)]


def _results(place: Path) -> list[Any] | None:
    if not (place / "results.npz").exists():
        return None
    with opened(place / "results.npz") as file:
        packed = _packed(file)
        return [None if ref < 0 else packed[ref] for ref in file["refs"].tolist()]


def _packed(file: Any) -> Packed:
    return Packed(json.loads(str(file["kinds"])), file["kind"], file["at"], file["letters"])


def values_of(folder: Path) -> Chunks:
    """The values of a trace that this process has written."""
    found = Chunks(folder, _index(folder)["chunks"])
    found.columns()
    return found


@define(eq=False)
class Chunks(Mapping[int, Any]):
    """The values of a trace by number of the event; a few chunks of them are in memory at a time."""

    folder: Path
    count: int
    _where: dict[int, tuple[int, int]] = field(factory=dict)
    _held: OrderedDict[int, Packed] = field(factory=OrderedDict)

    def _path(self, number: int) -> Path:
        return self.folder / f"chunk-{number:05}.npz"

    def columns(self) -> tuple[Array, Array]:
        """Devices and spots of all events; notes on the way where the values are."""
        devices, spots = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
        for number in range(self.count):
            with opened(self._path(number)) as file:
                devices.append(file["device"])
                spots.append(file["spot"])
                self._where |= {event: (number, ref) for event, ref in file["refs"].tolist()}
        return np.concatenate(devices), np.concatenate(spots)

    def __getitem__(self, event: int) -> Any:
        chunk, ref = self._where[event]
        packed = self._held.pop(chunk, None)
        if packed is None:
            with opened(self._path(chunk)) as file:
                packed = _packed(file)
        self._held[chunk] = packed
        while len(self._held) > _HELD:
            self._held.popitem(last=False)
        return packed[ref]

    def __iter__(self) -> Iterator[int]:
        return iter(self._where)

    def __len__(self) -> int:
        return len(self._where)
