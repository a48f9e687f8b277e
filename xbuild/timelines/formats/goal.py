"""A time line as a GOAL schedule, the text that LogGOPSim and ATLAHS run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from attrs import define, field

from shape_inference import refuse

from ...files.results import replacing
from ..record import Timeline
from .dependencies import Node, all_nodes

MOST_LINES = 5_000_000
"""At how many lines a schedule is refused."""


def write_goal(timeline: Timeline, path: str | Path) -> None:
    """Write the schedule: for each device its calc (nanoseconds), sends and recvs (bytes), and what each requires.

    Collectives are written as the messages of a ring, all-to-alls as those of pairs, broadcasts as a chain.
    Raises limit_trips where the schedule is too long.

    Source: T. Hoefler, C. Siebert, A. Lumsdaine, Group Operation Assembly Language (2009); LogGOPSim, txt2bin.
    """
    with replacing(Path(path)) as file:
        for line in goal_lines(timeline):
            file.write(f"{line}\n".encode())


def goal_lines(timeline: Timeline) -> Iterator[str]:
    """The lines of the schedule."""
    yield f"num_ranks {timeline.num_devices}"
    ranks = {device: rank for rank, device in enumerate(timeline.devices)}
    count = 0
    for device, nodes in all_nodes(timeline):
        yield f"rank {ranks[device]} {{"
        for line in _Rank(device, ranks).lines(nodes):
            count += 1
            if count > MOST_LINES:
                refuse("limit_trips", f"timeline: a GOAL schedule of more than {MOST_LINES:,} lines",
                       "a ring of n devices has 2(n-1) messages; fewer devices or trips, or --chakra")  # fmt: skip
            yield line
        yield "}"


@define(eq=False)
class _Rank:
    """The lines of one device; `last` are the labels at which each node has ended."""

    device: int
    ranks: dict[int, int]
    last: dict[int, tuple[int, ...]] = field(factory=dict)
    label: int = 0

    def lines(self, nodes: Iterable[Node]) -> Iterator[str]:
        for node in nodes:
            before = [label for each in node.after for label in self.last[each]]
            yield from self._node(node, before)

    def _node(self, node: Node, before: list[int]) -> Iterator[str]:
        if node.kind == "work":
            yield from self._add(f"calc {max(round(node.seconds * 1e9), 0)}", before)
            self.last[node.number] = (self.label,)
        elif node.kind == "collective":
            yield from self._collective(node, before)
        else:
            assert node.cost is not None
            to = node.kind == "send"
            yield from self._message(to, node.cost.payload, node.group[to], node.tag, before)
            self.last[node.number] = (self.label,)

    def _add(self, what: str, before: Iterable[int]) -> Iterator[str]:
        self.label += 1
        yield f"  l{self.label}: {what}"
        for each in before:
            yield f"  l{self.label} requires l{each}"

    def _message(self, is_send: bool, size: int, peer: int, tag: int, before: Iterable[int]) -> Iterator[str]:
        verb, way = ("send", "to") if is_send else ("recv", "from")
        yield from self._add(f"{verb} {size}b {way} {self.ranks[peer]} tag {tag}", before)

    def _collective(self, node: Node, before: list[int]) -> Iterator[str]:
        """The messages of a collective, step after step; a step comes after the recv of the one before."""
        assert node.cost is not None
        ends: list[int] = []
        for target, source, size in _steps(node, self.device):
            sent: list[int] = []
            if target is not None:
                yield from self._message(True, size, target, node.tag, before)
                sent = [self.label]
            if source is not None:
                yield from self._message(False, size, source, node.tag, before)
                before = [self.label]
            ends = [*sent, *([self.label] if source is not None else [])]
        self.last[node.number] = tuple(dict.fromkeys((*ends, *before))) or tuple(before)


def _steps(node: Node, device: int) -> Iterator[tuple[int | None, int | None, int]]:
    """To whom a device sends in each step, from whom it receives, and how many bytes."""
    assert node.cost is not None
    kind, size, group = node.cost.instruction.opcode.removesuffix("_start"), len(node.group), node.group
    payload, place = node.cost.payload, group.index(device)
    part = -(-payload // size)
    if kind == "collective_broadcast":
        yield (group[place + 1] if place + 1 < size else None), (group[place - 1] if place else None), payload
    elif kind in ("all_to_all", "ragged_all_to_all"):
        yield from ((group[(place + n) % size], group[place - n], part) for n in range(1, size))
    else:
        rounds = 2 if kind == "all_reduce" else 1
        yield from ((group[(place + 1) % size], group[place - 1], part) for _ in range(rounds * (size - 1)))
