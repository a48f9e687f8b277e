"""The observer of a traced run: records a row for each instruction that a device has executed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import define, field

from xbuild.core.attributes import Array

from ..compiler.marking import Stretch
from ..rules.denormals import as_user
from ..rules.lines import Path
from ..runtime.observers import MarkObserver, PathObserver
from .keep import Keep

CHUNK = 1 << 16
"""The number of events after which a tracer calls `hand_on`."""


@define(eq=False)
class Tracer(ABC):
    """The events of a run in order: their devices, call paths, and kept values.

    `hand_on` is called with the tracer after each chunk of events; it writes the new events and drops the values.
    """

    hand_on: Callable[[Tracer], None] | None = None
    values: dict[int, Any] = field(factory=dict)
    _spots: dict[int, int] = field(factory=dict)
    _distinct: list[Path] = field(factory=list)

    @abstractmethod
    def columns(self) -> tuple[list[Path], Array, Array]:
        """The distinct call paths in order of first use, and for each event its device and the index of its path."""

    def forget(self) -> None:
        """Drop the values, which have been written to disk."""
        self.values = {}

    def left_out(self) -> str:
        """The text about values that were not kept."""
        return "no value was kept"

    def _spool(self, hand_on: Callable[[Tracer], None]) -> None:
        """Call `hand_on` in the user's mode of denormal numbers, since it is no part of the run."""
        with as_user():
            hand_on(self)

    def _numbers(self, paths: Stretch) -> list[int]:
        """The indices of these call paths among the distinct ones; paths are compared by identity."""
        for path in paths:
            if id(path) not in self._spots:
                self._spots[id(path)] = len(self._distinct)
                self._distinct.append(path)
        return [self._spots[id(path)] for path in paths]


@define(eq=False)
class Marker(Tracer, MarkObserver):
    """A tracer that keeps no values: it records each stretch of instructions that a device has executed."""

    marks: list[tuple[int, Stretch]] = field(factory=list)
    _known: dict[int, tuple[Stretch, Array]] = field(factory=dict)
    _columns: tuple[Array, Array] = field(factory=lambda: (np.zeros(0, np.int32), np.zeros(0, np.int32)))
    _fresh: int = 0

    @property
    def mark(self) -> Callable[[tuple[int, Stretch]], None]:
        return self.marks.append if self.hand_on is None else self._mark

    def _mark(self, at: tuple[int, Stretch]) -> None:
        self.marks.append(at)
        self._fresh += len(at[1])
        if self._fresh >= CHUNK and self.hand_on is not None:
            self._fresh = 0
            self._spool(self.hand_on)

    def columns(self) -> tuple[list[Path], Array, Array]:
        known = self._known
        for _, stretch in self.marks:
            if id(stretch) not in known:
                known[id(stretch)] = stretch, np.array(self._numbers(stretch), np.int32)
        spots = [known[id(stretch)][1] for _, stretch in self.marks]
        devices = np.array([device for device, _ in self.marks], np.int32)
        device = np.repeat(devices, [len(each) for each in spots])
        self.marks.clear()
        self._columns = np.concatenate([self._columns[0], device]), np.concatenate([self._columns[1], *spots])
        return self._distinct, *self._columns


@define(eq=False)
class Watcher(Tracer, PathObserver):
    """A tracer that keeps the values that `keep` accepts."""

    keep: Keep = field(factory=Keep)
    devices: list[int] = field(factory=list)
    paths: list[Path] = field(factory=list)
    _column: Array = field(factory=lambda: np.zeros(0, np.int32))

    def __call__(self, device: int, path: Path, value: Any) -> None:
        kept = self.keep(value, device, path)
        if kept is not None:
            self.values[len(self.devices)] = kept
        self.devices.append(device)
        self.paths.append(path)
        if self.hand_on is not None and not len(self.devices) % CHUNK:
            self._spool(self.hand_on)

    def columns(self) -> tuple[list[Path], Array, Array]:
        done = len(self._column)
        fresh = self._numbers(tuple(self.paths[done:]))
        self._column = np.concatenate([self._column, np.array(fresh, np.int32)])
        return self._distinct, np.array(self.devices, np.int32), self._column

    def forget(self) -> None:
        super().forget()
        self.keep.forget()

    def left_out(self) -> str:
        return self.keep.left_out()
