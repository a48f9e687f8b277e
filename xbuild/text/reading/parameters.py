"""Reader of the number of a parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .body import Body


def read_number(body: Body) -> int:
    """The number of a parameter, which no other of the computation has."""
    reader = body.reader
    place = reader.skip()
    number = reader.integer()
    if number in body.numbers:
        reader.fail("duplicate_parameter", f"{body.name!r} has a parameter {number} already", place=place)
    if not 0 <= number < 2**31:
        reader.fail("invalid_attribute", f"{number} is no number of a parameter; they count from 0", place=place)
    body.numbers.add(number)
    return number
