"""What decides whether, or how often, a call is made: data, ranks, constants, what all have agreed on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from .case import Case, alike, ranked
from .writer import KINDS, Call, Lines

# What the predicate is made of, and whether the call is made by all: never sure where each rank has data of its own.
DECIDERS = ("own data", "agreed data", "rank", "constant", "number of ranks")
TRUTHS = {"own data": "depends", "agreed data": "ok", "rank": "refused", "constant": "ok", "number of ranks": "ok"}


def rows() -> Iterator[Case]:
    yield from branches()
    yield from transfers_in_branches()
    yield from different_branches()
    yield from branches_of_modules()
    yield from loops()
    yield from loops_of_modules()
    yield from transfers_in_loops()


def _predicate(lines: Lines, decider: str, number: int = 0) -> str:
    if decider == "own data":
        return lines.compare(lines.own(), "GT", number)
    if decider == "agreed data":
        return lines.compare(lines.agreed(90 + number), "GT", number)
    if decider == "rank":
        return lines.compare(lines.my_rank(), "EQ", number)
    if decider == "constant":
        return lines.compare(lines.constant(1), "GT", number)
    return lines.compare(lines.my_rank(), "LT", lines.ranks)


def branches() -> Iterator[Case]:
    """A collective in one branch of a conditional."""
    for kind, ranks, decider in itertools.product(KINDS, (2, 3, 4), DECIDERS):
        for is_nested in (False, True):
            call, last = Call(kind, 1), Call("all-reduce", 9, "after")

            def program(lines: Lines) -> None:
                def body(inside: Lines) -> None:
                    inside.call(call)

                taken = (lambda inside: inside.nested("inner", body)) if is_nested else body
                lines.branch("choice", _predicate(lines, decider), taken)
                lines.call(last)

            name = f"{kind} in a branch{' of a call' * is_nested}, decided by {decider}"
            yield alike("input hazard", name, TRUTHS[decider], ranks, program, {call.name, "choice"})


def transfers_in_branches() -> Iterator[Case]:
    """A send and its recv in one branch, which all enter or not."""
    for ranks, decider in itertools.product((2, 3, 4), DECIDERS):

        def program(lines: Lines) -> None:
            def body(inside: Lines) -> None:
                inside.recv(1, pairs="{{0,1}}")
                inside.send(1, pairs="{{0,1}}")
                inside.send_done(1)
                inside.recv_done(1)

            lines.branch("choice", _predicate(lines, decider), body)
            lines.call(Call("all-reduce", 9, "after"))

        names = {"send1", "recv1", "recv_done1", "choice"}
        yield alike(
            "input hazard", f"a transfer in a branch, decided by {decider}", TRUTHS[decider], ranks, program, names
        )


def different_branches() -> Iterator[Case]:
    """Another collective in each branch: two calls that are not one."""
    for first, second, decider in itertools.product(KINDS, KINDS[:2], DECIDERS):
        a, b = Call(first, 1), Call(second, 2)

        def program(lines: Lines) -> None:
            predicate = _predicate(lines, decider)
            lines.branch("choice", predicate, lambda inside: inside.call(a), lambda inside: inside.call(b))

        name = f"{first} in one branch, {second} in the other, decided by {decider}"
        yield alike("input hazard", name, TRUTHS[decider], 2, program, {a.name, b.name, "choice"})


def branches_of_modules() -> Iterator[Case]:
    """All ranks have the call in a branch; one of them decides by data of its own, or takes another branch for sure."""
    for kind, ranks, decider in itertools.product(KINDS, (2, 3), ("own data", "never", "always")):
        call = Call(kind, 1)

        def program(lines: Lines, rank: int) -> None:
            mine = decider if rank == ranks - 1 else "always"
            if mine == "own data":
                predicate = _predicate(lines, mine)
            else:
                predicate = lines.compare(lines.constant(int(mine == "always")), "EQ", 1)
            lines.branch("choice", predicate, lambda inside: inside.call(call))
            lines.call(Call("all-reduce", 9, "after"))

        truth = {"own data": "depends", "never": "refused", "always": "ok"}[decider]
        names = {call.name, "choice"}
        name = f"{kind} in branches, rank {ranks - 1} {decider}"
        yield ranked("input hazard", name, truth, ranks, program, names)


def loops() -> Iterator[Case]:
    """A collective in a loop: trips by data, by rank, by what all agree on."""
    truths = {"own data": "depends", "agreed data": "ok", "rank": "refused", "constant": "ok", "number of ranks": "ok"}
    for kind, ranks, decider in itertools.product(KINDS, (2, 3, 4), DECIDERS):
        call = Call(kind, 1)

        def program(lines: Lines) -> None:
            trips = {
                "own data": lines.own,
                "agreed data": lambda: lines.agreed(90),
                "rank": lines.my_rank,
                "constant": lambda: lines.constant(2),
                "number of ranks": lambda: lines.constant(lines.ranks),
            }[decider]()
            lines.loop("repeat", trips, lambda inside: inside.call(call))
            lines.call(Call("all-reduce", 9, "after"))

        name = f"{kind} in a loop, trips by {decider}"
        yield alike("unequal trips", name, truths[decider], ranks, program, {call.name, "repeat"})


def loops_of_modules() -> Iterator[Case]:
    """One rank makes more trips, or fewer, or none."""
    for kind, ranks, trips in itertools.product(KINDS, (2, 3), (0, 1, 2, 3)):
        call = Call(kind, 1)

        def program(lines: Lines, rank: int) -> None:
            count = lines.constant(trips if rank == 0 else 2)
            lines.loop("repeat", count, lambda inside: inside.call(call))
            lines.call(Call("all-reduce", 9, "after"))

        names = {call.name, "repeat"}
        truth = "ok" if trips == 2 else "refused"
        yield ranked("unequal trips", f"{kind}, rank 0 {trips} trips, others 2", truth, ranks, program, names)


def transfers_in_loops() -> Iterator[Case]:
    """More messages are sent than received, or fewer."""
    for sent, taken, buffers in itertools.product((1, 2, 3), (1, 2, 3), (0, 1)):

        def program(lines: Lines, rank: int) -> None:
            if rank == 0:
                lines.loop("sends", lines.constant(sent), lambda inside: inside.blocking_send(1))
            else:
                lines.loop("recvs", lines.constant(taken), lambda inside: inside.blocking_recv(1))

        ends = sent == taken or (sent > taken and sent - taken <= buffers)
        if sent != taken and ends:
            continue  # what is left in a buffer at the end is a matter of taste
        names = {"send1", "recv1", "recv_done1", "sends", "recvs"}
        name = f"{sent} sent, {taken} received, buffer of {buffers}"
        yield ranked("unequal trips", name, "ok" if ends else "refused", 2, program, names, send_buffers=buffers)
