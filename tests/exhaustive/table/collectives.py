"""Collectives alone: their order, who calls them, what they are called with, starts and dones."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from .case import Case, alike, ranked
from .writer import KINDS, Call, Lines

RANKS = (2, 3, 4)


def rows() -> Iterator[Case]:
    yield from order()
    yield from order_in_background()
    yield from missing_call()
    yield from mismatch()
    yield from groups()
    yield from waits()


def order() -> Iterator[Case]:
    """Two collectives; one rank calls them the other way round. The guilty are those two, not who waits behind them."""
    for first, second, ranks in itertools.product(KINDS, KINDS, RANKS):
        a, b, last = Call(first, 1), Call(second, 2), Call("all-reduce", 3, "after")
        for odd in {0, ranks - 1}:
            for is_faulty in (True, False):

                def program(lines: Lines, rank: int) -> None:
                    calls = [a, b] if rank != odd or not is_faulty else [b, a]
                    for call in (*calls, last):
                        lines.call(call)

                truth = "refused" if is_faulty else "ok"
                name = f"{first}, {second}, rank {odd} {'the other way round' if is_faulty else 'alike'}"
                if is_faulty or odd == 0:
                    yield ranked("collective order", name, truth, ranks, program, {a.name, b.name})


def order_in_background() -> Iterator[Case]:
    """A collective that is begun and one that blocks: only the done must not come before what the others wait in."""
    for first, second, ranks in itertools.product(KINDS, KINDS[:3], (2, 3)):
        a, b = Call(first, 1), Call(second, 2)
        names = {f"{a.name}.start", f"{a.name}.done", b.name}
        for is_faulty in (True, False):

            def program(lines: Lines, rank: int) -> None:
                if rank == 0:
                    lines.start(a)
                    (lines.done(a), lines.call(b)) if is_faulty else (lines.call(b), lines.done(a))
                else:
                    lines.call(b)
                    lines.start(a)
                    lines.done(a)

            truth = "refused" if is_faulty else "ok"
            name = f"{first} in the background, {second}, its done {'first' if is_faulty else 'last'}"
            yield ranked("collective order", name, truth, ranks, program, names)


def missing_call() -> Iterator[Case]:
    """One rank does not call what all others call, or alone calls what nobody else does."""
    for kind, ranks, form in itertools.product(KINDS, RANKS, ("missing", "extra", "all")):
        call, before, last = Call(kind, 1), Call("all-reduce", 2, "before"), Call("all-gather", 3, "after")

        def program(lines: Lines, rank: int) -> None:
            lines.call(before)
            if form == "all" or (rank == 0) == (form == "extra"):
                lines.call(call)
            lines.call(last)

        truth = "ok" if form == "all" else "refused"
        yield ranked("missing member", f"{kind}, {form} on rank 0", truth, ranks, program, {call.name})


def mismatch() -> Iterator[Case]:
    """One rank calls it with another argument: shape, type, reducer, root, pairs, groups, channel, kind."""
    for kind, ranks in itertools.product(KINDS, RANKS):
        for number, (what, other) in enumerate(_others(kind, ranks)):
            call, last = Call(kind, 1), Call("all-reduce", 3, "after")
            for is_faulty in (True, False):

                def program(lines: Lines, rank: int) -> None:
                    lines.call(other if is_faulty and rank == ranks - 1 else call)
                    lines.call(last)

                truth = "refused" if is_faulty else "ok"
                shown = f": {other.reducer}, {other.groups or other.pairs}, {number}" if is_faulty else ""
                name = f"{kind}, {what} {'differs' if is_faulty else 'the same'}{shown}"
                if is_faulty or what == "shape":
                    yield ranked(f"mismatched {what}", name, truth, ranks, program, {call.name, other.name})


def _others(kind: str, ranks: int) -> Iterator[tuple[str, Call]]:
    every = tuple(range(ranks))
    yield "shape", Call(kind, 1, size=24)
    yield "type", Call(kind, 1, type="s32")
    if kind in ("all-reduce", "reduce-scatter"):
        for reducer in ("maximum", "minimum", "multiply"):
            yield "operator", Call(kind, 1, reducer=reducer)
    if kind == "collective-broadcast":
        yield "root", Call(kind, 1, groups=((*every[1:], 0),))
    if kind == "collective-permute":
        yield (
            "pairs",
            Call(kind, 1, pairs=tuple((rank, (rank - 1) % ranks) for rank in every) if ranks > 2 else ((0, 1),)),
        )
        yield "pairs", Call(kind, 1, pairs=((0, 1),))
    elif kind in ("all-reduce", "collective-broadcast"):
        yield "groups", Call(kind, 1, groups=tuple((rank,) for rank in every))
        if ranks > 2:
            yield "groups", Call(kind, 1, groups=((0,), every[1:]))
    if kind in ("all-reduce", "all-gather", "reduce-scatter"):
        yield "channel", Call(kind, 1, channel=7, stem="other")
        yield "kind", Call("all-gather" if kind == "all-reduce" else "all-reduce", 1)


def groups() -> Iterator[Case]:
    """Groups that name a rank that is none, name one twice, leave one out, or are empty."""
    for kind, ranks in itertools.product(KINDS[:4], RANKS):
        every = tuple(range(ranks))
        wrong = {
            "out of range": ((*every[:-1], ranks),),
            "twice": ((*every, 0),),
            "left out": (every[:-1],),
            "empty": (every, ()),
        }
        for what, lists in wrong.items():
            call = Call(kind, 1, groups=lists)
            yield _of_groups(f"{kind}, {what}", "refused", ranks, call)
        yield _of_groups(f"{kind}, all", "ok", ranks, Call(kind, 1, groups=(every[::-1],)))
    for what, pairs in {
        "source out of range": ((2, 0),),
        "target out of range": ((0, 2),),
        "target twice": ((0, 1), (1, 1)),
        "source twice": ((0, 1), (0, 0)),
    }.items():
        yield _of_groups(f"collective-permute, {what}", "refused", 2, Call("collective-permute", 1, pairs=pairs))
    yield _of_groups("collective-permute, itself", "ok", 2, Call("collective-permute", 1, pairs=((0, 0), (1, 1))))


def _of_groups(name: str, truth: str, ranks: int, call: Call) -> Case:
    def program(lines: Lines) -> None:
        lines.call(Call("all-reduce", 5, "before"))
        lines.call(call)

    return alike("communicator", name, truth, ranks, program, {call.name})


def waits() -> Iterator[Case]:
    """A start without a done, two dones of a start, and the right number."""
    for kind, ranks, dones in itertools.product(KINDS, (2, 3), (0, 1, 2)):
        call = Call(kind, 1)

        def program(lines: Lines) -> None:
            lines.start(call)
            lines.call(Call("all-reduce", 3, "meanwhile"))
            for number in range(dones):
                lines.done(call, f".done{number}")

        truth = "ok" if dones == 1 else "refused"
        names = {f"{call.name}.start", f"{call.name}.done0", f"{call.name}.done1"}
        yield alike("missing wait", f"{kind}, {dones} dones", truth, ranks, program, names)
    for kind, ranks in itertools.product(KINDS, (2, 3)):
        yield _done_alone(Call(kind, 1), ranks)


def _done_alone(call: Call, ranks: int) -> Case:
    """A done of what is no start."""

    def program(lines: Lines) -> None:
        lines.add(f"{call.name}.start", "f32[12] negate(x)")
        lines.done(call)

    return alike(
        "missing wait", f"{call.kind}, a done without a start", "refused", ranks, program, {f"{call.name}.done"}
    )
