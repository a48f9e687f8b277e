"""What a device calls, and the steps that a call takes under a runtime: posts, waits, and places that it takes.

Sections:

    Calls: what a device reaches, in its order
    Steps: what a lane of a device does
    Launcher: the steps of each call of one device
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from attrs import define, evolve, field, frozen

from ..checking.model.describe import payload
from ..checking.model.program import Extent
from ..checking.structure.collective_matching import channel_of
from ..core.graph import Instruction
from ..properties.device_groups import Group, Groups, grouping
from ..properties.effects import (
    START_OF,
    Path,
    calls_python,
    collective_in,
    communicates_itself,
    has_side_effect,
    start_of,
)
from ..properties.placement import is_same
from .record import Runtime

# ----------------------------------------------------------------------------
# Calls: what a device reaches, in its order

MEET, START, DONE = "meet", "start", "done"
SEND, RECV, RECV_DONE = "send", "recv", "recv_done"
BEGIN_SEND, ACCEPT = "begin_send", "accept"  # a send of a group, at the start and at the done of the group
CUSTOM, INFEED = "custom", "infeed"


@frozen(eq=False)
class RuntimeCall:
    """What a device does at one instruction: of which kind, with whom, and on which channel.

    `path` leads to the instruction. `part` is the collective or transfer itself; a start may begin several. `begun` is
    the start of a start or done. `identity` is the key by which collectives match in HLO. `groups` are all groups of
    the collective, and `group` is that of the device. `launch` names the launch of the program that it is in.
    """

    kind: str
    instruction: Instruction
    part: Instruction | None = None
    begun: Instruction | None = None
    identity: Hashable = None
    groups: Groups = ()
    group: Group = ()
    channel: int | None = None
    source: int = 0
    target: int = 0
    bytes: float = 0
    path: Path = ()
    launch: str = ""


def collective_call(
    kind: str,
    instruction: Instruction,
    device: int,
    extent: Extent,
    *,
    begun: Instruction | None,
    identity: Hashable,
    path: Path = (),
    launch: str = "",
) -> RuntimeCall:
    """The call of a collective at an instruction; `begun` is what a start begins, or the collective itself."""
    part = collective_in(instruction if begun is None else begun)
    assert part is not None
    found = grouping(part, *extent)
    start = start_of(instruction) if instruction.opcode in START_OF else instruction
    return RuntimeCall(
        kind,
        instruction,
        part,
        start,
        identity,
        found.groups,
        found.of.get(device, (device,)),
        channel_of(part),
        path=path,
        launch=launch,
    )


def transfer_call(
    kind: str,
    instruction: Instruction,
    half: Instruction | None,
    device: int,
    peer: int,
    *,
    path: Path = (),
    launch: str = "",
) -> RuntimeCall:
    """The call of a send or recv, or of its done; `half` is the send or recv, if the done has one."""
    is_send = kind in (SEND, BEGIN_SEND, ACCEPT)
    source, target = (device, peer) if is_send else (peer, device)
    size = 0 if half is None else payload(half).bytes
    start = start_of(instruction) if instruction.opcode in START_OF else instruction
    channel = (half or instruction).attributes.channel_id
    return RuntimeCall(
        kind,
        instruction,
        half,
        start,
        channel=channel,
        source=source,
        target=target,
        bytes=size,
        path=path,
        launch=launch,
    )


def counts_under(runtime: Runtime) -> Callable[[Instruction], bool]:
    """Whether a device stops at an instruction under a runtime: it communicates, or is a custom call that waits."""

    def counts(instruction: Instruction) -> bool:
        return communicates_itself(instruction) or is_waiting_call(runtime, instruction)

    return counts


def is_waiting_call(runtime: Runtime, instruction: Instruction) -> bool:
    """Whether an instruction is a custom call that synchronizes its device, or holds threads of its host."""
    if instruction.opcode != "custom_call":
        return False
    if instruction.attributes.custom_call_target in runtime.synchronizing:
        return True
    is_function = has_side_effect(instruction) or calls_python(instruction)
    return runtime.threads < float("inf") and is_function and not is_same(instruction)


# ----------------------------------------------------------------------------
# Steps: what a lane of a device does
#
# A lane is a sequence of steps: one for what the device itself does in its order, and one for each of its streams.

POST, AWAIT, TAKE, GIVE = "post", "await", "take", "give"
Lane: TypeAlias = tuple[int, Hashable]  # a device and its stream; None for the order of the device itself

# What a step is about; the report of a stop says the rule.
ARRIVAL, TRANSFER, CREATION, SPLIT = "arrival", "transfer", "creation", "split"
STREAM, LAUNCH, DRAIN, TURN, ITEM = "stream", "launch", "drain", "turn", "item"
LOCK, ROOM, THREADS = "lock", "room", "threads"


@frozen(eq=False)
class LaneStep:
    """A post of an event, a wait for so many of them, or taking or giving back a place of a pool.

    `members` are the devices that post the event. At a post, `meets` is True if the calls that post it form one
    collective or transfer, and so must fit. `purpose` is what a place is taken for, if lanes with one purpose share it.
    """

    act: str
    about: str
    key: Hashable
    call: RuntimeCall | None
    count: int = 1
    members: Group = ()
    meets: bool = False
    purpose: Hashable = None


Launched: TypeAlias = tuple[Lane, tuple[LaneStep, ...]]

# ----------------------------------------------------------------------------
# Launcher: the steps of each call of one device


@define(eq=False)
class Launcher:
    """The steps of the calls of one device, one call after the other; the numbers of its events are counted here."""

    runtime: Runtime
    device: int
    send_buffers: float = 0
    _counts: Counter[Hashable] = field(factory=Counter)
    _created: set[Hashable] = field(factory=set)
    _pending: dict[Hashable, deque[tuple[LaneStep, ...]]] = field(factory=dict)  # by start: the wait of its done
    _running: list[LaneStep] = field(factory=list)  # the waits for all collectives on streams

    @property
    def lane(self) -> Lane:
        return self.device, None

    def begin(self, uses: Iterable[RuntimeCall], devices: Sequence[int]) -> tuple[LaneStep, ...]:
        """The steps before the first call; `uses` are the collectives of the program that the device may reach."""
        steps: list[LaneStep] = []
        if self.runtime.launches == "in_turn":
            mine = [d for d in devices if self.runtime.host_of(d) == self.runtime.host_of(self.device)]
            before = [d for d in mine if d < self.device]
            if before:
                steps.append(LaneStep(AWAIT, TURN, ("ended", before[-1]), None, 1, (before[-1],)))
        if self.runtime.communicators == "start":
            for use in sorted(uses, key=lambda each: (-len(each.group), each.group)):
                steps += self._creation(use)
        return tuple(steps)

    def end(self) -> tuple[LaneStep, ...]:
        """The steps after the last call."""
        return (LaneStep(POST, TURN, ("ended", self.device), None),) if self.runtime.launches == "in_turn" else ()

    def launch(self, call: RuntimeCall) -> Iterator[Launched]:
        """The steps of the next call, by lane; those of the device itself come last."""
        yield from _LAUNCHES[call.kind](self, call)

    def _next(self, *key: Hashable) -> int:
        self._counts[key] += 1
        return self._counts[key]

    # Collectives

    def key_of(self, call: RuntimeCall) -> Hashable:
        """The key within which the collectives of a group are counted."""
        if self.runtime.collectives == "site":
            return call.identity, call.group
        return (None if self.runtime.collectives == "order" else (call.channel, call.launch)), call.group

    def _arrival(self, call: RuntimeCall) -> tuple[LaneStep, LaneStep]:
        """The arrival at a collective, and the wait for all members of its group."""
        key = self.key_of(call)
        met = "met", key, self._next("met", key)
        post = LaneStep(POST, ARRIVAL, met, call, 1, call.group, meets=True)
        return post, LaneStep(AWAIT, ARRIVAL, met, call, len(call.group), call.group)

    def _execution(self, call: RuntimeCall) -> tuple[LaneStep, ...]:
        """The execution of a collective: its place on the device, its arrival, and its end."""
        post, wait = self._arrival(call)
        before, after = self._places(call)
        return (*before, post, wait, *after)

    def _places(self, call: RuntimeCall) -> tuple[list[LaneStep], list[LaneStep]]:
        """The steps that take the places that a collective holds until it ends, and those that give them back."""
        runtime, before, after = self.runtime, list[LaneStep](), list[LaneStep]()
        if runtime.launch_order:
            number = self._next("begun")
            if number > 1:
                before.append(LaneStep(AWAIT, LAUNCH, ("begun", self.device), call, number - 1, (self.device,)))
        for is_limited, about, owner in (
            (runtime.resident < float("inf"), ROOM, self.device),
            (runtime.threads < float("inf"), THREADS, runtime.host_of(self.device)),
        ):
            if is_limited:
                before.append(LaneStep(TAKE, about, (about, owner), call))
                after.append(LaneStep(GIVE, about, (about, owner), call))
        if runtime.launch_order:
            before.append(LaneStep(POST, LAUNCH, ("begun", self.device), call))
        return before, after

    @property
    def _has_streams(self) -> bool:
        runtime = self.runtime
        return (
            runtime.streams != "each" or runtime.launch_order or min(runtime.resident, runtime.threads) < float("inf")
        )

    def _meet(self, call: RuntimeCall) -> Iterator[Launched]:
        if self.runtime.streams == "communicator":
            wait, launched = self._on_stream(call)
            yield from launched
            yield self.lane, (wait,)
        else:
            yield self.lane, (*self._creation(call), *self._execution(call))

    def _start(self, call: RuntimeCall) -> Iterator[Launched]:
        if self._has_streams:
            wait, launched = self._on_stream(call)
            yield from launched
        else:
            post, wait = self._arrival(call)
            yield self.lane, (*self._creation(call), post)
        self._running.append(wait)
        self._pending.setdefault((call.begun, call.part), deque()).append((wait,))

    def _on_stream(self, call: RuntimeCall) -> tuple[LaneStep, tuple[Launched, ...]]:
        """The wait for a collective on a stream, and its launch."""
        number = self._next("launched")
        stream = {"each": ("start", number), "communicator": call.group, "one": "one"}[self.runtime.streams]
        launched, done = ("launched", self.device, number), ("done", self.device, number)
        wait = LaneStep(AWAIT, STREAM, launched, call, 1, (self.device,))
        steps = (wait, *self._execution(call), LaneStep(POST, STREAM, done, call))
        launch = (*self._creation(call), LaneStep(POST, STREAM, launched, call))
        return LaneStep(AWAIT, STREAM, done, call, 1, (self.device,)), (
            ((self.device, stream), steps),
            (self.lane, launch),
        )

    def _done(self, call: RuntimeCall) -> Iterator[Launched]:
        yield self.lane, _at(call, self._pending[call.begun, call.part].popleft())

    # Communicators

    def _creation(self, call: RuntimeCall) -> tuple[LaneStep, ...]:
        """The creation of the communicator of the group of a collective, if this use is the first."""
        group, groups = call.group, call.groups
        if self.runtime.communicators == "exist" or len(group) < 2 or group in self._created:
            return ()
        self._created.add(group)
        is_split = self.runtime.communicators == "split" and len(groups) > 1
        members = tuple(sorted({each for one in groups for each in one})) if is_split else group
        about, key = (SPLIT, ("split", frozenset(groups))) if is_split else (CREATION, ("created", group))
        return self._locked(
            (LaneStep(POST, about, key, call, 1, members), LaneStep(AWAIT, about, key, call, len(members), members))
        )

    def _locked(self, steps: tuple[LaneStep, ...]) -> tuple[LaneStep, ...]:
        if not self.runtime.creation_lock:
            return steps
        key, call, purpose = (LOCK, self.runtime.host_of(self.device)), steps[0].call, steps[0].key
        return (LaneStep(TAKE, LOCK, key, call, purpose=purpose), *steps, LaneStep(GIVE, LOCK, key, call))

    def _pair_creation(self, call: RuntimeCall) -> tuple[LaneStep, ...]:
        pair = tuple(sorted((call.source, call.target)))
        if not self.runtime.pair_communicators or ("pair", pair) in self._created:
            return ()
        self._created.add(("pair", pair))
        key = "created", "pair", pair
        return self._locked(
            (LaneStep(POST, CREATION, key, call, 1, pair), LaneStep(AWAIT, CREATION, key, call, 2, pair))
        )

    # Transfers

    def ends_of(self, call: RuntimeCall) -> Hashable:
        """The key within which the sends and recvs from one device to another are counted."""
        by_channel = self.runtime.transfers == "channel"
        return (call.channel if by_channel else None), call.source, call.target

    def _accepted(self, call: RuntimeCall, number: int) -> tuple[LaneStep, ...]:
        """The wait of the n-th send for a posted recv; none if the send is eager or has a buffer."""
        needed = number - int(min(self.send_buffers, number))
        is_eager = 0 < self.runtime.eager_bytes >= call.bytes
        if is_eager or not needed:
            return ()
        return (LaneStep(AWAIT, TRANSFER, ("posted", self.ends_of(call)), call, needed, (call.target,)),)

    def _fit(self, call: RuntimeCall, number: int) -> LaneStep:
        """The post that compares a send with its recv."""
        key = "fit", self.ends_of(call), number
        return LaneStep(POST, TRANSFER, key, call, 1, (call.source, call.target), meets=True)

    def _sent(self, call: RuntimeCall, number: int) -> tuple[LaneStep, ...]:
        return self._fit(call, number), LaneStep(POST, TRANSFER, ("sent", self.ends_of(call)), call)

    def _send(self, call: RuntimeCall) -> Iterator[Launched]:
        number = self._next("sent", self.ends_of(call))
        yield self.lane, (*self._pair_creation(call), *self._accepted(call, number), *self._sent(call, number))

    def _begin_send(self, call: RuntimeCall) -> Iterator[Launched]:
        number = self._next("sent", self.ends_of(call))
        self._pending.setdefault((call.begun, call.part), deque()).append(self._accepted(call, number))
        yield self.lane, (*self._pair_creation(call), *self._sent(call, number))

    def _accept(self, call: RuntimeCall) -> Iterator[Launched]:
        yield self.lane, _at(call, self._pending[call.begun, call.part].popleft())

    def _recv(self, call: RuntimeCall) -> Iterator[Launched]:
        ends = self.ends_of(call)
        number = self._next("posted", ends)
        wait = LaneStep(AWAIT, TRANSFER, ("sent", ends), call, number, (call.source,))
        self._pending.setdefault(("recv", call.channel, call.source), deque()).append((wait,))
        yield (
            self.lane,
            (*self._pair_creation(call), self._fit(call, number), LaneStep(POST, TRANSFER, ("posted", ends), call)),
        )

    def _recv_done(self, call: RuntimeCall) -> Iterator[Launched]:
        yield self.lane, _at(call, self._pending["recv", call.channel, call.source].popleft())

    # The host

    def _custom(self, call: RuntimeCall) -> Iterator[Launched]:
        steps: tuple[LaneStep, ...] = ()
        if call.instruction.attributes.custom_call_target in self.runtime.synchronizing:
            steps = tuple(evolve(step, about=DRAIN, call=call) for step in self._running)
            self._running.clear()
        if self.runtime.threads < float("inf"):
            key = THREADS, self.runtime.host_of(self.device)
            count = 1 + self.runtime.callback_threads
            steps += (LaneStep(TAKE, THREADS, key, call),) * count + (LaneStep(GIVE, THREADS, key, call),) * count
        yield self.lane, steps

    def _infeed(self, call: RuntimeCall) -> Iterator[Launched]:
        yield self.lane, (LaneStep(AWAIT, ITEM, ("item", self.device), call, 1, ()),)


def _at(call: RuntimeCall, steps: Iterable[LaneStep]) -> tuple[LaneStep, ...]:
    """The waits that an earlier call left to this one."""
    return tuple(evolve(step, call=call) for step in steps)


_LAUNCHES: Mapping[str, Callable[[Launcher, RuntimeCall], Iterator[Launched]]] = {
    MEET: Launcher._meet,
    START: Launcher._start,
    DONE: Launcher._done,
    SEND: Launcher._send,
    RECV: Launcher._recv,
    RECV_DONE: Launcher._recv_done,
    BEGIN_SEND: Launcher._begin_send,
    ACCEPT: Launcher._accept,
    CUSTOM: Launcher._custom,
    INFEED: Launcher._infeed,
}
