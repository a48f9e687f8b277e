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
    _column: Array = field(factory=lambda: np.zeros(0, np.int32))

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
        """The distinct call paths as they first came, and for each event which; a path is one object."""
        done, known = len(self._column), self._spots
        for path in {id(path): path for path in self.paths[done:]}.values():
            if id(path) not in known:
                known[id(path)] = len(self._distinct)
                self._distinct.append(path)
        fresh = map(known.__getitem__, map(id, self.paths[done:]))
        self._column = np.concatenate([self._column, np.fromiter(fresh, np.int32, len(self.paths) - done)])
        return self._distinct, self._column
