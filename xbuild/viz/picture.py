"""A picture before it is lowered to any form: boxes, the frames around them, the lines between them."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from .kinds import Kind


@frozen
class Box:
    """An instruction. `details` are lines below its title; `arguments` its operands in words, in order."""

    id: str
    name: str
    title: str
    shape: str
    kind: Kind
    details: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    tooltip: str = ""
    is_root: bool = False


@frozen
class Edge:
    """A line from a box to another: `what` is value, token, control, call or channel, the words stand at its ends."""

    tail: str
    head: str
    what: str = "value"
    at_tail: str = ""
    at_head: str = ""
    tooltip: str = ""


@frozen
class Cluster:
    """A frame: a computation, or a device. `caller` is the box whose `role` it plays."""

    id: str
    title: str
    boxes: tuple[Box, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    role: str = ""
    caller: str = ""

    def all_boxes(self) -> Iterator[Box]:
        yield from self.boxes
        for cluster in self.clusters:
            yield from cluster.all_boxes()


@frozen
class Picture:
    """A program, drawn."""

    name: str
    clusters: tuple[Cluster, ...]
    edges: tuple[Edge, ...]

    def all_boxes(self) -> Iterator[Box]:
        for cluster in self.clusters:
            yield from cluster.all_boxes()

    def kinds(self) -> tuple[Kind, ...]:
        """The kinds that occur, in the order of the table."""
        from .kinds import KINDS

        found = {box.kind for box in self.all_boxes()}
        return tuple(kind for kind in KINDS if kind in found)
