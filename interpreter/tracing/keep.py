"""Which values of a run are kept whole, which in short, and which not at all."""

from __future__ import annotations

import weakref
from functools import partial
from typing import Any

import numpy as np
from attrs import define, field

from shape_inference.types import PRIMITIVES
from xbuild.trace import Summary, summary

from ..lines import Path

KNOWN = {each.dtype for each in PRIMITIVES.values()}
_ARRAYS = np.ndarray, np.generic


@define
class Keep:
    """Arrays of up to `elements` are kept whole, larger ones as a summary, all until `bytes` are reached.

    Of an instruction that a device comes to again, only each `every`-th turn is kept.
    The same array on several devices or events is kept once.
    """

    elements: int = 4096
    bytes: int = 64 << 20
    every: int = 1
    held: int = 0
    whole: int = 0
    short: int = 0
    dropped: int = 0
    passed: int = 0
    _known: dict[int, tuple[Any, Any]] = field(factory=dict)
    _told: dict[int, tuple[Any, Summary]] = field(factory=dict)
    _turns: dict[tuple[int, int], int] = field(factory=dict)

    def __call__(self, value: Any, device: int, path: Path) -> Any:
        """The value as it is kept; None for what is not."""
        if self.every > 1 and self._is_between(device, path):
            self.passed += 1
            return None
        return self._of(value)

    def _is_between(self, device: int, path: Path) -> bool:
        turn = self._turns[device, id(path)] = self._turns.get((device, id(path)), -1) + 1
        return turn % self.every != 0

    def _of(self, value: Any) -> Any:
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        if isinstance(value, tuple):
            return tuple(map(self._of, value))
        if not isinstance(value, _ARRAYS) or value.dtype not in KNOWN:
            return None
        told = self._told.get(id(value))
        if told is not None and told[0]() is value:
            return told[1]
        kept = self._kept(value)
        if isinstance(kept, np.ndarray):
            self._known[id(value)] = value, kept
        elif isinstance(kept, Summary) and isinstance(value, np.ndarray):
            self._told[id(value)] = weakref.ref(value, partial(self._told.pop, id(value))), kept
        return kept

    def forget(self) -> None:
        """Hold no array any more, to know it again: they stand elsewhere now."""
        self._known.clear()

    def _kept(self, value: Any) -> Any:
        cost = min(value.size, self.elements if value.size <= self.elements else 256) * value.itemsize
        if self.held + cost > self.bytes:
            self.dropped += 1
            return None
        self.held += cost
        if value.size > self.elements:
            self.short += 1
            return summary(value)
        self.whole += 1
        return value

    def left_out(self) -> str:
        """What was not kept whole, in words."""
        parts = []
        if self.short:
            parts.append(f"{self.short} values of more than {self.elements:,} elements are told by their summaries")
        if self.passed:
            parts.append(
                f"of an instruction one turn in {self.every} is kept, and {self.passed:,} values are not there"
            )
        if self.dropped:
            parts.append(f"{self.dropped} values came after {self.bytes:,} bytes had been kept, and are not there")
        return "; ".join(parts)
