"""Locations of operations: names and the lines of the program that was lowered."""

from __future__ import annotations

from attrs import frozen


@frozen
class Location:
    """Where an operation comes from: a name, and the innermost line of the program; both may be missing.

    `name` is what JAX and TensorFlow call the operation, such as `jit(f)/dot_general`; `function` is the name that
    the line itself has.
    """

    name: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    function: str = ""


UNKNOWN = Location()
