"""`Memory`: the bytes that a program takes on a device over its run, and what is alive where it takes the most."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
from attrs import field, frozen

from shape_inference import AnyShape, Dims

from ...core.graph import Instruction, Source

BufferKind: TypeAlias = Literal["argument", "output", "temporary"]
"""What an array is to the program: given, handed back, or needed in between."""


@frozen
class LiveArray:
    """An array that is alive: the part `index` of what `instruction` gives, `bytes` long."""

    instruction: Instruction
    index: Dims
    shape: AnyShape
    bytes: int
    kind: BufferKind
    computation: str

    @property
    def source(self) -> Source | None:
        """The user's line that recorded the instruction, where it is known."""
        return self.instruction.source

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.instruction.name,
            "index": list(self.index),
            "shape": str(self.shape),
            "bytes": self.bytes,
            "kind": self.kind,
            "computation": self.computation,
            "source": str(self.source) if self.source is not None else None,
        }


@frozen(eq=False)
class Curve:
    """Bytes alive at each position: `bytes[n]` while `instructions[n]` runs, and `positions` counts from 0.

    Callees stand before the instruction that calls them, each at its first call; at a later call the instruction itself
    has the bytes of the callee's peak. A loop body stands once, since each trip takes the same memory.
    """

    positions: np.ndarray
    bytes: np.ndarray
    instructions: tuple[Instruction, ...] = field(repr=False)


@frozen(eq=False)
class Memory:
    """Bytes on one device, each array where it lives longest: `arguments` all through the run, `outputs` and
    `temporaries` from the instruction that makes them to the last that reads them.

    `outputs` and `arguments` are the bytes of all results and parameters, `aliased` those of results that lie in the
    memory of an argument, `temporaries` the most that other arrays take together at one position, `constants` those of
    literals, which are part of the program and not of the peak. `alive` is what makes up `peak`, the largest first, at
    `peak_position` of the curve. `is_scheduled` says that the order is a compiler's, and not the recorded one.
    """

    peak: int
    arguments: int
    outputs: int
    temporaries: int
    aliased: int
    constants: int
    is_scheduled: bool
    peak_position: int
    alive: tuple[LiveArray, ...] = field(repr=False)
    curve: Curve = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """All as plain data, for JSON."""
        names = ("peak", "arguments", "outputs", "temporaries", "aliased", "constants", "is_scheduled",
                 "peak_position")  # fmt: skip
        return {
            **{name: getattr(self, name) for name in names},
            "alive": [each.to_dict() for each in self.alive],
            "curve": {"positions": self.curve.positions.tolist(), "bytes": self.curve.bytes.tolist()},
        }
