"""Provenance across devices: for each element of a received value the device, operand and element it came from."""

from __future__ import annotations

from attrs import frozen

from ..core.attributes import Array


@frozen(eq=False)
class Across:
    """Three tables of one shape, with a row for each element of a result, or of a part of it, and its source elements.

    `part` is the number of the part where the result is a tuple, else None. `device` is -1 where an entry is unused.
    """

    part: int | None
    device: Array
    operand: Array
    element: Array
