"""A computation with a whole exchange that is called from several depths: every call has operations of its own."""

from __future__ import annotations

import itertools

import pytest

import xbuild as xb

PAIRS = [(0, 1), (1, 0)]


def exchange(first: str) -> xb.Computation:
    """Both halves of one channel with their dones, the recv or the send first."""

    @xb.computation(xb.f32[2])
    def found(x):  # type: ignore[no-untyped-def]
        begun = xb.send(x, channel_id=1, source_target_pairs=PAIRS) if first == "send" else None
        posted = xb.recv(x.builder, xb.f32[2], channel_id=1, source_target_pairs=PAIRS)
        if begun is None:
            begun = xb.send(x, channel_id=1, source_target_pairs=PAIRS)
        got = xb.recv_done(posted, channel_id=1)[0]
        xb.send_done(begun, channel_id=1)
        return got

    return found


def program(parts: str, first: str) -> xb.Module:
    """An exchange for each letter: `e` in a call, `c` in a call of a call, `l` twice in a loop, `b` in a branch."""
    called = exchange(first)

    @xb.computation(xb.f32[2])
    def main(x):  # type: ignore[no-untyped-def]
        for part in parts:
            if part == "e":
                x = xb.call(x, called)
            elif part == "c":
                x = xb.call(x, lambda y: xb.call(y, called))
            elif part == "b":
                x = xb.conditional(
                    xb.constant(x.builder, literal=True), x, lambda y: xb.call(y, called), x, lambda y: y
                )
            else:
                x = xb.while_((0, x), lambda s: s[0] < 2, lambda s: (s[0] + 1, xb.call(s[1], called)))[1]
        return x

    return xb.Module(f"m_{parts}", main)


def ends(found: xb.Module | xb.ModuleGroup, check: bool) -> bool:
    try:
        xb.execute(found, [[[1, 2]], [[3, 4]]], check=check)
    except xb.Stopped:
        return False
    return True


@pytest.mark.parametrize("parts", ["e", "ee", "ec", "el", "le", "cl", "eb", "elc", "lel"])
def test_one_program_on_both_devices_is_ok_and_runs(parts: str) -> None:
    module = program(parts, "recv")
    both = xb.Module("both", module.entry, num_replicas=2)
    assert xb.check(both).kind == "ok"
    assert ends(both, check=True)


@pytest.mark.parametrize(("mine", "theirs"), [*itertools.product(("e", "ec", "l", "el", "le", "lel", "ell"), repeat=2)])
@pytest.mark.parametrize("first", ["recv", "send"])
def test_the_verdict_on_two_programs_is_what_a_run_does(mine: str, theirs: str, first: str) -> None:
    group = xb.ModuleGroup({0: program(mine, first), 1: program(theirs, first)})
    verdict = xb.check(group)
    assert verdict.kind in ("ok", "error", "deadlock")
    assert ends(group, check=verdict.kind == "ok") == (verdict.kind == "ok")


def test_a_call_around_one_half_is_no_other_nest() -> None:
    """A send of the entry meets a recv in a call, since a call runs what it calls once."""

    @xb.computation(xb.f32[2])
    def sending(x):  # type: ignore[no-untyped-def]
        return xb.send_done(xb.send(x, channel_id=1), channel_id=1)

    @xb.computation(xb.f32[2])
    def receiving(x):  # type: ignore[no-untyped-def]
        return xb.call(x, lambda y: y + xb.recv_done(xb.recv(y.builder, xb.f32[2], channel_id=1), channel_id=1)[0])

    group = xb.ModuleGroup({0: xb.Module("a", sending), 1: xb.Module("b", receiving)})
    assert xb.check(group).kind == "ok"
    assert xb.execute(group, [[[1, 2]], [[3, 4]]])[1].tolist() == [4, 6]
