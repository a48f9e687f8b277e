"""Where an array lies that no axes of a mesh cut: on one device, on all, or wherever the program says."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import frozen

PlacementKind: TypeAlias = Literal["replicated", "maximal", "manual", "unreduced", "unknown"]


@frozen
class Placement:
    """A sharding that names no axes: `{replicated}`, `{maximal device=3}`, `{manual}`, `{unreduced}` or `{unknown}`.

    A `maximal` one is whole on `device` alone. The devices of the others are those of the program.

    Source: XLA, HloSharding.
    """

    kind: PlacementKind
    device: int | None = None

    def __str__(self) -> str:
        return f"{{{self.kind}}}" if self.device is None else f"{{{self.kind} device={self.device}}}"
