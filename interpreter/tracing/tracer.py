"""What watches a traced run: a row for each value that an instruction gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import define, field

from xbuild.attributes import Array

from ..lines import Path
from ..observers import PathObserver
from .keep import Keep

CHUNK = 1 << 16
"""After how many events what was seen is handed on, if somebody takes it."""


@define(eq=False)
class Tracer(PathObserver):
    """The events of a run in their order: devices and call paths; values where they are kept.

    `hand_on` is called with what is new, time and again, and at the end; the values are forgotten then.
    """

    keep: Keep | None
    hand_on: Callable[[Tracer], None] | None = None
    devices: list[int] = field(factory=list)
    paths: list[Path] = field(factory=list)
    values: dict[int, Any] = field(factory=dict)
    _spots: dict[int, int] = field(factory=dict)
    _distinct: list[Path] = field(factory=list)
    _columns: list[Array] = field(factory=list)

    def __call__(self, device: int, path: Path, value: Any) -> None:
        if self.keep is not None:
            kept = self.keep(value, device, path)
            if kept is not None:
                self.values[len(self.devices)] = kept
        self.devices.append(device)
        self.paths.append(path)
        if self.hand_on is not None and not len(self.devices) % CHUNK:
            self.hand_on(self)

    def spots(self) -> tuple[list[Path], Array]:
        """The distinct call paths in the order of their first events, and for each event which; a path is one object."""
        done = sum(map(len, self._columns))
        fresh = np.fromiter(map(id, self.paths[done:]), np.int64, len(self.paths) - done)
        names, first, inverse = np.unique(fresh, return_index=True, return_inverse=True)
        for place in np.argsort(first):
            if int(names[place]) not in self._spots:
                self._spots[int(names[place])] = len(self._distinct)
                self._distinct.append(self.paths[done + int(first[place])])
        numbers = np.array([self._spots[int(name)] for name in names], np.int32)
        self._columns = [np.concatenate([*self._columns, numbers[inverse] if len(names) else np.zeros(0, np.int32)])]
        return self._distinct, self._columns[0]
