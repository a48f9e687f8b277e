"""Levels of asynchronous pairs and of tokens."""

from __future__ import annotations

from collections.abc import Sequence

import xbuild as xb

from ...core.builder import Value
from ...core.graph import ModuleGroup
from ..shipped import Body, group, level, received, sent, total

BOTH = (0, 1)


def _pair(x: Value, name: str, channel: int) -> tuple[Value, Value]:
    """Start a sum; returns the start and its done."""
    start = xb.all_reduce_start(x, xb.add, channel_id=channel, replica_groups=[BOTH], name=f"start_{name}")
    return start, xb.all_reduce_done(start, name=f"done_{name}")


def _started(names: Sequence[tuple[str, int]]) -> Body:
    return lambda x: [_pair(x, name, channel)[1] for name, channel in names]


@level(18)
def starts_and_dones() -> ModuleGroup:
    """Starts and dones.

    A start returns at once; its done waits until all devices of the group have started. Here both sums are such pairs.
    """
    return group(*[_started([("a", 1), ("b", 2)])] * 2)


def _done_in_between(first: str, second: str) -> Body:
    """Two sums, of which the second starts after the first is done."""
    channels = {"a": 1, "b": 2}

    def body(x: Value) -> Sequence[Value]:
        done = _pair(x, first, channels[first])[1]
        return [_pair(done, second, channels[second])[1]]

    return body


@level(19)
def no_overlap() -> ModuleGroup:
    """Pairs that do not overlap.

    On both devices, the second pair starts after the first is done. The devices have the pairs in different orders.
    """
    return group(_done_in_between("a", "b"), _done_in_between("b", "a"))


@level(20)
def a_pair_and_a_sum() -> ModuleGroup:
    """A pair on one side.

    Device 0 starts the sum and takes its result later; device 1 sums at once. Device 0 also sends a value to
    device 1.
    """

    def first(x: Value) -> Sequence[Value]:
        return [_pair(x, "sum", 1)[1], sent(x, 0, 1, 2)]

    def second(x: Value) -> Sequence[Value]:
        return [*_pair(x, "sum", 1)[1:], *received(x, 0, 1, 2)]

    return group(first, second)


@level(14)
def tokens() -> ModuleGroup:
    """Tokens.

    On device 0, a token orders the two sends; on device 1, a token orders the two recvs in the opposite order.
    """

    def first(x: Value) -> Sequence[Value]:
        return [sent(x, 0, 1, 2, [sent(x, 0, 1, 1)])]

    def second(x: Value) -> Sequence[Value]:
        value, token = received(x, 0, 1, 2)
        return [value, *received(x, 0, 1, 1, [token])]

    return group(first, second)


@level(15, send_buffers=1)
def tokens_with_a_buffer() -> ModuleGroup:
    """Tokens, with a buffer.

    The machine has a buffer for one value of each channel, and the programs are those of level 14.
    """
    return tokens()  # type: ignore[return-value]


@level(17)
def a_sum_between_transfers() -> ModuleGroup:
    """A sum between transfers.

    Three devices sum, and a value goes from device 0 to device 1, then to device 2.
    """
    every = (0, 1, 2)

    def middle(x: Value) -> Sequence[Value]:
        value, token = received(x, 0, 1, 2)
        return [total(x, "sum", 1, every), sent(value, 1, 2, 3, [token])]

    return group(
        lambda x: [total(x, "sum", 1, every), sent(x, 0, 1, 2)],
        middle,
        lambda x: [total(x, "sum", 1, every), *received(x, 1, 2, 3)],
    )
