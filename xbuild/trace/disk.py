"""Traces in a folder: an index as JSON, the programs as HLO text, the rest in chunks, written as they come."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, field

from shape_inference.escaping import Harmless

from ..archive import replacing
from ..attributes import Array
from ..graph import Instruction, Module, ModuleGroup
from .data import Spot, Trace
from .pool import Pool

FORMAT = "xbuild trace 1"


class TraceError(Harmless):
    """A folder holds no trace that can be read, or other things than a trace."""


@define(eq=False)
class Writer:
    """Writes a trace as it grows; after each chunk the folder is a trace that can be read, up to there."""

    folder: Path = field(converter=Path)
    index: dict[str, Any] = field(factory=dict)
    _places: dict[Instruction, tuple[int, int, int]] = field(factory=dict)

    def begin(self, program: Module | ModuleGroup, verdict: Mapping[str, Any] | None) -> None:
        """Take the place of an earlier trace; TraceError where other files are in the folder."""
        _emptied(self.folder)
        modules = [program] if isinstance(program, Module) else list(dict.fromkeys(program.modules.values()))
        for number, module in enumerate(modules):
            text = module.to_hlo(metadata=True)
            with replacing(self.folder / f"program-{number}.hlo") as file:
                file.write(text.encode())
            for place, computation in enumerate(module.computations):
                for row, instruction in enumerate(computation.instructions):
                    self._places[instruction] = number, place, row
        group = None if isinstance(program, Module) else {d: modules.index(m) for d, m in program.modules.items()}
        self.index = {
            "format": FORMAT, "finished": False, "programs": len(modules), "group": group, "events": 0, "chunks": 0,
            "spots": [], "verdict": None if verdict is None else dict(verdict),
        }  # fmt: skip
        self._write_index()

    def chunk(self, device: Array, spot: Array, spots: Sequence[Spot], values: Mapping[int, Any]) -> None:
        """More events: two columns, all spots so far, and values by number of the event."""
        index = self.index
        pool = Pool()
        refs = np.array([(number, pool.add(value)) for number, value in values.items()], np.int64).reshape(-1, 2)
        columns = {"device": device.astype(np.int32), "spot": spot.astype(np.int32), "refs": refs, **_columns(pool)}
        self._write(f"chunk-{index['chunks']:05}.npz", columns)
        index["spots"] += [self._spot(each) for each in spots[len(index["spots"]) :]]
        index["chunks"] += 1
        index["events"] += len(device)
        self._write_index()

    def _spot(self, spot: Spot) -> dict[str, Any]:
        source = spot.instruction.source
        told = None if source is None else [source.file, source.line, source.function]
        return {"at": self._places[spot.instruction], "path": spot.path, "source": told}

    def end(self, trace: Trace) -> None:
        """Logical time, who met whom, how it ended."""
        times = {"time": trace.time, "since": trace.since, "count": trace.count}
        self._write("time.npz", {**times, **self._met(trace)})
        if trace.results is not None:
            pool = Pool()
            refs = [pool.add(each) for each in trace.results]
            self._write("results.npz", {"refs": np.array(refs, np.int64), **_columns(pool)})
        told = {"stop": trace.stop, "left_out": trace.left_out, "findings": trace.findings, "finished": True}
        self.index |= told
        self._write_index()

    def _met(self, trace: Trace) -> dict[str, Array]:
        """Meetings and transfers in columns; groups and events one after the other."""
        meetings = trace.meetings
        rows = [(*self._places[m.instruction], m.time, len(m.group), len(m.events)) for m in meetings]
        members = [device for meeting in meetings for device in meeting.group]
        events = [event for meeting in meetings for event in meeting.events]
        transfers = [(t.channel, t.source, t.target, t.send, t.done) for t in trace.transfers]
        return {
            "meetings": np.array(rows, np.int64).reshape(-1, 6),
            "members": np.array(members, np.int64),
            "met": np.array(events, np.int64),
            "transfers": np.array(transfers, np.int64).reshape(-1, 5),
        }

    def _write(self, name: str, columns: Mapping[str, Any]) -> None:
        with replacing(self.folder / name) as file:
            np.savez(file, **columns)

    def _write_index(self) -> None:
        with replacing(self.folder / "index.json") as file:
            file.write(json.dumps(self.index).encode())


def _columns(pool: Pool) -> dict[str, Array]:
    kind, at, letters = pool.columns
    return {"kinds": np.array(json.dumps(pool.kinds)), "kind": kind, "at": at, "letters": letters}


def _emptied(folder: Path) -> None:
    """An empty folder, where there is none or an older trace stands."""
    folder.mkdir(parents=True, exist_ok=True)
    names = sorted(os.listdir(folder))
    if names and not is_trace(folder):
        where = os.fspath(folder)
        raise TraceError(f"{where!r} is no trace, and holds {names[0]!r}: a trace wants a folder of its own")
    for name in sorted(names, key=lambda name: name != "index.json"):
        if name == "index.json" or name.endswith((".npz", ".hlo")):
            os.unlink(folder / name)


def is_trace(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a trace."""
    return Path(folder, "index.json").is_file()


def save(trace: Trace, folder: str | os.PathLike[str]) -> Path:
    """Write a whole trace."""
    writer = Writer(Path(folder))
    writer.begin(trace.program, trace.verdict)
    writer.chunk(np.asarray(trace.device), np.asarray(trace.spot), trace.spots, trace.values)
    writer.end(trace)
    return writer.folder
