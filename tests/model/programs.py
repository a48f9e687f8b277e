"""Programs of the model: lists of communicating ops on several devices, with loops, branches and calls around them."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

Groups = tuple[tuple[int, ...], ...]
Data = tuple[tuple[int, ...], ...]  # for each device the numbers that it is given, one for each slot


@frozen
class Decision:
    """How often a loop runs or which branch is taken.

    `known`: by device, written into the program; `own`: each device's number in a slot of its data; `agreed`: the
    largest number in that slot of all devices, which they have told each other before. With `turns` it is 0 or 1
    in each trip of the loop around it: one more than in the trip before where it is known, else a bit of the number.
    """

    kind: str
    slot: int = 0
    known: tuple[int, ...] = ()
    turns: bool = False

    def of(self, device: int, data: Data, trip: int = 0) -> int:
        if self.kind == "known":
            number = self.known[device]
        elif self.kind == "agreed":
            number = max(row[self.slot] for row in data)
        else:
            number = data[device][self.slot]
        if not self.turns:
            return number
        return (number + trip) % 2 if self.kind == "known" else number >> trip & 1


@frozen
class Op:
    """One op of a list; `after` are the names of the ops of its list that it comes after.

    `word`: send, send_done, recv, recv_done, meet (a collective), start, done, infeed, agree, loop, scan, choice or
    call. `number` is the channel. A loop has two lists inside (condition, body), a choice its branches, a scan, whose
    trips are known, and a call have one.
    """

    word: str
    name: str
    number: int = 0
    pairs: tuple[tuple[int, int], ...] = ()
    groups: Groups = ()
    after: frozenset[str] = frozenset()
    decision: Decision | None = None
    inside: tuple[Ops, ...] = ()

    @property
    def feeds(self) -> bool:
        """Whether it takes items of the infeed, which come in their order."""
        return self.word == "infeed" or any(op.feeds for ops in self.inside for op in ops)


Ops = tuple[Op, ...]


@frozen
class Program:
    """The ops of each device; of one program for all (`is_one`) they are the same, only decisions differ.

    `is_given`: the lists are the order; otherwise any order that keeps `after` is legal, on each device its own.
    `domains` are for each slot of the data the numbers that it may hold. `infeed` is how many items each device gets.
    """

    lists: tuple[Ops, ...]
    is_one: bool
    is_given: bool
    domains: tuple[tuple[int, ...], ...] = ()
    send_buffers: int = 0
    infeed: tuple[int, ...] | None = None

    @property
    def devices(self) -> int:
        return len(self.lists)


def every(ops: Ops) -> Iterator[Op]:
    """All ops of a list, those inside of others too."""
    for op in ops:
        yield op
        for inner in op.inside:
            yield from every(inner)
