"""Policy of a trace: which values are kept whole, which as a summary, and which not at all."""

from __future__ import annotations

import weakref
from functools import partial
from typing import Any

import numpy as np
from attrs import define, field

from shape_inference.types import PRIMITIVES
from xbuild.traces.summary import summary

from ..rules.denormals import as_user
from ..rules.lines import Path

KNOWN = {each.dtype for each in PRIMITIVES.values()}
_ARRAYS = np.ndarray, np.generic

SUMMARY = 1 << 10
"""The approximate size of a summary in bytes."""

_SCANT = 256
"""The least bytes of an array that is compared with others; keeping a smaller array twice costs less."""


@define
class Keep:
    """Arrays of up to `elements` are kept whole, larger ones as a summary, until `bytes` are reached.

    After that, until as many bytes again, arrays that are larger than a summary are summarized; then nothing is kept.
    Of the executions of an instruction on a device, every `every`-th is kept.
    Equal arrays of several devices or events are kept once.
    """

    elements: int = 4096
    bytes: int = 64 << 20
    every: int = 1
    held: int = 0
    added: int = 0
    short: int = 0
    late: int = 0
    dropped: int = 0
    passed: int = 0
    _known: dict[int, tuple[Any, Any]] = field(factory=dict)
    _equal: dict[Any, Any] = field(factory=dict)
    _told: dict[int, tuple[Any, Any]] = field(factory=dict)
    _turns: dict[tuple[int, int], int] = field(factory=dict)

    def __call__(self, value: Any, device: int, path: Path) -> Any:
        """The value or its summary, as it is kept; None for a value that is not kept."""
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
        kept = self._kept(value) if value.nbytes < _SCANT or value.size > self.elements else self._once(value)
        if kept is value:
            self._known[id(value)] = value, kept
        elif kept is not None and isinstance(value, np.ndarray):
            self._told[id(value)] = weakref.ref(value, partial(self._told.pop, id(value))), kept
        return kept

    def forget(self) -> None:
        """Drop all references to arrays, which have been written to disk."""
        self._known.clear()
        self._equal.clear()

    def _once(self, value: Any) -> Any:
        """The kept form of an equal array, or else of this array."""
        letters = value.tobytes()
        key = value.dtype, value.shape, hash(letters)
        kept = self._equal.get(key)
        if kept is None or (isinstance(kept, np.ndarray) and kept.tobytes() != letters):
            kept = self._equal[key] = self._kept(value)
        return kept

    def _kept(self, value: Any) -> Any:
        is_large = value.size > self.elements
        cost = SUMMARY if is_large else value.nbytes
        if self.held + cost <= self.bytes:
            self.held += cost
            self.short += is_large
            return _summary(value) if is_large else value
        cost = min(value.nbytes, SUMMARY)
        if self.added + cost <= self.bytes:
            self.added += cost
            self.late += 1
            return _summary(value) if value.nbytes > SUMMARY else value
        self.dropped += 1
        return None

    def left_out(self) -> str:
        """The text about values that were not kept whole."""
        parts = []
        if self.short:
            parts.append(f"{self.short:,} values of more than {self.elements:,} elements are told by their summaries")
        if self.passed:
            parts.append(
                f"of an instruction one turn in {self.every} is kept, and {self.passed:,} values are not there"
            )
        if self.late:
            parts.append(
                f"{self.late:,} values came after {self.bytes:,} bytes had been kept: "
                f"those of more than {SUMMARY:,} bytes are told by their summaries"
            )
        if self.dropped:
            parts.append(f"{self.dropped:,} values came after {2 * self.bytes:,} bytes, and are not there")
        return "; ".join(parts)


def _summary(value: Any) -> Any:
    """The summary of a value, computed without flushing denormal numbers."""
    with as_user():
        return summary(value)
