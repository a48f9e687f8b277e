"""The waiting rules: which events each communicating instruction has, and which event each of them waits for.

The static checker and logical time read this table. The runtime and the models of the tests state the same rules
independently, so that tests can compare the table with them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from attrs import field, frozen

from shape_inference import TupleShape

from ..core.graph import Instruction
from .effects import COLLECTIVES, DONE_OF, FEEDS, MEETS, START_OF, TRANSFERS, grouped_in

# The counters of events: within one of these, the n-th of one kind waits for the n-th of another.
CHANNEL = "channel"  # a channel from one device to another; an event waits for the device at the other end
COLLECTIVE = "collective"  # a collective and a group; an event waits for every member of the group
FEED = "feed"  # the infeed of one device; an event waits for the host
HOST = "host"  # a function of the host; an event waits for another of the same device

# The device at which an event of a channel happens.
SOURCE, TARGET = "source", "target"


@frozen(eq=False)
class EventKind:
    """A kind of event: within what it is counted, at which end of a channel it happens, and what it waits for.

    The n-th event waits for the n-th of the kind `awaits`; where it `is_buffered`, with `send_buffers=b`, for the one
    numbered n - b, and the first b for none.
    """

    name: str
    within: str
    end: str = ""
    awaits: EventKind | None = None
    is_buffered: bool = False
    role: str = field(init=False)  # the half that a device has in the transfer

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "role", "send" if self.end == SOURCE else "recv")

    def needed(self, number: int, send_buffers: float) -> int:
        """How many events of the awaited kind come before the event with this number, counted from 1."""
        return number - int(min(send_buffers, number)) if self.is_buffered else number


POSTED = EventKind("posted", CHANNEL, TARGET)
SENT = EventKind("sent", CHANNEL, SOURCE, awaits=POSTED, is_buffered=True)
RECEIVED = EventKind("received", CHANNEL, TARGET, awaits=SENT)
ACCEPTED = EventKind("accepted", CHANNEL, SOURCE, awaits=POSTED, is_buffered=True)  # of a send of a group, at its done
ARRIVED = EventKind("arrived", COLLECTIVE)
COMPLETED = EventKind("completed", COLLECTIVE, awaits=ARRIVED)
SUPPLIED = EventKind("supplied", FEED)  # by the host, as often as `check(..., infeed=...)` says
TAKEN = EventKind("taken", FEED, awaits=SUPPLIED)
OPERAND = EventKind("operand", HOST)  # of a send whose other end is a function of the host
RESULT = EventKind("result", HOST, awaits=OPERAND)  # of the recv-done for it: after all operands of its round

# The events of an instruction by the kind of its site, in order.
EVENTS: Mapping[str, tuple[EventKind, ...]] = {
    "recv": (POSTED,),
    "send": (SENT,),
    "send_done": (),
    "recv_done": (RECEIVED,),
    "start": (ARRIVED,),
    "meet": (ARRIVED, COMPLETED),
    "done": (COMPLETED,),
    "infeed": (TAKEN,),
    "outfeed": (),
}

# The kind of site by opcode.
KINDS: Mapping[str, str] = {
    **dict.fromkeys(COLLECTIVES, "meet"),
    **dict.fromkeys(DONE_OF, "start"),
    **dict.fromkeys(START_OF, "done"),
    **{opcode: opcode for opcode in (*FEEDS, *TRANSFERS, *TRANSFERS.values())},
}


_OF_OPCODE = {opcode: EVENTS[kind] for opcode, kind in KINDS.items()}


def events_of(instruction: Instruction) -> tuple[EventKind, ...]:
    """The events of an instruction that communicates, in order."""
    if instruction.opcode == "infeed" and not takes_item(instruction):
        return ()
    return _OF_OPCODE[instruction.opcode]


def takes_item(infeed: Instruction) -> bool:
    """Whether an infeed takes an item: that of an empty tuple does not."""
    return infeed.attributes.shape != TupleShape()  # type: ignore[no-any-return]


def _opcodes(kinds: set[str]) -> frozenset[str]:
    return frozenset(opcode for opcode, kind in KINDS.items() if kind in kinds)


_AWAITED = {event.awaits for events in EVENTS.values() for event in events}

# Opcodes without events: they wait for no device, and no device waits for them.
SILENT = _opcodes({kind for kind, events in EVENTS.items() if not events})

# Opcodes that wait for no device, and for which others wait: running one earlier blocks no device.
POSTING = _opcodes({kind for kind, events in EVENTS.items() if events and not any(each.awaits for each in events)})

# Opcodes that wait for devices, and for which no device waits: running one later blocks no device.
COMPLETING = _opcodes({
    kind
    for kind, events in EVENTS.items()
    if events and all(each.awaits and each.within != FEED and each not in _AWAITED for each in events)
})  # fmt: skip


def in_sequence(instruction: Instruction) -> Hashable | None:
    """The sequence that an instruction is in, whose order every schedule keeps; None where it is in none.

    A sequence is each feed, each half of a channel, and the calls of one collective: so the n-th event of a kind is
    the same event in every schedule.
    """
    if instruction.opcode in FEEDS:
        return instruction.opcode
    if instruction.opcode in TRANSFERS:
        return instruction.opcode, instruction.attributes.channel_id
    return instruction if instruction.opcode in MEETS or instruction.opcode == "async_start" else None


def sequences_of(instruction: Instruction) -> tuple[Hashable, ...]:
    """The sequences that an instruction is in, itself and by what it starts together."""
    if instruction.opcode in TRANSFERS:  # of most instructions
        return ((instruction.opcode, instruction.attributes.channel_id),)
    found = map(in_sequence, (instruction, *grouped_in(instruction)))
    return tuple([sequence for sequence in found if sequence is not None])
