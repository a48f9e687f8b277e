"""A timeline as files of other tools: Chakra traces, GOAL schedules, trace events of Chrome.

Sections:

    Nodes with dependencies: what each device does, with loops unrolled
    Messages of protocol buffers as bytes
    Chakra: an execution trace for each device, which ASTRA-sim reads
    GOAL: a schedule as text, which LogGOPSim and ATLAHS run
    Chrome: trace events, which Perfetto opens
"""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias

from attrs import define, field, frozen

from shape_inference import refuse

from ..checking.model.program import devices_text
from ..core.graph import Instruction
from ..costs.collectives import Axes, CollectiveCost, DeviceCounts, axes_of_mesh, collective_cost
from ..files.arrays import new_folder, replacing
from ..properties.device_groups import pairs_of
from .record import Timeline, expand_spans
from .simulation import KINDS, SpanRecorder
from .tape import Tape, TapeEntry

# ----------------------------------------------------------------------------
# Nodes with dependencies: what each device does, with loops unrolled

NodeKind: TypeAlias = Literal["work", "collective", "send", "recv"]

MOST_NODES = 2_000_000
"""The most nodes of all devices; a file with more is refused."""


@frozen
class TimelineNode:
    """One action of a device, after the nodes `after`.

    `seconds` is the duration of work; `cost` that of communication; `group` the devices of a collective, or the sender
    and the receiver; `tag` distinguishes the collectives and channels of two devices.
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
class NodeWriter:
    """Writes the nodes of one device from the tape of its class; work between two meetings is one node."""

    timeline: Timeline
    device: int
    tags: dict[Hashable, int]
    found: list[TimelineNode] = field(factory=list)
    _front: set[int] = field(factory=set)
    _work: float = 0.0
    _begun: dict[Hashable, list[tuple[int, ...]]] = field(factory=dict)
    _turns: Counter[tuple[str, Hashable]] = field(factory=Counter)
    _axes: Axes = field(init=False)

    def __attrs_post_init__(self) -> None:
        mesh = self.timeline.mesh
        self._axes = axes_of_mesh(mesh) if mesh is not None else Axes(None, ())

    def nodes(self) -> list[TimelineNode]:
        """All nodes in order."""
        for entry in _unroll(self.timeline.tape_of(self.device)):
            self._add(entry)
        self._flush()
        return self.found

    def _add(self, entry: TapeEntry) -> None:
        if entry.action in ("compute", "begin"):
            self._work += entry.seconds
        elif entry.action == "arrive":
            self._collective(entry)
        elif entry.action == "send":
            self._transfer(entry, "send")
        elif entry.action == "receive":
            self._transfer(entry, "recv")
        elif entry.action == "complete":
            self._follow_begun(("collective", entry.key), "complete")
        elif entry.action == "sent":
            self._follow_begun(("send", entry.key), "sent")

    def _node(self, kind: str, name: str, **facts: object) -> int:
        number = len(self.found)
        if number > MOST_NODES:
            refuse("limit_trips", f"timeline: a device performs more than {MOST_NODES:,} actions",
                   "this format writes out every trip of a loop: use fewer trips, or --trace FILE")  # fmt: skip
        self.found.append(TimelineNode(number, kind, name, (*sorted(self._front),), **facts))  # type: ignore[arg-type]
        return number

    def _flush(self) -> None:
        """Write the work since the last meeting as a node."""
        if self._work:
            self._front = {self._node("work", "work", seconds=self._work)}
            self._work = 0.0

    def _collective(self, entry: TapeEntry) -> None:
        """Write a node for a collective; a permute becomes the sends and recvs of the device."""
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

    def _transfer(self, entry: TapeEntry, kind: Literal["send", "recv"]) -> None:
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

    def _follow_begun(self, key: tuple[str, Hashable], action: str) -> None:
        """Make the following nodes depend on the node that was begun."""
        self._flush()
        turn = self._turns[action, key]
        self._turns[action, key] += 1
        begun = self._begun.get(key, [])
        if turn < len(begun):
            self._front = {*self._front, *begun[turn]}

    def _cost(self, instruction: Instruction) -> CollectiveCost:
        return collective_cost(instruction, DeviceCounts(*self.timeline.context.program.grid), self._axes)


def _unroll(tape: Tape) -> Iterator[TapeEntry]:
    for entry in tape:
        if entry.action != "loop":
            yield entry
            continue
        for _ in range(entry.trips):
            yield from _unroll(entry.condition + entry.body)
        yield from _unroll(entry.condition if entry.blocks else ())


def all_nodes(timeline: Timeline) -> Iterable[tuple[int, list[TimelineNode]]]:
    """The nodes of every device. Raises limit_trips if these are too many."""
    count, tags = 0, dict[Hashable, int]()
    for device in timeline.devices:
        nodes = NodeWriter(timeline, device, tags).nodes()
        count += len(nodes)
        if count > MOST_NODES:
            refuse(
                "limit_trips",
                f"timeline: the devices together perform more than {MOST_NODES:,} actions",
                "this format writes out every trip of a loop: use fewer devices or trips, or --trace FILE",
            )
        yield device, nodes


# ----------------------------------------------------------------------------
# Messages of protocol buffers as bytes
#
# Source: Protocol Buffers documentation, Encoding.

_VARINT, _FIXED64, _LENGTH = 0, 1, 2


def varint(number: int) -> bytes:
    """A number of 0 or more in groups of seven bits, the lowest first; a negative one as 64 bits."""
    number &= (1 << 64) - 1
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes((*found, number))


def _tag(field: int, wire: int) -> bytes:
    return varint(field << 3 | wire)


def integer(field: int, number: int) -> bytes:
    """A field of an integer, a bool or an enum; proto3 leaves out zeros, which are a reader's default."""
    return _tag(field, _VARINT) + varint(number) if number else b""


def oneof_integer(field: int, number: int) -> bytes:
    """A field of an integer inside a oneof, where a zero is written too."""
    return _tag(field, _VARINT) + varint(number)


def double(field: int, number: float) -> bytes:
    """A field of a double inside a oneof."""
    return _tag(field, _FIXED64) + struct.pack("<d", number)


def text(field: int, words: str) -> bytes:
    """A field of a string."""
    return message(field, words.encode())


def message(field: int, body: bytes) -> bytes:
    """A field of a message, or of bytes."""
    return _tag(field, _LENGTH) + varint(len(body)) + body


def packed_integers(field: int, numbers: Iterable[int]) -> bytes:
    """A field of repeated integers; empty where there are none."""
    body = b"".join(map(varint, numbers))
    return message(field, body) if body else b""


def with_length(body: bytes) -> bytes:
    """A message preceded by its length, as in files of several messages."""
    return varint(len(body)) + body


# ----------------------------------------------------------------------------
# Chakra: an execution trace for each device, which ASTRA-sim reads

VERSION = "0.0.4"
COMP, SEND, RECV, COLLECTIVE = 4, 5, 6, 7
_KINDS = {"work": COMP, "send": SEND, "recv": RECV, "collective": COLLECTIVE}
COLLECTIVES = {
    "all_reduce": 0, "all_gather": 2, "collective_broadcast": 5, "all_to_all": 6, "ragged_all_to_all": 6,
    "reduce_scatter": 7,
}  # fmt: skip
"""The number of each collective in CollectiveCommType; a permute is written as its sends and recvs."""

_INT32, _INT64, _UINT64, _BOOL, _STRING = 7, 9, 13, 27, 29


def write_chakra(timeline: Timeline, folder: str | Path) -> list[Path]:
    """Write `program.N.et` for each device N, and `groups.json` with the devices of each group by its name.

    The files hold GlobalMetadata and then a Node each, all preceded by their lengths. Work has its microseconds on the
    machine; collectives and transfers their bytes. The folder is new or empty, and gets all files or none.
    Raises limit_trips if devices perform too many actions, OSError if the folder is not empty or is a link.

    Source: MLCommons Chakra, schema/protobuf/et_def.proto.
    """
    place = Path(folder)
    groups: dict[tuple[int, ...], str] = {}
    names = []
    with new_folder(place) as new:
        for device, nodes in all_nodes(timeline):
            body = b"".join(with_length(_node(each, groups)) for each in nodes)
            names.append(f"program.{device}.et")
            (new / names[-1]).write_bytes(with_length(text(1, VERSION)) + body)
        group_names = {name: list(group) for group, name in groups.items()}
        (new / "groups.json").write_text(f"{json.dumps(group_names)}\n", encoding="utf-8")
    return [place / name for name in names]


def _node(node: TimelineNode, groups: dict[tuple[int, ...], str]) -> bytes:
    """The bytes of a Node."""
    micros = round(node.seconds * 1e6)
    head = integer(1, node.number) + text(2, node.name) + integer(3, _KINDS[node.kind])
    return head + packed_integers(5, node.after) + integer(7, micros) + _attributes(node, groups)


def _attributes(node: TimelineNode, groups: dict[tuple[int, ...], str]) -> bytes:
    """The attributes that ASTRA-sim reads."""
    found = _attribute("is_cpu_op", oneof_integer(_BOOL, 0))
    if node.cost is None:
        return found + _attribute("runtime_ns", oneof_integer(_INT64, round(node.seconds * 1e9)))
    found += _attribute("comm_size", oneof_integer(_INT64, node.cost.payload))
    if node.kind == "collective":
        kind = node.cost.instruction.opcode.removesuffix("_start")
        name = groups.setdefault(node.group, str(len(groups)))
        return (
            found
            + _attribute("comm_type", oneof_integer(_INT64, COLLECTIVES[kind]))
            + _attribute("pg_name", text(_STRING, name))
        )
    source, target = node.group
    ends = {"comm_src": source, "comm_dst": target, "comm_tag": node.tag}
    return found + b"".join(_attribute(name, oneof_integer(_INT32, number)) for name, number in ends.items())


def _attribute(name: str, value: bytes) -> bytes:
    return message(10, text(1, name) + value)


# ----------------------------------------------------------------------------
# GOAL: a schedule as text, which LogGOPSim and ATLAHS run

MOST_LINES = 5_000_000
"""The most lines; a longer schedule is refused."""


def write_goal(timeline: Timeline, path: str | Path) -> None:
    """Write the schedule: for each device its calc (nanoseconds), sends and recvs (bytes), and what each requires.

    Collectives are written as the messages of a ring, all-to-alls as those of pairs, broadcasts as a chain.
    Raises limit_trips if the schedule is too long.

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
        for line in _RankWriter(device, ranks).lines(nodes):
            count += 1
            if count > MOST_LINES:
                refuse(
                    "limit_trips",
                    f"timeline: the GOAL schedule would have more than {MOST_LINES:,} lines",
                    "a ring of n devices has 2(n-1) messages; use fewer devices or trips, or --chakra",
                )
            yield line
        yield "}"


@define(eq=False)
class _RankWriter:
    """The lines of one device; `last` are the labels at which each node has ended."""

    device: int
    ranks: dict[int, int]
    last: dict[int, tuple[int, ...]] = field(factory=dict)
    label: int = 0

    def lines(self, nodes: Iterable[TimelineNode]) -> Iterator[str]:
        for node in nodes:
            before = [label for each in node.after for label in self.last[each]]
            yield from self._node(node, before)

    def _node(self, node: TimelineNode, before: list[int]) -> Iterator[str]:
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

    def _add(self, action: str, before: Iterable[int]) -> Iterator[str]:
        self.label += 1
        yield f"  l{self.label}: {action}"
        for each in before:
            yield f"  l{self.label} requires l{each}"

    def _message(self, is_send: bool, size: int, peer: int, tag: int, before: Iterable[int]) -> Iterator[str]:
        verb, way = ("send", "to") if is_send else ("recv", "from")
        yield from self._add(f"{verb} {size}b {way} {self.ranks[peer]} tag {tag}", before)

    def _collective(self, node: TimelineNode, before: list[int]) -> Iterator[str]:
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


def _steps(node: TimelineNode, device: int) -> Iterator[tuple[int | None, int | None, int]]:
    """For each step of a device: the target of its send, the source of its recv, and the bytes."""
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


# ----------------------------------------------------------------------------
# Chrome: trace events, which Perfetto opens

MOST_EVENTS = 200_000
"""With more spans, a loop in a steady state is drawn as one trip, and one span for the others."""

_THREADS = {"compute": 0, "exposed": 0, "wait": 0, "link": 1, "beside": 2}
_NAMES = ("work", "links", "beside")
_COLOURS = {"exposed": "terrible", "wait": "grey"}


def trace_events(timeline: Timeline) -> dict[str, Any]:
    """The timeline as an object of JSON: complete events in microseconds, a process for each class of devices.

    A process has a thread of work, one of links, and one of copies and computations that run in parallel.

    Source: Trace Event Format (N. Duca, D. Sinclair): JSON object format, complete events (X), metadata events (M).
    """
    events = [*_metadata_events(timeline), *_span_events(timeline.recorder)]
    return {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {"program": timeline.name, "machine": timeline.machine.name, "what": "a model, not a measurement"},
    }


def write_trace(timeline: Timeline, path: str | Path) -> None:
    """Write the trace events to a file."""
    with replacing(Path(path)) as file:
        file.write(f"{json.dumps(trace_events(timeline))}\n".encode())


def _metadata_events(timeline: Timeline) -> Iterator[dict[str, Any]]:
    """The names of processes and threads."""
    for device_class in timeline.classes:
        name = {"name": devices_text(device_class.devices)}
        yield {"ph": "M", "name": "process_name", "pid": device_class.label, "tid": 0, "args": name}
        for number, thread in enumerate(_NAMES):
            yield {"ph": "M", "name": "thread_name", "pid": device_class.label, "tid": number, "args": {"name": thread}}


def _span_events(spans: SpanRecorder) -> Iterator[dict[str, Any]]:
    whole = bool(spans.times().sum() <= MOST_EVENTS)
    for number, shift, more in expand_spans(spans, whole=whole):
        yield _span_event(spans, number, shift, more)


def _span_event(spans: SpanRecorder, number: int, shift: float, more: int) -> dict[str, Any]:
    kind, instruction = KINDS[spans.kinds[number]], spans.instructions[number]
    found = {
        "ph": "X",
        "name": instruction.name,
        "cat": kind,
        "ts": (spans.starts[number] + shift) * 1e6,
        "dur": (spans.ends[number] - spans.starts[number]) * 1e6,
        "pid": spans.labels[number],
        "tid": _THREADS[kind],
        "args": {"op": instruction.opcode.replace("_", "-"), "line": str(instruction.source or "")},
    }
    if kind in _COLOURS:
        found["cname"] = _COLOURS[kind]
    if more:
        found["args"]["trips not drawn"] = more  # type: ignore[index]
    return found
