"""What a device does as nodes with dependencies: work, collectives, sends and recvs, loops written out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from typing import Literal, TypeAlias

from attrs import define, field, frozen

from shape_inference import refuse

from ...core.graph import Instruction
from ...costs.axes import Axes, axes_of_mesh
from ...costs.collectives import CollectiveCost, Grid, collective_cost
from ...properties.device_groups import pairs_of
from ..record import Timeline
from ..tape import Entry, Tape

NodeKind: TypeAlias = Literal["work", "collective", "send", "recv"]

MOST_NODES = 2_000_000
"""At how many nodes of all devices a file is refused."""


@frozen
class Node:
    """One thing that a device does, after the nodes `after`.

    `seconds` is the duration of work; `cost` of what is communicated; `group` the devices of a collective, or the
    sender and the receiver; `tag` tells the collectives and the channels of two devices apart.
    """

    number: int
    kind: NodeKind
    name: str
    after: tuple[int, ...]
    seconds: float = 0.0
    flops: int = 0
    cost: CollectiveCost | None = None
    group: tuple[int, ...] = ()
    tag: int = 0


@define(eq=False)
class NodesOfDevice:
    """Makes the nodes of one device from the tape of its class; work between two meetings is one node."""

    timeline: Timeline
    device: int
    tags: dict[Hashable, int]
    found: list[Node] = field(factory=list)
    _front: set[int] = field(factory=set)
    _work: float = 0.0
    _begun: dict[Hashable, list[tuple[int, ...]]] = field(factory=dict)
    _turns: Counter[tuple[str, Hashable]] = field(factory=Counter)
    _axes: Axes = field(init=False)

    def __attrs_post_init__(self) -> None:
        mesh = self.timeline.mesh
        self._axes = axes_of_mesh(mesh) if mesh is not None else Axes(None, ())

    def nodes(self) -> list[Node]:
        """All nodes in order."""
        for entry in _unrolled(self.timeline.tape_of(self.device)):
            self._add(entry)
        self._flush()
        return self.found

    def _add(self, entry: Entry) -> None:
        if entry.action in ("compute", "begin"):
            self._work += entry.seconds
        elif entry.action == "arrive":
            self._collective(entry)
        elif entry.action == "send":
            self._transfer(entry, "send")
        elif entry.action == "receive":
            self._transfer(entry, "recv")
        elif entry.action == "complete":
            self._awaited(("collective", entry.key), "complete")
        elif entry.action == "sent":
            self._awaited(("send", entry.key), "sent")

    def _node(self, kind: str, name: str, **facts: object) -> int:
        number = len(self.found)
        if number > MOST_NODES:
            refuse("limit_trips", f"timeline: a device does more than {MOST_NODES:,} things",
                   "loops are written out in this format: fewer trips, or --trace FILE")  # fmt: skip
        self.found.append(Node(number, kind, name, (*sorted(self._front),), **facts))  # type: ignore[arg-type]
        return number

    def _flush(self) -> None:
        """What has been worked since the last meeting becomes a node."""
        if self._work:
            self._front = {self._node("work", "work", seconds=self._work)}
            self._work = 0.0

    def _collective(self, entry: Entry) -> None:
        """A node for a collective; a permute is the sends and recvs of the device."""
        self._flush()
        collective, program = entry.inner, self.timeline.context.program
        assert collective is not None
        name, cost = collective.name, self._cost(collective)
        tag = self.tags.setdefault(entry.key, len(self.tags) + 1)
        if hasattr(collective.attributes, "source_target_pairs"):
            pairs = [pair for pair in pairs_of(collective, *program.grid) if pair[0] != pair[1]]
            ends = [("send", 0), ("recv", 1)]
            numbers = [
                self._node(kind, name, cost=cost, group=pair, tag=tag)
                for kind, end in ends for pair in pairs if pair[end] == self.device
            ]  # fmt: skip
        else:
            group = program.group(collective, self.device)
            numbers = [self._node("collective", name, cost=cost, group=group, tag=tag)] if len(group) > 1 else []
        self._begun.setdefault(("collective", entry.key), []).append((*numbers,))

    def _transfer(self, entry: Entry, kind: Literal["send", "recv"]) -> None:
        self._flush()
        half = entry.inner
        assert half is not None
        peer = self.timeline.context.transfers.peer(half, self.device)
        assert peer is not None
        ends = (self.device, peer) if kind == "send" else (peer, self.device)
        tag = self.tags.setdefault(("channel", half.attributes.channel_id), len(self.tags) + 1)
        number = self._node(kind, half.name, cost=self._cost(half), group=ends, tag=tag)
        if kind == "send":
            self._begun.setdefault(("send", entry.key), []).append((number,))
        else:
            self._front = {*self._front, number}

    def _awaited(self, key: tuple[str, Hashable], action: str) -> None:
        """What follows comes after the node that was begun, too."""
        self._flush()
        turn = self._turns[action, key]
        self._turns[action, key] += 1
        begun = self._begun.get(key, [])
        if turn < len(begun):
            self._front = {*self._front, *begun[turn]}

    def _cost(self, instruction: Instruction) -> CollectiveCost:
        return collective_cost(instruction, Grid(*self.timeline.context.program.grid), self._axes)


def _unrolled(tape: Tape) -> Iterator[Entry]:
    for entry in tape:
        if entry.action != "loop":
            yield entry
            continue
        for _ in range(entry.trips):
            yield from _unrolled(entry.condition + entry.body)
        yield from _unrolled(entry.condition if entry.blocks else ())


def all_nodes(timeline: Timeline) -> Iterable[tuple[int, list[Node]]]:
    """The nodes of every device. Raises limit_trips where these are too many."""
    count, tags = 0, dict[Hashable, int]()
    for device in timeline.devices:
        nodes = NodesOfDevice(timeline, device, tags).nodes()
        count += len(nodes)
        if count > MOST_NODES:
            refuse("limit_trips", f"timeline: all devices do more than {MOST_NODES:,} things",
                   "loops are written out in this format: fewer devices or trips, or --trace FILE")  # fmt: skip
        yield device, nodes
