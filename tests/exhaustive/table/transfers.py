"""Sends and recvs: their order, buffers, collectives between them, peers, what is sent, dones."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from .case import Case, alike, ranked
from .writer import KINDS, Call, Lines, braces

ENDLESS = 8


def rows() -> Iterator[Case]:
    yield from crossed()
    yield from rings()
    yield from channels()
    yield from repeated()
    yield from with_collective()
    yield from halves()
    yield from arguments()
    yield from peers()
    yield from dones()


def crossed() -> Iterator[Case]:
    """Two ranks that send to each other: who waits first, and how much is buffered."""
    for forms in itertools.product(_FORMS, _FORMS):
        for buffers, ranks in itertools.product((0, 1), (2, 3)):
            ends = _crossed_ends(forms, buffers)

            def program(lines: Lines, rank: int) -> None:
                if rank < 2:
                    _FORMS[forms[rank]](lines, rank + 1, 2 - rank)
                lines.call(Call("all-reduce", 9, "after"))

            names = {f"{word}{n}" for word in ("send", "recv", "recv_done") for n in (1, 2)}
            name = f"rank 0 {forms[0]}, rank 1 {forms[1]}, buffer of {buffers}"
            truth = "ok" if ends else "refused"
            yield ranked("buffering", name, truth, ranks, program, names, send_buffers=buffers)


def _send_recv(lines: Lines, out: int, into: int) -> None:
    lines.blocking_send(out)
    lines.blocking_recv(into)


def _recv_send(lines: Lines, out: int, into: int) -> None:
    lines.blocking_recv(into)
    lines.blocking_send(out)


def _posted(lines: Lines, out: int, into: int) -> None:
    lines.recv(into)
    lines.blocking_send(out)
    lines.recv_done(into)


_FORMS = {"sends first": _send_recv, "receives first": _recv_send, "posts first": _posted}


def _crossed_ends(forms: tuple[str, str], buffers: int) -> bool:
    """Both wait in their recv-done for ever, or both in their sends; one that posts first lets the other pass."""
    if forms == ("receives first", "receives first"):
        return False
    return forms != ("sends first", "sends first") or buffers > 0


def rings() -> Iterator[Case]:
    """A ring in which all send first, all receive first, one breaks it, or all post."""
    for ranks, buffers in itertools.product((2, 3, 4), (0, 1)):
        for form in ("sends first", "receives first", "posts first", "broken by one", "a chain"):

            def program(lines: Lines, rank: int) -> None:
                out, into = rank + 1, (rank - 1) % ranks + 1
                if form == "a chain":
                    if rank > 0:
                        lines.blocking_recv(into)
                    if rank < ranks - 1:
                        lines.blocking_send(out)
                elif form == "broken by one":
                    _FORMS["sends first" if rank else "receives first"](lines, out, into)
                else:
                    _FORMS[form](lines, out, into)

            is_stuck = form == "receives first" or (form == "sends first" and not buffers)
            names = {f"{word}{n}" for word in ("send", "recv", "recv_done") for n in range(1, 5)}
            truth = "refused" if is_stuck else "ok"
            name = f"ring, {form}, buffer of {buffers}"
            yield ranked("P2P order", name, truth, ranks, program, names, send_buffers=buffers)


def channels() -> Iterator[Case]:
    """Several messages from rank 0 to rank 1, which takes them in some order."""
    for count, buffers in itertools.product((2, 3), (0, 1)):
        for order in itertools.permutations(range(1, count + 1)):
            for is_posted in (False, True):

                def program(lines: Lines, rank: int) -> None:
                    lines.call(Call("all-reduce", 9, "before"))
                    if rank == 0:
                        for channel in range(1, count + 1):
                            lines.blocking_send(channel)
                    elif is_posted:
                        for channel in order:
                            lines.recv(channel)
                        for channel in order:
                            lines.recv_done(channel)
                    else:
                        for channel in order:
                            lines.blocking_recv(channel)

                ends = is_posted or buffers > 0 or order == tuple(sorted(order))
                names = {f"{word}{n}" for word in ("send", "recv", "recv_done") for n in order}
                name = f"messages taken as {order}{', all posted' * is_posted}, buffer of {buffers}"
                truth = "ok" if ends else "refused"
                yield ranked("P2P order", name, truth, 2, program, names, send_buffers=buffers)


def repeated() -> Iterator[Case]:
    """A loop of sends before a loop of recvs on both sides: as many buffers as trips are needed."""
    for trips, buffers in itertools.product((1, 2, 3), (0, 1, 2, 3)):

        def program(lines: Lines, rank: int) -> None:
            out, into = rank + 1, 2 - rank
            lines.loop(f"sends_{rank}", lines.constant(trips), lambda inside: inside.blocking_send(out))
            lines.loop(f"recvs_{rank}", lines.constant(trips), lambda inside: inside.blocking_recv(into))

        names = {f"{word}{n}" for word in ("send", "recv", "recv_done") for n in (1, 2)}
        names |= {f"{word}_{rank}" for word in ("sends", "recvs") for rank in (0, 1)}
        truth = "ok" if buffers >= trips else "refused"
        name = f"{trips} messages, buffer of {buffers}"
        yield ranked("buffering", name, truth, 2, program, names, send_buffers=buffers)


def with_collective() -> Iterator[Case]:
    """A collective between a send and its recv: on the one side before, on the other behind."""
    for kind, ranks, buffers in itertools.product(KINDS, (2, 3), (0, 1)):
        call, last = Call(kind, 2), Call("all-reduce", 9, "after")
        for sender, taker in itertools.product(("before", "behind"), ("before", "behind", "posted")):

            def program(lines: Lines, rank: int) -> None:
                place = (sender, taker)[rank] if rank < 2 else "none"
                step = lines.blocking_send if rank == 0 else lines.blocking_recv
                if place == "before":
                    step(1)
                elif place == "posted":
                    lines.recv(1)
                lines.call(call)
                if place == "behind":
                    step(1)
                elif place == "posted":
                    lines.recv_done(1)
                lines.call(last)

            ends = taker != "before" if sender == "behind" else taker != "behind" or buffers > 0
            names = {"send1", "recv1", "recv_done1", call.name}
            name = f"{kind}, send {sender}, recv {taker}, buffer of {buffers}"
            truth = "ok" if ends else "refused"
            yield ranked("collective and P2P", name, truth, ranks, program, names, send_buffers=buffers)


def halves() -> Iterator[Case]:
    """A send without a recv, a recv without a send, two of a kind."""
    for ranks, what in itertools.product((2, 3, 4), ("no recv", "no send", "two recvs", "two sends", "both")):

        def program(lines: Lines, rank: int) -> None:
            if rank == 0 and what != "no send":
                lines.blocking_send(1)
            if rank == ranks - 1 and what != "no recv":
                lines.blocking_recv(1)
            if rank == 0 and what == "two recvs":
                _again(lines, "recv")
            if rank == ranks - 1 and what == "two sends":
                _again(lines, "send")
            lines.call(Call("all-reduce", 9, "after"))

        truth = "ok" if what == "both" else "refused"
        names = {"send1", "recv1", "send_again", "recv_again"}
        yield ranked("missing partner", what, truth, ranks, program, names)


def _again(lines: Lines, word: str) -> None:
    token = lines.add(lines.fresh("token"), "token[] after-all()")
    operands = f"x, {token}" if word == "send" else token
    lines.add(f"{word}_again", f"(f32[12], u32[], token[]) {word}({operands}), channel_id=1")
    result = "token[]" if word == "send" else "(f32[12], token[])"
    lines.add(f"{word}_again_done", f"{result} {word}-done({word}_again), channel_id=1")


def arguments() -> Iterator[Case]:
    """What is sent is not what is received."""
    for ranks, (what, of, size) in itertools.product(
        (2, 3), (("shape", "f32", 24), ("type", "s32", 12), ("type", "f16", 12), ("same", "f32", 12))
    ):
        for odd in (0, 1):

            def program(lines: Lines, rank: int) -> None:
                other = (of, size) if rank == odd else ("f32", 12)
                if rank == 0:
                    lines.send(1, *other)
                    lines.send_done(1)
                elif rank == 1:
                    lines.recv(1, *other)
                    lines.recv_done(1, of=other[0], size=other[1])

            truth = "ok" if what == "same" else "refused"
            name = f"{of}[{size}] on rank {odd} against f32[12]"
            yield ranked(f"P2P {what}", name, truth, ranks, program, {"send1", "recv1"})


def peers() -> Iterator[Case]:
    """Pairs that name a rank that is none, the rank itself, or one twice."""
    pairs = {
        "to one that is none": (((0, 9),), "refused"),
        "from one that is none": (((9, 0),), "refused"),
        "to itself": (((0, 0),), "refused"),
        "one source twice": (((0, 1), (0, 2)), "refused"),
        "one target twice": (((0, 2), (1, 2)), "refused"),
        "next": (((0, 1), (1, 2)), "ok"),
    }
    for ranks, (what, (lists, truth)) in itertools.product((3, 4), pairs.items()):

        def program(lines: Lines) -> None:
            lines.call(Call("all-reduce", 9, "before"))
            lines.recv(1, pairs=braces(lists))
            lines.send(1, pairs=braces(lists))
            lines.send_done(1)
            lines.recv_done(1)

        yield alike("invalid peer", what, truth, ranks, program, {"send1", "recv1"})
    for ranks, place in itertools.product((3, 4), (1, 2)):

        def told(lines: Lines, rank: int) -> None:
            if rank == 0:
                lines.send(1, pairs="{{0,1}}")
                lines.send_done(1)
            elif rank == place:
                lines.recv(1, pairs="{{0,1}}")
                lines.recv_done(1)

        truth = "ok" if place == 1 else "refused"
        yield ranked("invalid peer", f"sent to 1, received on {place}", truth, ranks, told, {"send1", "recv1"})


def dones() -> Iterator[Case]:
    """A send or a recv without its done, with two, or with that of another channel."""
    for ranks, word, what in itertools.product(
        (2, 3), ("send", "recv"), ("none", "one", "two", "another channel's", "the other's")
    ):

        def program(lines: Lines, rank: int) -> None:
            if rank > 1:
                return
            mine = ("send", "recv")[rank] == word
            (lines.send if rank == 0 else lines.recv)(1)
            if mine and what == "the other's":
                opcode, shape = ("recv-done", "(f32[12], token[])") if rank == 0 else ("send-done", "token[]")
                lines.add(f"{word}_done1", f"{shape} {opcode}({word}1), channel_id=1")
                return
            if mine and what == "another channel's":
                shape, opcode = ("token[]", "send-done") if rank == 0 else ("(f32[12], token[])", "recv-done")
                lines.add(f"{word}_done1", f"{shape} {opcode}({word}1), channel_id=2")
                return
            for number in range({"none": 0, "two": 2}.get(what, 1) if mine else 1):
                (lines.send_done if rank == 0 else lines.recv_done)(1, f".{number}")

        truth = "ok" if what == "one" else "refused"
        names = {f"{word}1", f"{word}_done1", *(f"{word}_done1.{n}" for n in (0, 1))}
        yield ranked("missing wait", f"{word} with {what} done", truth, ranks, program, names)
