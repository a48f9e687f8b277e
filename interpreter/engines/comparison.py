"""Comparison of a program's outputs on two engines: the distance of each output, and the first index that differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from attrs import evolve, frozen

from shape_inference import AnyShape, Shape
from xbuild.files.results import leaf_values

from .distance import allowed, beyond, distance


@frozen
class Compared:
    """The comparison of one output of one device: the largest distance in ulps, and the first element that differs.

    `place` is the first index beyond the tolerance (in eps of the element type), None where there is none; `engine` is
    what gave the other value.
    """

    device: int
    output: int
    shape: Shape
    ulps: float
    eps: float
    place: tuple[int, ...] | None = None
    ours: Any = None
    theirs: Any = None
    engine: str = "xla"

    @property
    def same(self) -> bool:
        """Whether the two agree within the tolerance."""
        return self.place is None

    def __str__(self) -> str:
        head = f"device {self.device}  out{self.output}  {self.shape}  max {self.ulps:g} ulp"
        if self.same:
            return f"{head}  {'the same' if not self.ulps else f'within {self.eps:g} eps'}"
        where = ", ".join(map(str, self.place or ()))
        values = f"interpreter {self.ours}, {self.engine} {self.theirs}"
        return f"{head}  differs at [{where}]: {values} (within {self.eps:g} eps wanted)"


def compare(
    ours: Sequence[Any],
    theirs: Sequence[Any],
    shapes: Sequence[AnyShape],
    eps: float | None = None,
    *,
    engine: str = "xla",
) -> list[Compared]:
    """Compare the outputs of a program on two engines, by device; each leaf of a tuple is one output.

    `engine` is what the differences call the engine that is not the interpreter.

    Floats agree where they are at most `eps` eps of their type apart, as parts of the largest magnitude of the output;
    without it, 64 for types of 32 and 64 bits (or two such parts), 4 of 16, 1 of fewer. Others agree where equal.

    >>> import xbuild as xb
    >>> one, other = np.float32([1.0, 2.0]), np.float32([1.0, 2.5])
    >>> print(*compare([one], [other], [xb.f32[2]]))
    device 0  out0  f32[2]  max 2.09715e+06 ulp  differs at [1]: interpreter 2.0, xla 2.5 (within 64 eps wanted)
    """
    found = []
    for device, (one, other, shape) in enumerate(zip(ours, theirs, shapes, strict=True)):
        pairs = zip(leaf_values(one, shape), leaf_values(other, shape), strict=True)
        found += [
            evolve(_compared(device, number, leaf, np.asarray(a), np.asarray(b), eps), engine=engine)
            for number, ((a, leaf), (b, _)) in enumerate(pairs)
        ]
    return found


def _compared(device: int, number: int, shape: Shape, a: Any, b: Any, eps: float | None) -> Compared:
    within = allowed(shape.dtype) if eps is None else eps
    ulps = float(distance(a, b).max(initial=0.0))
    wrong = beyond(a, b, eps)
    if not wrong.any():
        return Compared(device, number, shape, ulps, within)
    place = tuple(int(each) for each in np.unravel_index(int(wrong.argmax()), wrong.shape))
    return Compared(device, number, shape, ulps, within, place, a[place], b[place])


def lines(compared: Sequence[Compared]) -> Iterator[str]:
    """A line for each output of each device; devices on which the engines agree bit for bit share a line."""
    for output in sorted({each.output for each in compared}):
        rows = [each for each in compared if each.output == output]
        if len(rows) > 1 and not any(each.ulps for each in rows):
            yield f"devices {rows[0].device}-{rows[-1].device}  {str(rows[0]).partition('  ')[2]}"
        else:
            yield from map(str, rows)
