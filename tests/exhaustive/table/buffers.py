"""Local concurrency: a buffer that is written between the start and the done of a pair, or that two pairs share."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from .case import Case, alike, ranked
from .writer import KINDS, SIZE, Call, Lines

WRITERS = ("dynamic-update-slice", "scatter", "fusion")
PLACES = ("before", "between", "behind", "between, of a copy")


def rows() -> Iterator[Case]:
    yield from written_in_flight()
    yield from written_in_callees()
    yield from sent_and_written()
    yield from two_pairs()


def _write(lines: Lines, writer: str, name: str, array: str) -> None:
    """An op that writes over an array."""
    zero = lines.constant(0)
    value = lines.add(lines.fresh("new"), "f32[1] constant({7})")
    if writer == "dynamic-update-slice":
        lines.add(name, f"f32[{SIZE}] dynamic-update-slice({array}, {value}, {zero})")
    elif writer == "scatter":
        lines._reducer("add.f32")
        index = lines.add(lines.fresh("index"), f"s32[1,1] reshape({zero})")
        dimensions = "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}"
        text = f"scatter({array}, {index}, {value}), {dimensions}, index_vector_dim=1, to_apply=add.f32"
        lines.add(name, f"f32[{SIZE}] {text}")
    else:
        fused = _updating(lines, "fused")
        lines.add(name, f"f32[{SIZE}] fusion({array}, {value}, {zero}), kind=kLoop, calls={fused}")


def _updating(lines: Lines, stem: str) -> str:
    name = lines.fresh(stem)
    lines.callees.append(
        f"{name} {{\n  array = f32[{SIZE}] parameter(0)\n  value = f32[1] parameter(1)\n  place = s32[] parameter(2)\n"
        f"  ROOT {name}.update = f32[{SIZE}] dynamic-update-slice(array, value, place)\n}}"
    )
    return name


def _around(lines: Lines, call: Call, writer: str, place: str) -> None:
    """A start and its done, and a write before, between or behind them."""
    if place == "before":
        _write(lines, writer, "write", "x")
    array = lines.add("apart", f"f32[{SIZE}] copy(x)") if "copy" in place else "x"
    lines.start(call)
    if place.startswith("between"):
        _write(lines, writer, "write", array)
    lines.done(call)
    if place == "behind":
        _write(lines, writer, "write", "x")


def written_in_flight() -> Iterator[Case]:
    """What a started collective reads is written over before its done."""
    for kind, ranks, writer, place in itertools.product(KINDS, (2, 3), WRITERS, PLACES):
        call = Call(kind, 1)

        def program(lines: Lines) -> None:
            _around(lines, call, writer, place)
            lines.call(Call("all-reduce", 9, "after"))

        truth = "refused" if place == "between" else "ok"
        name = f"{writer} {place}, {kind}"
        yield alike("local concurrency", name, truth, ranks, program, {"write", f"{call.name}.start"})


def written_in_callees() -> Iterator[Case]:
    """The same in a loop, in a branch and in a call."""
    for form, writer, place in itertools.product(("loop", "branch", "call"), WRITERS, PLACES):
        call = Call("all-reduce", 1)

        def program(lines: Lines) -> None:
            def body(inside: Lines) -> None:
                _around(inside, call, writer, place)

            if form == "loop":
                lines.loop("repeat", lines.constant(2), body)
            elif form == "branch":
                lines.branch("choice", lines.compare(lines.constant(1), "GT", 0), body)
            else:
                lines.nested("inner", body)

        truth = "refused" if place == "between" else "ok"
        name = f"{writer} {place}, in a {form}"
        yield alike("local concurrency", name, truth, 2, program, {"write", f"{call.name}.start"})


def sent_and_written() -> Iterator[Case]:
    """What is sent is written over before the send is done."""
    for ranks, writer, place in itertools.product((2, 3), WRITERS, PLACES):

        def program(lines: Lines, rank: int) -> None:
            if rank == 1:
                lines.blocking_recv(1)
            if rank == 0:
                if place == "before":
                    _write(lines, writer, "write", "x")
                array = lines.add("apart", f"f32[{SIZE}] copy(x)") if "copy" in place else "x"
                lines.send(1)
                if place.startswith("between"):
                    _write(lines, writer, "write", array)
                lines.send_done(1)
                if place == "behind":
                    _write(lines, writer, "write", "x")

        truth = "refused" if place == "between" else "ok"
        yield ranked("local concurrency", f"{writer} {place}, send", truth, ranks, program, {"write", "send1"})


def two_pairs() -> Iterator[Case]:
    """Two pairs at a time: both write to one buffer, one writes and one reads, both read; or one after the other."""
    for kind, first, second, is_apart in itertools.product(KINDS, ("write", "read"), ("write", "read"), (False, True)):
        call = Call(kind, 1)

        def program(lines: Lines) -> None:
            _begin(lines, call, "one", first)
            if is_apart:
                _end(lines, call, "one", first)
            _begin(lines, call, "two", second)
            if not is_apart:
                _end(lines, call, "one", first)
            _end(lines, call, "two", second)

        is_faulty = not is_apart and "write" in (first, second)
        name = f"{first} and {second}, {kind}, {'one after the other' if is_apart else 'at a time'}"
        guilty = {"one", "two", *(f"{_named(call, each).name}.start" for each in ("one", "two"))}
        yield alike("local concurrency", name, "refused" if is_faulty else "ok", 2, program, guilty)


def _named(call: Call, name: str) -> Call:
    return Call(call.kind, call.number + (name == "two"), name)


def _begin(lines: Lines, call: Call, name: str, what: str) -> None:
    if what == "read":
        lines.start(_named(call, name))
        return
    zero = lines.constant(0)
    value = lines.add(lines.fresh("new"), "f32[1] constant({7})")
    shape = f"((f32[{SIZE}], f32[1], s32[]), f32[{SIZE}], s32[])"
    lines.add(name, f"{shape} async-start(x, {value}, {zero}), calls={_updating(lines, 'wrapped')}")


def _end(lines: Lines, call: Call, name: str, what: str) -> None:
    if what == "read":
        lines.done(_named(call, name))
    else:
        lines.add(f"{name}.done", f"f32[{SIZE}] async-done({name})")
        lines.add(f"{name}.read", f"f32[{SIZE}] negate({name}.done)")
