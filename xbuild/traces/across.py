"""Provenance across devices: for each element of a received value the device, operand and element it came from."""

from __future__ import annotations

from attrs import frozen

from ..core.attributes import Array


@frozen(eq=False)
class Across:
    """For each element of a part of a result a row of those it came from, as three tables of one shape.

    `part` is the number of the part where the result is a tuple, else None. `device` is -1 where there is none.
    """

    part: int | None
    device: Array
    operand: Array
    element: Array
