"""Places of instructions in a program's HLO text, which reorders computations and expands some instructions."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, TypeAlias

import numpy as np
from attrs import define, field, frozen

from ..core.attributes import Array
from ..core.graph import Computation, Instruction, Module, ModuleGroup
from ..core.source_lines import line_of
from ..text.expansion import expansion
from .data import Spot, Trace
from .folder import FORMAT, Folder, TraceError
from .pool import Pool, fits

# ----------------------------------------------------------------------------
# Places of instructions in a program's HLO text, which reorders computations and expands some instructions.

RowNumber: TypeAlias = tuple[int, int]
"""The number of a computation, and the row in it."""


@frozen(eq=False)
class ResultPlaces:
    """For each instruction the place of its result and, where it is a collective, that of the collective itself."""

    result: Mapping[Instruction, RowNumber]
    met: Mapping[Instruction, RowNumber]

    @staticmethod
    def of(program: Module, read: Module) -> ResultPlaces:
        """The places of a program in the module that was read from its text."""
        number = {computation: place for place, computation in enumerate(read.computations)}
        found = ResultPlaces({}, {})
        stack, seen = [(program.entry, read.entry)], {program.entry}
        while stack:
            ours, theirs = stack.pop()
            for instruction, result, met in _rows(ours, theirs):
                found.result[instruction] = number[theirs], result  # type: ignore[index]
                found.met[instruction] = number[theirs], met  # type: ignore[index]
                for pair in zip(instruction.called, theirs.instructions[met].called, strict=False):
                    if pair[0] not in seen:
                        seen.add(pair[0])
                        stack.append(pair)
        return found


def _rows(ours: Computation, theirs: Computation) -> Iterator[tuple[Instruction, int, int]]:
    parts = [expansion(each) for each in ours.instructions]
    if [part.opcode for each in parts for part in each] != [each.opcode for each in theirs.instructions]:
        yield from _wrapped(ours, theirs)
        return
    row = 0
    for instruction, several in zip(ours.instructions, parts, strict=True):
        met = next((n for n, part in enumerate(several) if part.opcode == instruction.opcode), 0)
        yield instruction, row + len(several) - 1, row + met
        row += len(several)


def _wrapped(ours: Computation, theirs: Computation) -> Iterator[tuple[Instruction, int, int]]:
    """The places in a computation that an async-start wraps: HLO text writes only its root, after its parameters."""
    row = {instruction: place for place, instruction in enumerate(theirs.instructions)}
    for mine, other in [(ours.root, theirs.root), *zip(ours.parameters, theirs.parameters, strict=False)]:
        yield mine, row[other], row[other]


# ----------------------------------------------------------------------------
# Traces on disk: a folder with an index as JSON, the programs as HLO text, and events and values in chunks.

LINE = 400
"""The greatest number of characters that are kept of a line of the user's program."""


@define(eq=False)
class TraceWriter:
    """Writes a trace while it grows; after each chunk the folder holds a readable trace up to this chunk."""

    folder: Path = field(converter=Path)
    index: dict[str, Any] = field(factory=dict)
    _place: Folder | None = None
    _places: dict[Instruction, tuple[int, int, int]] = field(factory=dict)
    _met: dict[Instruction, tuple[int, int, int]] = field(factory=dict)

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Release the folder."""
        if self._place is not None:
            self._place.close()

    def begin(self, program: Module | ModuleGroup, verdict: Mapping[str, Any] | None) -> None:
        """Replace an earlier trace; TraceError where the folder holds other files, or another run writes to it."""
        from ..text.reader import parse_hlo

        self._place = Folder.claim(self.folder)
        modules = [program] if isinstance(program, Module) else list(dict.fromkeys(program.modules.values()))
        for number, module in enumerate(modules):
            text = module.to_hlo(metadata=True).encode(errors="replace")
            self._write_bytes(f"program-{number}.hlo", text)
            places = ResultPlaces.of(module, parse_hlo(text))
            self._places |= {each: (number, *place) for each, place in places.result.items()}
            self._met |= {each: (number, *place) for each, place in places.met.items()}
        group = None if isinstance(program, Module) else {d: modules.index(m) for d, m in program.modules.items()}
        self.index = {
            "format": FORMAT, "finished": False, "programs": len(modules), "group": group, "events": 0, "chunks": 0,
            "spots": [], "verdict": None if verdict is None else dict(verdict),
        }  # fmt: skip
        self._write_index()

    def chunk(self, device: Array, spot: Array, spots: Sequence[Spot], values: Mapping[int, Any]) -> None:
        """Write a chunk of events: devices, spots, the list of all spots so far, and values by number of the event."""
        index = self.index
        if (index["verdict"] or {}).get("refused"):
            values = self._fitting(spot, spots, values)
        pool = Pool()
        refs = np.array([(number, pool.add(value)) for number, value in values.items()], np.int64).reshape(-1, 2)
        columns = {"device": device.astype(np.int32), "spot": spot.astype(np.int32), "refs": refs, **_columns(pool)}
        self._write_columns(f"chunk-{index['chunks']:05}.npz", columns)
        index["spots"] += [self._spot(each) for each in spots[len(index["spots"]) :]]
        index["chunks"] += 1
        index["events"] += len(device)
        self._write_index()

    def _fitting(self, spot: Array, spots: Sequence[Spot], values: Mapping[int, Any]) -> Mapping[int, Any]:
        """The values that fit the shapes of their instructions; those of a refused program may not."""
        begin = self.index["events"]
        return {n: value for n, value in values.items() if fits(value, spots[int(spot[n - begin])].instruction.shape)}

    def _spot(self, spot: Spot) -> dict[str, Any]:
        source = spot.instruction.source
        told = None if source is None else [source.file, source.line, source.function, line_of(spot.instruction)[:LINE]]
        return {"at": self._places[spot.instruction], "path": spot.path, "source": told}

    def end(self, trace: Trace) -> None:
        """Write the logical times, the meetings and transfers, the results, and the report of the end of the run."""
        times = {"time": trace.time, "since": trace.since, "count": trace.count}
        self._write_columns("time.npz", {**times, **self._met_in(trace)})
        self.index["results"] = trace.results is not None
        if trace.results is not None:
            pool = Pool()
            shapes = [entry.root.shape for entry in _entries(trace.program)]
            refs = [pool.add(each if fits(each, s) else None) for each, s in zip(trace.results, shapes, strict=True)]
            self._write_columns("results.npz", {"refs": np.array(refs, np.int64), **_columns(pool)})
        told = {"stop": trace.stop, "left_out": trace.left_out, "findings": trace.findings, "finished": True}
        self.index |= told
        self._write_index()

    def _met_in(self, trace: Trace) -> dict[str, Array]:
        """The meetings and transfers as columns; groups and events of all meetings one after the other."""
        meetings = trace.meetings
        rows = [(*self._met[m.instruction], m.time, len(m.group), len(m.events)) for m in meetings]
        members = [device for meeting in meetings for device in meeting.group]
        events = [event for meeting in meetings for event in meeting.events]
        transfers = [(t.channel, t.source, t.target, t.send, t.done) for t in trace.transfers]
        return {
            "meetings": np.array(rows, np.int64).reshape(-1, 6),
            "members": np.array(members, np.int64),
            "met": np.array(events, np.int64),
            "transfers": np.array(transfers, np.int64).reshape(-1, 5),
        }

    def _write_columns(self, name: str, columns: Mapping[str, Any]) -> None:
        self._write(name, lambda file: np.savez(file, **columns))

    def _write_index(self) -> None:
        self._write_bytes("index.json", _json(self.index))

    def _write_bytes(self, name: str, content: bytes) -> None:
        self._write(name, lambda file: file.write(content))

    def _write(self, name: str, writes: Callable[[Any], Any]) -> None:
        """Write a file of the trace; every error of the disk is raised as an OSError that names the file."""
        assert self._place is not None, "begin comes first"
        try:
            with self._place.writing(name) as file:
                sink = _Sink(file)
                writes(sink)
                if sink.error is not None:
                    raise sink.error
        except OSError as error:
            raise OSError(error.errno, error.strerror or str(error), os.fspath(self.folder / name)) from None


@define
class _Sink:
    """A file that keeps its first error for later, since NumPy's archive writer does not survive a failed write."""

    file: IO[bytes]
    error: OSError | None = None

    def write(self, letters: Any) -> int:
        if self.error is None:
            try:
                self.file.write(letters)
            except OSError as error:
                self.error = error
        return len(memoryview(letters).cast("B"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


def _entries(program: Module | ModuleGroup) -> list[Computation]:
    """The entry computation of each device's program."""
    if isinstance(program, Module):
        return [program.entry] * program.num_devices
    return [program.modules[device].entry for device in sorted(program.modules)]


def _json(index: Mapping[str, Any]) -> bytes:
    return json.dumps(index, allow_nan=False, ensure_ascii=False).encode(errors="replace")


def _columns(pool: Pool) -> dict[str, Array]:
    kind, at, letters = pool.columns
    return {"kinds": np.array(json.dumps(pool.kinds)), "kind": kind, "at": at, "letters": letters}


def is_trace(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a trace."""
    return Path(folder, "index.json").is_file()


def save(trace: Trace, folder: str | os.PathLike[str]) -> Path:
    """Write a whole trace; TraceError also where the values of the trace are read on demand from the same folder."""
    read_from = getattr(trace.values, "folder", None)
    if read_from is not None and Path(folder).resolve() == Path(read_from).resolve():
        raise TraceError(f"the values of this trace are read from {os.fspath(folder)!r}: choose a different folder")
    with TraceWriter(Path(folder)) as writer:
        writer.begin(trace.program, trace.verdict)
        writer.chunk(np.asarray(trace.device), np.asarray(trace.spot), trace.spots, trace.values)
        writer.end(trace)
    return writer.folder
